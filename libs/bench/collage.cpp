#include "libs/bench/collage.hpp"

#include "libs/bench/collage_host.hpp"
#include "libs/bench/collage_kernels.hpp"
#include "libs/graph/parallel.hpp"
#include "libs/lsh/block_histograms.hpp"
#include "libs/lsh/build_index.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>

namespace penstock::bench {
namespace {

constexpr u32 collage_candidates = 1024;
constexpr std::array collage_patterns = {"cpu", "level", "cpu_gpu", "hbm", "large"};

[[noreturn]] void refuse_collage(std::string const& problem) { throw_bad_input("measure", "collage", problem); }

/// What a search found, and how long it took.
struct collage_found {
  std::vector<u32> ids;
  std::vector<float> distances;
  double seconds = 0;
};

void compare_found(collage_found const& ours, collage_found const& theirs, std::string const& what) {
  for (u64 q = 0; q < ours.ids.size(); ++q) {
    if (ours.ids[q] == theirs.ids[q] && ours.distances[q] == theirs.distances[q]) continue;
    throw error(error_kind::world, "measure collage: " + what + " found record " + std::to_string(theirs.ids[q]) +
                                       " for block " + std::to_string(q) + ", not " + std::to_string(ours.ids[q]));
  }
}

/// A dataset: the caller's, or a synthetic one that goes with this.
class collage_data {
 public:
  collage_data(collage_options const& options, std::string const& executor, u64 records) : path_(options.dataset) {
    if (!path_.empty()) return;
    std::string pattern =
        ((options.folder.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(options.folder)) /
         "penstock_collage_XXXXXX")
            .string();
    if (mkdtemp(pattern.data()) == nullptr) throw_os_error("make a folder", pattern, errno, "name another with --folder");
    made_ = path_ = pattern;
    const auto report = [&](std::string const& what, u64 done, u64 total) {
      if (options.progress) options.progress(what, done, total);
    };
    lsh::write_synthetic_histograms(path_ + "/" + lsh::records_name, records, 1, options.host_threads,
                                    [&](u64 done, u64 total) { report("drawing histograms", done, total); });
    lsh::build_options how;
    how.executor = executor;
    how.dimensions = lsh::histogram_bins;
    how.record_bytes = lsh::histogram_record_bytes;
    how.memory_bytes = u64{16} << 30;
    how.threads = options.host_threads;
    how.progress = report;
    const u64 begun = now_ns();
    lsh::build_index(path_, how);
    build_seconds = static_cast<double>(now_ns() - begun) * 1e-9;
  }
  collage_data(collage_data const&) = delete;
  collage_data& operator=(collage_data const&) = delete;
  ~collage_data() {
    std::error_code ignored;
    if (!made_.empty()) std::filesystem::remove_all(made_, ignored);
  }

  std::string const& path() const { return path_; }
  double build_seconds = 0;

 private:
  std::string path_, made_;
};

/// The paper's CPU+GPU version: the GPU hashes and compares, threads of the host make the shortlists, drop what two of them
/// share, read the records into pinned memory and send them.
class staged_search {
 public:
  staged_search(executor& on, host_index const& host)
      : on_(on), host_(host), slot_of_(host.header().records), failed_(on.memory(), lsh::local, 1) {}

  collage_found query(std::span<float const> queries) {
    lsh::index_header const& h = host_.header();
    const u64 count = queries.size() / h.dimensions;
    collage_found found;
    const u64 begun = now_ns();
    const std::vector<u64> keys = host_.keys_of(queries);
    std::vector<std::vector<u32>> lists(count);
    std::vector<std::vector<u32>> sets(host_.threads(), host_.empty_set());
    graph::progress_meter quiet;
    graph::parallel_for_workers(count, host_.threads(), quiet, [&](u64 q, unsigned worker) {
      host_.candidates_of(keys.data() + q * h.tables, sets[worker], lists[q]);
    });
    stage(lists);
    found = compare(queries, lists);
    found.seconds = static_cast<double>(now_ns() - begun - setup_ns_) * 1e-9;
    for (u32 const id : staged_ids_) slot_of_[id].store(0, std::memory_order_relaxed);
    return found;
  }

