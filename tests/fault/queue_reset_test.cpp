// Resets of a queue pair, step by step, with submitters and waiters at every step.
#include "penstock/controller/model_controller.hpp"
#include "penstock/host/error.hpp"
#include "queue_fault_bed.hpp"
#include "queue_reset_support.hpp"
#include "step_controller.hpp"
#include "support/run_threads.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

namespace penstock::test {
namespace {

constexpr u64 soon = 5 * one_millisecond_ns;
constexpr u64 never = 30 * one_second_ns;

TEST(queue_reset, an_idle_queue_is_as_new) {
  step_controller owner(serve_reads);
  fault_bed bed(owner, fault_options(4, never), 20);
  EXPECT_FALSE(bed.broken());
  EXPECT_EQ(bed.reset(), 0u);
  expect_served(bed, 0, 9);
  EXPECT_EQ(bed.reset(), 0u);
  EXPECT_EQ(bed.reset(), 0u);
  expect_served(bed, 9, 9);
  EXPECT_EQ(bed.counts().commands, 18u);
  EXPECT_FALSE(bed.broken());
}

// Q12. At every step that a test can stand at: before the controller stops, while commands are answered, when all is zeroed and
// the controller comes up. The rings have room, so that a ticket would be published at once.
TEST(queue_reset, nothing_is_submitted_between_its_first_step_and_its_last) {
  static fault_bed* at_work = nullptr;
  static u32 next = 0;
  static std::vector<status> told;
  static const auto try_one = [] { told.push_back(at_work->submit(next, next)), ++next; };
  for (const bool bounce : {false, true}) {
    step_controller owner(fetch_all);
    fault_bed bed(owner, fault_options(8, never, bounce), 40);
    at_work = &bed, next = 2, told.clear();
    ASSERT_EQ(bed.submit(0, 0), status{});
    ASSERT_EQ(bed.submit(1, 1), status{});
    owner.on_detach = owner.on_attach = try_one;
    recording_sink::on_finish = [](command_record&) { try_one(); };
    EXPECT_EQ(bed.reset(), 2u);
    owner.on_detach = owner.on_attach = nullptr;
    recording_sink::on_finish = nullptr;
    EXPECT_EQ(told, std::vector<status>(4, resetting_status));
    for (u32 k = 0; k < 2; ++k) EXPECT_EQ(bed.wait(k), resetting_status);
    for (u32 k = 2; k < next; ++k) EXPECT_FALSE(bed.over(k));
    EXPECT_EQ(bed.counts().commands, 2u);
    ASSERT_EQ(bed.submit(next, next), status{});
    EXPECT_EQ(bed.reset(), 1u);  // what was refused during the first one is not waited for
    expect_all_counted(bed);
  }
}

// Q12. A submitter that has its ticket and has not published: nothing of the queue may be touched before it has.
TEST(queue_reset, it_waits_for_those_who_hold_tickets) {
  static fault_bed* at_work = nullptr;
  static std::string sentence;
  step_controller owner(serve_reads);
  bool stopped = false;
  fault_bed bed(owner, fault_options(4, never), 20);
  at_work = &bed;
  owner.on_detach = [&] { stopped = true; };
  recording_sink::on_placed = [](command_record&) { sentence = refused(*at_work, soon, ETIMEDOUT); };
  EXPECT_EQ(bed.submit(0, 0), status{});  // published, and left to whoever resets
  recording_sink::on_placed = nullptr;
  EXPECT_FALSE(stopped);
  EXPECT_EQ(sentence,
            "reset queue 1: Connection timed out: those who submit do not come to rest: end the kernels that use it, then "
            "reset it again");
  EXPECT_EQ(bed.submit(1, 1), resetting_status);
  EXPECT_TRUE(bed.broken());
  EXPECT_EQ(bed.reset() + bed.counts().completions, 1u);
  EXPECT_TRUE(stopped);
  expect_served(bed, 2, 9);
}

// Q12. Who copies a landed buffer holds no lock, and stores the slot's word when it is done.
TEST(queue_reset, it_waits_for_those_who_copy) {
  static fault_bed* at_work = nullptr;
  static std::string sentence;
  step_controller owner(serve_reads);
  fault_bed bed(owner, fault_options(4, never, true), 20);
  at_work = &bed;
  sentence.clear();
  recording_sink::on_finish = [](command_record&) {
    if (sentence.empty()) sentence = refused(*at_work, soon, ETIMEDOUT);
  };
  EXPECT_EQ(bed.run(0, 0), status{});
  recording_sink::on_finish = nullptr;
  EXPECT_EQ(sentence,
            "reset queue 1: Connection timed out: landed data is still copied: end the kernels that use it, then reset "
            "it again");
  EXPECT_EQ(bed.submit(1, 1), resetting_status);
  EXPECT_EQ(bed.finished(0), 1u);
  EXPECT_EQ(bed.reset(), 0u);
  expect_served(bed, 2, 9);
}

// A ring without room and a controller that is given up: who waits for a slot has a ticket, and leaves.
TEST(queue_reset, what_a_given_up_controller_was_not_given_is_settled) {
  step_controller owner(fetch_all);
  fault_bed bed(owner, fault_options(2, never), 20);
  ASSERT_EQ(bed.submit(0, 0), status{});
  bool posted = false;
  owner.play([&](step_controller& c) {
    fetch_all(c);
    if (bed.state().ticket == 3 && !std::exchange(posted, true)) c.post(0x7777);
  });
  device_ref<u64>(bed.state().ticket).fetch_add(1, relaxed);  // somebody who has the ticket before, and is slow
  EXPECT_EQ(bed.submit(2, 2), failed_status);
  EXPECT_EQ(refused(bed, soon, ETIMEDOUT).substr(0, 14), "reset queue 1:");
  device_ref<u64>(bed.state().withdrawn).fetch_add(1, relaxed);
  device_ref<u64>(bed.state().settled).fetch_add(1, release);
  owner.play(serve_reads);
  EXPECT_EQ(bed.reset(one_second_ns), 1u);
  expect_served(bed, 3, 9);
}

// Other threads wait, and let the controller work in place, at every step.
TEST(queue_reset, nobody_polls_a_controller_that_is_gone) {
  static fault_bed* at_work = nullptr;
  step_controller owner(serve_reads);
  fault_bed bed(owner, fault_options(4, never), 20);
  at_work = &bed;
  expect_served(bed, 0, 3);
  const u64 polls = owner.polls;
  owner.on_detach = owner.on_attach = [] { at_work->progress(); };
  bed.reset();
  EXPECT_EQ(owner.polls, polls);
  owner.on_detach = owner.on_attach = nullptr;
  expect_served(bed, 3, 9);
}

// The ring is full; one command waits at the guard and one for its slot.
TEST(queue_reset, whoever_waits_for_a_slot_withdraws) {
  for (const u32 depth : {2u, 3u}) {
    step_controller owner(fetch_all);
    fault_bed bed(owner, fault_options(depth, never), 30);
    for (u32 k = 0; k + 1 < depth; ++k) ASSERT_EQ(bed.submit(k, k), status{});
    std::vector<status> told(4);
    run_threads(5, [&](u32 thread) {
      if (thread < 4) {
        told[thread] = bed.submit(depth + thread, depth + thread);
        return;
      }
      backoff patience(20 * one_second_ns);
      while (device_ref<u64>(bed.state().ticket).load(relaxed) != depth + 3 && patience.pause()) {}
      bed.reset();
    });
    // The one whose slot is free publishes, and then waits for the doorbell.
    EXPECT_EQ(std::count(told.begin(), told.end(), resetting_status), 3);
    for (u32 k = 0; k + 1 < depth; ++k) EXPECT_EQ(bed.wait(k), resetting_status);
    EXPECT_EQ(bed.counts().commands, depth);
    expect_all_counted(bed);
    EXPECT_EQ(bed.counts().reset, depth);
  }
}

// Q5. In the second lap of a completion queue the rest of it still has the first lap's phase, which a new life takes for its
// own. Tickets that are more than their low 16 or 32 bits.
TEST(queue_reset, completions_of_an_odd_lap_are_not_taken_for_new_ones) {
  for (const u64 first : {u64{0}, u64{1} << 16, u64{1} << 32, u64{1} << 34}) {
    for (const u32 depth : {4u, 5u}) {
      for (u32 before = 0; before < 8; ++before) {
        step_controller owner(serve_reads);
        queue_options options = fault_options(depth, never, false, 3);
        options.first_ticket = first / depth * depth - (first == 0 ? 0 : depth);
        fault_bed bed(owner, options, 64);
        for (u32 k = 0; k < before; ++k) ASSERT_EQ(bed.run(k, k), status{});
        for (u32 life = 0; life < 3; ++life) {
          EXPECT_EQ(bed.reset(), 0u);
          EXPECT_EQ(bed.state().ticket % depth, 0u);
          EXPECT_GE(bed.state().ticket, options.first_ticket);
          expect_served(bed, 8 + 8 * life, 8);
          ASSERT_EQ(bed.counts().strays, 0u) << "first ticket " << options.first_ticket << ", " << before << " before";
        }
        EXPECT_EQ(bed.counts().commands, before + 24);
      }
    }
  }
}

TEST(queue_reset, a_controller_that_broke_the_protocol_may_begin_anew) {
  for (const bool bounce : {false, true}) {
    bool mad = true;
    step_controller owner([&](step_controller& c) {
      if (!mad) return serve_reads(c);
      while (c.fetch() != nullptr) c.post(0x7777);
    });
    fault_bed bed(owner, fault_options(4, never, bounce), 30);
    ASSERT_EQ(bed.submit(0, 0), status{});
    ASSERT_EQ(bed.submit(1, 1), status{});
    EXPECT_EQ(bed.wait(0), failed_status);
    EXPECT_EQ(bed.wait(1), failed_status);
    EXPECT_EQ(bed.submit(2, 2), failed_status);
    EXPECT_TRUE(bed.broken());
    mad = false;
    EXPECT_EQ(bed.reset(), 0u);
    EXPECT_FALSE(bed.broken());
    EXPECT_EQ(bed.counts().failure, status{});
    for (u32 k = 0; k < 2; ++k) {
      EXPECT_EQ(bed.abandoned(k), 1u);
      EXPECT_EQ(bed.resolved(k), 1u);
      EXPECT_EQ(bed.finished(k), 0u);
    }
    expect_served(bed, 3, 20);
  }
}

// 0 expired and was never fetched, 4 took its place and its second expiry fails the controller: two quarantines of one slot.
TEST(queue_reset, every_quarantine_ends_once) {
  for (const bool bounce : {false, true}) {
    bool mute = true;
    step_controller owner([&](step_controller& c) {
      while (auto const* command = c.fetch()) {
        if (!mute || (c.fetched.size() != 1 && c.fetched.size() != 5)) c.post(command->command_id);
      }
    });
    fault_bed bed(owner, fault_options(4, soon, bounce), 40);
    const u32 spares = bed.state().spare_buffers;
    ASSERT_EQ(bed.run(0, 0), deadline_status);
    EXPECT_TRUE(bed.broken());
    for (u32 k = 1; k < 4; ++k) ASSERT_EQ(bed.run(k, k), status{});
    ASSERT_EQ(bed.run(4, 4), failed_status);
    EXPECT_EQ(bed.state().spare_buffers, spares - (bounce ? 1 : 0));
    mute = false;
    EXPECT_EQ(bed.reset(), 0u);
    EXPECT_FALSE(bed.broken());
    EXPECT_EQ(bed.state().spare_buffers, spares);
    for (const u32 k : {0u, 4u}) {
      EXPECT_EQ(bed.resolved(k), 1u) << k;
      EXPECT_EQ(bed.abandoned(k), 1u) << k;
    }
    for (u32 k = 5; k < 25; ++k) ASSERT_EQ(bed.run(k, k), status{});
    expect_all_counted(bed);
    // No buffer is in two places.
    std::vector<u64> buffers;
    for (u32 b = 0; bounce && b < 4 + spares; ++b) buffers.push_back(bed.view().bounces[b]);
    std::sort(buffers.begin(), buffers.end());
    EXPECT_EQ(std::adjacent_find(buffers.begin(), buffers.end()), buffers.end());
  }
}

TEST(queue_reset, a_ring_that_stands_at_its_guard_comes_back) {
  bool dead = true;
  step_controller owner([&](step_controller& c) {
    if (!dead) serve_reads(c);
  });
  fault_bed bed(owner, fault_options(4, soon), 30);
  for (u32 k = 0; k < 3; ++k) ASSERT_EQ(bed.submit(k, k), status{});
  ASSERT_EQ(bed.run(3, 3), failed_status);
  for (u32 k = 0; k < 3; ++k) EXPECT_EQ(bed.wait(k), deadline_status);
  dead = false;
  EXPECT_EQ(bed.reset(), 0u);
  for (u32 k = 0; k < 4; ++k) EXPECT_EQ(bed.resolved(k), 1u);
  EXPECT_EQ(bed.state().stuck_positions, 0u);
  expect_served(bed, 4, 20);
}

// Nobody has copied them yet: the commands are over, and their data is good.
TEST(queue_reset, what_has_landed_is_copied) {
  step_controller owner(serve_reads);
  fault_bed bed(owner, fault_options(16, never, true), 30);
  for (u32 k = 0; k < 12; ++k) ASSERT_EQ(bed.submit(k, k), status{});
  ASSERT_TRUE(bed.progress_until([&] { return bed.counts().completions == 12; }));
  bed.reset();
  for (u32 k = 0; k < 12; ++k) {
    ASSERT_EQ(bed.finished(k), 1u);
    EXPECT_EQ(bed.wait(k), status{});
    EXPECT_TRUE(bed.data_right(k));
  }
  EXPECT_EQ(bed.counts().reset, 0u);
  expect_served(bed, 12, 18);
}

// What the old controller had still to do is not done: neither its bytes nor its completions come into the new life, whose
// identifiers are the same.
TEST(queue_reset, nothing_of_the_old_life_arrives_in_the_new_one) {
  constexpr u64 late = 20 * one_millisecond_ns;
  stamped_media media(media_blocks * 512);
  for (const u32 threads : {0u, 1u}) {
    model_options options;
    options.threads = threads;
    options.faults.late = 1;
    options.faults.late_ns = late;
    model_controller model(options);
    model.add_namespace(media.bytes());
    queue_options queue = fault_options(8, never);
    queue.poll_in_place = threads == 0;
    fault_bed bed(model, queue, 12);
    const u64 begin = now_ns();
    for (u32 k = 0; k < 6; ++k) ASSERT_EQ(bed.submit(k, k), status{});
    ASSERT_TRUE(bed.progress_until([&] { return model.counts().fetched == 6; }));
    const u64 answered = bed.reset();
    const bool in_time = now_ns() < begin + late;  // else the machine was too slow for the test to say anything
    if (in_time) {
      EXPECT_EQ(answered, 6u);
    }
    for (u32 k = 6; k < 12; ++k) ASSERT_EQ(bed.submit(k, k), status{});
    for (u32 k = 6; k < 12; ++k) {
      EXPECT_EQ(bed.wait(k), status{});
      EXPECT_TRUE(bed.data_right(k));
    }
    for (u32 k = 0; in_time && k < 6; ++k) {
      EXPECT_EQ(bed.wait(k), resetting_status);
      EXPECT_TRUE(bed.data_untouched(k));
      EXPECT_EQ(bed.finished(k) + bed.abandoned(k), 1u);
    }
    EXPECT_EQ(bed.counts().strays, 0u);
    expect_all_counted(bed);
  }
}

TEST(queue_reset, a_controller_that_does_not_let_go_keeps_the_memory) {
  static std::vector<queue_rings> kept;  // what is leaked on purpose stays in reach
  step_controller owner(fetch_all);
  owner.on_detach = [&] {
    kept.push_back(owner.rings());
    throw error(error_kind::world, "detach queue 1: a system call has not come back", ETIMEDOUT);
  };
  fault_bed bed(owner, fault_options(4, never), 6);
  ASSERT_EQ(bed.submit(0, 0), status{});
  EXPECT_EQ(refused(bed, 0, ETIMEDOUT), "detach queue 1: a system call has not come back");
  EXPECT_EQ(bed.wait(0), failed_status);
  EXPECT_EQ(bed.abandoned(0), 1u);  // it may still be written
  EXPECT_EQ(bed.resolved(0), 0u);
  EXPECT_FALSE(bed.submit(1, 1).ok());
  EXPECT_EQ(refused(bed, 0, EBUSY),
            "reset queue 1: Device or resource busy: its controller has not let go of it: make a new queue pair");
  EXPECT_FALSE(bed.pair().close());
}

TEST(queue_reset, a_controller_that_does_not_come_up_may_be_tried_again) {
  step_controller owner(serve_reads);
  fault_bed bed(owner, fault_options(4, never), 30);
  expect_served(bed, 0, 5);
  owner.on_attach = [] { throw error(error_kind::world, "attach queue 1: no answer", EIO); };
  EXPECT_EQ(refused(bed, 0, EIO), "attach queue 1: no answer");
  EXPECT_EQ(bed.submit(5, 5), resetting_status);
  EXPECT_EQ(refused(bed, 0, EIO), "attach queue 1: no answer");
  owner.on_attach = nullptr;
  EXPECT_EQ(bed.reset(), 0u);
  expect_served(bed, 6, 9);
  EXPECT_EQ(bed.counts().commands, 14u);
}

// Submitters, waiters, harvesters and resets side by side; each command has one answer, and good ones their data.
TEST(queue_reset, submitters_at_any_moment) {
  stamped_media media(media_blocks * 512);
  constexpr u32 submitters = 3;
  for (const bool bounce : {false, true}) {
    for (const u32 controller_threads : {0u, 1u}) {
      for (const u32 depth : {3u, 16u}) {
        model_options options;
        options.threads = controller_threads;
        options.faults.reorder = true;
        options.faults.poison_fetched = true;
        model_controller model(options);
        model.add_namespace(media.bytes());
        queue_options queue = fault_options(depth, 5 * one_second_ns, bounce, depth - 1);
        queue.poll_in_place = controller_threads == 0;
        const u32 each = scaled(300);
        fault_bed bed(model, queue, submitters * each);
        std::atomic<u32> working{submitters};
        run_threads(submitters + 1, [&](u32 thread) {
          for (u32 n = 0; thread == submitters && working != 0; ++n) {
            backoff pause(n % 8 * one_millisecond_ns / 16);
            while (pause.pause()) {}
            bed.reset();
          }
          if (thread == submitters) return;
          for (u32 k = thread * each; k < (thread + 1) * each; ++k) {
            const status sent = bed.submit(k, k % media_blocks);
            const status told = sent.ok() ? bed.wait(k) : sent;
            ASSERT_TRUE(told.ok() || told == resetting_status) << k;
            ASSERT_EQ(bed.finished(k), sent.ok() ? 1u : 0u) << k;
            ASSERT_TRUE(!told.ok() || bed.data_right(k)) << k;
          }
          --working;
        });
        expect_all_counted(bed);
        EXPECT_EQ(bed.counts().strays + bed.counts().expired + bed.counts().failed, 0u);
      }
    }
  }
}

}  // namespace
}  // namespace penstock::test
