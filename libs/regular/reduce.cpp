#include "libs/regular/contest.hpp"
#include "libs/regular/kernels.hpp"
#include "libs/regular/reduce_kernels.hpp"
#include "libs/regular/reference.hpp"
#include "libs/regular/regular.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>

namespace penstock::regular {
namespace {

/// Of sums of columns that workers have to themselves; beyond it, and beyond so many copies, they share them.
constexpr u64 copies_bytes = 64 << 20;
constexpr u64 most_copies = 512;

struct job {
  executor& on;
  regular_options const& options;
  media::array_file const& file;
  media::array_store& store;
  std::vector<reference_sum> const& expected;  ///< one, or one for each column
  bool columns;
};

/// Sums of all ways to go over the array, as one kind of them.
template <class T>
class total_sums {
 public:
  using take = take_total<T>;
  using sum = typename take::sum;

  total_sums(job const& what, u64 workers) : what_(what), partials_(what.on.memory(), memory_kind::local, workers) {
    host_.resize(workers);
  }
  take taker() const { return {partials_.data()}; }
  void prepare() const {}
  void reset() {
    partials_.write(std::vector<sum>(partials_.size()));
    result_ = {};
  }
  void finish() {
    partials_.read(host_);
    running_sum<sum> all;
    for (sum const each : host_) all.add(each);
    result_ = all.value();
  }
  std::string compare() const {
    if constexpr (std::is_same_v<sum, double>) return compare_sum(what_.expected[0], result_, sum_tolerance);
    return compare_sum(what_.expected[0], static_cast<u64>(result_));
  }
  void tell(reduce_result& result) const {
    if constexpr (std::is_same_v<sum, double>) result.number = result_;
    if constexpr (!std::is_same_v<sum, double>) result.word = result_;
  }

 private:
  job const& what_;
  buffer<sum> partials_;
  std::vector<sum> host_;
  sum result_{};
};

template <class T>
class column_sums {
 public:
  using take = take_columns<T>;
  using sum = typename take::sum;

  column_sums(job const& what, u64 workers) : what_(what), columns_(what.expected.size()) {
    const u64 room = std::clamp<u64>(copies_bytes / (columns_ * sizeof(sum)), 1, most_copies);
    taker_.copies_count = std::min(workers, room);
    taker_.shared = taker_.copies_count < workers;
    taker_.columns = columns_;
    copies_ = {what.on.memory(), memory_kind::local, taker_.copies_count * columns_};
    taker_.copies = copies_.data();
    zeros_.resize(copies_.size());
    host_.resize(columns_);
  }
  take taker() const { return taker_; }
  void prepare() const { regular::prepare(what_.on, fold()); }
  void reset() { copies_.write(zeros_); }
  void finish() {
    const u64 width = what_.on.kind() == executor_kind::cuda ? group_width : 1;
    run(what_.on, ceil_div(columns_, width), fold());
    what_.on.memory().read(host_.data(), copies_.data(), columns_ * sizeof(sum));
  }
  std::string compare() const {
    // Plain sums of the copies, in whatever order: an addition errs by half a unit in the last place.
    const double tolerance = static_cast<double>(rows() + 16) * 0x1p-52;
    for (u64 c = 0; c < columns_; ++c) {
      std::string problem;
      if constexpr (std::is_same_v<sum, double>) problem = compare_sum(what_.expected[c], host_[c], tolerance);
      if constexpr (!std::is_same_v<sum, double>) problem = compare_sum(what_.expected[c], host_[c]);
      if (!problem.empty()) return "column " + std::to_string(c) + ": " + problem;
    }
    return "";
  }
  void tell(reduce_result& result) const {
    for (u64 c = 0; c < columns_; ++c) {
      double number = static_cast<double>(host_[c]);
      if constexpr (!std::is_same_v<sum, double>) {
        if (what_.file.type.kind == 'i') number = static_cast<double>(static_cast<std::int64_t>(host_[c]));
      }
      result.means.push_back(number / static_cast<double>(rows()));
    }
  }

 private:
  fold_columns<sum> fold() const { return {copies_.data(), taker_.copies_count, columns_}; }
  u64 rows() const { return what_.file.shape[0]; }

