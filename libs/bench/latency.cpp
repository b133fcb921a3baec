#include "libs/bench/latency.hpp"

#include "libs/bench/bare_queues.hpp"
#include "libs/bench/latency_kernels.hpp"
#include "libs/media/modelled.hpp"
#include "libs/media/names.hpp"
#include "penstock/runtime/block_device.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <thread>

namespace penstock::bench {
namespace {

[[noreturn]] void refuse_latency(std::string const& problem) { throw_bad_input("measure", "latencies", problem); }

// Identifiers of queues, each of which is used alone. The cache's is 1.
constexpr u32 block_queue = 2, bare_queue = 3;

void check(latency_options const& options) {
  if (options.controller != "model" && options.controller != "software") {
    refuse_latency("controller " + options.controller + ": choose model or software");
  }
  if (options.repeats == 0 || options.samples == 0) refuse_latency("0 repeats or samples: ask for 1 or more");
  if (options.lanes == 0 || options.lanes > 32) refuse_latency(std::to_string(options.lanes) + " lanes: choose 1 to 32");
  for (const u32 bytes : options.lines) media::check_block(bytes);
}

/// A line for each sample, and for those of the first run, which is not counted.
u64 data_bytes(executor const& on, latency_options const& options, u64 line_bytes) {
  const u64 bytes = std::max<u64>(1 << 16, std::bit_ceil((u64{options.repeats} + 1) * options.samples * line_bytes));
  // What is made on the host, and on the CPU executor the media and the cache besides.
  media::check_memory(on, memory_kind::shared, on.kind() == executor_kind::cpu ? 4 * bytes : 2 * bytes);
  return bytes;
}

/// One size of a line, with all that lies under it.
class latency_bench {
 public:
  latency_bench(executor& on, latency_options const& options, u64 line_bytes)
      : on_(on), options_(options), line_bytes_(line_bytes), bytes_(data_bytes(on, options, line_bytes)),
        wrong_(on.memory(), memory_kind::local, 1), first_(on, options.samples), whole_(on, options.samples),
        raw_(on, options.samples), bare_(on, options.samples) {
    make_controller();
    make_cache();
    make_clients();
    if (cuda()) {
      prepare_latency_cuda(on, misses_, blocks_);
      prepare_bare_cuda(on, {commands_}, {commands_, bare_.view()});
    }
  }

  void measure(measurement_list& found) {
    if (server_) server_->start();
    measurement first, whole, raw;
    for (u32 k = 0; k <= options_.repeats; ++k) {
      const kernel_facts bare = time(&latency_bench::run_bare);
      const kernel_facts raw_facts = time(&latency_bench::run_raw);
      const kernel_facts miss = time(&latency_bench::run_misses);
      first.registers = whole.registers = miss.registers;
      raw.registers = raw_facts.registers;
      first.details["bare_registers"] = bare.registers;
      if (k == 0) {
        bare_.clear();
        continue;
      }
      for (auto const& [m, samples] : {std::pair{&first, &first_}, {&whole, &whole_}, {&raw, &raw_}}) {
        m->values.push_back(samples->add_run());
      }
      const double floor = bare_.add_run();
      for (measurement* m : {&first, &whole, &raw}) m->baseline_values.push_back(floor);
    }
    if (server_) server_->stop();
    describe(first, "first", first_);
    describe(whole, "whole", whole_);
    describe(raw, "raw", raw_);
    for (measurement* m : {&first, &whole}) {
      m->details["evictions"] = static_cast<double>(cache_->stats(0).evictions);
      m->params["directory"] = cache_->directory() == directory_kind::direct ? "direct" : "set_associative";
      m->params["lanes"] = std::to_string(cuda() ? options_.lanes : 1);
    }
    for (measurement* m : {&first, &whole, &raw}) found.add(std::move(*m));
  }

 private:
  bool cuda() const { return on_.kind() == executor_kind::cuda; }
  bool modelled() const { return options_.controller == "model"; }

