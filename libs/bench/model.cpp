#include "libs/bench/model.hpp"

#include "libs/bench/bare_driver.hpp"
#include "libs/bench/io_plan.hpp"
#include "libs/bench/timing.hpp"
#include "libs/media/modelled.hpp"
#include "libs/media/names.hpp"
#include "penstock/core/clock.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace penstock::bench {
namespace {

[[noreturn]] void refuse_model(std::string const& problem) { throw_bad_input("measure", "a modelled drive", problem); }

constexpr char const* all_kinds[] = {"read", "write", "read-latency", "write-latency"};

model_bench_options checked(model_bench_options options, executor const& on) {
  const bool cuda = on.kind() == executor_kind::cuda;
  if (options.repeats == 0 || options.samples == 0) refuse_model("0 repeats or samples: ask for 1 or more");
  for (const u32 bytes : options.blocks) media::check_block(bytes);
  const bool curve = !options.depths.empty();
  // A curve is the drive's, not that of a queue and its warps: so many queues that theirs is not met.
  if (options.queues.empty() && curve) options.queues = {cuda ? 16u : 1u};
  if (options.queues.empty()) options.queues = cuda ? std::vector<u32>{1, 128} : std::vector<u32>{1, 4};
  if (!is_power_of_two(options.queue_depth) || options.queue_depth < 8) {
    refuse_model("rings of " + std::to_string(options.queue_depth) + " entries: choose a power of two from 8 on");
  }
  const u32 most_batch = most_batch_of(options.queue_depth);
  if (options.batch == 0) options.batch = usual_batch(on, options.queue_depth);
  if (!is_power_of_two(options.batch) || options.batch > most_batch) {
    refuse_model("batches of " + std::to_string(options.batch) + ": choose a power of two up to " + std::to_string(most_batch));
  }
  for (auto const& kind : options.kinds) {
    if (std::find(std::begin(all_kinds), std::end(all_kinds), kind) == std::end(all_kinds)) {
      refuse_model("there is no " + kind + ": choose of read, write, read-latency, write-latency");
    }
  }
  if (options.kinds.empty()) options.kinds.assign(std::begin(all_kinds), std::end(all_kinds));
  if (curve && options.preset == "none") refuse_model("a curve over depths of a drive that takes no time: name a preset");
  for (const u32 queues : options.queues) {
    if (curve && !is_power_of_two(queues)) {
      refuse_model("a curve over depths by " + std::to_string(queues) + " queues: choose a power of two");
    }
    const u64 most_depth = u64{queues} * most_batches_in_flight * options.batch;
    for (const u32 depth : options.depths) {
      if (is_power_of_two(depth) && depth <= most_depth) continue;
      refuse_model("depth " + std::to_string(depth) + ": choose powers of two up to " + std::to_string(most_depth) +
                   ", what so many queues keep in flight in such batches");
    }
  }
  if (!is_power_of_two(options.drive_mib)) {
    refuse_model("a drive of " + std::to_string(options.drive_mib) + " MiB: choose a power of two");
  }
  if (options.drive_mib > 1 << 20)
    refuse_model("a drive of " + std::to_string(options.drive_mib) + " MiB: choose 1 TiB or less");
  media::check_memory(on, media::parse_place(options.media), options.drive_mib << 20);
  return options;
}

/// What one server with one set of queues gives.
struct setting {
  u32 server_sms = 0;
  u32 servers = 4;
  u32 block_bytes = 512;
  u32 queues = 1;
};

class model_bench {
 public:
  model_bench(executor& on, model_bench_options const& options, buffer<u64>& media, setting const& s)
      : on_(on), options_(options), media_(media), setting_(s),
        server_(on, {.units = s.server_sms, .servers_per_queue = s.servers}),
        drive_(server_.add_drive({.timing = drive_preset(options.preset), .faults = {}})), samples_(on, options.samples) {
    units_ = media::client_units(on, server_, options.sms);
    bare_options queues;
    queues.namespace_id = drive_.add_namespace(media.data(), media.bytes(), s.block_bytes);
    queues.block_bytes = s.block_bytes;
    queues.queues = s.queues;
    queues.entries = options.queue_depth;
    queues.commands = options.batch * most_batches_in_flight;
    queues.rings = media::parse_place(options.rings);
    queues.data = memory_kind::local;
    queues.poll_in_place = !cuda() && server_.units() == 0;
    media::check_memory(on, queues.data, bare_queues::bytes(queues));
    bare_.emplace(on, drive_, queues, options.batch, media.bytes() / s.block_bytes, units_);
    if (cuda()) prepare_bare_cuda(on, {bare_->data}, {bare_->data, samples_.view()});
    server_.start();
  }

