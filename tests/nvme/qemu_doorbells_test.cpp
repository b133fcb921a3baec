// Doorbells that QEMU's controller reads in memory: what it reads there, nobody stores in a register, and no command is
// forgotten.
#include "support/qemu_machine.hpp"

#include "penstock/group/lone_thread.hpp"
#include "penstock/host/block_device.hpp"
#include "penstock/host/error.hpp"
#include "penstock/host/pcie_controller.hpp"

#include "src/pcie/shadow_doorbells.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace penstock::test_support {
namespace {

constexpr u64 block_bytes = 4096, blocks = 1024;

std::vector<u64> numbered() {
  std::vector<u64> words(blocks * block_bytes / sizeof(u64));
  for (u64 k = 0; k < words.size(); ++k) words[k] = k * 0x9e3779b97f4a7c15ull;
  return words;
}

class qemu_doorbells_test : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const std::string reason = reason_without_qemu();
    if (!reason.empty()) GTEST_SKIP() << reason;
    machine_ = std::make_unique<qemu_machine>(std::vector<qemu_drive>{{{{blocks * block_bytes, 4096, ""}}, ""}});
    drive_ = std::make_unique<pcie_controller>(
        machine_->function(0), pcie_options{.queues = 4, .threads = GetParam() ? 1u : 0u, .shadow_doorbells = true});
    const std::vector<u64> words = numbered();
    std::ofstream(machine_->file(0, 1), std::ios::binary)
        .write(reinterpret_cast<char const*>(words.data()), static_cast<std::streamsize>(blocks * block_bytes));
    on_ = open_executor_over(machine_->memory(), "cpu", 1);
    open();
  }

  void TearDown() override {
    if (machine_ == nullptr) return;
    for (std::string const& complaint : machine_->complaints()) ADD_FAILURE() << "the controller notes: " << complaint;
  }

  void open() {
    device_ = std::make_unique<block_device>(
        *on_, *drive_, 1,
        block_device_options{
            .queues = 2, .queue_depth = depth, .timeout_ns = 10 * one_second_ns, .transfer_bytes = block_bytes});
  }

  /// Each block, with up to `in_flight` commands at once, and compares them.
  void read_all(u64 in_flight) {
    const buffer<block_request> requests(on_->memory(), memory_kind::local, in_flight);
    const buffer<u8> data(on_->memory(), memory_kind::local, in_flight * block_bytes);
    const std::vector<u64> expected = numbered();
    const lone_thread g;
    const auto end = [&](u64 block) {
      const u64 at = block % in_flight;
      ASSERT_EQ(status{}, wait_blocks(g, device_->view(), true, requests.data()[at])) << block;
      ASSERT_EQ(std::memcmp(data.data() + at * block_bytes, expected.data() + block * (block_bytes / 8), block_bytes), 0);
    };
    for (u64 block = 0; block < blocks + in_flight; ++block) {
      if (block >= in_flight) end(block - in_flight);
      if (HasFatalFailure() || block >= blocks) continue;
      submit_blocks(g, device_->view(), nvme::opcode::read, true, requests.data()[block % in_flight], lba{block}, 1,
                    reinterpret_cast<u64>(data.data() + block % in_flight * block_bytes));
    }
  }

  static constexpr u32 depth = 16;

  std::unique_ptr<qemu_machine> machine_;
  std::unique_ptr<pcie_controller> drive_;
  std::unique_ptr<executor> on_;
  std::unique_ptr<block_device> device_;
};

INSTANTIATE_TEST_SUITE_P(served, qemu_doorbells_test, testing::Bool(),
                         [](auto const& test) { return test.param ? "by_a_thread" : "by_who_waits"; });

TEST_P(qemu_doorbells_test, registers_are_spared_and_every_command_is_fetched) {
  ASSERT_TRUE(drive_->facts().shadow_doorbells);
  for (const u64 in_flight : {1, 3, 24, 64}) read_all(in_flight);
  const pcie_counts counts = drive_->counts();
  // How often it is awake when it is told of something is its own affair; who polls tells of several things in a row.
  if (!GetParam()) EXPECT_GT(counts.spared_doorbells, 0u);
  EXPECT_GT(counts.doorbells, 0u);
  EXPECT_EQ(counts.refused_doorbells, 0u);
}

TEST_P(qemu_doorbells_test, a_reset_begins_anew_with_both_pages) {
  read_all(24);
  drive_->reset();
  EXPECT_EQ(device_->recover(recover_scope::all).queues, 2u);
  ASSERT_TRUE(drive_->facts().shadow_doorbells);
  read_all(24);
  device_.reset();  // a queue of the same number is made again, in the same place of the page
  open();
  read_all(3);
}

TEST(shadow_doorbell, a_register_is_rung_where_the_event_index_is_passed) {
  using pcie::shadow_doorbell;
  EXPECT_TRUE(shadow_doorbell::passes(0, 1, 0)) << "the first";
  EXPECT_TRUE(shadow_doorbell::passes(3, 4, 3));
  EXPECT_TRUE(shadow_doorbell::passes(3, 9, 2));
  EXPECT_FALSE(shadow_doorbell::passes(3, 5, 4)) << "it is behind";
  EXPECT_FALSE(shadow_doorbell::passes(9, 5, 4)) << "it is ahead";
  EXPECT_TRUE(shadow_doorbell::passes(15, 2, 15)) << "round the ring";
  EXPECT_FALSE(shadow_doorbell::passes(4, 2, 15));
}

}  // namespace
}  // namespace penstock::test_support
