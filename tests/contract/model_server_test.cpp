// Drives of a model_server: each fault with its count, and the time that they take, on threads and in place.
#include "controller_bed.hpp"

#include "penstock/host/error.hpp"
#include "src/controller/served_records.hpp"

#include <chrono>
#include <cmath>
#include <thread>

namespace penstock::test_support {
namespace {

constexpr u64 seed = 4711;

class server_bed {
 public:
  explicit server_bed(model_drive_options options, u32 threads = 0, double link = 0)
      : content_(random_bytes(1 << 20, seed)), executor_(open_executor("cpu", 1)) {
    model_server_options server;
    server.units = threads;
    server.link_bytes_per_s = link;
    server_ = std::make_unique<model_server>(*executor_, server);
    options.faults.seed = seed;
    drive_ = &server_->add_drive(options);
    drive_->add_namespace(content_.data(), content_.size());
    server_->start();
  }

  model_server& server() { return *server_; }
  model_drive& drive() { return *drive_; }
  model_counts counts() const { return drive_->counts(); }
  byte_vector const& content() const { return content_; }

 private:
  byte_vector content_;
  std::unique_ptr<executor> executor_;
  std::unique_ptr<model_server> server_;
  model_drive* drive_ = nullptr;
};

model_drive_options with_faults(fault_plan const& plan) {
  model_drive_options options;
  options.faults = plan;
  return options;
}

model_drive_options with_timing(drive_timing const& timing) {
  model_drive_options options;
  options.timing = timing;
  return options;
}

std::map<u16, u16> read_many(host_queue& queue, data_buffer& buffer, u64 commands) {
  for (u64 k = 0; k < commands; ++k) queue.submit_when_possible(buffer.read(1, k % 512));
  EXPECT_TRUE(queue.drain());
  return queue.take_done();
}

/// Nanoseconds until `commands` reads of `bytes` are done, `depth` in flight.
u64 time_reads(host_queue& queue, u64 bytes, u64 commands, u64 depth) {
  data_buffer buffer(bytes);
  const u64 begin = now_ns();
  for (u64 sent = 0; sent < commands || queue.in_flight() != 0;) {
    while (sent < commands && queue.in_flight() < depth) {
      queue.submit(buffer.read(1, sent++ % 128));
    }
    queue.poll();
    while (queue.harvest()) {}
  }
  return now_ns() - begin;
}

TEST(model_server, fails_the_same_commands_as_the_modelled_controller_with_the_same_seed) {
  fault_plan plan;
  plan.seed = seed;
  plan.error = 0.2;
  plan.error_codes = {nvme::code::unrecovered_read_error, nvme::code::internal_error, 0x371};
  model_options old;
  old.faults = plan;
  byte_vector content = random_bytes(1 << 20, seed);
  model_controller model(old);
  model.add_namespace(content);
  server_bed bed(with_faults(plan));
  host_queue expected(model, 1, 17, 17), found(bed.drive(), 1, 17, 17);
  data_buffer buffer(512);
  for (u64 k = 0; k < 1000; ++k) {
    std::memset(buffer.data(), 0, buffer.bytes());
    const u16 status = found.run(buffer.read(1, k));
    ASSERT_TRUE(status == nvme::code::success ? holds(buffer, bed.content(), k * 512) : holds(buffer, {}, 0));
    ASSERT_EQ(expected.run(buffer.read(1, k)), status) << "command " << k;
  }
  EXPECT_EQ(bed.counts().errors, model.counts().errors);
  EXPECT_EQ(bed.counts().completed, 1000u);
}

TEST(model_server, loses_completions_and_goes_on) {
  fault_plan plan;
  plan.drop = 0.02;
  server_bed bed(with_faults(plan));
  host_queue queue(bed.drive(), 1, 1000, 1000);
  data_buffer buffer(512);
  for (u64 k = 0; k < 900; ++k) queue.submit(buffer.read(1, k % 512));
  ASSERT_TRUE(queue.drive_until([&] { return bed.counts().drops + bed.counts().completed == 900; }));
  ASSERT_TRUE(queue.drive_until([&] { return queue.harvested() == bed.counts().completed; }));
  EXPECT_GT(bed.counts().drops, 0u);
  EXPECT_EQ(queue.in_flight(), bed.counts().drops);
}

TEST(model_server, room_of_lost_completions_is_given_back) {
  fault_plan plan;
  plan.drop = 0.5;
  server_bed bed(with_faults(plan));
  host_queue queue(bed.drive(), 1, 512, 4);
  data_buffer buffer(512);
  for (u64 k = 0; k < 400; ++k) queue.submit(buffer.read(1, k));
  EXPECT_TRUE(queue.drive_until([&] { return bed.counts().drops + bed.counts().completed == 400; }));
}

TEST(model_server, posts_completions_twice_and_identifiers_that_are_not_in_flight) {
  for (const u32 threads : {0u, 1u}) {
    fault_plan plan;
    plan.duplicate = 0.3;
    plan.unknown_identifier = 0.5;
    server_bed bed(with_faults(plan), threads);
    host_queue queue(bed.drive(), 1, 9, 5);
    data_buffer buffer(512);
    for (auto const& [id, status] : read_many(queue, buffer, 400)) EXPECT_EQ(status, nvme::code::success) << id;
    const auto strays = [&] { return bed.counts().duplicates + bed.counts().unknown_identifiers; };
    ASSERT_TRUE(queue.drive_until([&] { return queue.harvested() == 400 + strays(); }));
    EXPECT_GT(bed.counts().duplicates, 50u);
    EXPECT_GT(bed.counts().unknown_identifiers, 100u);
    EXPECT_EQ(queue.strays(), strays());
    EXPECT_THROW(host_queue(bed.drive(), 2, 9, 3), error) << "no room for three completions of a command";
  }
}

TEST(model_server, delays_commands_and_serves_late_ones_with_data_and_completion) {
  fault_plan plan;
  plan.late = 1;
  plan.late_ns = 20 * one_millisecond_ns;
  plan.delay = 1;
  plan.delay_ns = one_millisecond_ns;
  server_bed bed(with_faults(plan));
  host_queue queue(bed.drive(), 1, 5, 5);
  data_buffer buffer(512);
  const u64 begin = now_ns();
  queue.submit(buffer.read(1, 9));
  queue.poll();
  if (now_ns() - begin < plan.late_ns) {
    EXPECT_TRUE(holds(buffer, {}, 0)) << "data came before the completion was due";
  }
  ASSERT_TRUE(queue.drain());
  EXPECT_GE(now_ns() - begin, plan.late_ns + plan.delay_ns);
  EXPECT_TRUE(holds(buffer, bed.content(), 9 * 512));
  EXPECT_EQ(bed.counts().lates, 1u);
  EXPECT_EQ(bed.counts().delays, 1u);
}

TEST(model_server, a_late_command_holds_up_no_other) {
  fault_plan plan;
  plan.late = 0.1;
  plan.late_ns = 300 * one_millisecond_ns;
  server_bed bed(with_faults(plan));
  host_queue queue(bed.drive(), 1, 64, 64);
  data_buffer buffer(512);
  const u64 begin = now_ns();
  for (u64 k = 0; k < 60; ++k) queue.submit(buffer.read(1, k));
  ASSERT_TRUE(queue.drive_until([&] { return queue.harvested() + bed.counts().lates == 60; }));
  EXPECT_GT(bed.counts().lates, 0u);
  if (now_ns() - begin < plan.late_ns) {
    EXPECT_GT(queue.in_flight(), 0u);
  }
  EXPECT_TRUE(queue.drain());
}

TEST(model_server, posts_completions_that_are_due_together_in_another_order) {
  fault_plan plan;
  plan.reorder = true;
  plan.delay = 1;
  plan.delay_ns = 100 * one_millisecond_ns;  // none is due before all are taken, one at a time
  server_bed bed(with_faults(plan));
  host_queue queue(bed.drive(), 1, 64, 64);
  data_buffer buffer(512);
  std::vector<u16> sent, came;
  for (u64 k = 0; k < 50; ++k) sent.push_back(queue.write_command(buffer.read(1, k)));
  queue.ring();
  backoff wait(host_queue::patience_ns);
  while (bed.counts().fetched < sent.size() && wait.pause()) queue.poll();
  std::this_thread::sleep_for(std::chrono::nanoseconds(plan.delay_ns));  // all are due
  while (came.size() < sent.size() && wait.pause()) {
    queue.poll();
    while (auto done = queue.harvest()) came.push_back(done->command_id);
  }
  EXPECT_NE(came, sent);
  std::sort(came.begin(), came.end());
  EXPECT_EQ(came, sent);
}

TEST(model_server, overwrites_what_it_has_fetched_and_tears_completions) {
  fault_plan plan;
  plan.poison_fetched = true;
  plan.torn_completion = true;
  server_bed bed(with_faults(plan), 1);
  host_queue queue(bed.drive(), 1, 4, 3);  // harvest() throws on a wrong queue or head
  data_buffer buffer(512);
  EXPECT_EQ(queue.run(buffer.read(1, 0)), nvme::code::success);
  EXPECT_EQ(queue.rings().sq[0].prp1, 0xa5a5a5a5a5a5a5a5u);
  for (u64 k = 0; k < 300; ++k) {
    ASSERT_EQ(queue.run(buffer.read(1, k)), nvme::code::success);
    ASSERT_TRUE(holds(buffer, bed.content(), k * 512));
  }
}

TEST(model_server, takes_the_time_that_its_units_and_its_limits_allow) {
  const double page_bytes_per_s = 2000.0 * link_bytes(4096);
  struct {
    drive_timing timing;
    double link;
    u64 bytes;
  } const cases[] = {{{2 * one_millisecond_ns, 4, 0, 0, 0, 0}, 0, 512},
                     {{0, 0, 2000, 0, 0, 0}, 0, 512},
                     {{0, 0, 1e6, 2000, 0, 0}, 0, 4096},
                     {{0, 0, 0, 4000, 0, 0}, 0, 8192},
                     {{}, page_bytes_per_s, 4096}};  // each: 2000 commands/s
  for (auto const& each : cases) {
    SCOPED_TRACE(testing::Message() << "case " << &each - cases);
    server_bed bed(with_timing(each.timing), 0, each.link);
    host_queue first(bed.drive(), 1, 33, 33), second(bed.drive(), 2, 33, 33);
    data_buffer buffer(each.bytes);
    const u64 begin = now_ns();
    for (u64 k = 0; k < 20; ++k) {
      first.submit(buffer.read(1, k));
      second.submit(buffer.read(1, k));
    }
    ASSERT_TRUE(first.drive_until([&] {
      second.drive_until([] { return true; });
      return first.in_flight() + second.in_flight() == 0;
    }));
    // The last one may be early by a lead, which is a service time at most.
    EXPECT_GE(now_ns() - begin + each.timing.service_time_ns, 39 * one_second_ns / 2000);
    EXPECT_LT(now_ns() - begin, 39 * one_second_ns / 200) << "far slower than it was told";
  }
}

TEST(model_server, answers_at_the_rate_of_littles_law) {
  server_bed bed(with_timing({2 * one_millisecond_ns, 8, 0, 0, 0, 0}));
  host_queue queue(bed.drive(), 1, 64, 64);
  for (const u64 depth : {1, 4, 16}) {
    const u64 commands = 25 * std::min<u64>(depth, 8);  // 50 ms at its best
    const u64 took = time_reads(queue, 512, commands, depth);
    EXPECT_GE(took, 30 * one_millisecond_ns) << "depth " << depth;  // leads are learnt, and a busy machine teaches long ones
    EXPECT_LT(took, one_second_ns) << "depth " << depth;            // a busy machine is not a slow drive
  }
  const model_traffic traffic = bed.drive().traffic();
  EXPECT_EQ(traffic.most_in_flight, 16u);
  EXPECT_EQ(traffic.reads, 25u + 100 + 200);
  EXPECT_EQ(traffic.bytes_read, traffic.reads * 512);
  // Depth times time, by our own reckoning: what was in flight on the average, seen from the drive.
  EXPECT_GT(traffic.mean_in_flight(), 5);
  EXPECT_LT(traffic.mean_in_flight(), 12);
}

// Polled in place: between two threads on a busy machine lie whole time slices.
TEST(model_server, keeps_its_service_time_on_the_average) {
  const u64 service_ns = 300 * one_microsecond_ns;
  server_bed bed(with_timing({service_ns, 0, 0, 0, 0, 0}));
  host_queue queue(bed.drive(), 1, 64, 64);
  for (const u64 depth : {1, 4, 16}) {
    // Of some rounds, for the machine may have other things to do in any of them.
    double nearest = 1;
    for (u32 round = 0; round < 200 && nearest > 0.1; ++round) {
      const u64 before = bed.drive().traffic().residence_ns;
      time_reads(queue, 512, 50 * depth, depth);
      const double mean_ns = static_cast<double>(bed.drive().traffic().residence_ns - before) / static_cast<double>(50 * depth);
      nearest = std::min(nearest, std::abs(mean_ns / static_cast<double>(service_ns) - 1));
    }
    EXPECT_LE(nearest, 0.1) << "depth " << depth;
  }
}

TEST(model_server, a_write_costs_what_writes_cost) {
  server_bed bed(with_timing({0, 0, 1e6, 1e6, 1000, 1000}));
  host_queue queue(bed.drive(), 1, 33, 33);
  data_buffer buffer(512);
  const u64 begin = now_ns();
  for (u64 k = 0; k < 30; ++k) queue.submit(k % 2 == 0 ? buffer.read(1, k) : buffer.write(1, k));
  ASSERT_TRUE(queue.drain());
  EXPECT_GE(now_ns() - begin, 14 * one_millisecond_ns);
  EXPECT_EQ(bed.drive().traffic().writes, 15u);
  EXPECT_EQ(bed.drive().traffic().bytes_written, 15u * 512);
}

TEST(model_server, counts_doorbells_that_cannot_be) {
  server_bed bed({});
  host_queue queue(bed.drive(), 1, 8, 8);
  system_ref<u32>(*queue.rings().sq_doorbell).store(8, release);
  for (u32 k = 0; k < 3; ++k) queue.poll();
  EXPECT_EQ(bed.counts().refused_doorbells, 1u);
}

TEST(model_server, goes_on_where_it_stopped_and_keeps_its_counts) {
  server_bed bed({}, 2);
  host_queue queue(bed.drive(), 1, 8, 8);
  data_buffer buffer(512);
  for (u64 round = 1; round <= 3; ++round) {
    for (u64 k = 0; k < 5; ++k) ASSERT_EQ(queue.run(buffer.read(1, k)), nvme::code::success);
    bed.server().stop();
    EXPECT_FALSE(bed.server().running());
    EXPECT_EQ(bed.counts().completed, 5 * round);
    bed.server().start();
  }
  queue.detach();
  EXPECT_EQ(bed.counts().completed, 15u);
}

TEST(model_server, drives_share_a_server_and_keep_apart) {
  const auto on = open_executor("cpu", 1);
  model_server_options options;
  options.units = 2;
  model_server server(*on, options);
  std::vector<byte_vector> contents;
  std::vector<model_drive*> drives;
  for (u64 d = 0; d < 3; ++d) {
    contents.push_back(random_bytes(1 << 16, seed + d));
    drives.push_back(&server.add_drive({}));
  }
  for (u64 d = 0; d < 3; ++d) drives[d]->add_namespace(contents[d].data(), contents[d].size());
  server.start();
  std::vector<std::unique_ptr<host_queue>> queues;
  for (u64 d = 0; d < 3; ++d) queues.push_back(std::make_unique<host_queue>(*drives[d], 1, 16, 16));
  data_buffer buffer(4096);
  for (u64 k = 0; k < 60; ++k) {
    ASSERT_EQ(queues[k % 3]->run(buffer.read(1, k)), nvme::code::success);
    ASSERT_TRUE(holds(buffer, contents[k % 3], k * 512));
  }
  EXPECT_THROW(server.add_drive({}), error);
  for (model_drive* drive : drives) EXPECT_EQ(drive->counts().completed, 20u);
}

TEST(model_server, presets_name_what_was_published) {
  EXPECT_EQ(drive_preset("p5800x").read_iops_512, 5.1e6);
  EXPECT_EQ(drive_preset("980pro").service_time_ns, 300'000u);
  for (std::string const& name : drive_preset_names()) {
    const drive_timing timing = drive_preset(name);
    const double units_iops = timing.units * 1e9 / static_cast<double>(std::max<u64>(1, timing.service_time_ns));
    if (timing.limits_anything()) {
      EXPECT_GT(units_iops, std::max(timing.read_iops_512, timing.read_iops_4k)) << name;
    }
  }
  EXPECT_FALSE(drive_preset("gen5").duplex);
  EXPECT_TRUE(drive_preset("gen5-duplex").duplex);
  EXPECT_EQ(drive_preset("gen5-duplex").write_iops_4k, drive_preset("gen5").write_iops_4k);
  EXPECT_EQ(drive_capacity("p5800x-duplex"), 1.6e12);
  EXPECT_THROW(drive_preset("none-duplex"), error) << "it has no rates";
  EXPECT_THROW(drive_preset("floppy"), error);
  EXPECT_NEAR(drive_preset("p5800x").write_iops_512, 1.0e6, 0.05e6) << "Table 5.3";
  EXPECT_NEAR(10 * drive_preset("p5800x").write_iops_512, 10.6e6, 0.05 * 10.6e6) << "Fig. 5.6";
  EXPECT_THROW(link_preset("gen9"), error);
}

TEST(model_server, a_link_carries_packets_as_it_was_measured) {
  EXPECT_EQ(link_bytes(0), 40u);
  EXPECT_EQ(link_bytes(256), 256u + 24 + 40);
  EXPECT_EQ(link_bytes(257), 257u + 48 + 40);
  EXPECT_EQ(link_bytes(4096), 4096u + 16 * 24 + 40);
  struct {
    char const* link;
    u64 bytes;
    double data_gb_per_s;
  } const figures[] = {{"gen4x16", 512, 45.8e6 * 512e-9}, {"gen4x16", 4096, 24}, {"gen5x16", 512, 51}, {"gen5x16", 4096, 51}};
  for (auto const& each : figures) {
    const double ticks_per_mib = 0x1p20 * 1e9 * controllers::ticks_per_ns / link_preset(each.link);
    const u64 ticks = controllers::link_cost(each.bytes, static_cast<u64>(ticks_per_mib));
    const double found = static_cast<double>(each.bytes * controllers::ticks_per_ns) / static_cast<double>(ticks);
    EXPECT_NEAR(found, each.data_gb_per_s, 0.04 * each.data_gb_per_s) << each.link << ", " << each.bytes;
  }
}

TEST(model_server, refuses_what_makes_no_sense) {
  const auto on = open_executor("cpu", 1);
  model_server server(*on, {});
  fault_plan plan;
  plan.drop = 2;
  EXPECT_THROW(server.add_drive(with_faults(plan)), error);
  model_drive_options small;
  small.transfer_bytes = 512;
  EXPECT_THROW(server.add_drive(small), error);
  model_drive& drive = server.add_drive({});
  alignas(16) std::byte odd[1000];
  EXPECT_THROW(drive.add_namespace(odd, sizeof odd), error);
}

}  // namespace
}  // namespace penstock::test_support