  measurement rate(bool writes) {
    bare_->used = setting_.queues;
    const u64 batches = options_.commands != 0 ? batches_of(options_.commands) : bare_->calibrated(writes);
    const u64 commands = batches * options_.batch * setting_.queues;
    measurement m;
    kernel_facts facts;
    for (u32 k = 0; k < options_.repeats; ++k) {
      const u64 start = now_ns();
      facts = bare_->run(batches, writes, false);
      m.values.push_back(static_cast<double>(commands) / static_cast<double>(now_ns() - start) * 1e9);
    }
    verify(writes, bare_->data.blocks);
    m.id = name() + (writes ? ".write" : ".read");
    m.unit = "commands/s";
    note_commands(m, options_.commands, commands);
    m.params["batch"] = std::to_string(options_.batch);
    m.bytes = {{options_.media, static_cast<double>(commands) * setting_.block_bytes}};
    m.details["gb_per_s"] = median(m.values) * setting_.block_bytes * 1e-9;
    m.warps = setting_.queues;
    describe(m, facts);
    return m;
  }

  /// With `depth` commands in flight over the queues, as the drive counts them.
  measurement at_depth(bool writes, u32 depth) {
    bare_->used = std::min(depth, setting_.queues);
    bare_->data.in_flight = std::min(depth / bare_->used, most_batches_in_flight);
    bare_->data.batch = depth / bare_->used / bare_->data.in_flight;
    bare_->data.writes = writes;
    io_options drive;
    drive.preset = options_.preset;
    drive.block_bytes = setting_.block_bytes;
    drive.write_percent = writes ? 100 : 0;
    // How long a run takes is known beforehand: a tenth of a second. Half as long before it, so that the drive has its lead.
    const double expected = drive_limit(drive, depth, 1ull << 40);
    const u64 batches = batches_of(options_.commands != 0 ? options_.commands : static_cast<u64>(expected / 10));
    // Writes leave blocks that are right in their first word only, so they go where they are verified.
    const u64 all_blocks = bare_->data.blocks;
    const u64 some_blocks = std::min(all_blocks, u64{1} << ceil_log2(static_cast<u64>(expected / 40) + depth));
    if (writes) bare_->data.blocks = some_blocks;
    bare_->run(ceil_div(batches, 2), writes, false);
    measurement m;
    kernel_facts facts;
    drive_time all;
    for (u32 k = 0; k < options_.repeats; ++k) {
      const drive_time once = timed_run(batches, writes, facts);
      m.values.push_back(once.commands / once.busy_ns * 1e9);
      m.baseline_values.push_back(drive_limit(drive, once.in_flight(), batches * bare_->data.batch * bare_->used));
      all.add(once);
    }
    verify(writes, some_blocks);
    m.id = name() + (writes ? ".write" : ".read") + ".depth";
    describe_depth(m, facts, depth, all);
    note_commands(m, options_.commands, batches * bare_->data.batch * bare_->used);
    bare_->data.blocks = all_blocks;
    bare_->data.in_flight = most_batches_in_flight;
    bare_->data.batch = options_.batch;
    return m;
  }

