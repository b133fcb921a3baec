// Write-back: dirty lines on their way to storage (PROTOCOLS.md §2, "Write-back").
//
// A lane claims a run of dirty lines that follow each other (`dirty` -> `writing`), its group copies their bytes into the
// buffer of a write slot, beside those of other lanes, and the lane sends one Write of it. So neighbours make one command
// however small they are, what a command carries does not change while it is under way, and a line may be stored into
// meanwhile: that makes it dirty again. When the command is over, a passing thread retires the slot: `writing` goes, and after
// a failure `dirty` comes back.
//
// Invariants. 4: bytes that were stored are on the controller before their frame is reused, because eviction refuses what is
// dirty or being written, dirty goes before the bytes are copied and comes after they are stored. A buffer is used again only
// when no controller can read it any more: a command that is given up keeps its slot until its late completion, or a reset.
#pragma once

#include "penstock/core/atomic.hpp"
#include "penstock/core/status.hpp"

namespace penstock {

enum class write_phase : u32 {
  free,
  held,      ///< a lane builds its run, or retires it
  sent,      ///< commands are under way
  answered,  ///< all are over: the next passing thread retires them
};

/// One run on its way. Trivially copyable; in local memory.
struct write_slot {
  u32 phase = 0;    ///< write_phase; set to `answered` with release, partner: the exchange that takes it
  u32 outcome = 0;  ///< packed status of the first of its commands that failed
  u32 pending = 0;  ///< commands that a controller may still be at
  u32 lost = 0;     ///< of those: given up, reported to their waiters, and kept until nothing can read the buffer
  u32 first = 0;    ///< of its lines, in its row of `entries`
  u32 lines = 0;

  PENSTOCK_FN bool is(write_phase p) { return device_ref<u32>(phase).load(relaxed) == static_cast<u32>(p); }
  PENSTOCK_FN void set(write_phase p) { device_ref<u32>(phase).store(static_cast<u32>(p), release); }
  /// Whether this thread has it now.
  PENSTOCK_FN bool take(write_phase from) {
    u32 expected = static_cast<u32>(from);
    return device_ref<u32>(phase).compare_exchange_strong(expected, static_cast<u32>(write_phase::held), acquire, relaxed);
  }
  PENSTOCK_FN status result() { return unpack_status(device_ref<u32>(outcome).load(relaxed)); }
  PENSTOCK_FN bool is_lost() { return device_ref<u32>(lost).load(relaxed) != 0; }

  /// Before the first command is submitted: the last may be over before that returns. REQUIRES: this thread holds it.
  PENSTOCK_FN void start(u32 commands, u32 first_entry, u32 run_lines) {
    first = first_entry;
    lines = run_lines;
    device_ref<u32>(lost).store(0, relaxed);
    device_ref<u32>(outcome).store(0, relaxed);
    device_ref<u32>(pending).store(commands, relaxed);
    set(write_phase::sent);
  }

  /// The first failure stays.
  PENSTOCK_FN void note(status s) {
    u32 none = 0;
    if (!s.ok()) device_ref<u32>(outcome).compare_exchange_strong(none, pack(s), relaxed, relaxed);
  }
  /// A command of it is over, for the controller too.
  PENSTOCK_FN void end_one() {
    if (device_ref<u32>(pending).fetch_sub(1, acq_rel) == 1) set(write_phase::answered);
  }
};

/// What all writers of a cache share, in a cache line of its own.
struct alignas(128) write_state {
  u64 lines = 0;          ///< with the dirty bit, which for a moment may be one less than none; + being written x one_writing
  u64 most_busy = 0;      ///< of both together so far; a line that is both counts twice
  u64 hand = 0;           ///< frames that the cleaner has looked at
  u64 next_clean_ns = 0;  ///< when the cleaner may send its next command, where its rate is limited
  u64 slot_hand = 0;      ///< slots that were looked at for one to use
  u64 retire_hand = 0;    ///< and for one that is over
  u32 failures = 0;       ///< Writes that failed since the last that did not
  u32 verdict = 0;        ///< packed status of the last of them

  static constexpr u64 one_writing = 1ull << 32;
  PENSTOCK_FN static constexpr long long dirty(u64 lines) { return static_cast<std::int32_t>(static_cast<u32>(lines)); }
  PENSTOCK_FN static constexpr long long busy(u64 lines) { return dirty(lines) + written(lines); }
  PENSTOCK_FN static constexpr long long written(u64 lines) { return (static_cast<long long>(lines) - dirty(lines)) >> 32; }
};

/// A handle for kernels; the host-side `line_cache` owns what it points at. No slots: nothing can be written.
struct write_back_view {
  write_slot* slots = nullptr;
  u64** entries = nullptr;  ///< [slots][2 run_lines] entries of a run's lines, around the one that it was begun with
  write_state* state = nullptr;
  u64 buffers = 0;      ///< address of the slots' buffers, `run_lines` lines each
  u64 lists = 0;        ///< address of their PRP lists, `prp_list_stride` each
  u64 ns_per_line = 0;  ///< of the cleaner; 0: as fast as it can
  u64 most_dirty = 0;   ///< lines; a thread that makes one more dirty than that cleans first
  u64 clean_from = 0;   ///< the cleaner of a queue_service works while more lines than this are dirty
  u64 clean_to = 0;     ///< clean_beside works while more are: less than most_dirty by what is stored between two calls
  u32 slots_count = 0;
  u32 run_lines = 0;  ///< most lines of one command

  PENSTOCK_FN u64** row(u32 slot) const { return entries + 2ull * run_lines * slot; }
  PENSTOCK_FN u64 lines() const { return device_ref<u64>(state->lines).load(relaxed); }
  PENSTOCK_FN bool more_than(u64 dirty_lines) const { return dirty_above(dirty_lines) != 0; }
  /// By how many more lines than that are dirty.
  PENSTOCK_FN u64 dirty_above(u64 dirty_lines) const {
    const long long above = write_state::dirty(lines()) - static_cast<long long>(dirty_lines);
    return above > 0 ? static_cast<u64>(above) : 0;
  }
  /// Whether lines are being written.
  PENSTOCK_FN bool any_written() const { return write_state::written(lines()) > 0; }
  /// After a line became dirty: whether now more are than may be. Keeps the most that were busy at once.
  PENSTOCK_FN bool note_dirty() const {
    const u64 now = lines();
    const long long busy = write_state::busy(now);
    if (busy > static_cast<long long>(device_ref<u64>(state->most_busy).load(relaxed))) {
      raise_to(state->most_busy, static_cast<u64>(busy));
    }
    return write_state::dirty(now) > static_cast<long long>(most_dirty);
  }
  /// Writes fail again and again: only a flush tries any more.
  PENSTOCK_FN bool fails() const { return device_ref<u32>(state->failures).load(relaxed) >= failures_limit; }
  PENSTOCK_FN status verdict() const { return unpack_status(device_ref<u32>(state->verdict).load(relaxed)); }

  static constexpr u32 failures_limit = 3;
};

}  // namespace penstock
