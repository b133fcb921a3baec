#include "libs/regular/contest.hpp"

#include "libs/media/names.hpp"
#include "libs/regular/kernels.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <utility>

namespace penstock::regular {
namespace {

/// Lines that the lanes of one group may wait for at once: elements next to each other, on two lines.
constexpr u64 pins_per_group = 2;
constexpr u64 least_cache_bytes = 1 << 20;
constexpr u64 least_cache_bytes_cuda = 128 << 20;  // holds what all warps of a large GPU wait for
// Lines are stored whole and once: to keep them would only put off the writes, past the end of the reads.
constexpr double most_dirty = 1.0 / 32;
constexpr char const* ways[] = {"naive", "line"};

double elapsed(std::function<void()> const& run) {
  const u64 start = now_ns();
  run();
  return static_cast<double>(std::max<u64>(1, now_ns() - start)) * 1e-9;
}

std::vector<double> rates(std::vector<double> const& seconds, double bytes) {
  std::vector<double> all(seconds.size());
  std::ranges::transform(seconds, all.begin(), [&](double each) { return bytes / each * 1e-9; });
  return all;
}

double ratio(double a, double b) { return b == 0 ? 0 : a / b; }

[[noreturn]] void refuse(std::string const& problem) { throw_bad_input("measure", "arrays", problem); }

}  // namespace

double task::ideal_seconds() const { return std::max(ratio(bytes_read, read_rate), ratio(bytes_written, write_rate)); }

double task::most_of_ideal() const {
  if (!one_rate || bytes_written == 0) return 1;
  return ratio(ideal_seconds(), ratio(bytes_read, read_rate) + ratio(bytes_written, write_rate));
}

void take_turns(std::vector<contestant*> const& all, u32 repeats, progress_fn const& progress) {
  std::vector<traffic> before(all.size());
  for (u32 k = 0; k <= repeats; ++k) {
    for (std::size_t c = 0; c < all.size(); ++c) {
      contestant& one = *all[c];
      if (progress) progress(one.access, k, repeats + 1);
      if (k == 0 && one.clear) one.clear();
      one.reset();
      const double seconds = elapsed(one.run);
      one.check();
      if ((k == 0 || k == repeats) && one.compare) one.compare();
      const traffic end = one.moved();
      if (k == 0) {
        before[c] = end;
        continue;
      }
      one.seconds.push_back(seconds);
      one.per_run = {(end.read - before[c].read) / k, (end.written - before[c].written) / k};
    }
  }
}

double shortest(u32 runs, std::function<void()> const& run) {
  double least = elapsed(run);
  for (u32 k = 1; k < runs; ++k) least = std::min(least, elapsed(run));
  return least;
}

void scoreboard::tiles_alone(contestant tiles) {
  store_.start();
  take_turns({&tiles}, options_.repeats, options_.progress);
  store_.stop();
  keep(std::move(tiles));
}

void scoreboard::in_turns(contestant tiles, contestant& ours, line_cache const& cache) {
  store_.start();
  take_turns({&tiles, &ours}, options_.repeats, options_.progress);
  store_.stop();
  ours.details["metadata_bytes"] = static_cast<double>(cache.metadata_bytes());
  if (ours.account) ours.account(ours.details);
  ours_.push_back(describe(ours, &tiles.seconds));
  keep(std::move(tiles));
}

void scoreboard::keep(contestant tiles) {
  tiles.seconds.insert(tiles.seconds.end(), tiles_.seconds.begin(), tiles_.seconds.end());
  tiles_ = std::move(tiles);
}

std::vector<bench::measurement> scoreboard::take() {
  ours_.insert(ours_.begin(), describe(tiles_, nullptr));
  return std::move(ours_);
}

bench::measurement scoreboard::describe(contestant const& one, std::vector<double> const* beside) const {
  const double bytes = task_.bytes_read + task_.bytes_written;
  const double seconds = bench::median(one.seconds);
  const double ideal = task_.ideal_seconds();
  bench::measurement m;
  m.id = task_.id;
  m.params = params_;
  m.params["access"] = one.access;
  m.values = rates(one.seconds, bytes);
  m.unit = "GB/s";
  m.baseline = beside != nullptr ? "explicit tiles" : "ideal: the media's peak rates";
  m.baseline_values = beside != nullptr ? rates(*beside, bytes) : std::vector<double>{ratio(bytes, ideal) * 1e-9};
  m.verified = true;  // take_turns throws where it is not
  m.sms = on_.kind() == executor_kind::cuda ? on_.units() : 0;
  m.registers = one.facts.registers;
  m.bytes = {{"read", one.per_run.read}, {"written", one.per_run.written}};
  m.details = one.details;
  m.details["seconds"] = seconds;
  m.details["ideal_seconds"] = ideal;
  m.details["of_ideal"] = ratio(ideal, seconds);
  m.details["peak_read_gb_per_s"] = task_.read_rate * 1e-9;
  m.details["read_amplification"] = ratio(one.per_run.read, task_.bytes_read);
  if (task_.write_rate != 0) {
    m.details["peak_write_gb_per_s"] = task_.write_rate * 1e-9;
    m.details["most_of_ideal"] = task_.most_of_ideal();
    m.details["write_amplification"] = ratio(one.per_run.written, task_.bytes_written);
  }
  m.machine = bench::describe_host();
  m.machine["device"] = on_.device();
  return m;
}

void check_options(regular_options const& options) {
  if (options.repeats == 0) refuse("0 repeats: ask for 1 or more");
  if (!is_power_of_two(options.tile_bytes) || options.tile_bytes < 4096 || options.tile_bytes > most_tile_bytes) {
    refuse("tiles of " + std::to_string(options.tile_bytes) + " bytes: choose a power of two from 4 KiB to 64 KiB");
  }
  if (options.in_flight > most_depth) {
    refuse(std::to_string(options.in_flight) + " tiles in flight: choose 1 to " + std::to_string(most_depth));
  }
  for (auto const& name : options.access) {
    if (name != "tiled" && std::find(std::begin(ways), std::end(ways), name) == std::end(ways)) {
      refuse("access " + name + ": there is none of this name; choose of tiled, naive, line");
    }
  }
}

std::vector<std::string> cached_ways(regular_options const& options) {
  std::vector<std::string> all;
  for (char const* way : ways) {
    const bool asked = std::find(options.access.begin(), options.access.end(), way) != options.access.end();
    if (asked || options.access.empty()) all.emplace_back(way);
  }
  return all;
}

std::unique_ptr<executor> open_executor_for(regular_options const& options) {
  return open_executor(options.executor, options.threads, has_kernels);
}

media::array_store_options media_of(regular_options const& options) {
  media::array_store_options media;
  media.media = options.media;
  media.drives = options.drives;
  media.place = options.place;
  media.engine = media::parse_engine(options.engine);
  media.direct = options.direct;
  media.controller_threads = options.threads;
  media.server_units = options.server_sms;
  media.stripe_bytes = options.tile_bytes;
  return media;
}

cache_options cache_of(executor const& on, media::array_store const& store, regular_options const& options, u64 data_bytes) {
  const u64 least = on.kind() == executor_kind::cuda ? least_cache_bytes_cuda : least_cache_bytes;
  cache_options cache;
  cache.bytes = options.cache_bytes != 0 ? options.cache_bytes : std::max(least, data_bytes / 8);
  cache.line_bytes = options.line_bytes;
  cache.queues = store.cache_queues();
  cache.directory = media::parse_directory(options.directory);
  cache.write_back.most_dirty = most_dirty;
  return cache;
}

std::map<std::string, std::string> params_of(executor const& on, regular_options const& options, media::number_type type,
                                             u64 data_bytes, cache_options const& cache, std::string const& engine) {
  return {{"executor", on.kind() == executor_kind::cuda ? "cuda" : "cpu"},
          {"media", options.media},
          {"drives", std::to_string(options.drives)},
          {"place", options.place},
          {"engine", engine},
          {"direct", options.direct ? "yes" : "no"},
          {"dtype", type.name()},
          {"bytes", std::to_string(data_bytes)},
          {"cache_bytes", std::to_string(cache.bytes)},
          {"line_bytes", std::to_string(cache.line_bytes)},
          {"tile_bytes", std::to_string(options.tile_bytes)},
          {"in_flight", std::to_string(tiles_in_flight(on, options))}};
}

tile_bench::tile_bench(executor& on, u64 workers, u32 rooms)
    : per_worker_(rooms), requests_(on.memory(), memory_kind::local, tile_rooms::request_count(workers, rooms)),
      data_(on.memory(), memory_kind::local, workers * rooms * most_tile_bytes), problem_(on.memory(), memory_kind::local, 1) {}

void tile_bench::check(std::string const& operation, std::string const& object) {
  u32 worst = 0;
  problem_.read({&worst, 1});
  if (worst == 0) return;
  const u32 none = 0;
  problem_.write({&none, 1});
  throw_status(operation, object, unpack_status(worst));
}

u64 tile_workers(media::array_store const& store) { return 4 * u64{store.units_left()}; }

u64 cache_workers(executor const& on, media::array_store const& store, line_cache const& cache) {
  const bool cuda = on.kind() == executor_kind::cuda;
  cache.check_pins(cuda ? cuda_block_threads / group_width : on.units(), pins_per_group);
  if (!cuda) return tile_workers(store);
  const u64 fit = u64{store.units_left()} * cuda_blocks_per_unit * (cuda_block_threads / group_width);
  return std::max<u64>(1, std::min(fit, cache.view().frames / (2 * pins_per_group)));
}

u32 tiles_in_flight(executor const& on, regular_options const& options) {
  if (options.in_flight != 0) return options.in_flight;
  return on.kind() == executor_kind::cuda ? 4 : 8;
}

pieces cut_tiles(u64 elements, u32 item_bytes, u64 tile_bytes, std::vector<u64> const& origins) {
  constexpr u64 block = 512;
  const bool alike = std::all_of(origins.begin(), origins.end(), [&](u64 o) { return (o - origins.back()) % block == 0; });
  // Where they are not alike, a tile of one array has a block more in another.
  const u64 bytes = alike || tile_bytes < most_tile_bytes ? tile_bytes : tile_bytes - 4096;
  return {elements, bytes / item_bytes, origins.back() % bytes / item_bytes};
}

pieces cut_lines(executor const& on, u64 elements, u32 item_bytes, u64 line_bytes, u64 origin) {
  const u64 bytes = on.kind() == executor_kind::cuda ? line_bytes : std::max(line_bytes, most_tile_bytes / 4);
  return {elements, bytes / item_bytes, origin % bytes / item_bytes};
}

u32 pieces_ahead(executor const& on, cache_options const& cache, u64 piece_bytes, u32 arrays) {
  if (on.kind() == executor_kind::cuda) return 0;
  constexpr u64 tiles_of_all = 8;
  const u64 room = cache.bytes / 4 / on.units();
  return static_cast<u32>(std::min(tiles_of_all * most_tile_bytes / 2, room) / (piece_bytes * arrays));
}

double tile_traffic(pieces const& cut, tile_array array, u32 block_shift) {
  u64 blocks = 0;
  for (u64 piece = 0; piece < cut.count(); ++piece) blocks += array.of(cut.first(piece), cut.last(piece)).blocks;
  return static_cast<double>(blocks << block_shift);
}

}  // namespace penstock::regular
