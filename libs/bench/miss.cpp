#include "libs/bench/miss.hpp"

#include "libs/bench/hit_kernels.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/runtime/queue_service.hpp"

#include <algorithm>
#include <iterator>

namespace penstock::bench {
namespace {

[[noreturn]] void refuse_misses(std::string const& problem) { throw_bad_input("measure", "misses", problem); }

struct miss_contest {
  char const* pattern;
  hit_shape shape;
  pattern_kind elements = pattern_kind::linear;
  bool unless_told = true;  ///< belongs to those that are measured when none is named
};
constexpr miss_contest miss_contests[] = {{"line", hit_shape::walk},
                                          {"linear", hit_shape::elements},
                                          {"touch", hit_shape::touch},
                                          {"strided", hit_shape::elements, pattern_kind::strided, false},
                                          {"random", hit_shape::elements, pattern_kind::random, false},
                                          {"lines", hit_shape::elements, pattern_kind::lines, false},
                                          {"coarsened", hit_shape::elements, pattern_kind::coarsened, false}};

store_options store_of(executor& on, miss_options const& options) {
  if (options.controller != "model" && options.controller != "software") {
    refuse_misses("controller " + options.controller + ": choose model or software");
  }
  if (options.media != "hbm" && options.media != "host") refuse_misses("media " + options.media + ": choose hbm or host");
  const bool cuda = on.kind() == executor_kind::cuda;
  store_options store;
  store.bytes = options.bytes != 0 ? options.bytes : cuda ? 4ull << 30 : 64ull << 20;
  store.cache_bytes = options.cache_bytes != 0 ? options.cache_bytes : store.bytes / 16;
  if (store.cache_bytes >= store.bytes)
    refuse_misses("a cache that holds all of the data leaves nothing to miss: ask for less");
  store.line_bytes = options.line_bytes;
  store.directory = options.directory;
  store.threads = options.controller_threads;
  store.modelled = options.controller == "model";
  store.media = options.media == "host" ? memory_kind::shared : memory_kind::local;
  store.preset = options.preset;
  store.server_units = options.server_sms;
  store.server_device = options.server_device;
  store.queues = cuda ? options.queues : 0;
  store.queue_depth = options.queue_depth;
  store.without = options.without;
  store.read_ahead_bytes = options.read_ahead_bytes;
  return store;
}

class miss_bench {
 public:
  miss_bench(executor& on, miss_options const& options)
      : on_(on), options_(options), store_(on, store_of(on, options), options.progress),
        wrong_(on.memory(), memory_kind::local, 1) {
    if (options.service_sms != 0) {
      service_ = std::make_unique<queue_service>(on, store_.cache(), queue_service_options{.units = options.service_sms});
    }
    u32 taken = store_.server() != nullptr && cuda() ? store_.server()->units_taken() : 0;
    if (service_) taken += service_->units_taken();
    units_ = !cuda() ? 0 : options.sms != 0 ? options.sms : on.units() - taken;
    if (cuda() && units_ + taken > on.units()) {
      refuse_misses(std::to_string(units_) + " SMs that ask and " + std::to_string(taken) + " that serve: the GPU has " +
                    std::to_string(on.units()));
    }
    data_.stored = store_.array();
    data_.wrong = wrong_.data();
    data_.order = {store_.elements(), store_.line_elements(), options.step, options.order};
  }

  std::vector<measurement> measure() {
    std::vector<measurement> results;
    // Every kernel once before a resident one runs: against the plain array, and with the cache empty of work.
    for (auto const& c : chosen()) {
      data_.plain = store_.plain();
      run(c, access_kind::plain);
      results.emplace_back();
      zero_copy(results.back());
      hit_job loaded = job(c, access_kind::view);
      loaded.only_prepares = true;
      if (cuda()) run_hit_cuda(on_, loaded, data_);
    }
    if (service_) service_->start();
    if (store_.server() != nullptr) store_.server()->start();
    u32 k = 0;
    for (auto const& c : chosen()) {
      if (options_.progress) options_.progress(c.pattern, k, results.size());
      measure(c, results[k]);
      if (options_.found) options_.found(results[k]);
      ++k;
    }
    if (service_) service_->stop();
    if (store_.server() != nullptr) store_.server()->stop();
    return results;
  }

 private:
  bool cuda() const { return on_.kind() == executor_kind::cuda; }

  std::vector<miss_contest> chosen() const {
    std::vector<miss_contest> all;
    for (auto const& name : options_.patterns) {
      auto const* known = std::find_if(std::begin(miss_contests), std::end(miss_contests),
                                       [&](miss_contest const& c) { return name == c.pattern; });
      if (known == std::end(miss_contests)) {
        refuse_misses("there is no pattern " + name + ": choose of line, linear, touch, strided, random, lines, coarsened");
      }
      all.push_back(*known);
    }
    if (!all.empty()) return all;
    std::copy_if(std::begin(miss_contests), std::end(miss_contests), std::back_inserter(all),
                 [](miss_contest const& c) { return c.unless_told; });
    return all;
  }

  hit_job job(miss_contest const& c, access_kind access) const {
    hit_job job;
    job.shape = c.shape;
    job.access = access;
    job.order = c.elements;
    job.width = options_.width;
    job.units = units_;
    job.threads = access == access_kind::plain ? 0 : threads_of(c);
    return job;
  }

