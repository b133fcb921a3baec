#include "libs/bench/cliffs.hpp"

#include "libs/bench/cliff_config.hpp"
#include "libs/bench/cliff_data.hpp"
#include "libs/bench/cliffs_kernels.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace penstock::bench {
namespace {

[[noreturn]] void refuse_cliffs(std::string const& problem) { throw_bad_input("measure", "cliffs", problem); }

/// Bytes that a calibration reads.
constexpr u64 most_calibrated = 1ull << 28;

/// Bytes that one writes.
constexpr u64 most_written = 1ull << 26;

/// One that says which configuration it was.
struct named_failure : error {
  using error::error;
};

struct cliff_run {
  double seconds = 0, flush_seconds = 0;
  cache_stats stats{};
  u64 frames = 0;
};

/// What one source gives with lines of one size.
struct cliff_rates {
  double fill_seconds = 0;   ///< a line, where lines are far apart and all streams ask
  double next_seconds = 0;   ///< the same where they follow each other
  double lone_seconds = 0;   ///< where one group asks
  double write_seconds = 0;  ///< to write one back
  /// Of an access of a kind, to elements that are near each other, or far apart.
  std::map<std::pair<cliff_access, bool>, double> hit_seconds{}, lone_hit_seconds{};
};

class cliffs_bench {
 public:
  cliffs_bench(executor& on, cliffs_options const& options, u64 bytes)
      : on_(on), options_(options), bytes_(bytes), data_(on, options.folder, bytes), sum_(on.memory(), memory_kind::local, 1) {}

