// How the programs of this folder are measured: ways to do one thing, in turns with explicit tiles, each result checked.
#pragma once

#include "libs/media/array_store.hpp"
#include "libs/regular/regular.hpp"
#include "libs/regular/tiles.hpp"
#include "penstock/executor/launch.hpp"

#include <functional>
#include <string>
#include <vector>

namespace penstock::regular {

/// Bytes that crossed the queues.
struct traffic {
  double read = 0, written = 0;
};

struct contestant {
  std::string access{};
  std::function<void()> reset{};     ///< before each run, not timed
  std::function<void()> run{};       ///< timed
  std::function<void()> check{};     ///< after each run, not timed; throws for a wrong result
  std::function<void()> clear{};     ///< before the first run, if there is one: nothing of an older result is left
  std::function<void()> compare{};   ///< after the first and the last run, if there is one: what takes longer than `check`
  std::function<traffic()> moved{};  ///< so far
  std::function<void(std::map<std::string, double>&)> account{};  ///< after the last run, if there is one: what else is told
  kernel_facts facts{};
  std::map<std::string, double> details{};

  std::vector<double> seconds{};
  traffic per_run{};
};

/// What a run must move, and how fast the media does so at best.
struct task {
  std::string id;      ///< of the measurements
  std::string object;  ///< for messages
  double bytes_read = 0, bytes_written = 0;
  double read_rate = 0, write_rate = 0;  ///< bytes/s
  bool one_rate = false;                 ///< reads and writes share it: modelled drives that are not duplex

  /// The larger of the time to read and the time to write: the two in perfect overlap.
  double ideal_seconds() const;
  /// The share of the ideal that such media have to give.
  double most_of_ideal() const;
};

/// Times each of them `repeats` times, one after the other; a run before the first is checked and not counted.
void take_turns(std::vector<contestant*> const& all, u32 repeats, progress_fn const& progress);

/// Shortest time of some runs.
double shortest(u32 runs, std::function<void()> const& run);

/// The measurements of one run of a program: ways through the cache, each in turns with explicit tiles.
class scoreboard {
 public:
  /// REQUIRES: all of them outlive it.
  scoreboard(executor& on, regular_options const& options, media::array_store& store, task const& what,
             std::map<std::string, std::string> params)
      : on_(on), options_(options), store_(store), task_(what), params_(std::move(params)) {}

  void tiles_alone(contestant tiles);
  void in_turns(contestant tiles, contestant& ours, line_cache const& cache);
  /// The tiles first, by all of their times.
  std::vector<bench::measurement> take();

 private:
  /// `beside`: the times of the tiles that it took turns with; null: these are the tiles.
  bench::measurement describe(contestant const& one, std::vector<double> const* beside) const;
  void keep(contestant tiles);

  executor& on_;
  regular_options const& options_;
  media::array_store& store_;
  task const& task_;
  std::map<std::string, std::string> params_;
  contestant tiles_;
  std::vector<bench::measurement> ours_;
};

/// What does not depend on what is computed. Throws bad_input.
void check_options(regular_options const& options);
/// Ways through the cache that are asked for, in order.
std::vector<std::string> cached_ways(regular_options const& options);
std::unique_ptr<executor> open_executor_for(regular_options const& options);
media::array_store_options media_of(regular_options const& options);
cache_options cache_of(executor const& on, media::array_store const& store, regular_options const& options, u64 data_bytes);
std::map<std::string, std::string> params_of(executor const& on, regular_options const& options, media::number_type type,
                                             u64 data_bytes, cache_options const& cache, std::string const& engine);

/// The workers of an executor that go by tiles, and what they share.
class tile_bench {
 public:
  /// `rooms`: of a worker.
  tile_bench(executor& on, u64 workers, u32 rooms);

  tile_rooms rooms() const {
    return {requests_.data(), requests_.data() + requests_.size() - 1, data_.data(), problem_.data(), per_worker_};
  }
  /// Throws for a command that failed. REQUIRES: no kernel runs.
  void check(std::string const& operation, std::string const& object);

 private:
  u32 per_worker_;
  buffer<block_request> requests_;
  buffer<u8> data_;
  buffer<u32> problem_;
};

/// Workers of an executor that go by tiles.
u64 tile_workers(media::array_store const& store);
/// Workers that go through a cache: as many as run at once, and as their pins leave room for.
u64 cache_workers(executor const& on, media::array_store const& store, line_cache const& cache);
u32 tiles_in_flight(executor const& on, regular_options const& options);
/// Tiles over arrays of elements of a size: as large as a command lets them be where each array has its own alignment.
pieces cut_tiles(u64 elements, u32 item_bytes, u64 tile_bytes, std::vector<u64> const& origins);
/// Pieces for those who go by lines, which start where lines of the array do: a GPU's warps take one each, a CPU's thread
/// several.
pieces cut_lines(executor const& on, u64 elements, u32 item_bytes, u64 line_bytes, u64 origin);
/// Such pieces of so many arrays, asked for before they are read: a CPU's threads have half as much in flight as by tiles, and
/// no more than a quarter of the cache, or they would push out what is still to be read; a GPU's warps are many instead.
u32 pieces_ahead(executor const& on, cache_options const& cache, u64 piece_bytes, u32 arrays);
/// Bytes of the blocks that tiles of an array take.
double tile_traffic(pieces const& cut, tile_array array, u32 block_shift);

}  // namespace penstock::regular