 private:
  /// Each record once, into pinned memory. Its slot is one less than `slot_of_` has.
  void stage(std::vector<std::vector<u32>> const& lists) {
    staged_ids_.clear();
    u64 most = 0;
    for (auto const& list : lists) most += list.size();
    staged_ids_.resize(most);
    std::atomic<u32> next{0};
    graph::progress_meter quiet;
    graph::parallel_for(lists.size(), host_.threads(), quiet, [&](u64 q) {
      for (u32 const id : lists[q]) {
        u32 none = 0;
        if (!slot_of_[id].compare_exchange_strong(none, 1, std::memory_order_relaxed)) continue;
        const u32 slot = next.fetch_add(1, std::memory_order_relaxed);
        slot_of_[id].store(slot + 1, std::memory_order_relaxed);
        staged_ids_[slot] = id;
      }
    });
    staged_ids_.resize(next);
    make_room(staged_ids_.size());
    constexpr u64 at_once = 256;
    graph::parallel_for(ceil_div(staged_ids_.size(), at_once), host_.threads(), quiet, [&](u64 part) {
      for (u64 k = part * at_once; k < std::min<u64>(staged_ids_.size(), (part + 1) * at_once); ++k) {
        std::memcpy(pinned_.data() + k * record_bytes(), host_.record(staged_ids_[k]), record_bytes());
      }
    });
    on_.memory().write(there_.data(), pinned_.data(), staged_ids_.size() * record_bytes());
  }

  /// Memory is not what is measured.
  void make_room(u64 records) {
    const u64 begun = now_ns();
    setup_ns_ = 0;
    if (pinned_.size() >= records * record_bytes()) return;
    pinned_ = buffer<char>(on_.memory(), memory_kind::shared, records * record_bytes());
    there_ = buffer<char>(on_.memory(), lsh::local, records * record_bytes());
    setup_ns_ = now_ns() - begun;
  }

  collage_found compare(std::span<float const> queries, std::vector<std::vector<u32>> const& lists) {
    lsh::index_header const& h = host_.header();
    const u64 count = lists.size();
    const u32 room = host_.max_candidates();
    std::vector<u32> ids(count * room), slots(count * room), counts(count);
    graph::progress_meter quiet;
    graph::parallel_for(count, host_.threads(), quiet, [&](u64 q) {
      counts[q] = static_cast<u32>(lists[q].size());
      for (u32 c = 0; c < counts[q]; ++c) {
        ids[q * room + c] = lists[q][c];
        slots[q * room + c] = slot_of_[lists[q][c]].load(std::memory_order_relaxed) - 1;
      }
    });
    memory_resource& memory = on_.memory();
    buffer<float> asked(memory, lsh::local, queries.size()), distances(memory, lsh::local, count * room),
        nearest(memory, lsh::local, count);
    buffer<u32> ids_there(memory, lsh::local, ids.size()), slots_there(memory, lsh::local, slots.size()),
        counts_there(memory, lsh::local, count), best(memory, lsh::local, count);
    asked.write(queries);
    ids_there.write(ids);
    slots_there.write(slots);
    counts_there.write(counts);
    const lsh::compare_records<lsh::memory_records> body{{there_.data(), record_bytes()},
                                                         asked.data(),
                                                         h.dimensions,
                                                         h.dimensions,
                                                         slots_there.data(),
                                                         counts_there.data(),
                                                         0,
                                                         count,
                                                         room,
                                                         distances.data(),
                                                         failed_.data()};
    lsh::run(on_, body.items(), body);
    lsh::run(
        on_, count,
        lsh::select_nearest{ids_there.data(), counts_there.data(), 0, room, distances.data(), 1, best.data(), nearest.data()});
    collage_found found{std::vector<u32>(count), std::vector<float>(count)};
    best.read(found.ids);
    nearest.read(found.distances);
    return found;
  }

  u64 record_bytes() const { return host_.header().dimensions * sizeof(float); }

  executor& on_;
  host_index const& host_;
  std::vector<std::atomic<u32>> slot_of_;
  std::vector<u32> staged_ids_;
  buffer<char> pinned_, there_;
  buffer<u32> failed_;
  u64 setup_ns_ = 0;
};

class collage_bench {
 public:
  collage_bench(collage_options const& options, collage_data const& data, bool cuda)
      : options_(options), data_(data), cuda_(cuda), host_(data.path(), options.host_threads, collage_candidates) {}

