// The modelled drive: its timing, and each of its faults with its count.
#include "controller_bed.hpp"

#include "penstock/host/error.hpp"

namespace penstock::test_support {
namespace {

constexpr u64 seed = 4711;

class model_bed {
 public:
  explicit model_bed(model_options const& options) : content_(random_bytes(1 << 20, seed)), model_(options) {
    model_.add_namespace(content_);
  }

  model_controller& model() { return model_; }
  byte_vector const& content() const { return content_; }

 private:
  byte_vector content_;
  model_controller model_;
};

model_options with_faults(fault_plan plan) {
  plan.seed = seed;
  model_options options;
  options.faults = std::move(plan);
  return options;
}

/// Status by command of `commands` reads, one after the other submitted, all drained.
std::map<u16, u16> read_many(host_queue& queue, data_buffer& buffer, u64 commands) {
  for (u64 k = 0; k < commands; ++k) queue.submit_when_possible(buffer.read(1, k % 512));
  EXPECT_TRUE(queue.drain());
  return queue.take_done();
}

TEST(model_controller, fails_the_share_of_commands_that_it_is_told_to_and_leaves_their_data_alone) {
  fault_plan plan;
  plan.error = 0.25;
  plan.error_codes = {nvme::code::unrecovered_read_error, nvme::code::internal_error, 0x371};
  model_bed bed(with_faults(plan));
  host_queue queue(bed.model(), 1, 33, 33);
  data_buffer buffer(512);
  std::map<u16, u64> seen;
  for (u64 k = 0; k < 2000; ++k) {
    std::memset(buffer.data(), 0, buffer.bytes());
    const u16 status = queue.run(buffer.read(1, k % 2048));
    ++seen[status];
    if (status == nvme::code::success) {
      ASSERT_TRUE(holds(buffer, bed.content(), k % 2048 * 512));
    } else {
      ASSERT_TRUE(holds(buffer, {}, 0)) << "data of a failed command was touched";
    }
  }
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_EQ(bed.model().counts().errors, 2000 - seen[nvme::code::success]);
  EXPECT_NEAR(static_cast<double>(bed.model().counts().errors), 500, 100);
  EXPECT_EQ(bed.model().counts().fetched, 2000u);
  EXPECT_EQ(bed.model().counts().completed, 2000u);
}

TEST(model_controller, fails_the_same_commands_again_with_the_same_seed) {
  fault_plan plan;
  plan.error = 0.1;
  std::map<u16, u16> runs[3];
  for (u32 run = 0; run < 3; ++run) {
    model_options options = with_faults(plan);
    if (run == 2) options.faults.seed = seed + 1;
    model_bed bed(options);
    host_queue queue(bed.model(), 1, 17, 17);
    data_buffer buffer(512);
    runs[run] = read_many(queue, buffer, 1000);
    ASSERT_EQ(runs[run].size(), 1000u);
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

TEST(model_controller, loses_completions_and_goes_on) {
  fault_plan plan;
  plan.drop = 0.02;
  model_bed bed(with_faults(plan));
  host_queue queue(bed.model(), 1, 1000, 1000);
  data_buffer buffer(512);
  for (u64 k = 0; k < 900; ++k) queue.submit(buffer.read(1, k % 512));
  ASSERT_TRUE(queue.drive_until([&] { return bed.model().counts().drops + bed.model().counts().completed == 900; }));
  ASSERT_TRUE(queue.drive_until([&] { return queue.harvested() == bed.model().counts().completed; }));
  EXPECT_GT(bed.model().counts().drops, 0u);
  EXPECT_EQ(queue.in_flight(), bed.model().counts().drops);
}

TEST(model_controller, posts_completions_twice) {
  fault_plan plan;
  plan.duplicate = 0.3;
  model_bed bed(with_faults(plan));
  host_queue queue(bed.model(), 1, 9, 9);
  data_buffer buffer(512);
  EXPECT_EQ(read_many(queue, buffer, 400).size(), 400u);
  ASSERT_TRUE(queue.drive_until([&] { return queue.harvested() == 400 + bed.model().counts().duplicates; }));
  EXPECT_GT(bed.model().counts().duplicates, 50u);
  EXPECT_EQ(queue.strays(), bed.model().counts().duplicates);
}

TEST(model_controller, posts_identifiers_that_are_not_in_flight_before_the_right_one) {
  fault_plan plan;
  plan.unknown_identifier = 0.5;
  model_bed bed(with_faults(plan));
  host_queue queue(bed.model(), 1, 5, 3);
  data_buffer buffer(512);
  for (auto const& [id, status] : read_many(queue, buffer, 200)) EXPECT_EQ(status, nvme::code::success) << id;
  EXPECT_GT(bed.model().counts().unknown_identifiers, 50u);
  EXPECT_EQ(queue.strays(), bed.model().counts().unknown_identifiers);
  for (const u16 id : queue.stray_ids()) EXPECT_GE(id, 0x8000);
}

TEST(model_controller, delays_commands_by_the_time_it_is_told) {
  fault_plan plan;
  plan.delay = 1;
  plan.delay_ns = 3 * one_millisecond_ns;
  model_bed bed(with_faults(plan));
  host_queue queue(bed.model(), 1, 5, 5);
  data_buffer buffer(512);
  const u64 begin = now_ns();
  EXPECT_EQ(queue.run(buffer.read(1, 0)), nvme::code::success);
  EXPECT_GE(now_ns() - begin, plan.delay_ns);
  EXPECT_EQ(bed.model().counts().delays, 1u);
}

TEST(model_controller, serves_late_commands_late_with_data_and_completion) {
  fault_plan plan;
  plan.late = 1;
  plan.late_ns = 20 * one_millisecond_ns;
  model_bed bed(with_faults(plan));
  host_queue queue(bed.model(), 1, 5, 5);
  data_buffer buffer(512);
  const u64 begin = now_ns();
  queue.submit(buffer.read(1, 9));
  queue.poll();
  if (now_ns() - begin < plan.late_ns) {
    EXPECT_TRUE(holds(buffer, {}, 0)) << "data came before the completion was due";
  }
  ASSERT_TRUE(queue.drain());
  EXPECT_GE(now_ns() - begin, plan.late_ns);
  EXPECT_TRUE(holds(buffer, bed.content(), 9 * 512));
  EXPECT_EQ(bed.model().counts().lates, 1u);
}

TEST(model_controller, posts_completions_that_are_due_together_in_another_order) {
  fault_plan plan;
  plan.reorder = true;
  model_bed bed(with_faults(plan));
  host_queue queue(bed.model(), 1, 64, 64);
  data_buffer buffer(512);
  std::vector<u16> sent, came;
  for (u64 k = 0; k < 50; ++k) sent.push_back(queue.write_command(buffer.read(1, k)));
  queue.ring();
  backoff wait(host_queue::patience_ns);
  while (came.size() < sent.size() && wait.pause()) {
    queue.poll();
    while (auto done = queue.harvest()) came.push_back(done->command_id);
  }
  EXPECT_NE(came, sent);
  std::sort(came.begin(), came.end());
  EXPECT_EQ(came, sent);
}

TEST(model_controller, overwrites_the_entries_that_it_has_fetched) {
  fault_plan plan;
  plan.poison_fetched = true;
  model_bed bed(with_faults(plan));
  host_queue queue(bed.model(), 1, 4, 4);
  data_buffer buffer(512);
  EXPECT_EQ(queue.run(buffer.read(1, 0)), nvme::code::success);
  EXPECT_EQ(queue.rings().sq[0].opcode, 0xa5);
  EXPECT_EQ(queue.rings().sq[0].prp1, 0xa5a5a5a5a5a5a5a5u);
  for (u64 k = 0; k < 20; ++k) {
    ASSERT_EQ(queue.run(buffer.read(1, k)), nvme::code::success);
    ASSERT_TRUE(holds(buffer, bed.content(), k * 512));
  }
}

TEST(model_controller, completions_that_it_tears_are_whole_once_their_phase_has_come) {
  fault_plan plan;
  plan.torn_completion = true;
  model_options options = with_faults(plan);
  options.threads = 1;
  model_bed bed(options);
  host_queue queue(bed.model(), 1, 7, 5);  // harvest() throws on a wrong queue or head
  data_buffer buffer(512);
  for (auto const& [id, status] : read_many(queue, buffer, 1000)) EXPECT_EQ(status, nvme::code::success) << id;
  EXPECT_EQ(queue.strays(), 0u);
}

TEST(model_controller, answers_nothing_while_it_is_dead) {
  for (const u32 threads : {0u, 1u}) {
    model_options options;
    options.threads = threads;
    model_bed bed(options);
    host_queue queue(bed.model(), 1, 8, 8);
    data_buffer buffer(512);
    ASSERT_EQ(queue.run(buffer.read(1, 0)), nvme::code::success);
    bed.model().set_dead(true);
    const u16 id = queue.submit(buffer.read(1, 1));
    if (threads == 0) {
      EXPECT_FALSE(queue.drain(5 * one_millisecond_ns));
      EXPECT_EQ(bed.model().counts().fetched, 1u);
    }
    bed.model().set_dead(false);
    EXPECT_EQ(queue.wait(id), nvme::code::success);
  }
}

TEST(model_controller, takes_the_time_that_its_units_and_its_limit_allow) {
  model_options units;
  units.service_time_ns = 2 * one_millisecond_ns;
  units.parallelism = 4;
  model_options limit;
  limit.iops_limit = 2000;
  for (model_options const& options : {units, limit}) {  // both: 2000 commands/s over all queues
    model_bed bed(options);
    host_queue first(bed.model(), 1, 33, 33), second(bed.model(), 2, 33, 33);
    data_buffer buffer(512);
    const u64 begin = now_ns();
    for (u64 k = 0; k < 20; ++k) {
      first.submit(buffer.read(1, k));
      second.submit(buffer.read(1, k));
    }
    ASSERT_TRUE(first.drive_until([&] {
      second.drive_until([] { return true; });
      return first.in_flight() + second.in_flight() == 0;
    }));
    EXPECT_GE(now_ns() - begin, 39 * one_second_ns / 2000);
  }
}

TEST(model_controller, refuses_plans_that_make_no_sense) {
  fault_plan too_much;
  too_much.error = 1.5;
  EXPECT_THROW(model_controller{with_faults(too_much)}, error);
  fault_plan no_codes;
  no_codes.error = 0.5;
  no_codes.error_codes.clear();
  EXPECT_THROW(model_controller{with_faults(no_codes)}, error);
  model_options no_units;
  no_units.parallelism = 0;
  EXPECT_THROW(model_controller{no_units}, error);
}

}  // namespace
}  // namespace penstock::test_support
