// The serving body of the modelled drives under emulated warps: what a resident kernel runs, with nothing of CUDA.
#include "device/served_body_fixture.hpp"
#include "support/host_driver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace penstock::test {
namespace {

using namespace controllers;
using test_support::data_buffer;
using test_support::host_queue;

bool right(body_bed& bed, data_buffer const& buffer, u64 start) {
  return std::memcmp(buffer.data(), bed.media() + start * 512, buffer.bytes()) == 0;
}

/// Reads of one size, in batches as large as the ring, for three laps and more.
void read_in_batches(u64 bytes, u64 offset_in_page, u32 sq_entries, u32 cq_entries, u32 batches) {
  SCOPED_TRACE(testing::Message() << bytes << " bytes at " << offset_in_page << ", rings of " << sq_entries << " and "
                                  << cq_entries);
  body_bed bed({});
  host_queue queue(bed, 1, sq_entries, cq_entries);
  const u32 batch = std::min(sq_entries, cq_entries) - 1;
  std::vector<std::unique_ptr<data_buffer>> buffers;
  for (u32 k = 0; k < batch; ++k) buffers.push_back(std::make_unique<data_buffer>(bytes, offset_in_page));
  for (u32 round = 0; round < batches; ++round) {
    std::vector<u16> sent, came;
    for (u32 k = 0; k < batch; ++k) {
      std::memset(buffers[k]->data(), 0, bytes);
      sent.push_back(queue.write_command(buffers[k]->read(1, (round * batch + k) * 3 % 1000)));
    }
    queue.ring();
    bed.serve(1, 2);
    while (auto done = queue.harvest()) {
      EXPECT_EQ(done->status, nvme::code::success);
      came.push_back(done->command_id);
    }
    ASSERT_EQ(came, sent);
    for (u32 k = 0; k < batch; ++k) ASSERT_TRUE(right(bed, *buffers[k], (round * batch + k) * 3 % 1000)) << k;
  }
  EXPECT_EQ(bed.queue(1).counts.completed, u64{batch} * batches);
  EXPECT_EQ(bed.queue(1).counts.bytes_read, batch * batches * bytes);
}

TEST(served_body, a_warp_moves_every_size_into_every_kind_of_buffer) {
  read_in_batches(512, 0, 40, 37, 4);
  read_in_batches(512, 8, 9, 9, 2);  // aligned to 8 only: piece by piece
  read_in_batches(1536, 0, 9, 9, 2);
  read_in_batches(4096, 0, 33, 33, 4);
  read_in_batches(4096, 512, 5, 5, 2);
  read_in_batches(16384, 0, 5, 5, 2);
}

TEST(served_body, a_warp_goes_round_rings_of_two) { read_in_batches(512, 0, 2, 2, 5); }

TEST(served_body, a_warp_serves_a_mixed_batch) {
  body_bed bed({});
  host_queue queue(bed, 1, 33, 33);
  data_buffer small(512), page(4096), large(65536), written(1024);
  std::memset(written.data(), 0x77, written.bytes());
  auto outside = small.read(1, media_bytes / 512), unknown = small.read(1, 0), fused = small.read(1, 0);
  unknown.opcode = 0x55;
  fused.flags = 1;
  auto odd = small.read(1, 0), nothing = small.read(1, 0);
  odd.prp1 += 4;
  nothing.prp1 = 0;
  const std::vector<std::pair<nvme::submission_entry, u16>> commands = {
      {small.read(1, 5), nvme::code::success},       {written.write(1, 100), nvme::code::success},
      {outside, nvme::code::lba_out_of_range},       {large.read(1, 8), nvme::code::success},
      {unknown, nvme::code::invalid_opcode},         {small.read(2, 0), nvme::code::invalid_namespace},
      {odd, nvme::code::invalid_prp_offset},         {nothing, nvme::code::data_transfer_error},
      {nvme::flush_command(1), nvme::code::success}, {fused, nvme::code::invalid_field},
      {page.read(1, 16), nvme::code::success},
  };
  std::map<u16, u16> expected;
  for (auto const& [command, status] : commands) expected[queue.write_command(command)] = status;
  queue.ring();
  bed.serve(1, 1);
  while (queue.harvest()) {}
  EXPECT_EQ(queue.take_done(), expected);
  EXPECT_TRUE(right(bed, small, 5));
  EXPECT_TRUE(right(bed, page, 16));
  EXPECT_TRUE(right(bed, large, 8));
  EXPECT_TRUE(right(bed, written, 100));
  EXPECT_NE(bed.media()[102 * 512], 0x77);
}

TEST(served_body, a_warp_tells_commands_of_two_sizes_apart) {
  body_bed bed({});
  host_queue queue(bed, 1, 9, 9);
  data_buffer small(512), page(4096), other(512);
  queue.write_command(small.read(1, 5));
  queue.write_command(page.read(1, 16));
  queue.write_command(other.read(1, 7));
  queue.ring();
  bed.serve(1, 1);
  EXPECT_TRUE(right(bed, small, 5));
  EXPECT_TRUE(right(bed, page, 16));
  EXPECT_TRUE(right(bed, other, 7));
}

TEST(served_body, a_warp_never_overruns_a_completion_ring) {
  body_bed bed({});
  host_queue queue(bed, 1, 64, 5);
  data_buffer buffer(512);
  for (u64 k = 0; k < 63; ++k) queue.write_command(buffer.read(1, k));
  queue.ring();
  u32 seen = 0;
  while (seen < 63) {
    bed.serve(1, 3);
    const u32 before = seen;
    while (queue.harvest(false)) ++seen;
    ASSERT_EQ(seen - before, std::min(4u, 63 - before));
    queue.tell_head();
  }
  EXPECT_EQ(queue.in_flight(), 0u);
}

TEST(served_body, warps_that_share_queues_serve_each_command_once) {
  body_bed bed({});
  host_queue first(bed, 1, 48, 50), second(bed, 2, 40, 41);
  std::vector<std::unique_ptr<data_buffer>> buffers;
  for (u32 k = 0; k < 40; ++k) buffers.push_back(std::make_unique<data_buffer>(512));
  for (u32 round = 0; round < 3; ++round) {
    for (u32 k = 0; k < 40; ++k) {
      host_queue& queue = k % 2 == 0 ? first : second;
      queue.write_command(buffers[k]->read(1, round * 40 + k));
    }
    first.ring();
    second.ring();
    bed.serve(3, 4);
    while (first.harvest()) {}
    while (second.harvest()) {}
    ASSERT_EQ(first.in_flight() + second.in_flight(), 0u);
    for (u32 k = 0; k < 40; ++k) ASSERT_TRUE(right(bed, *buffers[k], round * 40 + k)) << k;
  }
  EXPECT_EQ(first.strays() + second.strays(), 0u);
}

TEST(served_body, a_warp_keeps_commands_until_they_are_due_in_the_order_of_the_units) {
  unit_slot units[3];
  drive_record options;
  options.plain = false;
  options.pace.service = 2 * one_millisecond_ns * ticks_per_ns;
  options.pace.units = 3;
  options.unit_slots = units;
  body_bed bed(options);
  host_queue queue(bed, 1, 33, 33);
  data_buffer buffer(512);
  std::vector<u16> sent, came;
  const u64 begin = now_ns();
  for (u64 k = 0; k < 12; ++k) sent.push_back(queue.write_command(buffer.read(1, k)));
  queue.ring();
  bed.serve(1, 1);
  if (now_ns() - begin < 2 * one_millisecond_ns) {
    EXPECT_FALSE(queue.harvest());
  }
  u64 dues[12];
  for (u32 k = 0; k < 12; ++k) dues[k] = bed.queue(1).facts.waiting[k].due;
  for (u32 k = 3; k < 12; ++k) EXPECT_EQ(dues[k], dues[k - 3] + options.pace.service) << k;
  while (came.size() < sent.size() && now_ns() - begin < 20 * one_second_ns) {
    bed.serve(1, 1);
    while (auto done = queue.harvest()) came.push_back(done->command_id);
  }
  EXPECT_EQ(came, sent);
  EXPECT_GE(now_ns() - begin, 6 * one_millisecond_ns);  // each may be early by a lead, the last one, too
  EXPECT_EQ(bed.drive().most_in_flight, 12u);
}

/// 16 reads and 16 writes of 4 KiB, one after the other, on a drive that takes a microsecond for each and a link that takes
/// two: ticks until the last is done.
u64 time_of_reads_and_writes(bool duplex, bool warp, bool link) {
  const u64 page = 1000 * ticks_per_ns, begin = 5 * one_second_ns;
  drive_record drive;
  drive.pace.read_cost = drive.pace.write_cost = {page, page};
  drive.pace.duplex = duplex;
  server_shared shared;
  server_view view;
  view.shared = &shared;
  if (link) view.link_ticks_per_mib = 2 * page * (1u << 20) / link_bytes(4096);
  u64 last = 0;
  if (!warp) {
    for (u32 k = 0; k < 32; ++k) {
      last = std::max(last, admit(lone_thread{}, view, drive, drive.pace, true, k % 2 == 1, 4096, begin));
    }
    return last - begin;
  }
  u64 done[32];
  run_emulated_warp(0xffffffffu, [&](emulated_warp const& g) {
    done[g.rank()] = admit(g, view, drive, drive.pace, true, g.rank() % 2 == 1, 4096, begin);
  });
  return *std::max_element(done, done + 32) - begin;
}

TEST(served_body, reads_and_writes_share_a_drive_that_is_not_duplex_and_no_link) {
  const u64 page = 1000 * ticks_per_ns;
  for (const bool warp : {false, true}) {
    EXPECT_EQ(time_of_reads_and_writes(false, warp, false), 31 * page) << "when the last begins";
    EXPECT_EQ(time_of_reads_and_writes(true, warp, false), 15 * page);
    EXPECT_NEAR(static_cast<double>(time_of_reads_and_writes(true, warp, true)), 32.0 * page, 0.01 * page);
    EXPECT_NEAR(static_cast<double>(time_of_reads_and_writes(false, warp, true)), 32.0 * page, 0.01 * page);
  }
}

TEST(served_body, a_write_of_a_duplex_drive_waits_for_no_unit_that_reads_have) {
  const u64 service = 10'000 * ticks_per_ns, begin = 5 * one_second_ns;
  for (const bool duplex : {false, true}) {
    std::vector<unit_slot> slots(4);
    drive_record drive;
    drive.unit_slots = slots.data();
    drive.pace.units = 2;
    drive.pace.service = service;
    drive.pace.duplex = duplex;
    server_shared shared;
    server_view view;
    view.shared = &shared;
    const auto done = [&](bool write) {
      return admit(lone_thread{}, view, drive, drive.pace, true, write, 512, begin) - begin;
    };
    for (u64 k = 0; k < 8; ++k) EXPECT_EQ(done(false), (1 + k / 2) * service);
    EXPECT_EQ(done(true), duplex ? service : 5 * service);
  }
}

TEST(served_body, a_warp_makes_every_fault_of_the_plan_and_counts_it) {
  drive_record options;
  options.plain = false;
  options.faulty = true;
  options.completions_per_command = 3;
  options.reorder = options.poison_fetched = options.torn_completion = true;
  static u16 codes[] = {nvme::code::unrecovered_read_error};
  options.faults = {17, 0.2, 0.1, 0.1, 0.2, 0.1, 0.2, codes, 1};
  options.delay = options.late = 100'000 * ticks_per_ns;
  body_bed bed(options);
  host_queue queue(bed, 1, 40, 120);
  data_buffer buffer(512);
  served_counts const& counts = bed.drive().counts;
  bool shuffled = false;
  for (u32 round = 1; round <= 6; ++round) {
    std::vector<u16> came;
    for (u64 k = 0; k < 30; ++k) queue.write_command(buffer.read(1, k));
    queue.ring();
    const u64 begin = now_ns();
    while (counts.completed + counts.drops < 30 * round && now_ns() - begin < 20 * one_second_ns) {
      bed.serve(1, 3);
      while (auto done = queue.harvest()) came.push_back(done->command_id);
    }
    shuffled = shuffled || !std::is_sorted(came.begin(), came.end());
  }
  EXPECT_TRUE(shuffled);
  EXPECT_EQ(counts.fetched, 180u);
  EXPECT_EQ(counts.completed + counts.drops, 180u);
  EXPECT_EQ(queue.harvested(), counts.completed + counts.duplicates + counts.unknown_identifiers);
  EXPECT_EQ(queue.strays(), counts.duplicates + counts.unknown_identifiers);
  EXPECT_EQ(queue.in_flight(), counts.drops);
  for (const u64 each : {counts.errors, counts.delays, counts.drops, counts.duplicates, counts.lates}) EXPECT_GT(each, 0u);
  EXPECT_EQ(bed.drive().in_flight, 0u);
  EXPECT_EQ(bed.queue(1).reserved, queue.harvested()) << "room of completions that never came is given back";
}

constexpr u64 service_ns = 300 * one_microsecond_ns;

drive_record timed_drive() {
  drive_record options;
  options.plain = false;
  options.pace.service = service_ns * ticks_per_ns;
  return options;
}

struct kept_time {
  double residence_ns, rate, in_flight;  ///< means, as the drive counts
};

/// `commands` more at a depth, each look at the clock 10 us.
kept_time keep_busy(body_bed& bed, host_queue& queue, model_time& time, u64 commands, u64 depth, bool warp = false) {
  data_buffer buffer(512);
  const served_counts before = bed.drive().counts;
  served_counts const& counts = bed.drive().counts;
  const auto finished = [&] { return counts.completed + counts.drops - before.completed - before.drops; };
  for (u64 sent = 0; finished() < commands;) {
    for (; sent < commands && sent - finished() < depth; ++sent) queue.submit(buffer.read(1, sent % 512));
    bed.serve_in(time, warp, warp ? 4 : 1);
    while (queue.harvest()) {}
  }
  const auto all = static_cast<double>(commands), busy = static_cast<double>(counts.busy - before.busy);
  const auto residence = static_cast<double>(counts.residence - before.residence);
  return {residence / all, all / busy * 1e9, residence / busy};
}

TEST(served_body, commands_take_their_service_time_on_the_average_whatever_serving_takes) {
  for (const u64 depth : {1, 4, 12}) {
    SCOPED_TRACE(testing::Message() << "depth " << depth);
    body_bed bed(timed_drive());
    host_queue queue(bed, 1, 64, 64);
    model_time time{.look_ns = 10'000};
    keep_busy(bed, queue, time, 1000, depth);
    const kept_time kept = keep_busy(bed, queue, time, 1000, depth);
    EXPECT_NEAR(kept.residence_ns, service_ns, 0.02 * service_ns);
    EXPECT_NEAR(kept.in_flight, kept.rate * kept.residence_ns * 1e-9, 0.01 * kept.in_flight) << "Little's law";
    EXPECT_GT(bed.drive().lead, 10'000 * ticks_per_ns);
  }
}

TEST(served_body, a_warp_learns_its_lead_from_whole_batches) {
  body_bed bed(timed_drive());
  host_queue queue(bed, 1, 64, 64);
  model_time time{.look_ns = 10'000};
  keep_busy(bed, queue, time, 300, 32, true);
  EXPECT_NEAR(keep_busy(bed, queue, time, 600, 32, true).residence_ns, service_ns, 0.03 * service_ns);
}

TEST(served_body, a_server_that_was_too_slow_for_its_drive_keeps_time_again) {
  body_bed bed(timed_drive());
  host_queue queue(bed, 1, 64, 64);
  model_time time{.look_ns = 400'000};
  EXPECT_GT(keep_busy(bed, queue, time, 200, 8).residence_ns, 2 * service_ns);
  EXPECT_LE(bed.drive().lead, service_ns * ticks_per_ns) << "no lead is longer than the service time";
  time.look_ns = 10'000;
  keep_busy(bed, queue, time, 1000, 8);
  EXPECT_NEAR(keep_busy(bed, queue, time, 1000, 8).residence_ns, service_ns, 0.02 * service_ns);
}

TEST(served_body, a_lead_changes_no_limit) {
  drive_record options = timed_drive();
  options.pace.read_cost = {50'000 * ticks_per_ns, 50'000 * ticks_per_ns};
  body_bed bed(options);
  host_queue queue(bed, 1, 64, 64);
  model_time time{.look_ns = 10'000};
  keep_busy(bed, queue, time, 1000, 32);
  const kept_time kept = keep_busy(bed, queue, time, 1000, 32);
  EXPECT_NEAR(kept.rate, 20'000, 200);
  // The last ones of a run wait less; but for them, Little's law of what the limit lets through.
  EXPECT_NEAR(kept.residence_ns, 32 * 50'000.0, 0.04 * 32 * 50'000);
}

TEST(served_body, what_a_plan_adds_to_a_command_is_kept_too) {
  drive_record options = timed_drive();
  options.faulty = true;
  options.completions_per_command = 3;
  options.faults = {17, 0, 0.2, 0.1, 0.2, 0.1, 0.2, nullptr, 0};
  options.delay = 200'000 * ticks_per_ns;
  options.late = 900'000 * ticks_per_ns;
  body_bed bed(options);
  host_queue queue(bed, 1, 1024, 1024);
  model_time time{.look_ns = 5'000};
  for (u32 run = 0; run < 2; ++run) {
    const served_counts before = bed.drive().counts;
    const kept_time kept = keep_busy(bed, queue, time, 500, 8);
    served_counts const& counts = bed.drive().counts;
    const double added = static_cast<double>(counts.delays - before.delays) * 200'000 +
                         static_cast<double>(counts.lates - before.lates) * 900'000;
    EXPECT_GT(counts.drops, before.drops);
    EXPECT_NEAR(kept.residence_ns, service_ns + added / 500, 0.03 * service_ns);
  }
}

}  // namespace
}  // namespace penstock::test
