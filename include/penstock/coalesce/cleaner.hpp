// The cleaner: sends dirty lines to storage ahead of need (cache/write_back.hpp says how a run of them goes).
//
// It has no thread of its own. Who makes more lines dirty than may be, who finds no frame, the servers of a queue_service and
// `flush` each take steps of it; a step sends at most one command and never waits for a frame.
#pragma once

#include "penstock/cache/line_cache_view.hpp"
#include "penstock/coalesce/move_queues.hpp"
#include "penstock/core/backoff.hpp"
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
  unpinned,  ///< not those that somebody may be storing into: they would be dirty again at once
  all,
};

/// Sends one command of a slot. Collective. What is refused is told by the slot, as any failure is.
template <thread_group G, class Cache>
PENSTOCK_FN void submit_for(G const& g, Cache const& cache, volume_member const& member, transfer const& t, write_slot& slot) {
  const u64 queue = from_leader(g, member.first_queue + executor_ordinal() % member.queues);
  const line_sink::target to{nullptr, nullptr, nullptr, &slot};
  const status refused = cache.queues[queue].submit(g, is_leader(g), t, to);
  if (!is_leader(g) || refused.ok()) return;
  slot.note(refused);
  slot.end_one();
}

/// The run of one command: which lines it has, and how they go out. Lives for one call.
template <thread_group G, class Cache>
class write_run {
 public:
  PENSTOCK_FN write_run(G const& g, Cache const& cache, u32 slot)
      : g_(g), cache_(cache), slot_(slot), row_(cache.writes.row(slot) + cache.writes.run_lines) {}

  /// Claims a dirty line and those that follow and precede it without a gap. False: it is not to be written, or others were
  /// faster. Collective.
  PENSTOCK_FN bool claim(dataset_view const& data, line_id seed, clean_which which) {
    data_ = &data;
    seed_ = value(seed);
    const bool got = is_leader(g_) && claim_line(seed_, which);
    if (from_leader(g_, got) == 0) return false;
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
    g_.sync();  // what each has claimed, and whose stores it has acquired, is everyone's
    return true;
  }

  /// Copies the run and sends it. Collective. What cannot be sent is told by the slot, as any failure is.
  PENSTOCK_FN void send() {
    const u64 line_bytes = cache_.line_bytes();
    const u64 buffer = cache_.writes.buffers + static_cast<u64>(slot_) * cache_.writes.run_lines * line_bytes;
    const u32 lines = below_ + 1 + above_;
    for (u32 k = 0; k < lines; ++k) {
      u64* const entry = row_[static_cast<int>(k) - static_cast<int>(below_)];
      const u64 frame = cache_.frame_address(entry, device_ref<u64>(*entry).load(relaxed));
      copy_out_of_frame(buffer + k * line_bytes, frame, static_cast<u32>(line_bytes), index_in(g_), size(g_));
    }
    g_.sync();  // all bytes are there before the leader submits
    const u64 offset = (seed_ - below_ - data_->first_line) << cache_.line_shift;
    const u64 left = data_->bytes - offset;
    const u64 bytes = left < lines * line_bytes ? left : lines * line_bytes;
    const u32 copies = data_->volume.layout == volume_layout::replicated ? data_->volume.members_count : 1;
    write_slot& slot = cache_.writes.slots[slot_];
    if (is_leader(g_)) slot.start(copies, cache_.writes.run_lines - below_, lines);
    for (u32 copy = 0; copy < copies; ++copy) {
      const auto where = data_->volume.locate(byte_offset{offset}, copy);
      volume_member const& member = data_->volume.members[where.member];
      const u32 blocks = static_cast<u32>((bytes + (1ull << member.block_shift) - 1) >> member.block_shift);
      transfer t;
      t.command = nvme::transfer_command(nvme::opcode::write, member.namespace_id,
                                         lba{value(where.offset) >> member.block_shift}, blocks);
      t.address = buffer;
      t.prp_list = cache_.writes.lists + static_cast<u64>(slot_) * prp_list_stride;
      t.bytes = blocks << member.block_shift;
      t.writes = t.straight = true;
      submit_for(g_, cache_, member, t, slot);
    }
    if (!is_leader(g_)) return;
    data_->counters.add(counter::write_backs, lines);
    data_->counters.add(counter::write_commands, copies);
    data_->counters.add(counter::bytes_written, bytes * copies);
    if (cache_.writes.ns_per_line == 0) return;
    device_ref<u64>(cache_.writes.state->next_clean_ns).fetch_add((lines - 1) * cache_.writes.ns_per_line, relaxed);
  }

 private:
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

  // How many of the next `most` lines in a direction could be claimed without a gap. By one lane, one after another: a claim is
  // never taken back, for a flush that saw the line being written would take what comes after for a later store.
  template <int Direction>
  PENSTOCK_FN u32 extend(u64 most, clean_which which) const {
    u32 run = 0;
    if (is_leader(g_)) {
      while (run < most && claim_line(seed_ + static_cast<u64>(Direction * (static_cast<long long>(run) + 1)), which)) ++run;
    }
    return static_cast<u32>(from_leader(g_, run));
  }

