#include "libs/bench/write_figures.hpp"
#include "libs/regular/contest.hpp"
#include "libs/regular/kernels.hpp"
#include "libs/regular/reduce_kernels.hpp"
#include "libs/regular/reference.hpp"
#include "libs/regular/regular.hpp"
#include "libs/regular/vectoradd_kernels.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"

#include <filesystem>

namespace penstock::regular {
namespace {

constexpr u32 rooms_of_a_tile = 3;  // a, b, c

struct add_job {
  executor& on;
  regular_options const& options;
  media::array_file const& a;
  media::array_file const& b;
  media::array_file const& c;
  media::array_store& store;
};

template <class T>
class add_contest {
 public:
  explicit add_contest(add_job const& what)
      : what_(what), on_(what.on), depth_(tiles_in_flight(on_, what.options)), workers_(tile_workers(what.store)),
        tiles_(on_, workers_, rooms_of_a_tile * depth_) {
    task_.id = "write.vectoradd";
    task_.object = what.a.path + " + " + what.b.path;
    task_.bytes_read = static_cast<double>(what.a.data_bytes() + what.b.data_bytes());
    task_.bytes_written = static_cast<double>(what.c.data_bytes());
    cut_ = cut_tiles(what.c.elements, sizeof(T), what.options.tile_bytes,
                     {what.store.origin(0), what.store.origin(1), what.store.origin(2)});
    prepare(on_, tile_body());
    prepare(on_, read_body(0));
    prepare(on_, send_body());
    prepare(on_, flush_body());
  }

  std::vector<bench::measurement> measure() {
    const u64 data_bytes = 3 * what_.c.data_bytes();
    const cache_options cache = cache_of(on_, what_.store, what_.options, data_bytes);
    measure_peaks();
    scoreboard scores(on_, what_.options, what_.store, task_,
                      params_of(on_, what_.options, what_.c.type, data_bytes, cache, what_.store.engine()));
    const auto ways = cached_ways(what_.options);
    if (ways.empty()) scores.tiles_alone(by_tiles());
    for (std::string const& way : ways) measure_cached(way, scores, cache);
    return scores.take();
  }

 private:
  dealt work() const { return {cut_.count(), workers_, on_.kind() == executor_kind::cuda}; }
  tile_array array(u32 k) const { return what_.store.tiles(k); }
  add_tiles<T> tile_body() const { return {array(0), array(1), array(2), cut_, work(), tiles_.rooms(), depth_}; }
  take_tiles<take_nothing> read_body(u32 k) const { return {array(k), cut_, work(), tiles_.rooms(), depth_, {}}; }
  send_tiles send_body() const { return {array(2), cut_, work(), tiles_.rooms(), depth_}; }
  flush_tiles flush_body() const { return {array(2), tiles_.rooms()}; }

  void measure_peaks() {
    task_.read_rate = what_.store.specified_rate(false);
    task_.write_rate = what_.store.specified_rate(true);
    task_.one_rate = what_.store.one_rate();
    if (task_.read_rate != 0 || cut_.count() == 0) return;
    if (what_.options.progress) what_.options.progress("reading and writing tiles", 0, 1);
    what_.store.start();
    const double reading = shortest(what_.options.repeats, [&] {
      run(on_, workers_, read_body(0));
      run(on_, workers_, read_body(1));
    });
    const double writing = shortest(what_.options.repeats, [&] {
      run(on_, workers_, send_body());
      run(on_, 1, flush_body());
    });
    what_.store.stop();
    tiles_.check("add", task_.object);
    task_.read_rate = task_.bytes_read / reading;
    task_.write_rate = task_.bytes_written / writing;
  }

  contestant by_tiles() {
    contestant one;
    one.access = "tiled";
    one.clear = [this] { what_.store.clear(2); };
    one.reset = [] {};
    one.run = [this] {
      run(on_, workers_, tile_body());
      run(on_, 1, flush_body());
    };
    one.check = [this] {
      tiles_.check("add", task_.object);
      for (u32 k = 0; k < 2; ++k) moved_.read += tile_traffic(cut_, array(k), array(k).block_shift);
      moved_.written += tile_traffic(cut_, array(2), array(2).block_shift);
    };
    one.compare = [this] { compare("tiled"); };
    one.moved = [this] { return moved_; };
    one.facts = describe(on_, tile_body());
    return one;
  }

