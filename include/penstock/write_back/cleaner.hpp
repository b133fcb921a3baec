// The cleaner: sends dirty lines to storage ahead of need (cache/write_back.hpp says how a run of them goes).
//
// It has no thread of its own. Threads that make more lines dirty than may be, threads that find no frame, the servers of a
// queue_service and `flush` each take steps of it; a step sends a run for each lane of its group at most, and never waits for a
// frame.
#pragma once

#include "penstock/cache/line_cache_view.hpp"
#include "penstock/cache/move_queues.hpp"
#include "penstock/core/backoff.hpp"
#include "penstock/core/ordinal.hpp"
#include "penstock/group/thread_group.hpp"
#include "penstock/write_back/write_run.hpp"
#include "penstock/write_back/write_slots.hpp"

namespace penstock {

/// What a step of the cleaner came to.
enum class clean_step : u32 {
  sent,     ///< a run of lines is on its way
  nothing,  ///< nothing was found that can be written now
  busy,     ///< every slot is in use: move the queues
};

/// Sends a command of a slot for each lane that wants one, those of a queue together. Collective. The slot reports what is
/// refused, as it does any failure.
template <thread_group G, class Cache>
PENSTOCK_FN void submit_for(G const& g, Cache const& cache, bool want, volume_member const& member, transfer const& t,
                            write_slot& slot) {
  const u64 ordinal = from_leader(g, executor_ordinal());
  const u64 own = want ? member.first_queue + ordinal % member.queues : 0;
  const line_sink::target to{nullptr, nullptr, nullptr, &slot};
  for (auto todo = g.ballot(want); any(todo);) {
    const u64 queue = g.shfl(own, lowest(todo));
    const bool mine = want && own == queue;
    const status refused = cache.queues[queue].submit(g, mine, t, to);
    if (mine && !refused.ok()) {
      slot.note(refused);
      slot.end_one();
    }
    todo = without(todo, g.ballot(mine));
  }
}

/// What a call of the cleaner came to, and how many runs it sent.
struct cleaned {
  clean_step step = clean_step::nothing;
  u32 runs = 0;
  bool mine = false;  ///< one of them was begun with this lane's line
};

/// Sends the runs of dirty lines around one for each lane that wants to: for as many as there are slots, and for one of those
/// whose lines lie so near each other that they are likely to be one run. Collective.
template <thread_group G, class Cache>
PENSTOCK_COLD cleaned clean_lines(G g, Cache const& cache, bool want, u32 dataset, line_id line, clean_which which) {
  const auto near = g.match_any(want ? value(line) / cache.writes.run_lines : ~0ull);
  const bool leads = want && lowest(near) == g.rank();
  const u32 slot = take_slots(g, cache, leads);
  const bool has = leads && slot != cache.writes.slots_count;
  write_run<Cache> run(cache);
  const bool claimed = has && run.claim(slot, cache.datasets[dataset], line, which);
  if (has && !claimed) cache.writes.slots[slot].set(write_phase::free);
  const auto runs = g.ballot(claimed);
  if (!any(runs)) {
    const bool busy = any(g.ballot(leads)) && !any(g.ballot(has));
    return {busy ? clean_step::busy : clean_step::nothing, 0, false};
  }
  g.sync();  // what each has claimed, and whose stores it has acquired, is every member's
  copy_runs(g, cache, run);
  g.sync();  // all bytes are there before anything is submitted
  if (claimed) run.start();
  for (u32 copy = 0; any(g.ballot(claimed && copy < run.copies())); ++copy) {
    const bool goes = claimed && copy < run.copies();
    transfer t;
    volume_member const& member = goes ? run.make_command(copy, t) : cache.datasets[0].volume.members[0];
    submit_for(g, cache, goes, member, t, goes ? run.slot() : cache.writes.slots[0]);
  }
  if (claimed) run.count_sent();
  return {clean_step::sent, count(runs), claimed};
}

/// Frames that one call of clean_next looks at, at most.
inline constexpr u32 most_frames_looked_at = 256;

/// Sends runs around the next dirty lines that the hand comes to, which goes round the frames: `most`, or fewer where it takes
/// too long to find them. A look is bounded: a group that finds nothing may ask again. Collective.
template <thread_group G, class Cache>
PENSTOCK_COLD cleaned clean_next(G g, Cache const& cache, u32 most) {
  const u32 looks = cache.frames < most_frames_looked_at ? cache.frames : most_frames_looked_at;
  cleaned all;
  if (from_leader(g, cache.writes.fails()) != 0) return all;
  const u32 width = size(g);
  for (u32 looked = 0; looked < looks && all.runs < most; looked += width) {
    u64 position = 0;
    if (is_leader(g)) position = device_ref<u64>(cache.writes.state->hand).fetch_add(width, relaxed);
    const u32 frame = static_cast<u32>((from_leader(g, position) + index_in(g)) % cache.frames);
    const u64 owner = cache.records[frame].load_owner();
    bool found = owner != frame_record::nobody;
    if (found) {
      const u64 e = cache.directory.glance(line_id{frame_record::line_of(owner)}).word;
      found = entry::waits_for_write(e) && entry::pins(e) == 0;
    }
    const auto dirty = g.ballot(found);
    if (!any(dirty)) continue;
    const bool want = found && count_below(dirty, g.rank()) < most - all.runs;
    const u32 dataset = want ? static_cast<u32>(frame_record::dataset_of(owner)) : 0;
    const line_id line{want ? frame_record::line_of(owner) : 0};
    const cleaned some = clean_lines(g, cache, want, dataset, line, clean_which::unpinned);
    all.runs += some.runs;
    all.step = all.runs != 0 ? clean_step::sent : some.step;
    if (some.step == clean_step::busy) break;
  }
  return all;
}

/// Whether a wait for a frame is in vain: all that could take the line hold lines that are to be written, and writes end with a
/// status that no retry helps. Of one thread.
template <class Cache>
PENSTOCK_COLD bool is_stuck(Cache const& cache, dataset_view const& data, line_id line) {
  if (cache.writes.slots_count == 0 || !cache.writes.fails() || cache.retry.helps(cache.writes.verdict())) return false;
  if (!cache.directory.is_direct()) {
    const set_snapshot seen = set_snapshot::of(cache.directory.home_of(cache.directory.map.mix(value(line))));
    bool stuck = true;
    for (u32 w = 0; w < set_ways && w < data.part; ++w) stuck = stuck && entry::waits_for_write(seen.way[w]);
    return stuck;
  }
  const u32 part = data.part < cache.frames ? data.part : cache.frames;
  bool stuck = write_state::dirty(cache.writes.lines()) >= static_cast<long long>(part);
  for (u32 frame = 0; stuck && frame < part; ++frame) {
    const u64 owner = cache.records[frame].load_owner();
    stuck = owner != frame_record::nobody &&
            entry::waits_for_write(cache.directory.glance(line_id{frame_record::line_of(owner)}).word);
  }
  return stuck;
}

/// Moves all queues once, and retires what is over. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN void help_writes(G const& g, Cache const& cache) {
  move_all_queues(g, cache);
  retire_runs(g, cache);
}

