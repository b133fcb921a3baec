#include "libs/bench/gpufs.hpp"

#include "libs/bench/gpufs_runs.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>

namespace penstock::bench {
namespace {

constexpr u32 gpufs_max_line_bytes = 65536;  // of Penstock's cache

[[noreturn]] void refuse_gpufs_bench(std::string const& problem) { throw_bad_input("measure", "gpufs", problem); }

class gpufs_bench {
 public:
  gpufs_bench(executor& on, gpufs_bench_options const& options)
      : options_(options), bytes_(bytes_of(on, options)), made_(options.folder, bytes_, bytes_),
        runs_(on, options, 4 * std::max<u64>(bytes_ / read_bytes, bytes_ / insert_line_bytes)) {}

  void measure(std::string const& pattern, measurement_list& found) {
    if (pattern == "directory") found.add(measure_directory());
    if (pattern == "allocator") found.add(measure_allocator());
    if (pattern == "allocators") found.add(measure_allocators());
    if (pattern == "batching") found.add(measure_batching());
    if (pattern == "level") found.add(measure_level());
    if (pattern == "insert") found.add(measure_insert());
    if (pattern == "original") {
      found.add(measure_original(true));
      found.add(measure_original(false));
    }
    if (pattern == "page") measure_pages(found);
    if (pattern == "workers") measure_workers(found);
  }

 private:
  static constexpr u64 insert_line_bytes = 512;  // the least that Penstock transfers with each insertion
  using rate_fn = std::function<double(u64 seed)>;

  static u64 bytes_of(executor const& on, gpufs_bench_options const& options) {
    const u64 bytes = options.bytes != 0 ? options.bytes : u64{on.kind() == executor_kind::cuda ? 256u : 64u} << 20;
    return std::bit_ceil(std::max(bytes, u64{1} << 20));
  }

  bool cuda() const { return runs_.cuda(); }
  u64 pieces() const { return bytes_ / read_bytes; }
  u64 whole() const { return bytes_ + bytes_ / 4; }
  u64 part() const { return options_.cache_bytes != 0 ? options_.cache_bytes : bytes_ / 8; }
  gpufs_draw draw(gpufs_draw otherwise) const { return gpufs_draw_of(options_.order, otherwise); }
  gpufs_workload pieces_by(gpufs_draw kind, u64 seed, u64 reads) const {
    return {.order = {pieces(), 977 * seed, kind}, .reads = reads};
  }
  /// Pages, for runs without transfers.
  gpufs_workload pages_by(gpufs_draw kind, u64 seed, u64 page_bytes, u64 share_of_reads) const {
    const u64 pages = bytes_ / page_bytes;
    return {.order = {pages, 977 * seed, kind}, .reads = pages * share_of_reads};
  }

  /// Transfers by so many workers; on a CPU none where not even one was asked for: the calling thread reads in place.
  u32 workers_of(u32 of_paper) const { return options_.workers != 0 ? options_.workers : cuda() ? of_paper : 0; }

  gpufs_options with(gpufs_lookup lookup, gpufs_allocation allocation, gpufs_transfers transfers, u32 workers) const {
    gpufs_options o;
    o.page_bytes = options_.page_bytes;
    o.cache_bytes = whole();
    o.lookup = lookup, o.allocation = allocation, o.transfers = transfers, o.workers = workers;
    return o;
  }
  gpufs_options original() const {
    return with(gpufs_lookup::radix_tree, gpufs_allocation::locked_list, gpufs_transfers::single, workers_of(1));
  }
  /// With all optimizations but several allocators.
  gpufs_options optimized(u32 workers) const {
    const auto transfers = workers == 0 ? gpufs_transfers::single : gpufs_transfers::batched;
    return with(gpufs_lookup::hash_table, gpufs_allocation::ring, transfers, workers);
  }

  std::unique_ptr<gpufs_cache> open(gpufs_options o, gpufs_level level) const {
    const u64 groups = cuda() ? runs_.groups(level) : 64;
    o.slots = static_cast<u32>(std::clamp<u64>(groups, 64, 65536));
    return std::make_unique<gpufs_cache>(runs_.on(), std::vector<std::string>{made_.path() + "/large"}, o);
  }
  std::unique_ptr<gpufs_folder> open_folder(u64 cache_bytes, u64 line_bytes, bool hole = false) const {
    return std::make_unique<gpufs_folder>(runs_.on(), hole ? made_.hole() : made_.path(), cache_bytes, line_bytes);
  }

