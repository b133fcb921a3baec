// Reading ahead of readers that go from line to line. No caller declares it, no state of it is kept: the directory shows it.
//
// Lines are in blocks of 32. A group that took the slow way to the first line of a block (it had to wait, or was the first to
// use a line that was brought in ahead) looks, when it has its line, whether all of the block before have come or are coming.
// If so, it goes on to look at blocks in the window of `reads_ahead` lines behind its own, and asks for the nearest two of
// which the first line is missing. So
//
// - many groups that read along together fill the window together, whichever of them is first; those that are ahead of the
//   others ask for nothing, for the block before has gaps yet, and those that are behind close what is open beyond them;
// - the window stays full while they go on: one block is begun, two may be asked for;
// - a group that comes to a block takes the slow way to its first line, which alone is brought in as unused; the others count
//   as used, so that they are hits and still there when the readers are;
// - readers that jump about ask for none: a cache that holds nine tenths of the data holds 32 neighbours of a line one time in
//   29, and then few of those that would be asked for are missing.
//
// A warp looks at 32 blocks of the window at once; of a longer one, at every second or fourth and so on, and at others from the
// next block.
#pragma once

#include "penstock/coalesce/prefetch_line.hpp"

namespace penstock {

/// Lines that are asked for at once: one for each lane of a warp.
constexpr u32 ahead_block = 32;

/// Whether a line is one from which more are asked for.
template <class Cache>
PENSTOCK_FN bool starts_ahead(Cache const& cache, line_id line) {
  return cache.reads_ahead != 0 && value(line) % ahead_block == 0;
}

/// Asks for blocks ahead of one of the lines for which `starts` says that a lane has come to it. Waits for nothing, as
/// prefetch_line. Collective.
template <thread_group G, class Cache>
PENSTOCK_COLD void read_ahead(G g, Cache const& cache, u32 dataset, bool starts, line_id line) {
  dataset_view const& data = cache.datasets[dataset];
  // What has failed gives up no line for what it would not get.
  if (ends_when_sent(data.source()) || (data.health != nullptr && !data.health->failed().ok())) return;
  const u64 end = data.first_line + data.lines;
  const auto is_empty = [&](u64 at) { return cache.directory.glance(line_id{at}).state() == line_state::empty; };
  const auto found = g.ballot(starts && value(line) >= data.first_line + ahead_block);
  if (!any(found)) return;
  const u64 from = g.shfl(value(line), lowest(found));
  bool gap = false;
  for (u32 k = index_in(g); k < ahead_block; k += size(g)) gap |= is_empty(from - ahead_block + k);
  if (any(g.ballot(gap))) return;
  // Half of what may be in flight ahead of need is left to callers that know what they will need.
  u32& in_flight = cache.prefetches_in_flight[executor_ordinal() & (cache.prefetch_shards - 1)];
  if (from_leader(g, is_leader(g) ? device_ref<u32>(in_flight).load(relaxed) : 0) > cache.prefetch_limit / 2) return;
  const u32 blocks = cache.reads_ahead / ahead_block, looks = blocks < 32 ? blocks : 32;
  const u64 apart = u64{blocks / looks} * ahead_block;
  u32 asked = 0;
  for (u32 k = 0; k < looks && asked < 2; k += size(g)) {
    const u32 look = k + index_in(g) + 1;
    const u64 block = from + look * apart;
    auto missing = g.ballot(look <= looks && block < end && is_empty(block));
    for (; any(missing) && asked < 2; ++asked) {
      const u64 next = g.shfl(block, lowest(missing));
      missing = without(missing, g.ballot(block == next));
      for (u32 first = 0; first < ahead_block; first += size(g)) {
        const u64 mine = next + first + index_in(g);
        const bool wants = mine < end && is_empty(mine);
        prefetch_line(g, cache, dataset, wants, line_id{mine}, mine == next ? fill_purpose::guess : fill_purpose::asked);
      }
    }
  }
}

}  // namespace penstock
