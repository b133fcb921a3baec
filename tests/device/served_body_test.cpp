// The serving body of the modelled drives under emulated warps: what a resident kernel runs, with nothing of CUDA.
#include "src/controller/served_queue_body.hpp"
#include "support/emulated_warp.hpp"
#include "support/host_driver.hpp"
#include "support/stamped_media.hpp"

#include <gtest/gtest.h>

#include <random>

namespace penstock::test {
namespace {

using namespace far_side;
using test_support::data_buffer;
using test_support::host_queue;

constexpr u64 media_bytes = 1 << 20;

/// Records that no server owns, and a controller that hands its rings to them: the test says when who serves.
class body_bed final : public controller {
 public:
  explicit body_bed(drive_record const& options) : media_(media_bytes), drive_(options) {
    drive_.spaces[0] = {reinterpret_cast<u64>(media_.bytes().data()), media_bytes, 9, 0};
    drive_.space_count = 1;
    drive_.transfer_bytes = 1u << 20;
    view_.queues = queues_;
    view_.shared = &shared_;
    view_.control = &control_;
  }

  void attach(queue_rings const& rings) override {
    queue_record& q = queues_[rings.id - 1];
    q.facts.rings = rings;
    q.facts.drive = &drive_;
    q.facts.completions_per_command = drive_.completions_per_command;
    q.facts.plain = drive_.plain;
    q.facts.poison_fetched = drive_.poison_fetched;
    q.facts.torn_completion = drive_.torn_completion;
    q.facts.waiting = waiting_[rings.id - 1];
    q.facts.waiting_capacity = 160;
    q.active = 1;
    slots_ = std::max<u32>(slots_, rings.id);
  }
  void detach(u16) override {}
  void poll(u16) override {}
  void add_buffer(void*, u64) override {}
  controller_limits limits() const override { return {2, 4096, 1u << 20}; }
  std::string engine() const override { return "body"; }

  /// `warps` whole warps visit all queues `turns` times.
  void serve(u32 warps, u32 turns) {
    std::vector<lane_assignment> lanes;
    for (u32 w = 0; w < warps; ++w) assign_group(lanes, w, 0xffffffffu);
    run_lanes(lanes, [&](emulated_warp const& g, lane_assignment const& a) {
      fine_clock clock(1, 0);
      for (u32 k = 0; k < turns; ++k) serve_once(g, view_, slots_, a.warp, warps, clock);
    });
  }

  drive_record& drive() { return drive_; }
  queue_record& queue(u16 id) { return queues_[id - 1]; }
  unsigned char const* media() { return reinterpret_cast<unsigned char const*>(media_.bytes().data()); }

 private:
  stamped_media media_;
  drive_record drive_;
  queue_record queues_[2];
  waiting_command waiting_[2][160];
  server_shared shared_;
  server_control control_;
  server_view view_;
  u32 slots_ = 0;
};

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
  options.service = 2 * one_millisecond_ns * ticks_per_ns;
  options.units = 3;
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
  for (u32 k = 3; k < 12; ++k) EXPECT_EQ(dues[k], dues[k - 3] + options.service) << k;
  while (came.size() < sent.size() && now_ns() - begin < 20 * one_second_ns) {
    bed.serve(1, 1);
    while (auto done = queue.harvest()) came.push_back(done->command_id);
  }
  EXPECT_EQ(came, sent);
  EXPECT_GE(now_ns() - begin, 8 * one_millisecond_ns);
  EXPECT_EQ(bed.drive().most_in_flight, 12u);
}

TEST(served_body, a_warp_makes_every_fault_of_the_plan_and_counts_it) {
  drive_record options;
  options.plain = false;
  options.completions_per_command = 3;
  options.reorder = options.poison_fetched = options.torn_completion = true;
  options.due_in_order = false;
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

}  // namespace
}  // namespace penstock::test