  /// Ours and the baseline in turn; the first turn warms up. Others are details, by name.
  measurement compare(rate_fn const& ours, rate_fn const& baseline, std::map<std::string, rate_fn> const& others) const {
    measurement m;
    std::map<std::string, std::vector<double>> rates;
    for (u32 k = 0; k <= options_.repeats; ++k) {
      const double value = ours(k), baseline_value = baseline(k);
      if (k != 0) m.values.push_back(value), m.baseline_values.push_back(baseline_value);
      for (auto const& [name, run] : others) {
        const double rate = run(k);
        if (k != 0) rates[name].push_back(rate);
      }
    }
    for (auto const& [name, all] : rates) m.details[name] = median(all);
    return m;
  }

  measurement described(measurement m, std::string const& id, std::string const& unit, std::string const& baseline,
                        gpufs_options const& o, gpufs_level level, gpufs_draw order) const {
    m.id = "gpufs." + id;
    m.unit = unit;
    m.baseline = baseline;
    m.verified = true;  // each run throws where it is not
    m.params["executor"] = cuda() ? "cuda" : "cpu";
    m.params["file_bytes"] = std::to_string(bytes_);
    m.params["cache_bytes"] = std::to_string(o.cache_bytes);
    m.params["page_bytes"] = std::to_string(o.page_bytes);
    m.params["transfers"] = o.transfers == gpufs_transfers::none || o.workers != 0 ? name_of(o.transfers) : "in place";
    m.params["lookup"] = name_of(o.lookup);
    m.params["allocation"] = name_of(o.allocation);
    m.params["allocators"] = std::to_string(o.allocators);
    m.params["workers"] = std::to_string(o.workers);
    m.params["level"] = cuda() ? name_of(level) : "thread";
    m.params["order"] = name_of(order);
    m.details["groups"] = static_cast<double>(cuda() ? runs_.groups(level) : runs_.on().units());
    m.machine = describe_host();
    m.machine["device"] = runs_.on().device();
    return m;
  }

  static double millions(u64 count, double seconds) { return static_cast<double>(count) * 1e-6 / seconds; }
  static double gigabytes(gpufs_workload const& work, double seconds) { return work.bytes() * 1e-9 / seconds; }

  /// Pages of an empty cache that holds the whole file, without transfers: M/s.
  rate_fn touches(gpufs_options o, gpufs_draw order, gpufs_level level = gpufs_level::block) const {
    o.transfers = gpufs_transfers::none, o.workers = 0;
    return [=, this](u64 seed) {
      const gpufs_workload work = pages_by(order, seed, o.page_bytes, order == gpufs_draw::once ? 1 : 2);
      return millions(work.reads, runs_.touch(*open(o, level), level, work));
    };
  }
  /// The same by Penstock over a hole: its transfers cannot be left out, but reach no drive.
  rate_fn folder_touches(u64 line_bytes, gpufs_draw order) const {
    return [=, this](u64 seed) {
      const gpufs_workload work = pages_by(order, seed, line_bytes, order == gpufs_draw::once ? 1 : 2);
      const auto folder = open_folder(whole(), line_bytes, true);
      return millions(work.reads, runs_.touch(*folder, work, line_bytes));
    };
  }
  /// Reads from an empty cache: GB/s. `traffic`: of the last run.
  rate_fn cold_reads(gpufs_options const& o, gpufs_level level, gpufs_draw order, gpufs_traffic* traffic = nullptr) const {
    return [=, this](u64 seed) {
      const auto cache = open(o, level);
      const gpufs_workload work = pieces_by(order, seed, pieces());
      const double rate = gigabytes(work, runs_.read(*cache, level, work));
      if (traffic != nullptr) *traffic = cache->traffic();
      return rate;
    };
  }
  rate_fn cold_folder_reads(u64 cache_bytes, gpufs_draw order) const {
    return [=, this](u64 seed) {
      const auto folder = open_folder(cache_bytes, line_of(options_.page_bytes));
      const gpufs_workload work = pieces_by(order, seed, pieces());
      return gigabytes(work, runs_.read(*folder, work));
    };
  }
  static u64 line_of(u64 page_bytes) { return std::min<u64>(page_bytes, gpufs_max_line_bytes); }

