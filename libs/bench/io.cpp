#include "libs/bench/io.hpp"

#include "libs/bench/hit_kernels.hpp"
#include "libs/bench/io_kernels.hpp"
#include "libs/bench/io_plan.hpp"
#include "libs/media/modelled.hpp"
#include "libs/media/names.hpp"
#include "penstock/controller/model_server.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/runtime/block_device.hpp"

#include <algorithm>

namespace penstock::bench {
namespace {

[[noreturn]] void refuse_commands(std::string const& problem) { throw_bad_input("measure", "commands", problem); }

io_options checked(io_options options) {
  media::check_block(options.block_bytes);
  if (options.drives == 0 || options.drives > most_drives) {
    refuse_commands(std::to_string(options.drives) + " drives: choose 1 to " + std::to_string(most_drives));
  }
  if (options.in_flight == 0) refuse_commands("0 commands of a thread in flight: ask for 1 or more");
  if (options.queues < options.drives) refuse_commands(std::to_string(options.queues) + " queues: each drive needs one");
  if (options.write_percent > 100) refuse_commands(std::to_string(options.write_percent) + " % writes: choose 0 to 100");
  if (options.repeats == 0) refuse_commands("0 repeats: ask for 1 or more");
  if (options.drive_mib == 0) options.drive_mib = options.drives > 4 ? 256 : 1024;
  if (!is_power_of_two(options.drive_mib) || options.drive_mib > 1 << 20) {
    refuse_commands("drives of " + std::to_string(options.drive_mib) + " MiB: choose a power of two up to 1 TiB");
  }
  media::parse_place(options.media);
  media::parse_place(options.rings);
  drive_preset(options.preset);
  link_preset(options.link);
  return options;
}

/// What a bench is built for; steps that differ in nothing of it share one.
bool same_bench(io_options const& a, io_options const& b) {
  return a.preset == b.preset && a.link == b.link && a.media == b.media && a.rings == b.rings &&
         a.block_bytes == b.block_bytes && a.queue_depth == b.queue_depth && a.first_ticket == b.first_ticket &&
         a.drive_mib == b.drive_mib && u64{a.queues} * b.drives == u64{b.queues} * a.drives;
}

class io_bench {
 public:
  /// For steps of up to the drives and the threads of `options`.
  io_bench(executor& on, io_options const& options)
      : on_(on), options_(options),
        server_(on,
                {.units = options.server_sms, .device = options.server_device, .link_bytes_per_s = link_preset(options.link)}),
        wrong_(on.memory(), memory_kind::local, 1) {
    job_.threads = options.threads;
    job_.units = media::client_units(on, server_, options.sms);
    const u64 threads = threads_of(on, job_);
    media::check_memory(on, media::parse_place(options.media), u64{options.drives} * (options.drive_mib << 20));
    media::check_memory(on, memory_kind::local, threads * options.in_flight * options.block_bytes);
    io_.drives = options.drives;
    io_.block_words = options.block_bytes / 8;
    io_.blocks = (options.drive_mib << 20) / options.block_bytes;
    io_.wrong = wrong_.data();
    data_ = {on.memory(), memory_kind::local, threads * options.in_flight * io_.block_words};
    requests_ = {on.memory(), memory_kind::local, threads * options.in_flight};
    io_.data = data_.data();
    io_.requests = requests_.data();
    for (u32 d = 0; d < options.drives; ++d) add_drive(d);
    run_commands body{io_};
    if (cuda()) prepare_commands_cuda(on, body);
  }

