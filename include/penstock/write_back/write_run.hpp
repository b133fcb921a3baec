// Runs of dirty lines that go to storage in one command each (cache/write_back.hpp says how a run goes).
#pragma once

#include "penstock/cache/line_cache_view.hpp"
#include "penstock/core/frame_copies.hpp"
#include "penstock/group/thread_group.hpp"

namespace penstock {

/// Which lines may be written.
enum class clean_which : u32 {
  unpinned,  ///< not those that a thread may be storing into: they would be dirty again at once
  all,
};

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

}  // namespace penstock
