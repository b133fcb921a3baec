// How a line_request waits for what it cannot have yet: it moves queues, copies what has landed, and gives up in time.
#pragma once

#include "penstock/cache/move_queues.hpp"
#include "penstock/coalesce/fill_watch.hpp"
#include "penstock/coalesce/line_request.hpp"
#include "penstock/core/ordinal.hpp"
#include "penstock/write_back/cleaner.hpp"

namespace penstock {

// Moves the queues and sleeps, until there is news of a fill or something to try again. At the deadline every lane looks once
// more (the caller's next round) and then gives up (W7).
//
// Most of the time of a kernel that misses is spent here, so the round is short, and its loads are relaxed: an acquire would
// empty the L1 cache for the whole SM.
template <thread_group G, class Cache, line_use How>
PENSTOCK_FN inline void line_request<G, Cache, How>::wait() {
  const u64 short_since = any(g_.ballot(short_of_frames_ || phase_ == phase::queued)) ? now_ns() : 0;
  wait_for_news();
  if (short_since != 0 && is_leader(g_)) {
    data_.counters.add(counter::frame_wait_ns, (now_ns() - short_since) * size(g_));
  }
}

template <thread_group G, class Cache, line_use How>
PENSTOCK_FN inline void line_request<G, Cache, How>::wait_for_news() {
  const bool tries_again = any(g_.ballot(phase_ == phase::looking));
  const bool only_queued = !tries_again && !any(g_.ballot(phase_ == phase::filling));
  const bool several = count(g_.ballot(phase_ == phase::filling && claimed_)) > 1;
  bool in_time = true, news = false;
  if (only_queued && !last_look_) news = in_time = wait_for_turn();
  while (in_time && !news) {
    const bool helps = --looks_until_help_ == 0;  // and copies what has landed for one of its lanes
    if (!helps || several) drain_landed();
    if (helps) looks_until_help_ = help() ? rounds_for_helped : 1;
    const bool mine = phase_ == phase::filling ? is_over() : phase_ == phase::queued && (is_admitted() || is_there());
    news = tries_again || any(g_.ballot(mine));
    if (!news || tries_again) in_time = from_leader(g_, wait_.pause()) != 0;
  }
  if (in_time) return;
  if (last_look_) {
    if (phase_ == phase::filling) check_fill();
    if (phase_ == phase::filling) fail(make_status(failure::deadline));
    if (phase_ == phase::looking) fail(why_not());
  }
  last_look_ = true;
  looks_until_help_ = 1;
}

// All that is left waits for its turn, which the fills before it bring: these have waiters of their own, and a
// multiprocessor's time is theirs. So the sleep is as long as the way is far, and only now and then a queue is moved (W5).
// False: the time is up.
template <thread_group G, class Cache, line_use How>
PENSTOCK_FN inline bool line_request<G, Cache, How>::wait_for_turn() {
  constexpr u64 shortest_ns = 64, longest_ns = 32768, turn_ns = 16;
  const u32 first = lowest(g_.ballot(phase_ == phase::queued));
  for (u32 round = 1;; ++round) {
    if (any(g_.ballot(phase_ == phase::queued && (is_admitted() || is_there())))) return true;
    if (from_leader(g_, now_ns() >= wait_.deadline_ns()) != 0) return false;
    const u64 far = g_.shfl(shortest_ns + cache_.admission.turns_before(ticket_) * turn_ns, first);
    let_others_run(far < longest_ns ? far : longest_ns, round);
    if (round % rounds_for_others == 0 && !is_served(g_, cache_)) move_others(round / rounds_for_others);
  }
}

template <thread_group G, class Cache, line_use How>
PENSTOCK_FN inline void line_request<G, Cache, How>::move_others(u32 round) {
  move_some_queues(g_, cache_, from_leader(g_, executor_ordinal() + u64{round} * size(g_)), most_others_moved);
}

// What has landed in the bounce buffers of the group's own commands.
template <thread_group G, class Cache, line_use How>
PENSTOCK_FN inline void line_request<G, Cache, How>::drain_landed() {
  const bool lands = phase_ == phase::filling && claimed_ && landing_ != nullptr && Cache::queue_pair::is_landed(*landing_);
  auto landed = g_.ballot(lands);
  if (!any(landed)) return;
  const u64 own = lands ? command() : 0;
  while (any(landed)) {
    const u32 lane = lowest(landed);
    const u64 next = g_.shfl(own, lane);
    if (next >> 16 < cache_.queues_count) cache_.queues[next >> 16].drain(g_, static_cast<u32>(next & 0xffffu));
    landed = without(landed, g_.ballot(g_.rank() == lane));
  }
}

// Why a line could not be had in time. A failed line that is still held (its frame is in quarantine) reports its own status.
template <class Cache>
PENSTOCK_COLD status why_no_frame(Cache const& cache, line_id line) {
  const found_line at = cache.directory.find(line);
  status why{};
  if (at.state() == line_state::failed) why = cache.record_of(at.entry, at.word).load_failure();
  // Frames that cannot be written stay where they are.
  if (why.ok() && cache.writes.slots_count != 0 && cache.writes.fails()) why = cache.writes.verdict();
  return why.ok() ? make_status(failure::no_frame) : why;
}

template <thread_group G, class Cache, line_use How>
PENSTOCK_FN inline status line_request<G, Cache, How>::why_not() const {
  return pins_exhausted_ ? make_status(failure::pin_limit) : why_no_frame(cache_, line_);
}

// A waiter for a line moves the queue that has its command (E12: it may be any group's), and now and then another one, whose
// fills hold frames; a waiter for a frame, some after others of all. A lane that has joined another group's fill leaves its
// queue to that group, most of the time: many warps that look at one ring keep its owners from it. True if another thread
// does what there is to do.
template <thread_group G, class Cache, line_use How>
PENSTOCK_FN inline bool line_request<G, Cache, How>::help() {
  const auto waiting = g_.ballot(phase_ == phase::filling);
  const auto own = g_.ballot(phase_ == phase::filling && claimed_);
  const u32 round = round_++;
  const bool served = !last_look_ && is_served(g_, cache_);
  const bool elsewhere = round % rounds_for_others == rounds_for_others - 1 && !last_look_;
  if (cache_.writes.slots_count != 0) {
    // Perhaps all that could be had are dirty: a run for each lane that is short of a frame.
    const u32 runs = count(g_.ballot(short_of_frames_));
    if (runs != 0) retire_runs(g_, cache_);
    if (runs != 0) clean_next(g_, cache_, runs);
  }
  if (!any(waiting) || elsewhere) {
    if (!served) move_others(round / (any(waiting) ? rounds_for_others : 1));
    return false;
  }
  if (!any(own) && round % rounds_for_joined != rounds_for_joined - 1 && !last_look_) return false;
  return help_command(g_, cache_, g_.shfl(command(), lowest(any(own) ? own : waiting)), served) && !last_look_;
}

}  // namespace penstock
