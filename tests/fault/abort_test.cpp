// Commands that were given up are aborted before anything harder is done: those that the controller ends so leave the queue
// whole, and an identifier that is being aborted never belongs to a command that somebody waits for.
#include "penstock/controller/model_controller.hpp"
#include "queue_fault_bed.hpp"
#include "step_controller.hpp"

namespace penstock::test {
namespace {

constexpr u64 never_ns = 3600 * one_second_ns;
constexpr u64 brief = 20 * one_millisecond_ns;
constexpr u32 commands = 64;

/// A quarter of the commands take an hour.
class slow_drive {
 public:
  explicit slow_drive(bool bounce) : model_(slow()), media_(media_blocks * 512) {
    model_.add_namespace(media_.bytes());
    bed = std::make_unique<fault_bed>(model_, fault_options(128, brief, bounce), 2 * commands);
  }

  u64 late() const { return model_.counts().lates; }
  u64 aborted() const { return model_.counts().aborted; }
  void set_dead(bool dead) { model_.set_dead(dead); }

  void expect_each_ended_once(u32 count) {
    for (u32 k = 0; k < count; ++k) {
      ASSERT_TRUE(bed->progress_until([&] { return bed->over(k); })) << k;
      EXPECT_EQ(bed->finished(k) + bed->abandoned(k), 1u) << k;
      if (bed->finished(k) != 0) {
        EXPECT_EQ(unpack_status(bed->record(k).outcome), status{}) << k;
        EXPECT_TRUE(bed->data_right(k)) << k;
      } else {
        EXPECT_EQ(unpack_status(bed->record(k).outcome), deadline_status) << k;
        EXPECT_TRUE(bed->data_untouched(k)) << k;
      }
    }
  }

 private:
  static model_options slow() {
    model_options options;
    options.faults = {.seed = 3, .late = 0.25, .late_ns = never_ns};
    return options;
  }

  model_controller model_;
  stamped_media media_;