  measurement measure(io_step const& step) {
    step_ = step.options;
    job_.threads = step_.threads;
    io_.drives = step_.drives;
    io_.sequential = step_.sequential;
    io_.in_flight = step_.in_flight;
    const u64 threads = threads_of(on_, job_);
    io_.lanes = cuda() ? static_cast<u32>(std::min<u64>(32, threads)) : 1;
    measurement m;
    zero_copy(m);
    server_.start();
    const u64 commands = step_.commands != 0 ? step_.commands : calibrated(threads);
    server_.stop();  // which tells what the drives have counted so far
    const model_traffic before = traffic();
    server_.start();
    kernel_facts facts;
    for (u32 k = 0; k < options_.repeats; ++k) {
      if (options_.progress) options_.progress("issuing commands", k, options_.repeats);
      const u64 start = now_ns();
      facts = run(commands, step_.write_percent, false);
      m.values.push_back(static_cast<double>(commands) / static_cast<double>(now_ns() - start) * 1e9);
    }
    server_.stop();
    describe_traffic(m, before, traffic());
    server_.start();
    verify();
    server_.stop();
    m.verified = true;  // run() throws where it is not
    describe(m, facts, threads, commands);
    compare(m, step, threads, commands);
    return m;
  }

 private:
  bool cuda() const { return on_.kind() == executor_kind::cuda; }

  void add_drive(u32 d) {
    media_.emplace_back(server_.memory(), media::parse_place(options_.media), options_.drive_mib << 17);
    std::vector<u64> words(media_.back().size());
    for (u64 w = 0; w < words.size(); ++w) words[w] = block_word(d, w / io_.block_words, w % io_.block_words, io_.block_words);
    media_.back().write(words);
    drives_.push_back(&server_.add_drive({.timing = drive_preset(options_.preset), .faults = {}}));
    near_host_.push_back(std::make_unique<media::host_reaching>(*drives_.back()));
    const u32 space = drives_.back()->add_namespace(media_.back().data(), media_.back().bytes(), options_.block_bytes);
    const u32 queues = options_.queues / options_.drives + (d < options_.queues % options_.drives ? 1 : 0);
    block_device_options device;
    device.queues = queues;
    device.queue_depth = options_.queue_depth;
    device.first_ticket = options_.first_ticket - options_.first_ticket % std::max(1u, options_.queue_depth);
    device.timeout_ns = 10 * one_second_ns;
    device.transfer_bytes = options_.block_bytes;
    device.rings = media::parse_place(options_.rings);
    controller& owner = device.rings == memory_kind::local ? static_cast<controller&>(*drives_.back()) : *near_host_.back();
    devices_.push_back(std::make_unique<block_device>(on_, owner, space, device));
    io_.devices[d] = devices_.back()->view();
  }

  kernel_facts run(u64 commands, u32 write_percent, bool whole) {
    run_commands body{io_};
    body.io.commands = commands;
    body.io.write_percent = write_percent;
    body.io.whole = whole;
    io_.first += commands / io_.drives;
    const kernel_facts facts = cuda() ? run_commands_cuda(on_, job_, body) : run_commands_cpu(on_, job_, body);
    u64 wrong = 0;
    on_.memory().read(&wrong, wrong_.data(), sizeof wrong);
    if (wrong != 0) {
      throw error(error_kind::world, "measure commands: " + std::to_string(wrong) + " of " + std::to_string(commands) +
                                         " failed or brought wrong bytes");
    }
    return facts;
  }

  /// As many commands as take about a tenth of a second.
  u64 calibrated(u64 threads) {
    u64 commands = std::max<u64>(1024, threads);
    for (;;) {
      const u64 start = now_ns();
      run(commands, step_.write_percent, false);
      const u64 took = now_ns() - start;
      if (took > 50'000'000 || commands >= 1ull << 28) return commands;
      commands *= took < 5'000'000 ? 8 : 2;
    }
  }

  // All blocks: written anew where commands write, after the media was cleared; then read and looked at word by word.
  void verify() {
    const u64 all = io_.blocks * io_.drives;
    if (step_.write_percent != 0) {
      const std::vector<u64> zeros(media_.front().size());
      for (u32 d = 0; d < step_.drives; ++d) media_[d].write(zeros);
      run(all, 100, true);
    }
    run(all, 0, true);
  }