  job const& what_;
  u64 columns_;
  take taker_;
  buffer<sum> copies_;
  std::vector<sum> zeros_;
  std::vector<sum> host_;
};

template <class T, class Sums>
class contest {
 public:
  contest(job const& what, reduce_result& result)
      : what_(what), result_(result), on_(what.on), depth_(tiles_in_flight(on_, what.options)),
        workers_(tile_workers(what.store)), tiles_(on_, workers_, depth_), tile_sums_(what, workers_) {
    task_.id = what.columns ? "write.columns" : "write.reduce";
    task_.object = what.file.path;
    task_.bytes_read = static_cast<double>(what.file.data_bytes());
    cut_ = cut_tiles(what.file.elements, sizeof(T), what.options.tile_bytes, {what.store.origin(0)});
    array_ = what.store.tiles(0);
    tile_sums_.prepare();
    prepare(on_, tile_body(tile_sums_.taker()));
    prepare(on_, tile_body(take_nothing{}));
  }

  void measure() {
    cache_ = cache_of(on_, what_.store, what_.options, what_.file.data_bytes());
    measure_peak();
    scoreboard scores(on_, what_.options, what_.store, task_,
                      params_of(on_, what_.options, what_.file.type, what_.file.data_bytes(), cache_, what_.store.engine()));
    const auto ways = cached_ways(what_.options);
    if (ways.empty()) scores.tiles_alone(by_tiles());
    for (std::string const& way : ways) measure_cached(way, scores);
    tile_sums_.tell(result_);
    result_.measurements = scores.take();
  }

 private:
  template <class Take>
  take_tiles<Take> tile_body(Take const& take) const {
    return {array_, cut_, {cut_.count(), workers_, on_.kind() == executor_kind::cuda}, tiles_.rooms(), depth_, take};
  }

  void measure_peak() {
    task_.read_rate = what_.store.specified_rate(false);
    if (task_.read_rate != 0 || what_.file.elements == 0) return;
    const auto body = tile_body(take_nothing{});
    what_.store.start();
    if (what_.options.progress) what_.options.progress("reading tiles", 0, 1);
    const double seconds = shortest(what_.options.repeats, [&] { run(on_, workers_, body); });
    what_.store.stop();
    tiles_.check("read", task_.object);
    task_.read_rate = task_.bytes_read / seconds;
  }

  contestant by_tiles() {
    contestant one;
    const auto body = tile_body(tile_sums_.taker());
    one.access = "tiled";
    one.reset = [this] { tile_sums_.reset(); };
    one.run = [this, body] {
      run(on_, workers_, body);
      tile_sums_.finish();
      moved_by_tiles_ += tile_traffic(cut_, array_, array_.block_shift);
    };
    one.check = [this] {
      tiles_.check("read", task_.object);
      check(tile_sums_, "tiled");
    };
    one.moved = [this] { return traffic{moved_by_tiles_, 0}; };
    one.facts = describe(on_, body);
    return one;
  }

  /// A cache of its own for each way, and turns with tiles.
  void measure_cached(std::string const& way, scoreboard& scores) {
    line_cache cache(on_, what_.store.datasets(), cache_);
    const u64 workers = cache_workers(on_, what_.store, cache);
    const auto a = cache.array<T>(0, what_.store.origin(0), what_.file.elements);
    Sums sums(what_, workers);
    if (way == "naive") measure_cached(way, scores, cache, sums, workers, element_body(a, workers, sums.taker()));
    if (way == "line") measure_cached(way, scores, cache, sums, workers, line_body(a, workers, sums.taker()));
  }

  template <class Body>
  void measure_cached(std::string const& way, scoreboard& scores, line_cache& cache, Sums& sums, u64 workers,
                      Body const& body) {
    prepare(on_, body);
    contestant ours;
    ours.access = way;
    ours.reset = [&] { sums.reset(); };
    ours.run = [&] {
      run(on_, workers, body);
      sums.finish();
    };
    ours.check = [&] {
      cache.check_faults();
      check(sums, way);
    };
    ours.moved = [&] { return traffic{static_cast<double>(cache.stats(0).bytes_moved), 0}; };
    ours.facts = describe(on_, body);
    scores.in_turns(by_tiles(), ours, cache);
  }

