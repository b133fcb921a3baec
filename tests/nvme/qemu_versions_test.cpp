// What only some versions of QEMU can do: rings as short as one likes and drives without doorbell buffers (newer ones),
// commands that are parked and let go again (7.x; the monitor of 10.0 waits for ever on `resume`).
#include "qemu_bed.hpp"

#include "penstock/host/error.hpp"

namespace penstock::test_support {
namespace {

class qemu_versions_test : public qemu_recovery_test {
 protected:
  static bool offers(std::string const& option) { return qemu_drive_options().contains(option); }
  static std::string without(std::string const& option) {
    return "the drives of this QEMU have no option " + option + ": scripts/newer_qemu gets one whose drives have";
  }
};

TEST_F(qemu_versions_test, rings_are_as_short_as_the_drive_asks) {
  if (!offers("mqes")) GTEST_SKIP() << without("mqes");
  constexpr u32 entries = 16;
  pcie_controller drive(start({{{{}}, ",mqes=" + std::to_string(entries - 1)}}));
  store(content_);
  EXPECT_EQ(drive.facts().capabilities.queue_entries(), entries);
  EXPECT_EQ(drive.limits().queue_entries, entries);
  const auto on = open_cpu_executor(machine_->memory(), 1);
  const auto open = [&](u32 depth) {
    return std::make_unique<block_device>(
        *on, drive, 1, block_device_options{.queues = std::min(2u, drive.limits().queues), .queue_depth = depth});
  };
  try {
    open(entries + 1);
    FAIL() << "a ring that the drive does not take was accepted";
  } catch (error const& e) {
    EXPECT_NE(std::string(e.what()).find("choose 2 to 16"), std::string::npos) << e.what();
  }
  EXPECT_THROW(host_queue(drive, 3, entries, entries + 1), error);
  // More than the ring holds, so that its end and its guard are met time and again.
  const auto device = open(entries);
  const buffer<block_request> wanted(on->memory(), memory_kind::local, requests);
  const buffer<u8> data(on->memory(), memory_kind::local, requests * 4096);
  for (u32 round = 0; round < 8; ++round) {
    std::memset(data.data(), 0, data.bytes());
    for (u32 k = 0; k < requests; ++k) {
      submit_blocks(lone_thread(), device->view(), nvme::opcode::read, true, wanted.data()[k], lba{8 * u64{k}}, 8,
                    reinterpret_cast<u64>(data.data()) + k * 4096);
    }
    for (u32 k = 0; k < requests; ++k) {
      ASSERT_EQ(status{}, wait_blocks(lone_thread(), device->view(), true, wanted.data()[k])) << k;
    }
    ASSERT_EQ(std::memcmp(data.data(), content_.data(), data.bytes()), 0) << round;
  }
}

// One command at a time: each one wraps the ring's tail, and every second one its phase.
TEST_F(qemu_versions_test, rings_of_two_entries_serve) {
  if (!offers("mqes")) GTEST_SKIP() << without("mqes");
  pcie_controller drive(start({{{{}}, ",mqes=1"}}));
  store(content_);
  EXPECT_EQ(drive.limits().queue_entries, 2u);
  EXPECT_THROW(host_queue(drive, 1, 3, 2), error);
  host_queue queue(drive, 1, 2, 2);
  data_buffer into(4096);
  for (u64 k = 0; k < 65; ++k) {
    ASSERT_EQ(queue.run(into.read(1, 8 * k)), nvme::code::success) << k;
    ASSERT_EQ(std::memcmp(into.data(), content_.data() + k * 512, into.bytes()), 0) << k;
  }
  EXPECT_EQ(queue.strays(), 0u);
}

TEST_F(qemu_versions_test, a_drive_without_doorbell_buffers_is_driven_through_its_registers) {
  if (!offers("dbcs")) GTEST_SKIP() << without("dbcs");
  pcie_controller drive(start({{{{}}, ",dbcs=off"}}), {.queues = 2, .shadow_doorbells = true});
  store(content_);
  EXPECT_FALSE(drive.facts().shadow_doorbells);
  host_queue queue(drive, 1, 8, 8);
  data_buffer into(4096);
  for (u64 k = 0; k < 20; ++k) {
    ASSERT_EQ(queue.run(into.read(1, 8 * k)), nvme::code::success) << k;
    ASSERT_EQ(std::memcmp(into.data(), content_.data() + k * 512, into.bytes()), 0) << k;
  }
  EXPECT_EQ(drive.counts().spared_doorbells, 0u);
}

// The drive has it and does nothing with it, while others overtake it; when it ends at last, the queue is whole again.
TEST_F(qemu_versions_test, a_parked_command_is_late_for_its_own_waiter_only) {
  if (qemu_version() >= 10) GTEST_SKIP() << "QEMU " << qemu_version() << " waits for ever where a command is let go again";
  constexpr u32 parked = 5;
  open({{{4 * mebibyte, 512, "", {8 * 1000}}}}, one_second_ns);
  const auto submit = [&](u32 k) {
    submit_blocks(lone_thread(), device_->view(), nvme::opcode::read, true, requests_.data()[k], lba{8 * u64{k}}, 8,
                  reinterpret_cast<u64>(data_.data()) + k * 4096);
  };
  const auto progress = [&] {
    for (u32 q = 0; q < device_->view().queues_count; ++q) device_->view().queues[q].progress(lone_thread());
  };
  machine_->monitor("qemu-io d0n1 \"break read_aio A\"");
  submit(parked);
  progress();  // its doorbell is rung
  machine_->monitor("qemu-io d0n1 \"wait_break A\"");
  for (u32 k = 0; k < requests; ++k) {
    if (k != parked) submit(k);
  }
  for (u32 k = 0; k < requests; ++k) {
    if (k == parked) continue;
    EXPECT_EQ(status{}, wait(k)) << k;
  }
  EXPECT_EQ(make_status(failure::deadline), wait(parked));
  const auto sum = [&](auto count) {
    u64 all = 0;
    for (queue_counts const& q : device_->queues()) all += q.*count;
    return all;
  };
  EXPECT_EQ(sum(&queue_counts::expired), 1u);
  EXPECT_EQ(sum(&queue_counts::strays), 0u) << "it is with the drive yet";
  machine_->monitor("qemu-io d0n1 \"resume A\"");
  backoff patience(20 * one_second_ns);
  while (sum(&queue_counts::strays) == 0 && patience.pause()) progress();
  EXPECT_EQ(sum(&queue_counts::strays), 1u);
  EXPECT_EQ(device_->recover().queues, 0u) << "nothing is left to be taken back";
  expect_all_good();
}

}  // namespace
}  // namespace penstock::test_support