  G const& g_;
  Cache const& cache_;
  dataset_view const* data_ = nullptr;
  u32 slot_;
  u64** row_;  ///< entries, around that of the line that the run was begun with
  u64 seed_ = 0;
  u32 below_ = 0, above_ = 0;
};

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

/// Slots that one look goes over, at most: there may be thousands, and whoever looks again begins behind the last look.
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
    auto taken = g.ballot(got);
    if (any(taken)) g.sync();  // each lane's acquire is everyone's
    while (any(taken)) {
      const u32 lane = lowest(taken);
      const u32 s = static_cast<u32>(g.shfl(mine, lane));
      retire_run(g, cache, s);
      if (g.rank() == lane) cache.writes.slots[s].set(write_phase::free);
      taken = without(taken, g.ballot(g.rank() == lane));
    }
  }
}

/// A slot for this group alone, retired if it was in use before; slots_count if none was found that is not under way.
/// Collective.
template <thread_group G, class Cache>
PENSTOCK_FN u32 take_slot(G const& g, Cache const& cache) {
  const u32 slots = cache.writes.slots_count;
  const u32 looks = slots < most_slots_looked_at ? slots : most_slots_looked_at;
  const u32 width = size(g);
  for (u32 looked = 0; looked < looks; looked += width) {
    u64 from = 0;
    if (is_leader(g)) from = device_ref<u64>(cache.writes.state->slot_hand).fetch_add(width, relaxed);
    const u32 mine = static_cast<u32>((from_leader(g, from) + index_in(g)) % slots);
    write_slot& slot = cache.writes.slots[mine];
    auto left = g.ballot(slot.is(write_phase::free) || slot.is(write_phase::answered));
    while (any(left)) {
      const u32 lane = lowest(left);
      bool got = false, used = false;
      if (g.rank() == lane) {
        used = slot.is(write_phase::answered) && slot.take(write_phase::answered);
        got = used || slot.take(write_phase::free);
      }
      left = without(left, g.ballot(g.rank() == lane));
      if (g.shfl(got, lane) == 0) continue;
      g.sync();  // the lane's acquire is everyone's
      const u32 found = static_cast<u32>(g.shfl(mine, lane));
      if (g.shfl(used, lane) != 0) retire_run(g, cache, found);
      return found;
    }
  }
  return slots;
}

/// Sends the run of dirty lines around one. Collective, same line for all.
template <thread_group G, class Cache>
PENSTOCK_COLD clean_step clean_line(G g, Cache const& cache, u32 dataset, line_id line, clean_which which) {
  const u32 slot = take_slot(g, cache);
  if (slot == cache.writes.slots_count) return clean_step::busy;
  write_run<G, Cache> run(g, cache, slot);
  if (run.claim(cache.datasets[dataset], line, which)) {
    run.send();
    return clean_step::sent;
  }
  if (is_leader(g)) cache.writes.slots[slot].set(write_phase::free);
  return clean_step::nothing;
}

/// Sends the run around the next dirty line that the hand comes to, which goes round the frames. A look is bounded: who finds
/// nothing may ask again. Collective.
template <thread_group G, class Cache>
PENSTOCK_COLD clean_step clean_next(G g, Cache const& cache) {
  constexpr u32 most_looks = 256;
  const u32 looks = cache.frames < most_looks ? cache.frames : most_looks;
  if (from_leader(g, cache.writes.fails()) != 0) return clean_step::nothing;
  const u32 width = size(g);
  for (u32 looked = 0; looked < looks; looked += width) {
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
    const u64 first = g.shfl(owner, lowest(dirty));
    const clean_step step = clean_line(g, cache, static_cast<u32>(frame_record::dataset_of(first)),
                                       line_id{frame_record::line_of(first)}, clean_which::unpinned);
    if (step != clean_step::nothing) return step;
  }
  return clean_step::nothing;
}

/// Moves all queues once, and retires what is over. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN void help_writes(G const& g, Cache const& cache) {
  move_all_queues(g, cache);
  retire_runs(g, cache);
}

/// After `lines` lines became dirty in this group: sends as many runs, or fewer if no more are dirty than may be. Waits while
/// every slot is under way, for as long as an access may wait. Nothing is lost if it comes to nothing: the lines stay.
/// `counts`: of the dataset that was stored into. Collective.
template <thread_group G, class Cache>
PENSTOCK_COLD void keep_clean(G g, Cache const& cache, counter_set_view const& counts, u32 lines) {
  backoff wait(cache.patience_ns);
  const u64 begun = now_ns();
  for (bool in_time = true; in_time && lines != 0;) {
    if (from_leader(g, cache.writes.more_than(cache.writes.most_dirty)) == 0) break;
    const clean_step step = clean_next(g, cache);
    if (step == clean_step::nothing) break;
    if (step == clean_step::sent) {
      --lines;
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
  return clean_next(g, cache) == clean_step::sent;
}

}  // namespace penstock
