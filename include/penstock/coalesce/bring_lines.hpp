// Bringing lines in ahead of their use, all of them: a prefetch that beyond its limit waits, and does not leave lines out.
#pragma once

#include "penstock/cache/move_queues.hpp"
#include "penstock/coalesce/fill_watch.hpp"
#include "penstock/coalesce/prefetch_line.hpp"
#include "penstock/group/warp.hpp"

namespace penstock {

/// What a call of bring_lines does.
enum class bring_step : u32 {
  ask,    ///< asks for what is missing; where as many lines are in flight ahead of need as may be, it waits for some
  await,  ///< waits for what is on its way, and copies what has landed
};

/// A step towards the lines of a group's lanes that want one, no longer than until `until_ns` (as now_ns). A wish, as
/// prefetch_line: it waits for no frame, holds no pin, and reports no failure. Collective.
template <thread_group G, class Cache>
PENSTOCK_COLD void bring_lines(G g, Cache const& cache, u32 dataset, bool want, line_id line, bring_step step, u64 until_ns) {
  constexpr u32 most_moved = 4;
  const u64 now = from_leader(g, now_ns());
  backoff wait(now < until_ns ? until_ns - now : 0);
  for (u32 round = 0;; ++round) {
    bool put_off = false;
    if (step == bring_step::ask) {
      put_off = prefetch_line(g, cache, dataset, want, line, fill_purpose::asked);
      if (!any(g.ballot(put_off))) return;
    }
    const found_line at = want ? cache.directory.find(line) : found_line{};
    const bool fills = want && at.state() == line_state::filling;
    const auto filling = g.ballot(fills);
    if (any(filling)) {
      const u64 command = fills ? cache.record_of(at.entry, at.word).load_command() : 0;
      help_command(g, cache, g.shfl(command, lowest(filling)), is_served(g, cache));
    } else if (step == bring_step::await) {
      return;
    } else {
      move_some_queues(g, cache, from_leader(g, executor_ordinal() + u64{round} * size(g)), most_moved);
    }
    if (from_leader(g, wait.pause()) == 0) return;
  }
}

#if PENSTOCK_SEPARATE_DEVICE_CODE
extern template PENSTOCK_FN void bring_lines(warp, line_cache_view const&, u32, bool, line_id, bring_step, u64);
#endif
#if PENSTOCK_SEPARATE_HOST_CODE
extern template void bring_lines(lone_thread, line_cache_view const&, u32, bool, line_id, bring_step, u64);
#endif

}  // namespace penstock