  measurement latency(bool writes) {
    measurement m;
    kernel_facts facts;
    if (writes) clear_media(bare_->data.blocks);
    samples_.clear();
    bare_->data.writes = writes;
    for (u32 k = 0; k < options_.repeats; ++k) {
      const time_commands body{bare_->data, samples_.view()};
      bare_->data.first += options_.samples;
      facts = cuda() ? time_commands_cuda(on_, body) : time_commands_cpu(on_, body);
      bare_->check_wrong(options_.samples);
      m.values.push_back(samples_.add_run());
    }
    bare_->used = setting_.queues;
    if (writes) verify(true, bare_->data.blocks);
    m.id = name() + (writes ? ".write-latency" : ".read-latency");
    m.unit = "us";
    samples_.describe(m);
    m.params["samples"] = std::to_string(options_.samples);
    m.bytes = {{options_.media, static_cast<double>(options_.samples) * setting_.block_bytes}};
    m.warps = 1;
    describe(m, facts);
    return m;
  }

 private:
  bool cuda() const { return on_.kind() == executor_kind::cuda; }

  /// What the drive counts of a run, and how long its client took.
  struct drive_time {
    double commands = 0, busy_ns = 0, residence_ns = 0, run_ns = 0;

    double in_flight() const { return residence_ns / busy_ns; }
    void add(drive_time const& more) {
      commands += more.commands;
      busy_ns += more.busy_ns;
      residence_ns += more.residence_ns;
      run_ns += more.run_ns;
    }
  };

  drive_time timed_run(u64 batches, bool writes, kernel_facts& facts) {
    const u64 commands = batches * bare_->data.batch * bare_->used;
    const model_traffic before = told();
    const u64 start = now_ns();
    facts = bare_->run(batches, writes, false);
    const u64 took = now_ns() - start;
    const model_traffic after = told();
    const u64 counted = after.reads + after.writes - before.reads - before.writes;
    if (counted != commands) {
      throw error(error_kind::world, "measure a modelled drive: it counted " + std::to_string(counted) + " of " +
                                         std::to_string(commands) + " commands");
    }
    return {static_cast<double>(commands), static_cast<double>(after.busy_ns - before.busy_ns),
            static_cast<double>(after.residence_ns - before.residence_ns), static_cast<double>(took)};
  }

  void describe_depth(measurement& m, kernel_facts facts, u32 depth, drive_time const& all) const {
    m.unit = "commands/s";
    m.baseline = "the drive's figures and Little's law, for what was in flight";
    m.bytes = {{options_.media, all.commands / options_.repeats * setting_.block_bytes}};
    const double client_rate = all.commands / all.run_ns * 1e9, residence_ns = all.residence_ns / all.commands;
    m.details["mean_in_flight"] = all.in_flight();
    m.details["residence_us"] = residence_ns * 1e-3;
    m.details["client_commands_per_s"] = client_rate;
    m.details["deviation"] = median(m.values) / median(m.baseline_values) - 1;
    // The client's rate times the drive's residence, over what the drive had in flight: less than 0 by the share of the run in
    // which it had nothing.
    m.details["littles_law"] = client_rate * residence_ns * 1e-9 / all.in_flight() - 1;
    m.warps = bare_->used;
    describe(m, facts);
    m.params["depth"] = std::to_string(depth);
    m.params["queues"] = std::to_string(bare_->used);
  }

  /// Batches of each queue that are so many commands over all that are used.
  u64 batches_of(u64 commands) const { return std::max<u64>(1, ceil_div(commands, u64{bare_->data.batch} * bare_->used)); }

  void clear_media(u64 blocks) {
    const std::vector<u64> zeros(blocks * setting_.block_bytes / sizeof(u64));
    on_.memory().write(media_.data(), zeros.data(), zeros.size() * sizeof(u64));
  }