  // What threads get that read the media themselves, where they lie in host memory: the link's own limit.
  void zero_copy(measurement& m) {
    if (!cuda() || options_.media != "host") return;
    hit_data data;
    data.plain = media_.front().data();
    data.wrong = wrong_.data();
    data.order = {media_.front().size(), io_.block_words, 1};
    const hit_job job{.shape = hit_shape::lines, .lines = line_kind::plain};
    run_hit_cuda(on_, job, data);
    for (u32 k = 0; k < options_.repeats; ++k) {
      const u64 start = now_ns();
      run_hit_cuda(on_, job, data);
      m.baseline_values.push_back(static_cast<double>(io_.blocks) / static_cast<double>(now_ns() - start) * 1e9);
    }
    m.baseline = "zero-copy reads of whole blocks";
  }

  void describe(measurement& m, kernel_facts facts, u64 threads, u64 commands) const {
    m.id = name(threads);
    m.unit = "commands/s";
    m.sms = cuda() ? job_.units : 0;
    m.warps = static_cast<unsigned>(cuda() ? ceil_div(threads, 32) : threads);
    m.registers = facts.registers;
    u32 queues = 0;
    u64 doorbells = 0, given = 0, tickets = 0;
    for (u32 d = 0; d < step_.drives; ++d) {
      for (auto const& q : devices_[d]->queues()) {
        ++queues;
        doorbells += q.doorbells;
        given += q.commands;
        tickets = std::max(tickets, q.commands);
      }
    }
    m.params = {{"executor", cuda() ? "cuda" : "cpu"},
                {"block_bytes", std::to_string(step_.block_bytes)},
                {"drives", std::to_string(step_.drives)},
                {"preset", step_.preset},
                {"link", step_.link},
                {"queues", std::to_string(queues)},
                {"queue_depth", std::to_string(step_.queue_depth)},
                {"threads", std::to_string(threads)},
                {"in_flight", std::to_string(step_.in_flight)},
                {"write_percent", std::to_string(step_.write_percent)},
                {"order", step_.sequential ? "sequential" : "random"},
                {"server_units", std::to_string(server_.units())},
                {"server_device", cuda() && options_.server_device >= 0 ? std::to_string(options_.server_device) : "own"},
                {"rings", step_.rings}};
    note_commands(m, step_.commands, commands);
    m.bytes = {{step_.media, static_cast<double>(commands) * step_.block_bytes}};
    m.details["gb_per_s"] = median(m.values) * step_.block_bytes * 1e-9;
    m.details["local_bytes"] = facts.local_bytes;
    m.details["commands_per_doorbell"] = static_cast<double>(given) / static_cast<double>(std::max<u64>(1, doorbells));
    if (options_.first_ticket != 0) {
      m.details["first_ticket"] = static_cast<double>(options_.first_ticket);
      m.details["tickets_used"] = static_cast<double>(tickets);
    }
    m.machine = describe_host();
    m.machine["device"] = on_.device();
  }

  std::string name(u64 threads) const {
    if (options_.first_ticket != 0) return "fault.wrap";
    const u32 bytes = step_.block_bytes;
    const std::string block = bytes % 1024 == 0 ? std::to_string(bytes / 1024) + "k" : std::to_string(bytes);
    std::string id = "io." + block + "." + (step_.write_percent == 100 ? "write" : step_.media);
    if (step_.write_percent % 100 != 0) id += ".mix" + std::to_string(step_.write_percent);
    if (step_.queues == 1 && step_.sweep.empty()) id += ".onequeue";
    if (cuda() && threads <= 1024 && step_.sweep.empty()) id += ".fewthreads";
    if (step_.in_flight != 1 && step_.sweep.empty()) id += ".inflight" + std::to_string(step_.in_flight);
    if (step_.preset != "none") id += "." + step_.preset;
    if (step_.rings == "host") id += ".hostrings";
    return id;
  }

