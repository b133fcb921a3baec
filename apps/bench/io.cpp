#include "apps/bench/io.hpp"

#include "apps/bench/hit_kernels.hpp"
#include "apps/bench/io_kernels.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/host/block_device.hpp"
#include "penstock/host/model_server.hpp"

#include <algorithm>

namespace penstock::bench {
namespace {

[[noreturn]] void refuse(std::string const& problem) { throw_bad_input("measure", "commands", problem); }

memory_kind place_of(std::string const& name) {
  if (name == "hbm") return memory_kind::local;
  if (name == "host") return memory_kind::shared;
  refuse("place " + name + ": choose hbm or host");
}

io_options checked(io_options options) {
  if (!is_power_of_two(options.block_bytes) || options.block_bytes < 512 || options.block_bytes > 65536) {
    refuse("blocks of " + std::to_string(options.block_bytes) + " bytes: choose a power of two from 512 B to 64 KiB");
  }
  if (options.drives == 0 || options.drives > most_drives) {
    refuse(std::to_string(options.drives) + " drives: choose 1 to " + std::to_string(most_drives));
  }
  if (options.queues < options.drives) refuse(std::to_string(options.queues) + " queues: each drive needs one");
  if (options.write_percent > 100) refuse(std::to_string(options.write_percent) + " % writes: choose 0 to 100");
  if (options.repeats == 0) refuse("0 repeats: ask for 1 or more");
  if (options.drive_mib == 0) options.drive_mib = options.drives > 4 ? 256 : 1024;
  if (!is_power_of_two(options.drive_mib))
    refuse("drives of " + std::to_string(options.drive_mib) + " MiB: choose a power of two");
  return options;
}

class bench {
 public:
  bench(executor& on, io_options const& options)
      : on_(on), options_(options), server_(on, {.units = options.server_sms, .link_bytes_per_s = link_preset(options.link)}),
        wrong_(on.memory(), memory_kind::local, 1) {
    job_.threads = options.threads;
    job_.units = options.sms != 0 ? options.sms : cuda() ? on.units() - server_.units() : 0;
    if (cuda() && job_.units + server_.units() > on.units()) {
      refuse(std::to_string(job_.units) + " SMs that issue and " + std::to_string(server_.units()) +
             " that serve: the GPU has " + std::to_string(on.units()));
    }
    threads_ = threads_of(on, job_);
    io_.drives = options.drives;
    io_.block_words = options.block_bytes / 8;
    io_.blocks = (options.drive_mib << 20) / options.block_bytes;
    io_.write_percent = options.write_percent;
    io_.wrong = wrong_.data();
    data_ = {on.memory(), memory_kind::local, threads_ * io_.block_words};
    requests_ = {on.memory(), memory_kind::local, threads_};
    io_.data = data_.data();
    io_.requests = requests_.data();
    for (u32 d = 0; d < options.drives; ++d) add_drive(d);
    run_commands body{io_};
    if (cuda()) prepare_commands_cuda(on, body);
  }

  measurement measure() {
    measurement m;
    zero_copy(m);
    server_.start();
    const u64 commands = options_.commands != 0 ? options_.commands : calibrated();
    kernel_facts facts;
    for (u32 k = 0; k < options_.repeats; ++k) {
      if (options_.progress) options_.progress("issuing commands", k, options_.repeats);
      const u64 start = now_ns();
      facts = run(commands, options_.write_percent, false);
      m.values.push_back(static_cast<double>(commands) / static_cast<double>(now_ns() - start) * 1e9);
    }
    verify();
    server_.stop();
    m.verified = true;  // run() throws where it is not
    describe(m, facts, commands);
    return m;
  }

 private:
  bool cuda() const { return on_.kind() == executor_kind::cuda; }