  /// How many threads ask at once. A group that walks waits for one line at a time, or each lane for one of its own, and all
  /// that are waited for take no more than half of the frames (PROTOCOLS.md, W4).
  u64 threads_of(miss_contest const& c) const {
    const bool in_line = c.shape == hit_shape::elements && c.elements == pattern_kind::linear;
    const u64 lanes = options_.without.cache ? 1 : c.shape == hit_shape::walk ? options_.width : in_line ? 32 : 1;
    const u64 most = std::max<u64>(32, store_.cache().view().frames / 2 * lanes / 32 * 32);
    const u64 fit = cuda() ? u64{units_} * 2048 : on_.units();
    const u64 threads = options_.threads != 0 ? options_.threads : std::min(most, fit);
    if (cuda()) store_.cache().check_pins(threads / lanes, 1);
    return threads;
  }

  kernel_facts run(miss_contest const& c, access_kind access) {
    const u64 start = now_ns();
    const kernel_facts facts = cuda() ? run_hit_cuda(on_, job(c, access), data_) : run_hit_cpu(on_, job(c, access), data_);
    last_ns_ = now_ns() - start;
    store_.cache().check_faults();
    u64 wrong = 0;
    on_.memory().read(&wrong, wrong_.data(), sizeof wrong);
    if (wrong != 0) throw error(error_kind::world, "measure misses: " + std::to_string(wrong) + " threads read wrong elements");
    return facts;
  }

  // Whole lines read from host memory in place: what the link gives without a cache.
  void zero_copy(measurement& m) {
    if (!cuda() || !store_.options().modelled || options_.media != "host") return;
    data_.plain = store_.media_in_place();
    hit_job whole;
    whole.shape = hit_shape::lines;
    whole.units = units_;
    for (u32 k = 0; k <= options_.repeats; ++k) {
      const u64 start = now_ns();
      run_hit_cuda(on_, whole, data_);
      if (k == 0) continue;
      m.baseline_values.push_back(static_cast<double>(store_.elements() * sizeof(u64)) / static_cast<double>(now_ns() - start));
    }
    m.baseline = "zero-copy reads of whole lines";
  }

  void measure(miss_contest const& c, measurement& m) {
    run(c, access_kind::view);
    const cache_stats before = store_.cache().stats(0);
    kernel_facts facts;
    double seconds = 0;
    cache_stats last = before;
    for (u32 k = 0; k < options_.repeats; ++k) {
      facts = run(c, access_kind::view);
      const cache_stats now = store_.cache().stats(0);
      m.values.push_back(static_cast<double>(now.bytes_moved - last.bytes_moved) / static_cast<double>(last_ns_));
      seconds += static_cast<double>(last_ns_) * 1e-9;
      last = now;
    }
    const u64 line = options_.line_bytes;
    const std::string size = line % 1024 == 0 ? std::to_string(line / 1024) + "k" : std::to_string(line);
    m.id = std::string("miss.") + c.pattern + size + (c.shape == hit_shape::elements ? "" : order_suffix(options_.order)) +
           "." + (store_.options().modelled ? options_.media : "software");
    m.unit = "GB/s";
    m.verified = true;  // run() throws where it is not
    m.registers = facts.registers;
    m.sms = units_;
    m.warps = static_cast<unsigned>(cuda() ? threads_of(c) / 32 : on_.units());
    m.params = {{"executor", cuda() ? "cuda" : "cpu"},
                {"controller", store_.engine()},
                {"preset", options_.preset},
                {"line_bytes", std::to_string(line)},
                {"width", std::to_string(c.shape == hit_shape::walk ? options_.width : 1)},
                {"bytes", std::to_string(store_.options().bytes)},
                {"cache_bytes", std::to_string(store_.options().cache_bytes)},
                {"queues", std::to_string(store_.cache().view().queues_count)},
                {"queue_depth", std::to_string(options_.queue_depth)},
                {"server_device", cuda() && options_.server_device >= 0 ? std::to_string(options_.server_device) : "own"},
                {"read_ahead_lines", std::to_string(store_.cache().view().reads_ahead)},
                {"completion", service_ ? "service" : "inline"},
                {"service_units", std::to_string(options_.service_sms)},
                {"threads", std::to_string(threads_of(c))}};
    note_ablations(options_.without, m.params);
    const double fills = static_cast<double>(last.fills - before.fills);
    m.bytes = {{"storage", static_cast<double>(last.bytes_moved - before.bytes_moved)}};
    m.details = {
        {"lines_per_s", fills / seconds},
        {"fills_per_line", fills / options_.repeats * static_cast<double>(line) / static_cast<double>(store_.options().bytes)},
        {"prefetched", static_cast<double>(last.prefetches - before.prefetches) / std::max(1.0, fills)},
        {"evictions", static_cast<double>(last.evictions - before.evictions)},
        {"retries", static_cast<double>(last.retries - before.retries)}};
    m.machine = describe_host();
    m.machine["device"] = on_.device();
  }

  executor& on_;
  miss_options const& options_;
  stamped_store store_;
  std::unique_ptr<queue_service> service_;
  buffer<u64> wrong_;
  hit_data data_;
  u32 units_ = 0;
  u64 last_ns_ = 0;
};

}  // namespace

std::vector<measurement> run_miss_benchmark(miss_options const& options) {
  if (options.repeats == 0) refuse_misses("0 repeats: ask for 1 or more");
  if (!is_power_of_two(options.step)) refuse_misses("step " + std::to_string(options.step) + ": choose a power of two");
  if (options.width != 8 && options.width != 16 && options.width != 32) {
    refuse_misses(std::to_string(options.width) + " lanes to a line: choose 32, 16 or 8");
  }
  const auto on = open_executor(options.executor, executor_limits{options.sm_share}, built_with_kernels);
  miss_bench run(*on, options);
  return run.measure();
}

}  // namespace penstock::bench