  model_traffic traffic() const {
    model_traffic sum;
    for (auto* drive : drives_) {
      const model_traffic t = drive->traffic();
      sum.reads += t.reads;
      sum.writes += t.writes;
      sum.residence_ns += t.residence_ns;
      sum.busy_ns += t.busy_ns;
    }
    return sum;
  }

  // What the drives have seen of the runs, of each of them.
  void describe_traffic(measurement& m, model_traffic const& before, model_traffic const& after) const {
    if (step_.preset == "none") return;
    const double residence = static_cast<double>(after.residence_ns - before.residence_ns);
    const double busy = static_cast<double>(after.busy_ns - before.busy_ns);
    const double commands = static_cast<double>(after.reads + after.writes - before.reads - before.writes);
    m.details["mean_in_flight_per_drive"] = busy == 0 ? 0 : residence / busy;
    m.details["residence_us"] = commands == 0 ? 0 : residence / commands * 1e-3;
    m.details["commands_per_s_per_drive"] = busy == 0 ? 0 : commands / busy * 1e9;
  }

  // Beside what a paper has, or else what the drives' figures allow.
  void compare(measurement& m, io_step const& step, u64 threads, u64 commands) const {
    const u64 running = cuda() ? threads : std::min<u64>(threads, on_.units());
    const u64 at_once = std::min(running * step_.in_flight, commands);
    const double limit = drive_limit(step_, static_cast<double>(at_once), commands);
    if (!step.id.empty())
      m.id = step.id + (step.options.preset == "p5800x" && step.options.link != "none" ? "" : "." + step_.preset);
    const double scale = step.as_bandwidth ? step_.block_bytes * 1e-9 : 1;
    if (step.as_bandwidth) m.unit = "GB/s";
    for (double& v : m.values) v *= scale;
    const double value = median(m.values);
    if (limit > 0) {
      m.details["limit"] = limit * scale;
      m.details["limit_deviation"] = value / (limit * scale) - 1;
    }
    if (step.expected > 0) {
      m.baseline = step.source;
      m.baseline_values.assign(m.values.size(), step.expected);
      m.details["deviation"] = value / step.expected - 1;
    } else if (limit > 0 && m.baseline.empty()) {
      m.baseline = "the drives' figures, link and Little's law";
      m.baseline_values.assign(m.values.size(), limit * scale);
    }
  }

  executor& on_;
  io_options options_;
  io_options step_;
  model_server server_;
  std::vector<buffer<u64>> media_;
  std::vector<model_drive*> drives_;
  std::vector<std::unique_ptr<media::host_reaching>> near_host_;
  buffer<u64> wrong_, data_;
  buffer<block_request> requests_;
  std::vector<std::unique_ptr<block_device>> devices_;  ///< after what their commands may touch
  io_data io_;
  io_job job_;
};

}  // namespace

std::vector<measurement> run_io_benchmark(io_options const& asked) {
  std::vector<io_step> steps = plan_of(asked);
  for (io_step& step : steps) step.options = checked(step.options);
  const auto on = open_executor(asked.executor, executor_limits{asked.sm_share}, built_with_kernels);
  measurement_list found(asked.found);
  for (auto first = steps.begin(); first != steps.end();) {
    const auto last =
        std::find_if(first, steps.end(), [&](io_step const& s) { return !same_bench(first->options, s.options); });
    io_options most = first->options;
    for (auto step = first; step != last; ++step) {
      io_options const& o = step->options;
      if (o.drives > most.drives) most.drives = o.drives, most.queues = o.queues;
      most.in_flight = std::max(most.in_flight, o.in_flight);
      if (o.threads == 0 || (most.threads != 0 && o.threads > most.threads)) most.threads = o.threads;
    }
    io_bench run(*on, most);
    for (; first != last; ++first) {
      if (asked.progress) asked.progress("steps", static_cast<u64>(first - steps.begin()), steps.size());
      found.add(run.measure(*first));
    }
  }
  return found.take();
}

}  // namespace penstock::bench