  measurement measure_directory() const {
    const auto draw_kind = draw(gpufs_draw::random);
    gpufs_options ours = with(gpufs_lookup::hash_table, gpufs_allocation::locked_list, gpufs_transfers::none, 0), theirs = ours;
    theirs.lookup = gpufs_lookup::radix_tree;
    return described(compare(touches(ours, draw_kind), touches(theirs, draw_kind),
                             {{"folder_with_transfers", folder_touches(line_of(options_.page_bytes), draw_kind)}}),
                     "directory", "M/s", "GPUfs with a radix tree per file", ours, gpufs_level::block, draw_kind);
  }

  measurement measure_allocator() const {
    const auto draw_kind = draw(gpufs_draw::random);
    gpufs_options ours = with(gpufs_lookup::hash_table, gpufs_allocation::ring, gpufs_transfers::none, 0), theirs = ours;
    theirs.allocation = gpufs_allocation::locked_list;
    return described(compare(touches(ours, draw_kind), touches(theirs, draw_kind),
                             {{"folder_with_transfers", folder_touches(line_of(options_.page_bytes), draw_kind)}}),
                     "allocator", "M/s", "GPUfs with a locked free list", ours, gpufs_level::block, draw_kind);
  }

  /// Pages are evicted, by one allocator or 64; without transfers as details.
  measurement measure_allocators() const {
    const auto draw_kind = draw(gpufs_draw::skewed);
    gpufs_options ours = optimized(workers_of(4)), theirs = ours;
    ours.cache_bytes = theirs.cache_bytes = std::max(part(), 64 * ours.page_bytes);
    ours.allocators = 64;
    const gpufs_level level = gpufs_level::warp;
    const auto touches_of = [&](gpufs_options o) -> rate_fn {
      o.transfers = gpufs_transfers::none, o.workers = 0;
      return [=, this](u64 seed) {
        const gpufs_workload work = pages_by(draw_kind, seed, o.page_bytes, 2);
        return millions(work.reads, runs_.touch(*open(o, level), level, work));
      };
    };
    measurement m = compare(cold_reads(ours, level, draw_kind), cold_reads(theirs, level, draw_kind),
                            {{"folder", cold_folder_reads(ours.cache_bytes, draw_kind)},
                             {"M/s without transfers, 64 allocators", touches_of(ours)},
                             {"M/s without transfers, 1 allocator", touches_of(theirs)}});
    return described(std::move(m), "allocators", "GB/s", "GPUfs with one allocator", ours, level, draw_kind);
  }

  measurement measure_batching() const {
    const auto draw_kind = draw(gpufs_draw::random);
    const gpufs_level level = gpufs_level::block;
    gpufs_options ours = optimized(std::max(1u, workers_of(1))), theirs = ours;
    theirs.transfers = gpufs_transfers::single;
    gpufs_traffic moved;
    measurement m = compare(cold_reads(ours, level, draw_kind, &moved), cold_reads(theirs, level, draw_kind),
                            {{"folder", cold_folder_reads(whole(), draw_kind)}});
    m.details["mean_transfer_bytes"] = moved.mean_bytes();
    return described(std::move(m), "batching", "GB/s", "GPUfs that transfers single pages", ours, level, draw_kind);
  }

  measurement measure_level() const {
    const auto draw_kind = draw(gpufs_draw::random);
    const gpufs_options o = optimized(workers_of(4));
    measurement m = compare(cold_reads(o, gpufs_level::warp, draw_kind), cold_reads(o, gpufs_level::block, draw_kind),
                            {{"folder", cold_folder_reads(whole(), draw_kind)}});
    return described(std::move(m), "level", "GB/s", "GPUfs called by blocks", o, gpufs_level::warp, draw_kind);
  }

