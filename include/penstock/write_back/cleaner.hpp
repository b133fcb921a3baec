// The cleaner: sends dirty lines to storage ahead of need (cache/write_back.hpp says how a run of them goes).
//
// It has no thread of its own. Threads that make more lines dirty than may be, threads that find no frame, the servers of a
// queue_service and `flush` each take steps of it; a step sends a run for each lane of its group at most, and never waits for a
// frame.
#pragma once

#include "penstock/cache/line_cache_view.hpp"
#include "penstock/cache/move_queues.hpp"
#include "penstock/core/backoff.hpp"
#include "penstock/group/lone_thread.hpp"
#include "penstock/group/thread_group.hpp"

namespace penstock {

/// What a step of the cleaner came to.
enum class clean_step : u32 {
  sent,     ///< a run of lines is on its way
  nothing,  ///< nothing was found that can be written now
  busy,     ///< every slot is in use: move the queues
};

/// Which lines may be written.
enum class clean_which : u32 {
  unpinned,  ///< not those that a thread may be storing into: they would be dirty again at once
  all,
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

/// The run of one command: which lines it has, and where they go. Of one thread; what a group does for the runs of its lanes
/// stands below. Lives for one call.
template <class Cache>
class write_run {
 public:
  PENSTOCK_FN explicit write_run(Cache const& cache) : cache_(cache) {}

  /// Claims a dirty line and those that follow and precede it without a gap. False: it is not to be written, or others were
  /// faster. REQUIRES: this thread holds the slot.
  PENSTOCK_FN bool claim(u32 slot, dataset_view const& data, line_id seed, clean_which which) {
    slot_ = slot;
    row_ = cache_.writes.row(slot) + cache_.writes.run_lines;
    seed_ = value(seed);
    if (!claim_line(seed_, which)) return false;
    data_ = &data;
    const u64 most = cache_.writes.run_lines;
    u64 low = data.first_line, high = data.first_line + data.lines;
    if (data.volume.layout == volume_layout::striped) {
      const u32 shift = data.volume.stripe_shift - cache_.line_shift;
      const u64 stripe = (seed_ - low) >> shift;
      const u64 begin = low + (stripe << shift), end = begin + (1ull << shift);
      low = begin;
      high = end < high ? end : high;
    }
    below_ = extend<-1>(seed_ - low < most - 1 ? seed_ - low : most - 1, which);
    above_ = extend<1>(high - 1 - seed_ < most - 1 - below_ ? high - 1 - seed_ : most - 1 - below_, which);
    return true;
  }

  /// 0: nothing was claimed.
  PENSTOCK_FN u32 lines() const { return data_ == nullptr ? 0 : below_ + 1 + above_; }
  PENSTOCK_FN u64 buffer() const {
    return cache_.writes.buffers + static_cast<u64>(slot_) * cache_.writes.run_lines * cache_.line_bytes();
  }
  /// Of line k, counted from the lowest.
  PENSTOCK_FN u64 frame(u32 k) const {
    u64* const entry = row_[static_cast<int>(k) - static_cast<int>(below_)];
    return cache_.frame_address(entry, device_ref<u64>(*entry).load(relaxed));
  }
  PENSTOCK_FN u32 copies() const { return data_->volume.layout == volume_layout::replicated ? data_->volume.members_count : 1; }
  PENSTOCK_FN write_slot& slot() const { return cache_.writes.slots[slot_]; }
  /// Before the first command is submitted.
  PENSTOCK_FN void start() const { slot().start(copies(), cache_.writes.run_lines - below_, lines()); }

  /// The command to one of the members that have the line, and which one it is.
  PENSTOCK_FN volume_member const& make_command(u32 copy, transfer& t) const {
    const auto where = data_->volume.locate(byte_offset{offset()}, copy);
    volume_member const& member = data_->volume.members[where.member];
    const u32 blocks = static_cast<u32>((bytes() + (1ull << member.block_shift) - 1) >> member.block_shift);
    t.command = nvme::transfer_command(nvme::opcode::write, member.namespace_id, lba{value(where.offset) >> member.block_shift},
                                       blocks);
    t.address = buffer();
    t.prp_list = cache_.writes.lists + static_cast<u64>(slot_) * prp_list_stride;
    t.bytes = blocks << member.block_shift;
    t.writes = t.straight = true;
    return member;
  }