  void measure(std::string const& pattern, u64 width, measurement_list& found) {
    const std::vector<float> blocks = blocks_of(width);
    measurement m;
    collage_found ours, theirs;
    staged_search* const staged = pattern == "cpu_gpu" ? staged_on_gpu() : nullptr;
    for (u32 k = 0; k <= options_.repeats; ++k) {
      ours = search(blocks, cache_bytes(), m);
      if (pattern == "cpu") theirs = search_on_host(blocks);
      if (pattern == "level") theirs = search(blocks, cache_bytes(), m, true);
      if (pattern == "cpu_gpu") theirs = staged->query(blocks);
      if (pattern == "hbm") theirs = search_in_memory(blocks);
      if (pattern == "large") theirs = search(blocks, large_cache(m), m);
      compare_found(ours, theirs, pattern);
      if (k == 0) continue;  // warm-up
      const double all = static_cast<double>(ours.ids.size()) * 1e-3;
      m.values.push_back(all / ours.seconds);
      m.baseline_values.push_back(all / theirs.seconds);
    }
    m.id = "collage." + pattern;
    m.unit = "blocks/ms";
    m.baseline = baseline_of(pattern);
    m.verified = true;
    m.params["picture"] = std::to_string(width) + " x " + std::to_string(width / 4 * 3);
    m.params["executor"] = cuda_ ? "cuda" : "cpu";
    m.params["cache_bytes"] = std::to_string(cache_bytes());
    m.params["records"] = std::to_string(host_.header().records);
    m.details["build_seconds"] = data_.build_seconds;
    m.machine = describe_host();
    m.machine["device"] = device_;
    found.add(std::move(m));
  }

  /// Memory that one pattern needs.
  void release() {
    all_ = buffer<char>();
    staged_.reset();
  }

 private:
  u64 cache_bytes() const {
    if (options_.cache_bytes != 0) return options_.cache_bytes;
    return cuda_ ? u64{2} << 30 : u64{256} << 20;
  }
  u64 all_bytes() const { return host_.header().records * host_.header().record_bytes; }
  /// For all lines that the picture needs, where the caches' memory has room for them.
  u64 large_cache(measurement const& m) const {
    const u64 needed = static_cast<u64>(m.bytes.at("host"));  // that came through the small one
    return std::min(all_bytes() + all_bytes() / 4, std::max(2 * cache_bytes(), 2 * needed));
  }
  std::string baseline_of(std::string const& pattern) const {
    if (pattern == "cpu") return std::to_string(host_.threads()) + " host threads, vectorized, over mapped files";
    if (pattern == "level") return "blocks of 256 threads map together";
    if (pattern == "cpu_gpu") return "two kernels; the host makes shortlists, drops doubles, stages and copies";
    if (pattern == "hbm") return "all records in the GPU's memory";
    return "a cache that holds all";
  }

  std::vector<float> blocks_of(u64 width) const {
    const u64 height = width / 4 * 3;
    const std::vector<u8> pixels = lsh::synthetic_picture(height, width, 7);
    return lsh::histograms_of("cpu", options_.host_threads, pixels, height, width);
  }

  lsh::index_options index_options_of(u64 cache) const {
    lsh::index_options how;
    how.executor = options_.executor;
    how.cache_bytes = cache;
    how.max_candidates = collage_candidates;
    return how;
  }

  /// By threads that read the records from their file, into an empty cache.
  collage_found search(std::vector<float> const& blocks, u64 cache, measurement& m, bool by_blocks = false) {
    lsh::lsh_index index(data_.path(), index_options_of(cache));
    buffer<u32> failed(index.on().memory(), lsh::local, 1);
    lsh::compare_fn compare;
    if constexpr (built_with_kernels) {
      if (by_blocks) {
        compare = [&](lsh::comparison const& asked) { compare_by_blocks(index.on(), index.records(), asked, failed.data()); };
      }
    }
    index.reserve(blocks.size() / lsh::histogram_bins, 1);
    const lsh::query_result result = index.query(blocks, 1, {}, compare);
    const lsh::index_facts facts = index.facts();
    device_ = facts.device;
    if (!by_blocks && cache == cache_bytes()) {
      m.bytes["host"] = static_cast<double>(facts.cache.bytes_moved);
      m.details["candidates_per_block"] = static_cast<double>(result.candidates) / static_cast<double>(result.ids.size());
      m.details["miss_rate"] = static_cast<double>(facts.cache.misses) /
                               static_cast<double>(std::max<u64>(facts.cache.hits + facts.cache.misses, 1));
      m.details["cut"] = static_cast<double>(result.cut);
      m.details["evictions"] = static_cast<double>(facts.cache.evictions);
    } else if (!by_blocks) {
      m.details["large_misses"] = static_cast<double>(facts.cache.misses);
      m.details["large_cache_bytes"] = static_cast<double>(cache);
    }
    return {result.ids, result.distances, result.seconds};
  }

