// Flush and discard: what a host asks of the dirty lines of a dataset, done by all groups of a launch, each for its share.
//
// What a flush promises (PROTOCOLS.md §2, "Write-back"): every store whose line was let go before it began is with the
// controller when all groups have returned, and on the device for good after the Flush that follows. A line that is dirty when
// its group looks is claimed for a write after that look; one that is being written is waited for, and if it is dirty then,
// written once more.
#pragma once

#include "penstock/write_back/cleaner.hpp"

namespace penstock {

/// What is asked for, and where the host reads how it went. In local memory.
struct flush_report {
  u64 failed_lines = 0;      ///< lines that are dirty still
  u64 first_failed = ~0ull;  ///< the lowest and the highest of them
  u64 last_failed = 0;
  u32 failure = 0;  ///< packed status of the first that was met
};

/// Lines of one dataset.
struct line_range {
  u32 dataset = 0;
  u64 first = 0, last = 0;  ///< in the cache's line space; last is beyond

  PENSTOCK_FN bool has(u64 line) const { return line >= first && line < last; }
};

namespace flushing {

/// The line of an item of a launch: one of the range, or where the frames are fewer, of a frame. ~0: none.
template <class Cache>
PENSTOCK_FN u64 line_of(Cache const& cache, line_range const& range, u64 item) {
  if (range.last - range.first <= cache.frames) return range.first + item;
  const u64 owner = cache.records[item].load_owner();
  if (owner == frame_record::nobody || !range.has(frame_record::line_of(owner))) return ~0ull;
  return frame_record::line_of(owner);
}

/// Why a write does not end: the status of one that was given up, if all that are under way were. ok: there is hope.
/// Collective.
template <thread_group G, class Cache>
PENSTOCK_FN status lost_writes(G const& g, Cache const& cache) {
  u32 lost = 0;
  for (u32 first = 0; first < cache.writes.slots_count; first += size(g)) {
    const u32 mine = first + index_in(g);
    const bool used = mine < cache.writes.slots_count && !cache.writes.slots[mine].is(write_phase::free);
    const bool gone = used && cache.writes.slots[mine].is(write_phase::sent) && cache.writes.slots[mine].is_lost();
    if (any(g.ballot(used && !gone))) return {};
    const auto given_up = g.ballot(gone);
    const u32 why = gone ? pack(cache.writes.slots[mine].result()) : 0;
    if (any(given_up)) lost = static_cast<u32>(g.shfl(why, lowest(given_up)));
  }
  return unpack_status(lost);
}

PENSTOCK_FN inline void note_failure(flush_report& report, u64 line, status why) {
  u32 none = 0;
  device_ref<u32>(report.failure).compare_exchange_strong(none, pack(why), relaxed, relaxed);
  device_ref<u64>(report.failed_lines).fetch_add(1, relaxed);
  lower_to(report.first_failed, line);
  raise_to(report.last_failed, line);
}

/// Sends what is dirty of a line per lane, whichever thread pins it. False: it took too long. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN bool send_dirty(G const& g, Cache const& cache, line_range const& range, bool mine, u64 line, backoff& wait) {
  for (;;) {
    const u64 word = mine ? cache.directory.find(line_id{line}).word : 0;
    if (!any(g.ballot(mine && entry::dirty(word)))) return true;
    // One that is being written, and was stored into since, waits for that write; it leads none of its neighbours.
    const bool ready = mine && entry::waits_for_write(word);
    const cleaned some = clean_lines(g, cache, ready, range.dataset, line_id{line}, clean_which::all);
    mine &= !some.mine;  // dirty again means: stored into since
    if (some.step == clean_step::sent) continue;
    help_writes(g, cache);
    if (from_leader(g, wait.pause()) == 0) return false;
  }
}

/// Waits until no write of the lanes' lines is under way. False: it took too long, or no completion will report any more.
/// Collective.
template <thread_group G, class Cache>
PENSTOCK_FN bool await_written(G const& g, Cache const& cache, bool mine, u64 line, backoff& wait) {
  for (bool hope = true;;) {
    if (!any(g.ballot(mine && entry::writing(cache.directory.find(line_id{line}).word)))) return true;
    if (!hope) return false;
    help_writes(g, cache);
    hope = lost_writes(g, cache).ok();  // before the next look: a line that is being written then is one of the lost
    if (from_leader(g, wait.pause()) == 0) return false;
  }
}

}  // namespace flushing

/// Items of a launch of flush_lines or discard_lines.
template <class Cache>
PENSTOCK_FN u64 flush_items(Cache const& cache, line_range const& range) {
  const u64 lines = range.last - range.first;
  return lines <= cache.frames ? lines : cache.frames;
}