/// After `lines` lines became dirty in this group: sends as many runs, or fewer once no more are dirty than may be, which is
/// looked at before each batch of up to a run per lane. Waits while every slot is under way, for as long as an access may wait.
/// Nothing is lost if it comes to nothing: the lines stay.
/// `counts`: of the dataset that was stored into. Collective.
template <thread_group G, class Cache>
PENSTOCK_COLD void keep_clean(G g, Cache const& cache, counter_set_view const& counts, u32 lines) {
  backoff wait(cache.patience_ns);
  const u64 begun = now_ns();
  for (bool in_time = true; in_time && lines != 0;) {
    if (from_leader(g, cache.writes.more_than(cache.writes.most_dirty)) == 0) break;
    const cleaned some = clean_next(g, cache, lines);
    if (some.step == clean_step::nothing) break;
    if (some.step == clean_step::sent) {
      lines -= some.runs;
      continue;
    }
    help_writes(g, cache);
    in_time = from_leader(g, wait.pause()) != 0;
  }
  if (is_leader(g)) counts.add(counter::clean_ns, (now_ns() - begun) * size(g));
}

/// What a server of a queue_service does for the lines that wait: a step, while there are many and the rate allows. Collective;
/// true if something was sent.
template <thread_group G, class Cache>
PENSTOCK_FN bool clean_in_background(G const& g, Cache const& cache) {
  write_back_view const& writes = cache.writes;
  if (writes.slots_count == 0 || from_leader(g, writes.more_than(writes.clean_from)) == 0) return false;
  if (writes.ns_per_line != 0) {
    bool turn = false;
    if (is_leader(g)) {
      u64 next = device_ref<u64>(writes.state->next_clean_ns).load(relaxed);
      const u64 now = now_ns();
      // Of one line: a run adds what it has more.
      turn = next <= now && device_ref<u64>(writes.state->next_clean_ns)
                                .compare_exchange_strong(next, now + writes.ns_per_line, relaxed, relaxed);
    }
    if (from_leader(g, turn) == 0) return false;
  }
  return clean_next(g, cache, writes.ns_per_line != 0 ? 1 : size(g)).runs != 0;
}

/// What each of `groups` groups does beside other work (line_cache::clean_beside): it writes its share of the lines by which,
/// when it begins, more than `clean_to` are dirty, and waits for what was sent. No more than that share: a group that begins
/// late, when all others have gone, would else write alone what others make dirty meanwhile, and hold up the next call and its
/// groups. Ends without that when `longest_ns` are over, or where all that is dirty is pinned or being written: once a turn
/// of the hand has found nothing. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN void clean_beside(G const& g, Cache const& cache, u64 groups, u64 longest_ns) {
  write_back_view const& writes = cache.writes;
  const u64 vain_looks = cache.frames / (groups * most_frames_looked_at) + 1;
  backoff wait(longest_ns);
  const u64 end = wait.deadline_ns();
  u64 share = from_leader(g, (writes.dirty_above(writes.clean_to) + groups - 1) / groups);
  for (u64 vain = 0; vain < vain_looks && share != 0;) {
    if (from_leader(g, writes.more_than(writes.clean_to) && now_ns() < end) == 0) break;
    const cleaned some = clean_next(g, cache, static_cast<u32>(share < size(g) ? share : size(g)));
    share -= share < some.runs ? share : some.runs;
    vain = some.step == clean_step::nothing ? vain + 1 : 0;
    if (some.step != clean_step::busy) continue;
    help_writes(g, cache);
    wait.pause();
  }
  while (from_leader(g, writes.any_written()) != 0) {
    help_writes(g, cache);
    if (from_leader(g, wait.pause()) == 0) return;
  }
}

}  // namespace penstock