  void add_drive(u32 d) {
    media_.emplace_back(on_.memory(), place_of(options_.media), options_.drive_mib << 17);
    std::vector<u64> words(media_.back().size());
    for (u64 w = 0; w < words.size(); ++w) words[w] = block_word(d, w / io_.block_words, w % io_.block_words, io_.block_words);
    media_.back().write(words);
    drives_.push_back(&server_.add_drive({.timing = drive_preset(options_.preset), .faults = {}}));
    const u32 space = drives_.back()->add_namespace(media_.back().data(), media_.back().bytes(), options_.block_bytes);
    const u32 queues = options_.queues / options_.drives + (d < options_.queues % options_.drives ? 1 : 0);
    block_device_options device;
    device.queues = queues;
    device.queue_depth = options_.queue_depth;
    device.timeout_ns = 10 * one_second_ns;
    device.transfer_bytes = options_.block_bytes;
    device.rings = place_of(options_.rings);
    if (device.rings == memory_kind::shared && cuda()) refuse("rings in host memory: this client has them in HBM only");
    devices_.push_back(std::make_unique<block_device>(on_, *drives_.back(), space, device));
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
  u64 calibrated() {
    u64 commands = std::max<u64>(1024, threads_);
    for (;;) {
      const u64 start = now_ns();
      run(commands, options_.write_percent, false);
      const u64 took = now_ns() - start;
      if (took > 50'000'000 || commands >= 1ull << 28) return commands;
      commands *= took < 5'000'000 ? 8 : 2;
    }
  }

  // All blocks: written anew where commands write, after the media was cleared; then read and looked at word by word.
  void verify() {
    const u64 all = io_.blocks * io_.drives;
    if (options_.write_percent != 0) {
      const std::vector<u64> zeros(media_.front().size());
      for (auto& m : media_) m.write(zeros);
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

  void describe(measurement& m, kernel_facts facts, u64 commands) {
    std::string block = options_.block_bytes % 1024 == 0 ? std::to_string(options_.block_bytes / 1024) + "k"
                                                         : std::to_string(options_.block_bytes);
    m.id = "io." + block + "." + options_.media;
    if (options_.write_percent == 100) m.id = "io." + block + ".write";
    if (options_.write_percent % 100 != 0) m.id += ".mix" + std::to_string(options_.write_percent);
    if (options_.queues == 1) m.id += ".onequeue";
    if (cuda() && threads_ <= 1024) m.id += ".fewthreads";
    if (options_.preset != "none") m.id += "." + options_.preset;
    m.unit = "commands/s";
    m.sms = cuda() ? job_.units : 0;
    m.warps = static_cast<unsigned>(cuda() ? threads_ / 32 : threads_);
    m.registers = facts.registers;
    m.params = {{"executor", cuda() ? "cuda" : "cpu"},
                {"block_bytes", std::to_string(options_.block_bytes)},
                {"drives", std::to_string(options_.drives)},
                {"preset", options_.preset},
                {"link", options_.link},
                {"queues", std::to_string(options_.queues)},
                {"queue_depth", std::to_string(options_.queue_depth)},
                {"threads", std::to_string(threads_)},
                {"commands", std::to_string(commands)},
                {"server_units", std::to_string(server_.units())},
                {"rings", options_.rings}};
    u64 doorbells = 0, given = 0;
    for (auto const& device : devices_) {
      for (auto const& q : device->queues()) {
        doorbells += q.doorbells;
        given += q.commands;
      }
    }
    m.bytes = {{options_.media, static_cast<double>(commands) * options_.block_bytes}};
    m.details = {{"gb_per_s", median(m.values) * options_.block_bytes * 1e-9},
                 {"local_bytes", facts.local_bytes},
                 {"commands_per_doorbell", static_cast<double>(given) / static_cast<double>(std::max<u64>(1, doorbells))}};
    double in_flight = 0, residence = 0, reads = 0;
    for (auto* drive : drives_) {
      const model_traffic t = drive->traffic();
      in_flight += t.mean_in_flight();
      residence += static_cast<double>(t.residence_ns);
      reads += static_cast<double>(t.reads + t.writes);
    }
    if (options_.preset != "none") {
      m.details["mean_in_flight"] = in_flight;
      m.details["residence_us"] = reads == 0 ? 0 : residence / reads * 1e-3;
    }
    m.machine = describe_host();
    m.machine["device"] = on_.device();
  }

  executor& on_;
  io_options const& options_;
  model_server server_;
  std::vector<buffer<u64>> media_;
  std::vector<model_drive*> drives_;
  buffer<u64> wrong_, data_;
  buffer<block_request> requests_;
  std::vector<std::unique_ptr<block_device>> devices_;  ///< after what their commands may touch
  io_data io_;
  io_job job_;
  u64 threads_ = 0;
};

}  // namespace

std::vector<measurement> run_io_benchmark(io_options const& asked) {
  const io_options options = checked(asked);
  const auto on = open_executor(options.executor, 0, built_with_kernels);
  bench run(*on, options);
  measurement_list found(options.found);
  found.add(run.measure());
  return found.take();
}

}  // namespace penstock::bench