  collage_found search_on_host(std::vector<float> const& blocks) const {
    collage_found found;
    const u64 begun = now_ns();
    host_.query(blocks, found.ids, found.distances);
    found.seconds = static_cast<double>(now_ns() - begun) * 1e-9;
    return found;
  }

  collage_found search_in_memory(std::vector<float> const& blocks) {
    lsh::lsh_index index(data_.path(), index_options_of(cache_bytes()));
    if (all_.size() == 0) {
      resident_on_ = open_executor(options_.executor, 0, built_with_kernels);
      all_ = buffer<char>(resident_on_->memory(), lsh::local, all_bytes());
      resident_on_->memory().write(all_.data(), reinterpret_cast<char const*>(host_.record(0)), all_bytes());
    }
    buffer<u32> failed(index.on().memory(), lsh::local, 1);
    index.reserve(blocks.size() / lsh::histogram_bins, 1);
    const lsh::query_result result = index.query(blocks, 1, {}, [&](lsh::comparison const& asked) {
      const lsh::compare_records<lsh::memory_records> body{{all_.data(), host_.header().record_bytes},
                                                           asked.queries,
                                                           asked.dimensions,
                                                           asked.stride,
                                                           asked.lists,
                                                           asked.counts,
                                                           0,
                                                           asked.count,
                                                           asked.room,
                                                           asked.distances,
                                                           failed.data()};
      lsh::run(index.on(), body.items(), body);
    });
    return {result.ids, result.distances, result.seconds};
  }

  staged_search* staged_on_gpu() {
    if (staged_ == nullptr) {
      staged_on_ = open_executor(options_.executor, 0, built_with_kernels);
      staged_ = std::make_unique<staged_search>(*staged_on_, host_);
    }
    return staged_.get();
  }

  collage_options const& options_;
  collage_data const& data_;
  bool cuda_;
  host_index host_;
  std::string device_;
  std::unique_ptr<executor> resident_on_, staged_on_;
  std::unique_ptr<staged_search> staged_;
  buffer<char> all_;
};

}  // namespace

std::vector<measurement> run_collage_benchmark(collage_options const& options) {
  if (options.repeats == 0) refuse_collage("0 repeats: ask for 1 or more");
  const bool cuda = open_executor(options.executor, 0, built_with_kernels)->kind() == executor_kind::cuda;
  std::vector<std::string> patterns = options.patterns;
  if (patterns.empty() && cuda) patterns.assign(collage_patterns.begin(), collage_patterns.end());
  if (patterns.empty()) patterns = {"cpu", "large"};
  for (std::string const& pattern : patterns) {
    if (std::find(collage_patterns.begin(), collage_patterns.end(), pattern) == collage_patterns.end()) {
      refuse_collage("pattern " + pattern + ": there is no such pattern; choose of cpu, level, cpu_gpu, hbm, large");
    }
    if (!cuda && pattern != "cpu" && pattern != "large") refuse_collage("pattern " + pattern + ": it needs a GPU");
  }
  std::vector<u32> widths = options.widths;
  if (widths.empty()) widths = cuda ? std::vector<u32>{512, 1024, 2048, 4096} : std::vector<u32>{512, 1024};
  for (u32 const width : widths) {
    if (width % 128 != 0 || width == 0 || width > 65536) {
      refuse_collage("width " + std::to_string(width) + ": choose a multiple of 128 up to 65536");
    }
  }
  const u64 records = options.records != 0 ? options.records : cuda ? 1'000'000 : 100'000;
  const collage_data data(options, options.executor, records);
  collage_bench bench(options, data, cuda);
  measurement_list found(options.found);
  u64 done = 0;
  for (std::string const& pattern : patterns) {
    for (u32 const width : widths) {
      if (options.progress) options.progress(pattern + ", " + std::to_string(width), done++, widths.size() * patterns.size());
      bench.measure(pattern, width, found);
    }
    bench.release();
  }
  return found.take();
}

}  // namespace penstock::bench