  /// Penstock beside the original, with all pages in the cache, and with an eighth of them.
  measurement measure_original(bool warm) const {
    const auto draw_kind = draw(gpufs_draw::random);
    const gpufs_level level = gpufs_level::block;
    gpufs_options o = original(), last = optimized(workers_of(4));
    o.cache_bytes = last.cache_bytes = warm ? whole() : part();
    const auto cache = open(o, level), optimized_cache = open(last, gpufs_level::warp);
    const auto folder = open_folder(o.cache_bytes, line_of(o.page_bytes));
    if (warm) {
      const gpufs_workload all = pieces_by(gpufs_draw::linear, 0, pieces());
      runs_.read(*cache, level, all), runs_.read(*optimized_cache, gpufs_level::warp, all), runs_.read(*folder, all);
    }
    const auto work = [&](u64 seed) { return pieces_by(draw_kind, seed, pieces() * (warm ? 4 : 1)); };
    measurement m = compare([&](u64 k) { return gigabytes(work(k), runs_.read(*folder, work(k))); },
                            [&](u64 k) { return gigabytes(work(k), runs_.read(*cache, level, work(k))); },
                            {{"optimized_gpufs", [&](u64 k) {
                                return gigabytes(work(k), runs_.read(*optimized_cache, gpufs_level::warp, work(k)));
                              }}});
    m.bytes = {{"host", static_cast<double>(folder->files.cache().stats(0).bytes_moved)}};
    m.details["gpufs_bytes_moved"] = static_cast<double>(cache->traffic().bytes);
    return described(std::move(m), warm ? "original.warm" : "original.cold", "GB/s", "the original GPUfs", o, level, draw_kind);
  }

  measurement measure_insert() const {
    gpufs_options o = with(gpufs_lookup::hash_table, gpufs_allocation::ring, gpufs_transfers::none, 0), first = o;
    o.page_bytes = first.page_bytes = insert_line_bytes;
    first.lookup = gpufs_lookup::radix_tree, first.allocation = gpufs_allocation::locked_list;
    measurement m =
        compare(folder_touches(insert_line_bytes, gpufs_draw::once), touches(o, gpufs_draw::once, gpufs_level::warp),
                {{"original_gpufs", touches(first, gpufs_draw::once)}});
    m.params["penstock"] = "lines of 512 bytes of a hole, each read by a command";
    m.params["gpufs"] = "no transfers";
    return described(std::move(m), "insert", "M/s", "GPUfs with a hash table and a ring", o, gpufs_level::warp,
                     gpufs_draw::once);
  }

  void measure_pages(measurement_list& found) const {
    for (u64 page = 4096; page <= 65536; page *= 2) found.add(measure_redundancy(page));
    for (u64 page = 4096; page <= u64{1} << 20; page *= 4) found.add(measure_search(page));
  }

  /// Reads of 3 KiB at multiples of 4 KiB, of an eighth of the file (Fig. 5).
  measurement measure_redundancy(u64 page_bytes) const {
    const auto draw_kind = draw(gpufs_draw::random);
    const gpufs_level level = gpufs_level::warp;
    gpufs_options o = optimized(workers_of(4));
    o.page_bytes = page_bytes;
    double moved = 0, folder_moved = 0, used = 0;
    const auto work_of = [&](u64 seed) {
      gpufs_workload work = pieces_by(draw_kind, seed, pieces() / 8);
      work.shape.bytes = 3 * 1024;
      used = work.bytes();
      return work;
    };
    measurement m = compare(
        [&](u64 seed) {
          const gpufs_workload work = work_of(seed);
          const auto folder = open_folder(whole(), page_bytes);
          const double rate = gigabytes(work, runs_.read(*folder, work));
          folder_moved = static_cast<double>(folder->files.cache().stats(0).bytes_moved);
          return rate;
        },
        [&](u64 seed) {
          const gpufs_workload work = work_of(seed);
          const auto cache = open(o, level);
          const double rate = gigabytes(work, runs_.read(*cache, level, work));
          moved = static_cast<double>(cache->traffic().bytes);
          return rate;
        },
        {});
    m.details["redundancy"] = folder_moved / used;
    m.details["gpufs_redundancy"] = moved / used;
    m.bytes = {{"host", folder_moved}};
    return described(std::move(m), "page", "GB/s", "the optimized GPUfs", o, level, draw_kind);
  }