  /// A cache of its own for each way, and turns with tiles.
  void measure_cached(std::string const& way, scoreboard& scores, cache_options const& options) {
    line_cache cache(on_, what_.store.datasets(), options);
    const u64 workers = cache_workers(on_, what_.store, cache);
    const auto view = [&](u32 k) { return cache.array<T>(k, what_.store.origin(k), what_.c.elements); };
    const auto c = cache.writable<T>(2, what_.store.origin(2), what_.c.elements);
    const bool cuda = on_.kind() == executor_kind::cuda;
    if (way == "naive") {
      // A GPU's warps walk side by side, an element per lane; a CPU's threads have a run each.
      const pieces cut = {what_.c.elements, cuda ? group_width : most_tile_bytes / sizeof(T), 0};
      measure_cached(way, scores, cache, workers, add_elements<T>{view(0), view(1), c, cut, {cut.count(), workers, cuda}});
    } else {
      const pieces cut = cut_lines(on_, what_.c.elements, sizeof(T), options.line_bytes, what_.store.origin(2));
      const buffer<T> scratch(on_.memory(), memory_kind::local, workers * cut.per_piece);
      measure_cached(way, scores, cache, workers,
                     add_lines<T>{view(0),
                                  view(1),
                                  c,
                                  cut,
                                  {cut.count(), workers, cuda},
                                  pieces_ahead(on_, options, cut.per_piece * sizeof(T), 2),
                                  scratch.data(),
                                  tiles_.rooms().problem});
    }
  }

  template <class Body>
  void measure_cached(std::string const& way, scoreboard& scores, line_cache& cache, u64 workers, Body const& body) {
    prepare(on_, body);
    contestant ours;
    ours.access = way;
    ours.clear = [this] { what_.store.clear(2); };
    ours.reset = [] {};
    bench::write_account writes;
    ours.run = [&] {
      const u64 begun = now_ns();
      run(on_, workers, body);
      const u64 stored = now_ns();
      cache.flush();
      writes.kernel_seconds += static_cast<double>(stored - begun) * 1e-9;
      writes.seconds += static_cast<double>(now_ns() - begun) * 1e-9;
    };
    ours.check = [&] {
      cache.check_faults();
      tiles_.check("add", task_.object);
    };
    ours.compare = [&] { compare(way); };
    ours.moved = [&] {
      traffic all;
      for (u32 k = 0; k < 3; ++k) all.read += static_cast<double>(cache.stats(k).bytes_moved);
      all.written = static_cast<double>(cache.stats(2).bytes_written);
      return all;
    };
    ours.account = [&](std::map<std::string, double>& details) {
      writes.threads = on_.kind() == executor_kind::cuda ? workers * group_width : on_.units();
      writes.capacity = what_.store.capacity(2);
      for (u32 k = 0; k < 3; ++k) writes.add(cache.stats(k));
      bench::describe_writes(details, cache, writes);
    };
    ours.facts = describe(on_, body);
    scores.in_turns(by_tiles(), ours, cache);
  }

  void compare(std::string const& way) const {
    const std::string problem = compare_added(
        what_.a, what_.b, [&](u64 offset, std::span<std::byte> to) { what_.store.read(2, offset, to); },
        what_.options.progress);
    if (problem.empty()) return;
    throw error(error_kind::world, "verify " + what_.c.path + ": " + way + " access: " + problem);
  }

  add_job const& what_;
  executor& on_;
  u32 depth_;
  u64 workers_;
  tile_bench tiles_;
  task task_;
  pieces cut_;
  traffic moved_;
};

std::vector<bench::measurement> measure_any(add_job const& what) {
  const bool wide = what.c.type.bytes == 8;
  if (what.c.type.kind == 'f') return wide ? add_contest<double>(what).measure() : add_contest<float>(what).measure();
  // Signed or not: the bits are the same.
  return wide ? add_contest<std::uint64_t>(what).measure() : add_contest<std::uint32_t>(what).measure();
}

std::string shape_of(media::array_file const& file) {
  std::string text;
  for (u64 const extent : file.shape) text += std::to_string(extent) + ", ";
  if (file.shape.size() > 1) text.resize(text.size() - 2);
  if (file.shape.size() == 1) text.pop_back();
  return "(" + text + ")";
}

void check_alike(media::array_file const& a, media::array_file const& b) {
  if (a.shape == b.shape && a.type == b.type) return;
  throw_bad_input("add", a.path + " and " + b.path,
                  "they hold " + a.type.name() + " of shape " + shape_of(a) + " and " + b.type.name() + " of shape " +
                      shape_of(b) + ": both must be alike");
}

void check_other(std::string const& input, std::string const& out) {
  std::error_code none;
  if (!std::filesystem::equivalent(input, out, none)) return;
  throw_bad_input("create", out, "it is what is added: name another file");
}

}  // namespace

vectoradd_result run_vectoradd(std::string const& a, std::string const& b, std::string const& out, bool replace,
                               regular_options const& options) {
  check_options(options);
  const media::array_file file_a = media::describe_array(a, options.raw), file_b = media::describe_array(b, options.raw);
  check_alike(file_a, file_b);
  check_other(a, out);
  check_other(b, out);
  const auto on = open_executor_for(options);
  media::new_array_file made(out, file_a, replace);
  media::array_file const& file_c = made.made();
  media::array_store store(*on, media_of(options), {{file_a}, {file_b}, {file_c, true}}, options.progress);
  vectoradd_result result;
  result.type = file_a.type.name();
  result.shape = file_a.shape;
  result.measurements = measure_any({*on, options, file_a, file_b, file_c, store});
  store.save(2);
  made.keep();
  return result;
}

}  // namespace penstock::regular