  PENSTOCK_FN void count_sent() const {
    data_->counters.add(counter::write_backs, lines());
    data_->counters.add(counter::write_commands, copies());
    data_->counters.add(counter::bytes_written, bytes() * copies());
    if (cache_.writes.ns_per_line == 0) return;
    device_ref<u64>(cache_.writes.state->next_clean_ns).fetch_add((lines() - 1) * cache_.writes.ns_per_line, relaxed);
  }

 private:
  PENSTOCK_FN u64 offset() const { return (seed_ - below_ - data_->first_line) << cache_.line_shift; }
  PENSTOCK_FN u64 bytes() const {
    const u64 left = data_->bytes - offset(), whole = lines() * cache_.line_bytes();
    return left < whole ? left : whole;
  }

  // dirty -> writing, in one step; acquires what was stored before the line became dirty.
  PENSTOCK_FN bool claim_line(u64 line, clean_which which) const {
    const found_line at = cache_.directory.find(line_id{line});
    if (at.entry == nullptr) return false;
    u64 e = at.word;
    do {
      if (!entry::same(e, at.word) || !may_write(e, which)) return false;
    } while (!device_ref<u64>(*at.entry).compare_exchange_weak(e, e - entry::dirty_bit + entry::writing_bit, acq_rel, relaxed));
    device_ref<u64>(cache_.writes.state->lines).fetch_add(write_state::one_writing - 1, relaxed);
    row_[static_cast<long long>(line - seed_)] = at.entry;
    return true;
  }

  PENSTOCK_FN static bool may_write(u64 e, clean_which which) {
    return entry::waits_for_write(e) && (which == clean_which::all || entry::pins(e) == 0);
  }

  // How many of the next `most` lines in a direction could be claimed without a gap. One after another: a claim is never taken
  // back, for a flush that saw the line being written would take what comes after for a later store.
  template <int Direction>
  PENSTOCK_FN u32 extend(u64 most, clean_which which) const {
    u32 run = 0;
    while (run < most && claim_line(seed_ + static_cast<u64>(Direction * (static_cast<long long>(run) + 1)), which)) ++run;
    return run;
  }

  Cache const& cache_;
  dataset_view const* data_ = nullptr;  ///< null: nothing was claimed
  u32 slot_ = 0;
  u64** row_ = nullptr;  ///< entries, around that of the line that the run was begun with
  u64 seed_ = 0;
  u32 below_ = 0, above_ = 0;
};

/// Copies the runs of all lanes to their buffers. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN void copy_runs(G const& g, Cache const& cache, write_run<Cache> const& run) {
  const u32 bytes = static_cast<u32>(cache.line_bytes());
  for (u32 k = 0; any(g.ballot(k < run.lines())); ++k) {
    const u64 frame = k < run.lines() ? run.frame(k) : 0;
    const u64 buffer = frame != 0 ? run.buffer() + static_cast<u64>(k) * bytes : 0;
    for (auto left = g.ballot(frame != 0); any(left);) {
      // Short lines four at a time: a lane has one piece of each, and waits once for all of them.
      u64 from[lines_copied_at_once], to[lines_copied_at_once];
      PENSTOCK_UNROLL
      for (u32 n = 0; n < lines_copied_at_once; ++n) {
        const u32 rank = any(left) ? lowest(left) : lowest(g.members());
        from[n] = any(left) ? g.shfl(frame, rank) : 0;
        to[n] = any(left) ? g.shfl(buffer, rank) : 0;
        if (any(left)) left = without(left, g.ballot(g.rank() == rank));
      }
      copy_out_of_frames(to, from, bytes, index_in(g), size(g));
    }
  }
}

/// Ends a run that is over: its lines are no longer being written and, if it failed, are dirty again. Collective; this group
/// holds the slot, and still does when it returns.
template <thread_group G, class Cache>
PENSTOCK_FN void retire_run(G const& g, Cache const& cache, u32 number) {
  write_slot& slot = cache.writes.slots[number];
  const status outcome = slot.result();
  u64* const* const entries = cache.writes.row(number) + slot.first;
  for (u32 k = index_in(g); k < slot.lines; k += size(g)) {
    device_ref<u64> word(*entries[k]);
    // Here and not when the line is claimed: a flush that looks for the failure of one write must not find the next one begun.
    cache.record_of(entries[k], word.load(relaxed)).store_failure(outcome);
    if (!outcome.ok()) {
      // Dirty first: between the two nobody may take the line for one at rest.
      if (!entry::dirty(word.fetch_or(entry::dirty_bit, relaxed))) {
        device_ref<u64>(cache.writes.state->lines).fetch_add(1, relaxed);
      }
    }
    word.fetch_and(~entry::writing_bit, release);
  }
  if (is_leader(g) && slot.lines != 0) {
    device_ref<u64>(cache.writes.state->lines).fetch_sub(slot.lines * write_state::one_writing, relaxed);
    device_ref<u32> failures(cache.writes.state->failures);
    if (!outcome.ok()) {
      device_ref<u32>(cache.writes.state->verdict).store(pack(outcome), relaxed);
      failures.fetch_add(1, relaxed);
      const u64 owner = cache.record_of(entries[0], device_ref<u64>(*entries[0]).load(relaxed)).load_owner();
      cache.datasets[frame_record::dataset_of(owner)].counters.add(counter::write_errors, 1);
    } else if (failures.load(relaxed) != 0) {
      failures.store(0, relaxed);
    }
  }
  g.sync();
}

/// Retires the runs of the slots that lanes have taken: short ones side by side. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN void retire_taken(G const& g, Cache const& cache, bool got, u32 number) {
  constexpr u32 short_run = 4;
  if (!any(g.ballot(got))) return;
  g.sync();  // each lane's acquire is every member's
  const bool alone = got && cache.writes.slots[number].lines <= short_run;
  if (alone) retire_run(lone_thread(), cache, number);
  for (auto left = g.ballot(got && !alone); any(left);) {
    const u32 lane = lowest(left);
    retire_run(g, cache, static_cast<u32>(g.shfl(number, lane)));
    left = without(left, g.ballot(g.rank() == lane));
  }
}

