// The queue pair against a controller that is told what to do and when, step by step in one thread.
#include "penstock/core/bits.hpp"
#include "queue_fault_bed.hpp"
#include "step_controller.hpp"
#include "support/run_everywhere.hpp"

#include <chrono>
#include <thread>
#include <utility>

namespace penstock::test {
namespace {

constexpr u64 soon = 5 * one_millisecond_ns;
constexpr u64 never = 30 * one_second_ns;

void put_data(nvme::submission_entry const& command, u64 block) {
  u64* words = reinterpret_cast<u64*>(command.prp1);
  for (u32 w = 0; w < block_words; ++w) device_ref<u64>(words[w]).store(stamp(block * block_words + w), release);
}

void serve_reads(step_controller& c) {
  while (auto const* command = c.fetch()) {
    put_data(*command, value(nvme::starting_lba(*command)));
    c.post(command->command_id);
  }
}

// Commands with these numbers are fetched, and never answered by the script.
auto silent_on(std::vector<u64> numbers) {
  return [numbers](step_controller& c) {
    while (auto const* command = c.fetch()) {
      const u64 number = c.fetched.size() - 1;
      if (std::find(numbers.begin(), numbers.end(), number) != numbers.end()) continue;
      put_data(*command, value(nvme::starting_lba(*command)));
      c.post(command->command_id);
    }
  };
}

// Q4. Nobody but submit has run: nothing that was published may wait for somebody who looks.
TEST(queue_script, submit_returns_only_when_its_command_is_rung) {
  step_controller owner;
  fault_bed bed(owner, fault_options(8, never), 3);
  for (u32 k = 0; k < 3; ++k) {
    ASSERT_EQ(bed.submit(k, k), status{});
    EXPECT_EQ(system_ref<u32>(*owner.rings().sq_doorbell).load(acquire), k + 1);
  }
}

// The same for a group that has more than one, which goes another way (try_send).
TEST(queue_script, submit_returns_only_when_all_commands_of_a_group_are_rung) {
  step_controller owner;
  fault_bed bed(owner, fault_options(8, never), 4);
  for (u32 k = 0; k < 4; k += 2) {
    run_lanes({{0, 0, 3}, {0, 1, 3}}, [&](emulated_warp const& g, lane_assignment const& a) {
      EXPECT_EQ(bed.view().submit(g, true, bed.read_of(k + a.lane, k + a.lane), bed.target(k + a.lane)), status{});
    });
    EXPECT_EQ(system_ref<u32>(*owner.rings().sq_doorbell).load(acquire), k + 2);
  }
}

// Q3. The entry is written before anyone may ring it.
TEST(queue_script, a_command_is_published_after_its_entry_is_written) {
  static fault_bed* at_work = nullptr;
  step_controller owner(serve_reads);
  fault_bed bed(owner, fault_options(4, never), 12);
  at_work = &bed;
  recording_sink::on_placed = [](command_record&) { at_work->progress(); };
  for (u32 k = 0; k < 12; ++k) {
    ASSERT_EQ(bed.run(k, k), status{});
    ASSERT_TRUE(bed.data_right(k));
    ASSERT_EQ(owner.fetched.size(), k + 1);
  }
}

TEST(queue_script, commands_of_a_group_are_published_after_their_entries_are_written) {
  static fault_bed* at_work = nullptr;
  step_controller owner(serve_reads);
  fault_bed bed(owner, fault_options(4, never), 12);
  at_work = &bed;
  recording_sink::on_placed = [](command_record&) { at_work->progress(); };
  for (u32 k = 0; k < 12; k += 2) {
    run_lanes({{0, 0, 3}, {0, 1, 3}}, [&](emulated_warp const& g, lane_assignment const& a) {
      const u32 mine = k + a.lane;
      EXPECT_EQ(bed.view().submit(g, true, bed.read_of(mine, mine), bed.target(mine)), status{});
      while (any(g.ballot(!bed.over(mine)))) bed.view().progress(g);
    });
    ASSERT_TRUE(bed.data_right(k) && bed.data_right(k + 1));
    ASSERT_EQ(owner.fetched.size(), k + 2);
  }
}

// Q11. While a lane still reads its entry the completion doorbell stays where it is.
TEST(queue_script, completion_entries_are_given_back_after_all_lanes_have_read) {
  static step_controller* far = nullptr;
  static std::atomic<u32> moved{0};
  step_controller owner(serve_all);
  far = &owner;
  moved = 0;
  fault_bed bed(owner, fault_options(8, never), 2);
  recording_sink::on_finish = [](command_record& r) {
    if (r.slot != 1) return;
    backoff look(3 * one_millisecond_ns);
    while (look.pause()) moved += system_ref<u32>(*far->rings().cq_doorbell).load(acquire) != 0 ? 1 : 0;
  };
  run_lanes({{0, 0, 3}, {0, 1, 3}}, [&](emulated_warp const& g, lane_assignment const& a) {
    EXPECT_EQ(bed.view().submit(g, true, bed.read_of(a.lane, a.lane), bed.target(a.lane)), status{});
    while (any(g.ballot(!bed.over(a.lane)))) bed.view().progress(g);
  });
  EXPECT_EQ(moved, 0u);
}

// Q13. Copies are made outside of the harvest lock, by whoever claims them.
TEST(queue_script, landed_data_is_copied_without_the_harvest_lock) {
  static queue_state* state = nullptr;
  static u32 locked = 0;
  step_controller owner(serve_reads);
  fault_bed bed(owner, fault_options(4, never, true), 20);
  state = &bed.state();
  locked = 0;
  recording_sink::on_finish = [](command_record&) { locked += device_ref<u32>(state->harvest_lock).load(relaxed); };
  for (u32 k = 0; k < 20; ++k) {
    ASSERT_EQ(bed.run(k, k), status{});
    ASSERT_TRUE(bed.data_right(k));
  }
  EXPECT_EQ(locked, 0u);
}

// Q13. Nobody waits for the prefetches; the ring is full of what has landed.
TEST(queue_script, a_ring_full_of_landed_prefetches_drains_itself) {
  step_controller owner(serve_reads);
  for (const u32 depth : {2u, 3u}) {
    fault_bed bed(owner, fault_options(depth, 50 * one_millisecond_ns, true), 9);
    for (u32 k = 0; k < 8; ++k) ASSERT_EQ(bed.submit(k, k), status{});
    ASSERT_EQ(bed.run(8, 8), status{});
    EXPECT_TRUE(bed.data_right(8));
  }
}

// Q10. The completion is posted in the very last moment: after the harvest that finds the deadline passed.
TEST(queue_script, a_completion_that_comes_at_the_deadline_wins) {
  for (u32 round = 0; round < scaled(200); ++round) {
    u64 deadline = 0, seen_late = 0;
    step_controller owner([&](step_controller& c) {
      c.fetch();
      // The first look after the deadline is too early, the second one is not.
      if (deadline != 0 && now_ns() >= deadline && ++seen_late == 2) serve_all(c), c.post(c.fetched[0].command_id);
    });
    fault_bed bed(owner, fault_options(4, one_millisecond_ns), 1);
    ASSERT_EQ(bed.submit(0, 0), status{});
    deadline = now_ns() + one_millisecond_ns + one_millisecond_ns / 4;
    while (now_ns() < deadline) {}
    ASSERT_TRUE(bed.progress_until([&] { return bed.over(0); }));
    ASSERT_EQ(bed.finished(0), 1u);
    ASSERT_EQ(bed.counts().expired, 0u);
  }
}

// Q10. Another group is at the completions: the deadline has passed, and still nothing is expired beside it.
TEST(queue_script, an_expiry_that_is_due_waits_for_the_lock) {
  step_controller owner(silent_on({0}));
  fault_bed bed(owner, fault_options(4, one_millisecond_ns), 1);
  ASSERT_EQ(bed.submit(0, 0), status{});
  const u64 late = now_ns() + 2 * one_millisecond_ns;
  while (now_ns() < late) {}
  device_ref<u32>(bed.state().harvest_lock).store(1, release);
  bed.progress();
  EXPECT_FALSE(bed.over(0));
  EXPECT_EQ(bed.counts().expired, 0u);
  device_ref<u32>(bed.state().harvest_lock).store(0, release);
  ASSERT_TRUE(bed.progress_until([&] { return bed.over(0); }));
  EXPECT_EQ(bed.counts().expired, 1u);
}

TEST(queue_script, a_dropped_completion_ends_at_its_deadline_and_the_ring_goes_on) {
  for (const bool bounce : {false, true}) {
    step_controller owner(silent_on({1}));
    fault_bed bed(owner, fault_options(4, soon, bounce), 40);
    ASSERT_EQ(bed.run(0, 0), status{});
    const u64 begin = now_ns();
    ASSERT_EQ(bed.run(1, 1), deadline_status);
    EXPECT_GE(now_ns() - begin, soon);
    EXPECT_LT(now_ns() - begin, soon + one_second_ns);
    EXPECT_EQ(bed.record(1).exposed, bounce ? 0u : 1u);
    for (u32 k = 2; k < 40; ++k) {
      ASSERT_EQ(bed.run(k, k), status{}) << k;
      ASSERT_TRUE(bed.data_right(k));
    }
    EXPECT_EQ(bed.counts().expired, 1u);
    EXPECT_EQ(bed.counts().strays, 0u);
    EXPECT_EQ(bed.counts().failure, status{});
    EXPECT_EQ(bed.state().stuck_positions, 0u);
    EXPECT_EQ(bed.record(5).slot, bed.record(1).slot);  // the position was freed
  }
}

// One lost completion, and a command that waits behind it and is overdue at the same look: the controller is not to blame.
TEST(queue_script, a_command_behind_an_expired_one_gets_its_own_time) {
  for (u32 round = 0; round < scaled(20); ++round) {
    bool slept = false;
    step_controller owner([&slept, serve = silent_on({0})](step_controller& c) {
      serve(c);
      // By now 3 waits at the guard for 0; nobody looks until the deadlines of both have passed.
      if (c.fetched.size() == 3 && !std::exchange(slept, true)) std::this_thread::sleep_for(std::chrono::nanoseconds(2 * soon));
    });
    fault_bed bed(owner, fault_options(4, soon), 5);
    for (u32 k = 0; k < 5; ++k) ASSERT_EQ(bed.submit(k, k), status{}) << k;
    EXPECT_EQ(bed.wait(0), deadline_status);
    for (u32 k = 1; k < 5; ++k) EXPECT_EQ(bed.wait(k), status{}) << k;
    ASSERT_EQ(bed.counts().failure, status{});
  }
}

// Q10. The first command takes nearly all of its time and the second one, behind it at the guard, half of its own.
TEST(queue_script, a_command_is_given_its_time_from_the_doorbell) {
  constexpr u64 time = 60 * one_millisecond_ns;
  const std::vector<u64> takes = {time * 9 / 10, time / 2};
  for (u32 round = 0; round < 3; ++round) {
    u64 begin = 0;
    step_controller owner([&](step_controller& c) {
      if (c.fetch() != nullptr) begin = now_ns();
      const u64 number = c.fetched.size() - 1;
      if (begin != 0 && now_ns() >= begin + takes[number]) c.post(c.fetched[number].command_id), begin = 0;
    });
    fault_bed bed(owner, fault_options(2, time), 2);
    ASSERT_EQ(bed.submit(0, 0), status{});
    ASSERT_EQ(bed.submit(1, 1), status{});
    EXPECT_EQ(bed.wait(0), status{});
    EXPECT_EQ(bed.wait(1), status{});
    ASSERT_EQ(bed.counts().expired, 0u);
  }
}

// Q9. The late completion of the first tenant comes while the second one is in flight, with its data.
TEST(queue_script, a_late_completion_does_not_touch_the_next_command_of_its_slot) {
  for (const bool bounce : {false, true}) {
    step_controller owner(silent_on({0, 4}));
    fault_bed bed(owner, fault_options(4, soon, bounce), 12);
    const u32 spares = bed.state().spare_buffers;
    ASSERT_EQ(bed.run(0, 100), deadline_status);
    for (u32 k = 1; k < 4; ++k) ASSERT_EQ(bed.run(k, k), status{});
    ASSERT_EQ(bed.submit(4, 104), status{});
    bed.progress();
    ASSERT_EQ(owner.fetched.size(), 5u);
    ASSERT_EQ(bed.record(4).slot, bed.record(0).slot);
    const auto first = owner.fetched[0], second = owner.fetched[4];
    EXPECT_NE(first.command_id, second.command_id);
    if (bounce) {
      EXPECT_NE(first.prp1, second.prp1);
      EXPECT_EQ(bed.state().spare_buffers, spares - 1);
    }
    put_data(second, 104);
    put_data(first, 100);  // last, so that a shared buffer shows
    owner.post(first.command_id);
    bed.progress();
    EXPECT_EQ(bed.finished(4) + bed.abandoned(4), 0u);
    EXPECT_EQ(bed.resolved(0), 1u);
    EXPECT_EQ(bed.finished(0), 0u);
    EXPECT_EQ(bed.counts().strays, 1u);
    EXPECT_EQ(bed.state().spare_buffers, bounce ? spares : 0);
    owner.post(second.command_id);
    EXPECT_EQ(bed.wait(4), status{});
    EXPECT_TRUE(bed.data_right(4));
    for (u32 k = 5; k < 12; ++k) ASSERT_EQ(bed.run(k, k), status{});
    EXPECT_EQ(bed.counts().failure, status{});
  }
}

TEST(queue_script, a_second_abandonment_before_the_first_is_resolved_fails_the_controller) {
  step_controller owner(silent_on({0, 4}));
  fault_bed bed(owner, fault_options(4, soon), 6);
  ASSERT_EQ(bed.run(0, 0), deadline_status);
  for (u32 k = 1; k < 4; ++k) ASSERT_EQ(bed.run(k, k), status{});
  EXPECT_EQ(bed.run(4, 4), failed_status);
  EXPECT_EQ(bed.abandoned(4), 1u);
  EXPECT_EQ(bed.counts().failure, failed_status);
  const u64 commands = bed.counts().commands;
  EXPECT_EQ(bed.submit(5, 5), failed_status);  // withdrawn at once
  EXPECT_EQ(bed.finished(5) + bed.abandoned(5), 0u);
  EXPECT_EQ(bed.counts().commands, commands);
}

TEST(queue_script, without_spare_bounce_buffers_the_controller_fails) {
  queue_options options = fault_options(8, soon, true);
  options.spare_bounces = 2;
  step_controller owner(silent_on({0, 1, 2}));
  fault_bed bed(owner, options, 4);
  EXPECT_EQ(bed.run(0, 0), deadline_status);
  EXPECT_EQ(bed.run(1, 1), deadline_status);
  EXPECT_EQ(bed.run(2, 2), failed_status);
  EXPECT_EQ(bed.submit(3, 3), failed_status);
}

TEST(queue_script, a_ring_that_stands_at_its_guard_fails_the_controller) {
  for (const u32 depth : {2u, 4u}) {
    step_controller owner;  // fetches nothing
    fault_bed bed(owner, fault_options(depth, soon), depth + 1);
    for (u32 k = 0; k + 1 < depth; ++k) ASSERT_EQ(bed.submit(k, k), status{});
    const u64 begin = now_ns();
    ASSERT_EQ(bed.run(depth - 1, 0), failed_status);  // published, never rung
    EXPECT_LT(now_ns() - begin, 2 * soon + one_second_ns);
    for (u32 k = 0; k + 1 < depth; ++k) EXPECT_EQ(bed.wait(k), deadline_status);
    EXPECT_EQ(bed.submit(depth, 0), failed_status);
  }
}

// A completion ring of two, and a controller that looks at no completion doorbell.
TEST(queue_script, completions_never_overrun_a_small_ring) {
  for (const u32 depth : {2u, 8u}) {
    step_controller owner(serve_reads);
    fault_bed bed(owner, fault_options(depth, 100 * one_millisecond_ns, false, 2), 12);
    for (u32 k = 0; k < 12; ++k) ASSERT_EQ(bed.submit(k, k), status{});
    for (u32 k = 0; k < 12; ++k) ASSERT_EQ(bed.wait(k), status{}) << k;
    EXPECT_EQ(bed.counts().expired, 0u);
  }
}

// Q11. One completion at a time: each is told, or the controller runs out of room.
TEST(queue_script, every_completion_moves_the_doorbell) {
  step_controller owner(serve_reads);
  fault_bed bed(owner, fault_options(8, never, false, 3), 10);
  for (u32 k = 0; k < 10; ++k) {
    ASSERT_EQ(bed.run(k, k), status{});
    ASSERT_EQ(system_ref<u32>(*owner.rings().cq_doorbell).load(acquire), (k + 1) % 3);
  }
}

}  // namespace
}  // namespace penstock::test