  void make_controller() {
    std::vector<u64> words(bytes_ / sizeof(u64));
    for (u64 w = 0; w < words.size(); ++w) words[w] = value_at(w);
    const auto block = static_cast<u32>(line_bytes_);
    if (!modelled()) {
      values_ = std::move(words);
      software_options software;
      if (cuda()) software.threads = options_.controller_threads != 0 ? options_.controller_threads : spare_cores();
      software_ = std::make_unique<software_controller>(software);
      namespace_ = software_->add_namespace(std::as_writable_bytes(std::span(values_)), block);
      owner_ = software_.get();
      return;
    }
    media_ = {on_.memory(), media::parse_place(options_.media), words.size()};
    media_.write(words);
    server_ = std::make_unique<model_server>(on_, model_server_options{.units = options_.server_sms});
    model_drive& drive = server_->add_drive({.timing = drive_preset(options_.preset), .faults = {}});
    namespace_ = drive.add_namespace(media_.data(), media_.bytes(), block);
    owner_ = &drive;
    if (media::parse_place(options_.rings) == memory_kind::local) return;
    near_host_ = std::make_unique<media::host_reaching>(drive);
    owner_ = near_host_.get();
  }

  static u32 spare_cores() {
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    return cores - std::min(cores / 4, 2u);
  }

  void make_cache() {
    cache_options cache;
    cache.bytes = options_.cache_bytes != 0 ? options_.cache_bytes : bytes_ + std::max(bytes_ / 2, 64 * line_bytes_);
    cache.line_bytes = line_bytes_;
    cache.directory = options_.directory;
    cache.queues = 1;
    cache_ = std::make_unique<line_cache>(
        on_, std::vector<dataset_spec>{{"known values", bytes_, {volume_layout::single, {{owner_, namespace_}}}}}, cache);
    misses_.stored = cache_->array<u64>(0, 0, bytes_ / sizeof(u64));
    misses_.line_elements = line_bytes_ / sizeof(u64);
    misses_.lines = bytes_ / line_bytes_;
    misses_.lanes = options_.lanes;
    misses_.first_element = first_.view();
    misses_.whole_line = whole_.view();
    misses_.wrong = wrong_.data();
  }

  void make_clients() {
    const bool local = owner_->limits().reaches_local;
    data_ = {on_.memory(), memory_kind::local, line_bytes_ / sizeof(u64)};
    request_ = {on_.memory(), memory_kind::local, 1};
    block_device_options device;
    device.queues = 1;
    device.first_queue_id = block_queue;
    device.transfer_bytes = line_bytes_;
    device.rings = local ? memory_kind::local : memory_kind::shared;
    device_ = std::make_unique<block_device>(on_, *owner_, namespace_, device);
    blocks_ = {device_->view(), request_.data(), data_.data(), static_cast<u32>(line_bytes_ / sizeof(u64)), 0,
               raw_.view(),     wrong_.data()};
    bare_options bare;
    bare.namespace_id = namespace_;
    bare.block_bytes = static_cast<u32>(line_bytes_);
    bare.first_queue_id = bare_queue;
    bare.commands = 1;
    bare.rings = bare.data = local ? memory_kind::local : memory_kind::shared;
    bare.poll_in_place = !cuda() && (!server_ || server_->units() == 0);
    queue_.emplace(on_, *owner_, bare);
    commands_.queues = queue_->view();
    commands_.blocks = bytes_ / line_bytes_;
    commands_.looks_per_pause = cuda() ? 1024 : 1;
    commands_.wrong = wrong_.data();
  }

  kernel_facts time(kernel_facts (latency_bench::*run)()) {
    const kernel_facts facts = (this->*run)();
    cache_->check_faults();
    u64 wrong = 0;
    on_.memory().read(&wrong, wrong_.data(), sizeof wrong);
    if (wrong == 0) return facts;
    throw error(error_kind::world, "measure latencies: " + std::to_string(wrong) + " reads failed or brought wrong bytes");
  }