  // The first `blocks`, a power of two: written anew where commands write, after they were cleared; then read and looked at
  // word by word.
  void verify(bool writes, u64 blocks) {
    const u64 all = std::exchange(bare_->data.blocks, blocks);
    const u64 batches = ceil_div(blocks, u64{bare_->data.batch} * bare_->used);
    if (writes) {
      clear_media(blocks);
      bare_->run(batches, true, true);
    }
    bare_->run(batches, false, true);
    bare_->data.blocks = all;
  }

  model_traffic told() {
    server_.stop();  // which tells what the drive has counted so far
    const model_traffic traffic = drive_.traffic();
    server_.start();
    return traffic;
  }

  std::string name() const {
    const u32 bytes = setting_.block_bytes;
    return "model." + (bytes % 1024 == 0 ? std::to_string(bytes / 1024) + "k" : std::to_string(bytes)) + "." + options_.media;
  }

  void describe(measurement& m, kernel_facts facts) const {
    if (options_.preset != "none") m.id += "." + options_.preset;
    m.verified = true;  // check_wrong throws where it is not
    m.registers = facts.registers;
    m.sms = cuda() ? std::min(units_, static_cast<u32>(ceil_div(m.warps * 32, cuda_block_threads))) : 0;
    m.details["local_bytes"] = facts.local_bytes;
    m.params["executor"] = cuda() ? "cuda" : "cpu";
    m.params["block_bytes"] = std::to_string(setting_.block_bytes);
    m.params["preset"] = options_.preset;
    m.params["queues"] = std::to_string(setting_.queues);
    m.params["queue_depth"] = std::to_string(options_.queue_depth);
    m.params["server_units"] = std::to_string(server_.units());
    m.params["servers_per_queue"] = std::to_string(setting_.servers);
    m.params["rings"] = options_.rings;
    m.machine = describe_host();
    m.machine["device"] = on_.device();
  }

  executor& on_;
  model_bench_options const& options_;
  buffer<u64>& media_;
  setting setting_;
  model_server server_;
  model_drive& drive_;
  timed_samples samples_;
  std::optional<bare_driver> bare_;  ///< after what its commands may touch
  u32 units_ = 0;
};

/// Every setting once; latencies with the first number of queues only, for they use one.
void measure(executor& on, model_bench_options const& options, buffer<u64>& media, setting const& s, measurement_list& found) {
  model_bench run(on, options, media, s);
  for (const u32 depth : options.depths) {
    for (auto const& kind : options.kinds) {
      if (options.progress) options.progress("depth " + std::to_string(depth), 0, 1);
      if (!kind.ends_with("latency")) found.add(run.at_depth(kind == "write", depth));
    }
  }
  if (!options.depths.empty()) return;
  for (auto const& kind : options.kinds) {
    const bool writes = kind.starts_with("write"), latency = kind.ends_with("latency");
    if (latency && s.queues != options.queues.front()) continue;
    if (options.progress) options.progress(kind + ", " + std::to_string(s.queues) + " queues", 0, 1);
    found.add(latency ? run.latency(writes) : run.rate(writes));
  }
}

}  // namespace

std::vector<measurement> run_model_benchmark(model_bench_options const& asked) {
  const auto on = open_executor(asked.executor, 0, built_with_kernels);
  const model_bench_options options = checked(asked, *on);
  buffer<u64> media(on->memory(), media::parse_place(options.media), options.drive_mib << 17);
  std::vector<u64> words(media.size());
  for (u64 w = 0; w < words.size(); ++w) words[w] = value_at(w);
  media.write(words);
  measurement_list found(options.found);
  for (const u32 server_sms : options.server_sms) {
    for (const u32 servers : options.servers) {
      for (const u32 block_bytes : options.blocks) {
        for (const u32 queues : options.queues) measure(*on, options, media, {server_sms, servers, block_bytes, queues}, found);
      }
    }
  }
  return found.take();
}

}  // namespace penstock::bench
