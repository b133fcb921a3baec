// Reading ahead of readers that go from line to line. No caller declares it, no state of it is kept: the directory shows it.
//
// Lines are in blocks of 32 KiB, eight lines at most. A group that took the slow way to the first line of a block (it had to
// wait, or was the first to use a line that was brought in ahead) looks, when it has its line, whether all of the 16 lines
// before have come or are coming. If so, it looks at the next four blocks and, while no more than half of what may be
// in flight ahead of need is, at blocks all over the window of `reads_ahead` lines; and asks for four blocks from the nearest
// of which the first line is missing, and from the next such. So
//
// - many groups that read along together fill the window together, whichever of them is first; those that are ahead of the
//   others ask for nothing, for the lines before have gaps yet, and those that are behind close what is open beyond them;
// - the window stays full while they go on: one block is begun, more may be asked for;
// - hundreds of readers, each with a part of its own, share what may be in flight: what each needs next comes before what
//   others need later;
// - a group that comes to a block takes the slow way to its first line, which alone is brought in as unused; the others count
//   as used, so that they are hits and still there when the readers are;
// - readers that jump about ask for little: a cache that holds nine tenths of the data holds 16 neighbours of a line one time
//   in five, and then few of those that would be asked for are missing.
//
// A warp looks at 32 blocks at once: the next four, and 28 evenly over a long window, which are others from the next block. A
// lone thread looks at one after the other, so it does at the first of four blocks only.
#pragma once

#include "penstock/coalesce/prefetch_line.hpp"

namespace penstock {

/// Lines that must be there before one from which more are asked for.
constexpr u32 behind_lines = 16;
/// Blocks next to a reader's own that are looked at, and blocks that are asked for at once.
constexpr u32 near_blocks = 4;

/// Lines of a block.
template <class Cache>
PENSTOCK_FN u32 ahead_block(Cache const& cache) {
  const u32 lines = 32768u >> cache.line_shift;
  return lines > 8 ? 8 : lines < 1 ? 1 : lines;
}

/// Whether a line is one from which more are asked for.
template <class Cache>
PENSTOCK_FN bool starts_ahead(Cache const& cache, line_id line) {
  return cache.reads_ahead != 0 && (value(line) & (ahead_block(cache) - 1)) == 0;
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
  const auto found = g.ballot(starts && value(line) >= data.first_line + behind_lines);
  if (!any(found)) return;
  const u64 from = g.shfl(value(line), lowest(found));
  const u32 block = ahead_block(cache), step = size(g) == 1 ? near_blocks * block : block;
  if ((from & (step - 1)) != 0) return;
  bool gap = false;
  for (u32 k = index_in(g); k < behind_lines; k += size(g)) gap |= is_empty(from - behind_lines + k);
  if (any(g.ballot(gap))) return;
  // Of what may be in flight ahead of need far blocks leave half: to near ones, and to callers that know what they will need.
  u32& in_flight = cache.prefetches_in_flight[executor_ordinal() & (cache.prefetch_shards - 1)];
  const u64 under_way = from_leader(g, is_leader(g) ? device_ref<u32>(in_flight).load(relaxed) : 0);
  const u32 asks = near_blocks * block, pieces = cache.reads_ahead / asks;
  const u32 far = pieces < 32 - near_blocks ? pieces : 32 - near_blocks;
  const u32 looks = near_blocks + (under_way > cache.prefetch_limit / 2 ? 0 : far);
  const u64 apart = u64{pieces / far} * asks;
  u32 asked = 0;
  for (u32 k = 0; k < looks && asked < 2; k += size(g)) {
    const u32 look = k + index_in(g);
    const u64 at = from + (look < near_blocks ? (look + 1) * u64{block} : (look - near_blocks + 1) * apart);
    auto missing = g.ballot(look < looks && at < end && is_empty(at));
    for (; any(missing) && asked < 2; ++asked) {
      const u64 next = g.shfl(at, lowest(missing));
      missing = without(missing, g.ballot(at < next + asks));
      for (u32 first = 0; first < asks; first += size(g)) {
        const u64 mine = next + first + index_in(g);
        const bool wants = mine - next < asks && mine < end && is_empty(mine);
        const bool begins = (mine & (step - 1)) == 0;
        prefetch_line(g, cache, dataset, wants, line_id{mine}, begins ? fill_purpose::guess : fill_purpose::asked);
      }
    }
  }
}

}  // namespace penstock