/// Writes the dirty lines of items first to last, and waits until the controller has them. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN void flush_lines(G const& g, Cache const& cache, line_range const& range, flush_report& report, u64 first,
                             u64 last) {
  backoff wait(cache.patience_ns);
  const auto line_at = [&](u64 item) { return item < last ? flushing::line_of(cache, range, item) : ~0ull; };
  bool in_time = true;
  for (u64 at = first; at < last && in_time; at += size(g)) {
    const u64 line = line_at(at + index_in(g));
    in_time = flushing::send_dirty(g, cache, range, line != ~0ull, line, wait);
  }
  for (u64 at = first; at < last; at += size(g)) {
    const u64 line = line_at(at + index_in(g));
    const bool mine = line != ~0ull;
    const bool over = flushing::await_written(g, cache, mine, line, wait);
    const status given_up = over ? status{} : flushing::lost_writes(g, cache);
    const found_line seen = mine ? cache.directory.find(line_id{line}) : found_line{};
    if (seen.entry == nullptr) continue;
    // What is dirty or being written after its write was over was stored into since, or that write has failed.
    status why = cache.record_of(seen.entry, seen.word).load_failure();
    if (!over && entry::writing(seen.word)) why = given_up;
    const bool late = (!over && entry::writing(seen.word)) || (!in_time && entry::dirty(seen.word));
    if (late && why.ok()) why = make_status(failure::deadline);
    if (late || ((entry::dirty(seen.word) || entry::writing(seen.word)) && !why.ok()))
      flushing::note_failure(report, line, why);
  }
}

/// Sends a Flush to each member of a dataset's volume and waits for all: what was written before is on the device for good.
/// Collective, one group alone. `slot`: of the Flush commands, of all calls: what an earlier one has sent may still be under
/// way, and the thread that moves the queues reports it to the slot. The first failure is in the report.
template <thread_group G, class Cache>
PENSTOCK_FN void flush_device(G const& g, Cache const& cache, u32 dataset, flush_report& report, write_slot& slot) {
  dataset_view const& data = cache.datasets[dataset];
  backoff wait(cache.patience_ns);
  bool unanswered = !slot.is(write_phase::free) && !slot.is(write_phase::answered);  // a Flush of an earlier call
  if (from_leader(g, unanswered) == 0) {
    if (is_leader(g)) slot.start(data.volume.members_count, 0, 0);
    for (u32 m = 0; m < data.volume.members_count; ++m) {
      transfer t;
      t.command = nvme::flush_command(data.volume.members[m].namespace_id);
      submit_for(g, cache, is_leader(g), data.volume.members[m], t, slot);
    }
  }
  for (bool in_time = true;;) {
    unanswered = !slot.is(write_phase::answered);
    if (from_leader(g, unanswered && !slot.is_lost()) == 0 || !in_time) break;
    help_writes(g, cache);
    in_time = from_leader(g, wait.pause()) != 0;
  }
  status outcome = slot.result();
  if (unanswered && outcome.ok()) outcome = make_status(failure::deadline);
  if (is_leader(g) && !outcome.ok()) {
    u32 none = 0;
    device_ref<u32>(report.failure).compare_exchange_strong(none, pack(outcome), relaxed, relaxed);
  }
}

/// Makes a line one that is asked for anew; its frame stays with it, and may be taken. False: a thread holds it, or a command
/// is under way.
template <class Cache>
PENSTOCK_FN bool forget_line(Cache const& cache, line_id line) {
  const found_line at = cache.directory.find(line);
  if (at.state() == line_state::empty || at.state() == line_state::failed) return true;
  u64 e = at.word;
  if (at.state() == line_state::filling || entry::pins(e) != 0 || entry::writing(e)) return false;
  const bool was_dirty = entry::dirty(e);
  const u64 forgotten = e - (was_dirty ? entry::dirty_bit : 0) + entry::forget;
  if (!device_ref<u64>(*at.entry).compare_exchange_strong(e, forgotten, acq_rel, relaxed)) return false;
  if (was_dirty) device_ref<u64>(cache.writes.state->lines).fetch_sub(1, relaxed);
  return true;
}

/// Forgets what the cache holds of the lines of items first to last, written or not: the next read has what lies in storage.
/// Waits for the holders of a line, and for writes that are under way. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN void discard_lines(G const& g, Cache const& cache, line_range const& range, flush_report& report, u64 first,
                               u64 last) {
  backoff wait(cache.patience_ns);
  for (u64 at = first; at < last; at += size(g)) {
    const u64 item = at + index_in(g);
    const u64 line = item < last ? flushing::line_of(cache, range, item) : ~0ull;
    bool todo = line != ~0ull;
    for (bool in_time = true;; in_time = from_leader(g, wait.pause()) != 0) {
      if (todo) todo = !forget_line(cache, line_id{line});
      if (!any(g.ballot(todo))) break;
      if (!in_time) {
        if (todo) flushing::note_failure(report, line, make_status(failure::deadline));
        break;
      }
      help_writes(g, cache);
    }
  }
}

}  // namespace penstock