  kernel_facts run_bare() {
    const time_commands body{commands_, bare_.view()};
    commands_.first += options_.samples;
    return cuda() ? time_commands_cuda(on_, body) : time_commands_cpu(on_, body);
  }

  kernel_facts run_raw() {
    const kernel_facts facts = cuda() ? time_blocks_cuda(on_, blocks_) : time_blocks_cpu(on_, blocks_);
    blocks_.first += options_.samples;
    return facts;
  }

  kernel_facts run_misses() {
    const u64 before = cache_->stats(0).fills;
    const kernel_facts facts = cuda() ? time_misses_cuda(on_, misses_) : time_misses_cpu(on_, misses_);
    misses_.first += options_.samples;
    const u64 filled = cache_->stats(0).fills - before;
    if (filled != options_.samples) {
      throw error(error_kind::world, "measure latencies: " + std::to_string(filled) + " lines came in for " +
                                         std::to_string(options_.samples) + " that were read: ask for more cache or samples");
    }
    return facts;
  }

  void describe(measurement& m, std::string const& what, timed_samples const& samples) const {
    const std::string size = line_bytes_ % 1024 == 0 ? std::to_string(line_bytes_ / 1024) + "k" : std::to_string(line_bytes_);
    m.id = "latency." + what + size + "." + (modelled() ? options_.media : "software");
    if (modelled() && options_.preset != "none") m.id += "." + options_.preset;
    if (modelled() && options_.rings == "host") m.id += ".hostrings";
    m.unit = "us";
    m.baseline = "the bare client's command";
    m.verified = true;  // time() throws where it is not
    m.sms = cuda() ? 1 : 0;
    m.warps = 1;
    samples.describe(m);
    bare_.describe(m, "bare_");
    m.details["added_us"] = samples.median_us() - bare_.median_us();
    m.details["added_p99_us"] = m.details["p99_us"] - m.details["bare_p99_us"];
    m.bytes = {{modelled() ? options_.media : "host", static_cast<double>(options_.samples * line_bytes_)}};
    m.params = {{"executor", cuda() ? "cuda" : "cpu"},
                {"controller", options_.controller},
                {"line_bytes", std::to_string(line_bytes_)},
                {"preset", options_.preset},
                {"rings", modelled() ? options_.rings : "host"},
                {"samples", std::to_string(options_.samples)},
                {"server_units", std::to_string(server_ ? server_->units() : 0)}};
    m.machine = describe_host();
    m.machine["device"] = on_.device();
  }

  executor& on_;
  latency_options const& options_;
  u64 line_bytes_;
  u64 bytes_;
  std::vector<u64> values_;  ///< what the software controller serves
  buffer<u64> media_;        ///< what a modelled drive serves
  buffer<u64> wrong_, data_;
  buffer<block_request> request_;
  timed_samples first_, whole_, raw_, bare_;
  std::unique_ptr<model_server> server_;
  std::unique_ptr<software_controller> software_;
  std::unique_ptr<media::host_reaching> near_host_;
  controller* owner_ = nullptr;
  u32 namespace_ = 0;
  std::unique_ptr<line_cache> cache_;
  std::unique_ptr<block_device> device_;
  std::optional<bare_queues> queue_;  ///< after what their commands may touch
  time_misses misses_;
  time_blocks blocks_;
  bare_data commands_;
};

}  // namespace

std::vector<measurement> run_latency_benchmark(latency_options const& options) {
  check(options);
  const auto on = open_executor(options.executor, 0, built_with_kernels);
  measurement_list found(options.found);
  for (u64 k = 0; k < options.lines.size(); ++k) {
    if (options.progress) options.progress("lines of " + std::to_string(options.lines[k]) + " bytes", k, options.lines.size());
    latency_bench(*on, options, options.lines[k]).measure(found);
  }
  return found.take();
}

}  // namespace penstock::bench