/// Slots that one look goes over, at most: there may be thousands, and the next look begins behind the last one.
inline constexpr u32 most_slots_looked_at = 128;

/// Retires runs that are over. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN void retire_runs(G const& g, Cache const& cache) {
  const u32 slots = cache.writes.slots_count;
  const u32 looks = slots < most_slots_looked_at ? slots : most_slots_looked_at;
  u64 from = 0;
  if (looks < slots && is_leader(g)) from = device_ref<u64>(cache.writes.state->retire_hand).fetch_add(looks, relaxed);
  from = from_leader(g, from);
  for (u32 first = 0; first < looks; first += size(g)) {
    const u32 look = first + index_in(g);
    const u32 mine = static_cast<u32>((from + look) % slots);
    const bool got = look < looks && cache.writes.slots[mine].is(write_phase::answered) &&
                     cache.writes.slots[mine].take(write_phase::answered);
    retire_taken(g, cache, got, mine);
    if (got) cache.writes.slots[mine].set(write_phase::free);
  }
}

/// A slot for each lane that wants one, while there are any that are not under way, retired if it was in use before;
/// slots_count: none. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN u32 take_slots(G const& g, Cache const& cache, bool want) {
  const u32 slots = cache.writes.slots_count;
  const u32 looks = slots < most_slots_looked_at ? slots : most_slots_looked_at;
  const u32 width = size(g);
  u32 found = slots;
  for (u32 looked = 0; looked < looks; looked += width) {
    const auto asking = g.ballot(want && found == slots);
    if (!any(asking)) break;
    u64 from = 0;
    if (is_leader(g)) from = device_ref<u64>(cache.writes.state->slot_hand).fetch_add(width, relaxed);
    const u32 mine = static_cast<u32>((from_leader(g, from) + index_in(g)) % slots);
    write_slot& slot = cache.writes.slots[mine];
    const bool open = slot.is(write_phase::free) || slot.is(write_phase::answered);
    const auto ready = g.ballot(open);
    const bool tries = open && count_below(ready, g.rank()) < count(asking);
    const bool used = tries && slot.is(write_phase::answered) && slot.take(write_phase::answered);
    const auto got = g.ballot(used || (tries && slot.take(write_phase::free)));
    retire_taken(g, cache, used, mine);
    // The n-th lane that asks has the n-th slot.
    const u32 turn = count_below(asking, g.rank());
    const bool served = want && found == slots && turn < count(got);
    const u32 theirs = static_cast<u32>(g.shfl(mine, served ? nth(got, turn) : g.rank()));
    if (served) found = theirs;
    if (any(got)) g.sync();  // each lane's acquire is every member's
  }
  return found;
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
    const set_snapshot seen = set_snapshot::of(cache.directory.set_of(cache.directory.map.mix(value(line))));
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
