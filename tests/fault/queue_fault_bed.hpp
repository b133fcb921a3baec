// A queue pair over any controller, with the memory of its commands. Each command has a result, a slot and a block of data of
// its own for good, because a command that was given up may still be answered.
#pragma once

#include "penstock/group/lone_thread.hpp"
#include "penstock/runtime/queue_pair.hpp"
#include "support/stamped_media.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace penstock::test {

inline constexpr u32 block_words = 64;
inline constexpr u64 media_blocks = 256;

#if defined(PENSTOCK_TSAN)
inline constexpr u32 scaled(u32 rounds) { return (rounds + 9) / 10; }
#else
inline constexpr u32 scaled(u32 rounds) { return rounds; }
#endif

/// What became of one command. Each ends in exactly one finish or abandon.
struct command_record {
  u32 finished = 0;
  u32 abandoned = 0;
  u32 exposed = 0;  ///< abandoned while the controller may still write its target
  u32 resolved = 0;
  u32 outcome = 0;  ///< packed status
  u32 slot = 0;
};

/// Counts, and lets a test look in at the moments that matter.
struct recording_sink {
  struct target {
    command_record* record;
  };
  using hook = void (*)(command_record&);
  static inline hook on_placed = nullptr;
  static inline hook on_finish = nullptr;

  static void placed(target const& to, u16, u16 slot) {
    to.record->slot = slot;
    if (on_placed != nullptr) on_placed(*to.record);
  }
  static void finish(target const& to, status outcome) {
    if (on_finish != nullptr) on_finish(*to.record);
    to.record->outcome = pack(outcome);
    device_ref<u32>(to.record->finished).fetch_add(1, release);
  }
  static void abandon(target const& to, status outcome, bool exposed) {
    to.record->exposed = exposed ? 1 : 0;
    to.record->outcome = pack(outcome);
    device_ref<u32>(to.record->abandoned).fetch_add(1, release);
  }
  static void resolve(target const& to, bool) { device_ref<u32>(to.record->resolved).fetch_add(1, release); }
};

class fault_bed {
 public:
  fault_bed(controller& owner, queue_options const& options, u32 commands, memory_resource& memory = cpu_memory())
      : records_(commands), blocks_(commands), words_(u64{commands} * block_words + block_words),
        pair_(memory, owner, 1, options) {}
  ~fault_bed() { recording_sink::on_placed = recording_sink::on_finish = nullptr; }

  queue_pair_view<recording_sink> const& view() const { return pair_.view(); }
  queue_counts counts() const { return pair_.counts(); }
  queue_state& state() const { return *pair_.view().state; }
  command_record const& record(u32 k) const { return records_[k]; }
  recording_sink::target target(u32 k) { return {&records_[k]}; }
  u32 finished(u32 k) { return device_ref<u32>(records_[k].finished).load(acquire); }
  u32 abandoned(u32 k) { return device_ref<u32>(records_[k].abandoned).load(acquire); }
  u32 resolved(u32 k) { return device_ref<u32>(records_[k].resolved).load(acquire); }

  /// Command k reads block `block`.
  transfer read_of(u32 k, u64 block) {
    blocks_[k] = block;
    transfer t;
    t.command = nvme::transfer_command(nvme::opcode::read, 1, lba{block}, 1);
    t.address = round_up(reinterpret_cast<u64>(words_.data()), 512) + u64{k} * 512;
    t.bytes = 512;
    return t;
  }
  status submit(u32 k, u64 block) { return view().submit(lone_thread(), true, read_of(k, block), target(k)); }
  bool over(u32 k) { return finished(k) + abandoned(k) != 0; }
  /// No patience of its own: the answer comes from the queue.
  status wait(u32 k) {
    EXPECT_TRUE(progress_until([&] { return over(k); })) << "command " << k << " has no answer";
    return unpack_status(records_[k].outcome);
  }
  status run(u32 k, u64 block) {
    const status submitted = submit(k, block);
    return submitted.ok() ? wait(k) : submitted;
  }
  void progress() { view().progress(lone_thread()); }
  u64 reset(u64 timeout_ns = 0) { return pair_.reset(in_this_thread(), timeout_ns); }
  bool broken() { return pair_.broken(); }
  queue_pair<recording_sink>& pair() { return pair_; }

  /// Moves the queue until `enough()`; false when that takes longer than any test may.
  template <class Enough>
  bool progress_until(Enough enough) {
    backoff patience(20 * one_second_ns);
    while (!enough()) {
      if (!patience.pause()) return false;
      progress();
    }
    return true;
  }

  /// What command k has read is what the medium holds.
  bool data_right(u32 k) {
    u64 const* words = reinterpret_cast<u64 const*>(read_of(k, blocks_[k]).address);
    for (u32 w = 0; w < block_words; ++w) {
      if (load_piece(words + w) != stamp(blocks_[k] * block_words + w)) return false;
    }
    return true;
  }
  bool data_untouched(u32 k) {
    u64 const* words = reinterpret_cast<u64 const*>(read_of(k, blocks_[k]).address);
    for (u32 w = 0; w < block_words; ++w) {
      if (load_piece(words + w) != 0) return false;
    }
    return true;
  }

 private:
  std::vector<command_record> records_;
  std::vector<u64> blocks_;
  std::vector<u64> words_;
  queue_pair<recording_sink> pair_;  ///< last: detached before its memory goes
};

inline queue_options fault_options(u32 depth, u64 timeout_ns, bool bounce = false, u32 cq_entries = 0) {
  queue_options options;
  options.depth = depth;
  options.cq_entries = cq_entries;
  options.timeout_ns = timeout_ns;
  options.bounce_bytes = bounce ? 512 : 0;
  return options;
}

inline constexpr status deadline_status = make_status(failure::deadline);
inline constexpr status failed_status = make_status(failure::controller_failed);
inline constexpr status resetting_status = make_status(failure::resetting);

}  // namespace penstock::test