 public:
  std::unique_ptr<fault_bed> bed;
};

class abort_test : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(data, abort_test, testing::Bool(),
                         [](auto const& test) { return std::string(test.param ? "bounced" : "straight"); });

TEST_P(abort_test, slow_commands_end_so_and_the_queue_is_whole_again) {
  slow_drive drive(GetParam());
  fault_bed& bed = *drive.bed;
  // No more at once than there are spare bounce buffers for.
  u64 ended = 0, late = 0;
  for (u32 first = 0; first < commands; first += 16) {
    for (u32 k = first; k < first + 16; ++k) ASSERT_EQ(bed.submit(k, k), status{});
    drive.expect_each_ended_once(first + 16);
    ended += bed.pair().abort_late();
    ASSERT_EQ(ended, drive.late());
    ASSERT_EQ(drive.aborted(), drive.late());
    EXPECT_FALSE(bed.broken()) << "a reset is not needed";
    late = drive.late();
  }
  ASSERT_GT(late, 4u);
  for (u32 k = 0; k < commands; ++k) EXPECT_EQ(bed.resolved(k), bed.abandoned(k)) << "its memory is free";
  const queue_counts counts = bed.counts();
  EXPECT_EQ(counts.reset, 0u);
  EXPECT_EQ(counts.strays, late);
  EXPECT_EQ(counts.commands, counts.completions - counts.strays + counts.expired + counts.failed + counts.reset);
}

TEST(queue_abort, neighbours_in_flight_are_left_alone) {
  slow_drive drive(false);
  fault_bed& bed = *drive.bed;
  for (u32 k = 0; k < commands; ++k) ASSERT_EQ(bed.submit(k, k), status{});
  ASSERT_TRUE(bed.progress_until([&] { return bed.counts().expired == drive.late() && drive.late() > 8; }));
  // These are in the rings, and the controller has not looked at them.
  const u64 before = drive.late();
  drive.set_dead(true);
  for (u32 k = commands; k < commands + 8; ++k) ASSERT_EQ(bed.submit(k, k), status{});
  drive.set_dead(false);
  EXPECT_EQ(bed.pair().abort_late(), before);
  drive.expect_each_ended_once(commands + 8);
  EXPECT_EQ(bed.counts().reset, 0u);
}

TEST(queue_abort, a_controller_that_cannot_leaves_all_to_the_reset) {
  step_controller owner([](step_controller& c) {
    while (c.fetch() != nullptr) {}
  });
  fault_bed bed(owner, fault_options(8, brief), 4);
  for (u32 k = 0; k < 3; ++k) ASSERT_EQ(bed.submit(k, k), status{});
  for (u32 k = 0; k < 3; ++k) ASSERT_EQ(bed.wait(k), deadline_status);
  EXPECT_EQ(bed.pair().abort_late(), 0u);
  EXPECT_EQ(owner.aborts.size(), 3u);
  EXPECT_TRUE(bed.broken());
  EXPECT_EQ(bed.reset(), 0u) << "all had been told before";
  EXPECT_FALSE(bed.broken());
  for (u32 k = 0; k < 3; ++k) EXPECT_EQ(bed.resolved(k), 1u);
}

TEST(queue_abort, a_controller_that_was_given_up_is_asked_nothing) {
  step_controller owner([](step_controller& c) {
    while (auto const* command = c.fetch()) c.post(static_cast<u16>(command->command_id + 1));
  });
  fault_bed bed(owner, fault_options(8, brief), 1);
  ASSERT_EQ(bed.run(0, 0), failed_status);
  EXPECT_EQ(bed.pair().abort_late(), 0u);
  EXPECT_TRUE(owner.aborts.empty());
}

// What comes by itself while it is being aborted has ended as well, whatever the controller says.
TEST(queue_abort, a_completion_of_its_own_is_as_good) {
  step_controller owner([](step_controller& c) {
    while (c.fetch() != nullptr) {}
  });
  fault_bed bed(owner, fault_options(8, brief), 1);
  ASSERT_EQ(bed.run(0, 0), deadline_status);
  owner.on_abort = [&](u16 id) {
    owner.post(id);
    return false;
  };
  EXPECT_EQ(bed.pair().abort_late(), 1u);
  EXPECT_FALSE(bed.broken());
}

TEST(queue_abort, a_slot_whose_abort_is_over_may_be_late_again) {
  step_controller owner([](step_controller& c) {
    while (c.fetch() != nullptr) {}
  });
  fault_bed bed(owner, fault_options(2, brief), 8);
  owner.on_abort = [&](u16 id) {
    owner.post(id, nvme::code::abort_requested);
    return true;
  };
  for (u32 k = 0; k < 8; ++k) {
    ASSERT_EQ(bed.run(k, k), deadline_status);
    ASSERT_EQ(bed.pair().abort_late(), 1u);
    ASSERT_FALSE(bed.broken()) << k;
  }
}

// The controller is as slow as it likes with an Abort: the command ends by itself, the next one in its slot does not and is
// given up, and the one after that would have the first one's identifier when the Abort is carried out at last.
TEST(queue_abort, an_abort_that_comes_late_ends_no_other_command) {
  step_controller owner([](step_controller& c) {
    while (c.fetch() != nullptr) {}
  });
  fault_bed bed(owner, fault_options(2, brief), 8);
  ASSERT_EQ(bed.run(0, 0), deadline_status);
  owner.on_abort = [&](u16 id) {
    owner.post(id);  // late, by itself
    // Of a ring of two, every second command is in the first one's slot.
    for (u32 k = 1; k < 8; ++k) {
      if (!bed.submit(k, k).ok()) break;
      bed.progress();  // and the controller has it
      if (owner.fetched.back().command_id == id) {
        owner.post(id, nvme::code::abort_requested);
        EXPECT_TRUE(bed.progress_until([&] { return bed.over(k); }));
        break;
      }
      if (k % 2 != 0) owner.post(owner.fetched.back().command_id);
      EXPECT_TRUE(bed.progress_until([&] { return bed.over(k); }));
      if (k % 2 != 0) continue;
      // Its position comes free, as the controller's head passes it.
      owner.post(owner.fetched.back().command_id);
      bed.progress();
    }
    return true;
  };
  bed.pair().abort_late();
  for (u32 k = 1; k < 8; ++k) {
    EXPECT_NE(unpack_status(bed.record(k).outcome), (status{status_domain::nvme, nvme::code::abort_requested})) << k;
  }
}

// It may be carried out until the controller is reset, whatever has become of its command meanwhile.
TEST(queue_abort, an_identifier_whose_abort_was_not_answered_stays_dead_until_a_reset) {
  step_controller owner([](step_controller& c) {
    while (c.fetch() != nullptr) {}
  });
  fault_bed bed(owner, fault_options(2, brief), 4);
  ASSERT_EQ(bed.run(0, 0), deadline_status);
  owner.on_abort = [&](u16 id) {
    owner.post(id);  // late, by itself
    owner.has_failed = true;
    return false;
  };
  EXPECT_EQ(bed.pair().abort_late(), 0u);
  ASSERT_TRUE(bed.progress_until([&] { return bed.resolved(0) == 1; }));
  EXPECT_FALSE(bed.broken()) << "nothing is in quarantine";
  ASSERT_EQ(bed.submit(1, 1), status{});
  bed.progress();
  owner.post(owner.fetched.back().command_id);
  ASSERT_EQ(bed.wait(1), status{});
  // In the first one's slot. If it were given up, the next one there would have the identifier that is being aborted.
  EXPECT_EQ(bed.run(2, 2), failed_status);
  owner.has_failed = false;
  owner.play(serve_all);
  EXPECT_EQ(bed.reset(), 0u) << "all had been told before";
  EXPECT_EQ(bed.resolved(2), 1u);
  EXPECT_EQ(bed.run(3, 3), status{});
}

}  // namespace
}  // namespace penstock::test