  /// The file from its beginning to its end (Fig. 10).
  measurement measure_search(u64 page_bytes) const {
    const gpufs_level level = gpufs_level::block;
    gpufs_options ours = optimized(workers_of(1)), theirs = original();
    ours.page_bytes = theirs.page_bytes = page_bytes;
    const rate_fn folder = [&](u64 seed) {
      const auto opened = open_folder(whole(), line_of(page_bytes));
      const gpufs_workload work = pieces_by(gpufs_draw::linear, seed, pieces());
      return gigabytes(work, runs_.read(*opened, work));
    };
    measurement m = compare(cold_reads(ours, level, gpufs_draw::linear), cold_reads(theirs, level, gpufs_draw::linear),
                            {{"folder", folder}});
    m.params["folder_line_bytes"] = std::to_string(line_of(page_bytes));
    return described(std::move(m), "search", "GB/s", "the original GPUfs", ours, level, gpufs_draw::linear);
  }

  /// Figs. 6 and 7.
  void measure_workers(measurement_list& found) const {
    const auto draw_kind = draw(gpufs_draw::random);
    for (const gpufs_level level : {gpufs_level::block, gpufs_level::warp}) {
      if (!cuda() && level == gpufs_level::warp) continue;
      for (const u32 workers : {1u, 2u, 4u, 8u}) {
        gpufs_options ours = optimized(workers), theirs = ours;
        theirs.transfers = gpufs_transfers::single;
        gpufs_traffic moved;
        measurement m = compare(cold_reads(ours, level, draw_kind, &moved), cold_reads(theirs, level, draw_kind), {});
        m.details["mean_transfer_bytes"] = moved.mean_bytes();
        found.add(described(std::move(m), "workers", "GB/s", "GPUfs that transfers single pages", ours, level, draw_kind));
      }
    }
  }

  gpufs_bench_options const& options_;
  u64 bytes_;
  gpufs_made_files made_;
  gpufs_runs runs_;
};

void check_gpufs_bench(gpufs_bench_options const& options, bool cuda) {
  if (options.repeats == 0) refuse_gpufs_bench("0 repeats: ask for 1 or more");
  if (options.workers > 8) refuse_gpufs_bench(std::to_string(options.workers) + " workers: choose 1 to 8");
  if (options.groups > 4096) refuse_gpufs_bench(std::to_string(options.groups) + " groups: choose 1 to 4096");
  if (!std::has_single_bit(options.page_bytes) || options.page_bytes < 512 || options.page_bytes > gpufs_max_line_bytes) {
    refuse_gpufs_bench("pages of " + std::to_string(options.page_bytes) + " bytes: choose a power of two from 512 to 65536");
  }
  (void)gpufs_draw_of(options.order, gpufs_draw::random);
  std::vector<std::string> const& all = gpufs_patterns();
  for (std::string const& pattern : options.patterns) {
    if (pattern == "level" && !cuda) refuse_gpufs_bench("level: groups of a CPU are single threads; leave it out");
    if (std::find(all.begin(), all.end(), pattern) != all.end()) continue;
    std::string known;
    for (std::string const& each : all) known += (known.empty() ? "" : ", ") + each;
    refuse_gpufs_bench("pattern " + pattern + ": there is no such pattern; choose of " + known);
  }
}

}  // namespace

std::vector<std::string> const& gpufs_patterns() {
  static const std::vector<std::string> all = {"directory", "allocator", "allocators", "batching", "level",
                                               "original",  "insert",    "page",       "workers"};
  return all;
}

std::vector<measurement> run_gpufs_benchmark(gpufs_bench_options const& options) {
  const auto on = open_executor(options.executor, options.threads, built_with_kernels);
  const bool cuda = on->kind() == executor_kind::cuda;
  check_gpufs_bench(options, cuda);
  measurement_list found(options.found);
  std::vector<std::string> patterns = options.patterns.empty() ? gpufs_patterns() : options.patterns;
  if (!cuda) std::erase(patterns, "level");
  gpufs_bench bench(*on, options);
  for (u64 k = 0; k < patterns.size(); ++k) {
    if (options.progress) options.progress(patterns[k], k, patterns.size());
    bench.measure(patterns[k], found);
  }
  return found.take();
}

}  // namespace penstock::bench