  std::vector<measurement> measure() {
    std::vector<measurement> all;
    for (u64 k = 0; k < options_.configs; ++k) {
      if (options_.progress) options_.progress("configuration", k, options_.configs);
      all.push_back(measure_named(draw_config(options_.seed + k, bytes_, most_streams(), lanes())));
      if (options_.found) options_.found(all.back());
    }
    std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.values[0] < b.values[0]; });
    std::vector<measurement> results = {summary(all, "worst", 0), summary(all, "p10", 0.1), summary(all, "median", 0.5)};
    if (options_.found) std::for_each(results.begin(), results.end(), options_.found);
    all.resize(std::min<u64>(all.size(), options_.shown));
    std::move(all.begin(), all.end(), std::back_inserter(results));
    return results;
  }

 private:
  bool is_cpu() const { return on_.kind() == executor_kind::cpu; }
  u32 lanes() const { return is_cpu() ? 1 : 32; }
  /// Threads, or whole groups, that are worth having.
  u64 most_streams() const { return is_cpu() ? 4096 : on_.units() * 1024; }

  /// Of the CPU, that serve.
  u64 host_threads() const {
    return is_cpu() ? on_.units() : std::max(1u, software_options_for(on_, io_engine::automatic, 0).threads);
  }

  void run_kernel(cliff_config const& c, cliff_job const& job) {
    is_cpu() ? run_cliff_cpu(on_, c.access, job) : run_cliff_cuda(on_, c.access, job);
  }

  /// Runs a configuration, `passes` times over the same cache; the last one is timed. Throws for a wrong sum.
  cliff_run run(cliff_config const& c, std::vector<u32> const& elements, u32 passes = 1) {
    const cliff_cache cache(on_, data_, c);
    buffer<u32> list(on_.memory(), memory_kind::local, elements.size());
    list.write(elements);
    const bool adds = c.access == cliff_access::add;
    cliff_job job;
    job.a = cache.get().array<u64>(0, 0, data_.values.size());
    if (adds) job.changed = cache.get().writable<u64>(0, 0, data_.values.size());
    job.elements = list.data();
    job.sum = sum_.data();
    job.streams = c.streams;
    job.per_stream = c.per_stream;
    job.line_elements = static_cast<u32>(c.line_elements());
    cliff_run result;
    result.frames = cache.get().view().frames;
    for (u32 pass = 0; pass < passes; ++pass) {
      sum_.write(std::vector<u64>{0});
      const cache_stats before = cache.get().stats(0);
      const u64 begun = now_ns();
      run_kernel(c, job);
      const u64 ended = now_ns();
      cache.get().flush();
      result.flush_seconds = adds ? static_cast<double>(now_ns() - ended) * 1e-9 : 0;
      result.seconds = static_cast<double>(ended - begun) * 1e-9 + result.flush_seconds;
      cache.get().check_faults();
      result.stats = difference(cache.get().stats(0), before);
      if (!adds) check_sum(c, elements);
    }
    return result;
  }

  static cache_stats difference(cache_stats now, cache_stats const& before) {
    now.hits -= before.hits, now.misses -= before.misses, now.joins -= before.joins, now.fills -= before.fills;
    now.evictions -= before.evictions, now.write_backs -= before.write_backs;
    now.search_ns -= before.search_ns, now.clean_ns -= before.clean_ns, now.frame_wait_ns -= before.frame_wait_ns;
    return now;
  }

  void check_sum(cliff_config const& c, std::vector<u32> const& elements) const {
    u64 right = 0, found = 0;
    for (const u64 first : elements) {
      for (u64 k = 0; k < (c.takes_lines() ? c.line_elements() : 1); ++k) right += value_at(first + k);
    }
    sum_.read({&found, 1});
    if (found != right) fail(c, "the sum of what was read is wrong");
  }
  [[noreturn]] static void fail(cliff_config const& c, std::string const& what) {
    std::string all;
    for (auto const& [name, value] : describe(c)) all.append(" ").append(name).append("=").append(value);
    throw named_failure(error_kind::world, "measure cliffs: " + what + ": repeat it with configs=1 and its seed:" + all);
  }

  /// Lines far apart, each once, through a cache that holds all.
  cliff_config whole(cliff_config const& like, cliff_pattern pattern, cliff_access access) const {
    cliff_config c = like;
    c.pattern = pattern;
    c.access = access;
    c.directory = directory_kind::direct;
    c.cache_bytes = 2 * c.data_bytes;
    c.streams = std::min({most_streams(), c.lines(), most_calibrated / c.line_bytes});
    c.per_stream = std::max<u64>(1, std::min(c.lines(), most_calibrated / c.line_bytes) / c.streams);
    return c;
  }
  /// Whether most accesses find their bytes in a processor's own caches.
  static bool is_near(cliff_config const& c) {
    return c.is_sequential() || c.pattern == cliff_pattern::hot || c.pattern == cliff_pattern::zipf;
  }
  double seconds_each(cliff_config const& c, u32 passes = 1) {
    const cliff_run done = run(c, elements_of(c), passes);
    return (done.seconds - done.flush_seconds) / static_cast<double>(c.accesses());
  }

  cliff_rates const& rates_of(cliff_config const& c) {
    cliff_rates& rates = rates_[{c.source, c.line_bytes}];
    if (rates.fill_seconds == 0) {
      const cliff_config apart = whole(c, cliff_pattern::permuted, cliff_access::index);
      rates.fill_seconds = seconds_each(apart);
      cliff_config linear = whole(c, cliff_pattern::linear, cliff_access::index);
      linear.per_stream = std::max<u64>(1, std::min(c.data_bytes, most_calibrated) / sizeof(u64) / linear.streams);
      rates.next_seconds = std::min({rates.fill_seconds, seconds_each(whole(c, cliff_pattern::in_order, cliff_access::span)),
                                     seconds_each(linear) * static_cast<double>(c.line_elements())});
      cliff_config lone = apart, lone_lines = whole(c, cliff_pattern::permuted, cliff_access::span);
      lone.streams = lone_lines.streams = 1;
      lone.per_stream = lone_lines.per_stream = std::min<u64>(c.lines(), 256);
      rates.lone_seconds = std::min(seconds_each(lone), seconds_each(lone_lines));
    }
    if (!rates.hit_seconds.contains({c.access, is_near(c)})) {
      const cliff_config warm = whole(c, is_near(c) ? cliff_pattern::linear : cliff_pattern::permuted, c.access);
      double& hit_seconds = rates.hit_seconds[{c.access, is_near(c)}];
      double& lone_hit_seconds = rates.lone_hit_seconds[{c.access, is_near(c)}];
      if (c.access != cliff_access::add) {
        hit_seconds = seconds_each(warm, 2);
        if (!is_cpu()) {
          cliff_config lone = warm;
          lone.streams = warm.width();
          lone.per_stream = std::min<u64>(warm.lines(), 256);
          lone_hit_seconds = seconds_each(lone, 2) * static_cast<double>(lone.width());
        }
      } else {
        const std::vector<u32> elements = elements_of(warm);
        const cliff_run done = run(warm, elements, 2);
        std::vector<u32> twice = elements;
        twice.insert(twice.end(), elements.begin(), elements.end());
        if (!data_.take_back(c.source, twice)) fail(warm, "additions were lost");
        hit_seconds = (done.seconds - done.flush_seconds) / static_cast<double>(warm.accesses());
        // To a file: what the file system takes. To memory a cache that writes while threads work takes less than one that
        // flushes all, and no less than to bring the line.
        const double flushed = done.flush_seconds / static_cast<double>(std::max<u64>(1, done.stats.write_backs));
        const bool to_file = c.source == cliff_source::file;
        rates.write_seconds =
            to_file ? data_.write_seconds(c.line_bytes, std::min(c.data_bytes, most_written) / c.line_bytes, host_threads())
                    : std::min({flushed, rates.fill_seconds, rates.write_seconds == 0 ? flushed : rates.write_seconds});
      }
    }
    return rates;
  }

  /// Says of which configuration it was that something failed.
  measurement measure_named(cliff_config const& c) {
    try {
      return measure(c);
    } catch (named_failure const&) {
      throw;
    } catch (error const& problem) {
      fail(c, problem.what());
    }
  }

  measurement measure(cliff_config const& c) {
    const std::vector<u32> elements = elements_of(c);
    const cliff_rates rates = rates_of(c);
    const cliff_run done = run(c, elements);
    if (c.access == cliff_access::add && !data_.take_back(c.source, elements)) fail(c, "additions were lost");
    const lru_counts lru = simulate_lru(c, elements, done.frames);

    const double accesses = static_cast<double>(c.accesses()), fills = static_cast<double>(lru.fills);
    // Streams that are fewer than a CPU's threads leave some of them idle.
    const double idle = is_cpu() ? std::max(1.0, static_cast<double>(on_.units()) / static_cast<double>(c.streams)) : 1;
    const double fill_seconds = fills * (c.is_sequential() ? rates.next_seconds : rates.fill_seconds) * idle;
    const double hit_seconds = (is_cpu() ? accesses - fills : accesses) * rates.hit_seconds.at({c.access, is_near(c)}) * idle;
    const double write_seconds = static_cast<double>(lru.write_backs) * rates.write_seconds;
    // One after the other on a CPU's threads; at the same time on a GPU, where a group waits for its own fills.
    const double lone = static_cast<double>(lru.stalls) / static_cast<double>(c.groups()) * rates.lone_seconds +
                        static_cast<double>(c.per_stream) * rates.lone_hit_seconds.at({c.access, is_near(c)});
    const double bound =
        is_cpu() ? fill_seconds + hit_seconds + write_seconds : std::max({fill_seconds + write_seconds, hit_seconds, lone});
    measurement m;
    m.id = "cliffs.config";
    m.params = describe(c);
    m.params["executor"] = is_cpu() ? "cpu" : "cuda";
    m.values = {bound / done.seconds};
    m.unit = "of bound";
    m.verified = true;
    m.machine["device"] = on_.device();
    m.bytes["storage"] = static_cast<double>(done.stats.fills * c.line_bytes);
    const double threads = static_cast<double>(is_cpu() ? std::min<u64>(on_.units(), c.streams) : c.streams);
    const auto share = [&](u64 ns) { return static_cast<double>(ns) * 1e-9 / (threads * done.seconds); };
    m.details = {{"rate", accesses / done.seconds},
                 {"seconds", done.seconds},
                 {"fills", static_cast<double>(done.stats.fills)},
                 {"fills_over_lru", static_cast<double>(done.stats.fills) / std::max(1.0, fills)},
                 {"joins", static_cast<double>(done.stats.joins)},
                 {"share_fills", fill_seconds / done.seconds},
                 {"share_hits", hit_seconds / done.seconds},
                 {"share_lone", lone / done.seconds},
                 {"share_writes", write_seconds / done.seconds},
                 {"share_search", share(done.stats.search_ns)},
                 {"share_clean", share(done.stats.clean_ns)},
                 {"share_frame_wait", share(done.stats.frame_wait_ns)}};
    return m;
  }

  measurement summary(std::vector<measurement> const& sorted, std::string const& name, double at) const {
    measurement m;
    m.id = "cliffs." + name;
    const auto place = static_cast<std::size_t>(std::lround(at * static_cast<double>(sorted.size() - 1)));
    m.values = sorted[place].values;
    m.unit = "of bound";
    m.verified = true;
    m.params = {{"executor", is_cpu() ? "cpu" : "cuda"},
                {"configs", std::to_string(options_.configs)},
                {"seed", std::to_string(options_.seed)},
                {"mib", std::to_string(bytes_ >> 20)}};
    m.machine["device"] = on_.device();
    return m;
  }

  executor& on_;
  cliffs_options const& options_;
  u64 bytes_;
  cliff_data data_;
  buffer<u64> sum_;
  std::map<std::pair<cliff_source, u64>, cliff_rates> rates_;
};

}  // namespace

std::vector<measurement> run_cliffs_benchmark(cliffs_options const& options) {
  if (options.configs == 0) refuse_cliffs("0 configurations: ask for 1 or more");
  const auto on = open_executor(options.executor);
  const bool cpu = on->kind() == executor_kind::cpu;
  const u64 bytes = options.bytes != 0 ? options.bytes : cpu ? 64ull << 20 : 1ull << 30;
  if (!is_power_of_two(bytes) || bytes < 4ull << 20 || bytes > 16ull << 30) {
    refuse_cliffs(std::to_string(bytes >> 20) + " MiB of data: choose a power of two from 4 to 16384");
  }
  return cliffs_bench(*on, options, bytes).measure();
}

}  // namespace penstock::bench