  take_elements<typename Sums::take> element_body(array_view<T> const& a, u64 workers, typename Sums::take const& take) const {
    // A GPU's warps walk side by side, an element per lane; a CPU's threads have a run each.
    const bool cuda = on_.kind() == executor_kind::cuda;
    const pieces cut = {what_.file.elements, cuda ? group_width : most_tile_bytes / sizeof(T), 0};
    return {a, cut, {cut.count(), workers, cuda}, take};
  }

  take_lines<typename Sums::take> line_body(array_view<T> const& a, u64 workers, typename Sums::take const& take) const {
    const bool cuda = on_.kind() == executor_kind::cuda;
    const pieces cut = cut_lines(on_, what_.file.elements, sizeof(T), cache_.line_bytes, what_.store.origin(0));
    return {a, cut, {cut.count(), workers, cuda}, pieces_ahead(on_, cache_, cut.per_piece * sizeof(T), 1), take};
  }

  void check(Sums const& sums, std::string const& way) const {
    const std::string problem = sums.compare();
    if (problem.empty()) return;
    throw error(error_kind::world, "verify " + task_.object + ": " + way + " access: " + problem);
  }

  job const& what_;
  reduce_result& result_;
  executor& on_;
  u32 depth_;
  u64 workers_;
  tile_bench tiles_;
  Sums tile_sums_;
  task task_;
  pieces cut_;
  tile_array array_;
  cache_options cache_;
  double moved_by_tiles_ = 0;
};

template <class T>
void measure(job const& what, reduce_result& result) {
  if (what.columns) return contest<T, column_sums<T>>(what, result).measure();
  contest<T, total_sums<T>>(what, result).measure();
}

void measure_any(job const& what, reduce_result& result) {
  const bool wide = what.file.type.bytes == 8;
  switch (what.file.type.kind) {
    case 'f': return wide ? measure<double>(what, result) : measure<float>(what, result);
    case 'u': return wide ? measure<std::uint64_t>(what, result) : measure<std::uint32_t>(what, result);
    default: return wide ? measure<std::uint64_t>(what, result) : measure<std::int32_t>(what, result);  // modulo 2^64
  }
}

u64 columns_of(media::array_file const& file) {
  auto const refuse = [&](std::string const& problem) { throw_bad_input("average the columns of", file.path, problem); };
  if (file.raw) refuse("a file without a header has no shape: save it with numpy.save");
  if (file.shape.size() != 2) {
    refuse("its array has " + std::to_string(file.shape.size()) + " dimension" + (file.shape.size() == 1 ? "" : "s") +
           ": columns need two, rows and columns");
  }
  if (file.elements == 0) {
    refuse("its shape is (" + std::to_string(file.shape[0]) + ", " + std::to_string(file.shape[1]) +
           "): a mean needs at least one row and one column");
  }
  return file.shape[1];
}

void check_range(media::array_file const& file, std::vector<reference_sum> const& sums) {
  for (u64 c = 0; c < sums.size(); ++c) {
    const bool fits = file.type.kind == 'u' ? sums[c].number < 0x1p64L : sums[c].number >= -0x1p63L && sums[c].number < 0x1p63L;
    if (file.type.kind == 'f' || fits) continue;
    throw_bad_input("average the columns of", file.path,
                    "the sum of column " + std::to_string(c) + " takes more than 64 bits: convert it to float64");
  }
}

}  // namespace

reduce_result run_reduce(std::string const& path, bool columns, regular_options const& options) {
  check_options(options);
  const media::array_file file = media::describe_array(path, options.raw);
  const u64 width = columns ? columns_of(file) : 1;
  const auto on = open_executor_for(options);
  media::array_store store(*on, media_of(options), {{file}}, options.progress);
  const auto expected = reference_sums(file, width, options.progress);
  if (columns) check_range(file, expected);
  reduce_result result;
  result.type = file.type.name();
  result.shape = file.shape;
  measure_any({*on, options, file, store, expected, columns}, result);
  return result;
}

}  // namespace penstock::regular
