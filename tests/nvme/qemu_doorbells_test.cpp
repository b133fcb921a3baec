// Doorbells that QEMU's controller reads in memory: what it reads there, nobody stores in a register, and no command is
// forgotten.
#include "support/qemu_machine.hpp"

#include "penstock/group/lone_thread.hpp"
#include "penstock/host/error.hpp"
#include "penstock/pcie/pcie_controller.hpp"
#include "penstock/runtime/block_device.hpp"

#include "src/pcie/admin_queue.hpp"
#include "src/pcie/controller_memory.hpp"
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
    start("", {.queues = 4, .threads = GetParam() ? 1u : 0u, .shadow_doorbells = true});
  }

  void start(std::string const& drive, pcie_options const& options) {
    machine_ = std::make_unique<qemu_machine>(std::vector<qemu_drive>{{{{blocks * block_bytes, 4096, ""}}, drive}});
    drive_ = std::make_unique<pcie_controller>(machine_->function(0), options);
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
    queues_ = std::min(2u, drive_->limits().queues);
    device_ = std::make_unique<block_device>(
        *on_, *drive_, 1,
        block_device_options{
            .queues = queues_, .queue_depth = depth, .timeout_ns = 10 * one_second_ns, .transfer_bytes = block_bytes});
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
      if (HasFatalFailure()) return;
      if (block >= blocks) continue;
      submit_blocks(g, device_->view(), nvme::opcode::read, true, requests.data()[block % in_flight], lba{block}, 1,
                    reinterpret_cast<u64>(data.data() + block % in_flight * block_bytes));
    }
  }

  static constexpr u32 depth = 15;  // so that no count of blocks that is read ends where it began

  std::unique_ptr<qemu_machine> machine_;
  std::unique_ptr<pcie_controller> drive_;
  std::unique_ptr<executor> on_;
  std::unique_ptr<block_device> device_;
  u32 queues_ = 0;
};

INSTANTIATE_TEST_SUITE_P(served, qemu_doorbells_test, testing::Bool(),
                         [](auto const& test) { return test.param ? "by_a_thread" : "by_who_waits"; });

TEST_P(qemu_doorbells_test, registers_are_spared_and_every_command_is_fetched) {
  ASSERT_TRUE(drive_->facts().shadow_doorbells);
  for (const u64 in_flight : {1, 3, 24, 64}) read_all(in_flight);
  const pcie_counts counts = drive_->counts();
  // How often it is awake when it is told of something is its own affair; who polls tells of several things in a row.
  if (!GetParam()) {
    EXPECT_GT(counts.spared_doorbells, 0u);
  }
  EXPECT_GT(counts.doorbells, 0u);
  EXPECT_EQ(counts.refused_doorbells, 0u);
}

TEST_P(qemu_doorbells_test, a_reset_begins_anew_with_both_pages) {
  read_all(24);
  drive_->reset();
  EXPECT_EQ(device_->recover(recover_scope::all).queues, queues_);
  ASSERT_TRUE(drive_->facts().shadow_doorbells);
  read_all(24);
  device_.reset();  // a queue of the same number is made again, in the same place of the page
  open();
  read_all(3);
}

/// The same reads over submission rings in the controller's memory.
class qemu_controller_memory_test : public qemu_doorbells_test {
 protected:
  void SetUp() override {
    const std::string reason = reason_without_qemu();
    if (!reason.empty()) GTEST_SKIP() << reason;
    start(",cmb_size_mb=1", {.queues = 4, .threads = GetParam() ? 1u : 0u, .submission_in_controller = true});
  }
};

INSTANTIATE_TEST_SUITE_P(served, qemu_controller_memory_test, testing::Bool(),
                         [](auto const& test) { return test.param ? "by_a_thread" : "by_who_waits"; });

TEST_P(qemu_controller_memory_test, commands_are_fetched_from_it_round_the_ring_and_after_a_reset) {
  ASSERT_EQ(drive_->facts().controller_memory, u64{1} << 20);
  EXPECT_TRUE(drive_->limits().rings_in_controller);
  for (const u64 in_flight : {1, 24, 64}) read_all(in_flight);
  drive_->reset();
  EXPECT_EQ(device_->recover(recover_scope::all).queues, queues_);
  EXPECT_EQ(drive_->facts().controller_memory, u64{1} << 20);
  read_all(24);
  for (u32 k = 0; k < 140; ++k) {  // parts that are given back are there again: this many would not fit
    device_.reset();
    open();
  }
  read_all(3);
}

TEST(qemu_without_controller_memory, rings_lie_with_the_host) {
  if (const std::string reason = reason_without_qemu(); !reason.empty()) GTEST_SKIP() << reason;
  qemu_machine machine({{{{}}, ",cmb_size_mb=0"}});
  const pcie_controller drive(machine.function(0), {.submission_in_controller = true});
  EXPECT_EQ(drive.facts().controller_memory, 0u);
  EXPECT_FALSE(drive.limits().rings_in_controller);
}

TEST(qemu_told_by_kernels, neither_doorbells_in_memory_nor_copies_of_rings) {
  if (const std::string reason = reason_without_qemu(); !reason.empty()) GTEST_SKIP() << reason;
  qemu_machine machine({{{{}}, ",cmb_size_mb=1"}});
  pcie_options options{.submission_in_controller = true, .shadow_doorbells = true};
  {
    const pcie_controller drive(machine.function(0), options);
    EXPECT_TRUE(drive.facts().shadow_doorbells);
    EXPECT_NE(drive.facts().controller_memory, 0u);
  }
  std::byte registers[1];
  options.registers_for_kernels = registers;
  const pcie_controller drive(machine.function(0), options);
  EXPECT_FALSE(drive.facts().shadow_doorbells);
  EXPECT_EQ(drive.facts().controller_memory, 0u);
}

/// A controller that takes the tail of its admin queue from memory once it was told of doorbells there, as it may.
struct reads_admin_doorbells final : pci_function {
  std::string name() const override { return "one that reads them"; }
  u64 register_bytes() const override { return 0x2000; }
  u32 read(u64 offset) override {
    if (offset == nvme::at::capabilities) return 31;           // 32 entries
    if (offset == nvme::at::capabilities + 4) return 1u << 5;  // the NVM command set
    return 0;
  }
  void write(u64 offset, u32 value) override {
    if (offset == nvme::at::doorbells + 4) {
      EXPECT_EQ(told != nullptr ? told[1] : value, value) << "of the completion queue";
    }
    if (offset != nvme::at::doorbells) return;
    for (u32 tail = told != nullptr ? told[0] : value; head != tail; head = (head + 1) % pcie::admin_queue::entries) {
      nvme::submission_entry const& command = queue->submission()[head];
      if (command.opcode == static_cast<u8>(nvme::admin_opcode::doorbell_buffer_config))
        told = reinterpret_cast<u32 const*>(command.prp1);
      queue->complete(head, command.command_id);
      ++served;
    }
  }
  memory_resource& memory() override { return cpu_memory(); }
  bool reaches(void const*, u64) const override { return true; }
  void reset() override {}

  struct rings {
    pcie::admin_queue const* of;
    nvme::submission_entry const* submission() const {
      return reinterpret_cast<nvme::submission_entry const*>(of->submission_ring());
    }
    void complete(u32 at, u16 id) const {
      nvme::completion_entry entry;
      entry.outcome = nvme::make_outcome(id, 1, 0);
      entry.queue = 0;
      reinterpret_cast<nvme::completion_entry*>(of->completion_ring())[at] = entry;
    }
  };
  std::optional<rings> queue{};
  u32 const* told = nullptr;
  u32 head = 0, served = 0;
};

TEST(shadow_doorbells, hold_those_of_the_admin_queue_too) {
  reads_admin_doorbells function;
  pcie::controller_registers registers(function, one_second_ns);
  pcie::admin_queue admin(function, registers, one_second_ns);
  function.queue.emplace(reads_admin_doorbells::rings{&admin});
  const pcie::shadow_doorbells shadows(function, registers.capabilities().doorbell_stride());
  const auto command = nvme::admin_command(nvme::admin_opcode::identify);
  for (u32 k = 0; k < 3; ++k) ASSERT_EQ(admin.run(command).outcome, status{});
  admin.mirror_doorbells(shadows.of_admin(false), shadows.of_admin(true));
  ASSERT_EQ(admin.run(nvme::doorbell_buffer_config(shadows.values(), shadows.events())).outcome, status{});
  ASSERT_NE(function.told, nullptr);
  for (u32 k = 4; k < pcie::admin_queue::entries; ++k) ASSERT_EQ(admin.run(command).outcome, status{}) << k;
  EXPECT_EQ(function.served, pcie::admin_queue::entries);
}

TEST(controller_memory, is_given_out_in_pages) {
  struct with_memory final : pci_function {
    std::string name() const override { return "with memory"; }
    u64 register_bytes() const override { return 0x2000; }
    u32 read(u64 offset) override {
      if (offset == nvme::at::controller_memory_size) return told_ ? 3u << 12 | sqs : 0;  // three units of 4 KiB
      return offset == nvme::at::controller_memory_place    ? 1u << 12 | 4
             : offset == nvme::at::controller_memory_status ? bad
                                                            : 0;
    }
    void write(u64 offset, u32 value) override {
      EXPECT_FALSE(enabled_ && offset == nvme::at::controller_memory_control + 4) << "moved while it is on";
      if (offset != nvme::at::controller_memory_control) return;
      told_ = (value & nvme::controller_memory::capabilities) != 0;
      enabled_ = (value & nvme::controller_memory::enable) != 0;
    }
    bool write_memory(u32 bar, u64 offset, void const*, u64 bytes) override {
      at = {bar, offset};
      return offset + bytes <= window;
    }
    memory_resource& memory() override { return cpu_memory(); }
    bool reaches(void const*, u64) const override { return false; }
    void reset() override {}
    bool told_ = false, enabled_ = false;
    u64 window = 4 * 4096;  ///< of the BAR
    u32 sqs = 1, bad = 0;
    std::pair<u32, u64> at;
  } function;
  const nvme::capabilities yes{1ull << 57};
  pcie::controller_memory memory;
  EXPECT_FALSE(memory.turn_on(function, nvme::capabilities{})) << "a controller without the register";
  ASSERT_TRUE(memory.turn_on(function, yes));
  EXPECT_EQ(function.at, (std::pair<u32, u64>{4, 4 * 4096 - 8})) << "its BAR, and where it ends there";
  EXPECT_TRUE(function.enabled_);
  EXPECT_EQ(memory.bytes(), 3 * 4096u);
  EXPECT_EQ(memory.allocate(64), 0u);
  EXPECT_EQ(memory.allocate(4097), 4096u);
  EXPECT_FALSE(memory.allocate(1).has_value());
  memory.free(0);
  EXPECT_EQ(memory.allocate(4096), 0u);
  const nvme::submission_entry command;
  EXPECT_TRUE(memory.write(4096, &command, sizeof command));
  EXPECT_EQ(function.at, (std::pair<u32, u64>{4, 8192}));
  ASSERT_TRUE(memory.turn_on(function, yes)) << "the register is as it was, after a reset";
  EXPECT_EQ(memory.allocate(3 * 4096), 0u) << "all of it";
  memory.turn_off(function, yes);
  EXPECT_FALSE(function.told_ || function.enabled_);
  EXPECT_EQ(memory.bytes(), 0u);
  function.bad = nvme::controller_memory::bad_address;
  EXPECT_FALSE(memory.turn_on(function, yes));
  function.bad = 0;
  function.window = 0;
  EXPECT_FALSE(memory.turn_on(function, yes)) << "a BAR that is not mapped";
  function.window = 3 * 4096;
  EXPECT_FALSE(memory.turn_on(function, yes)) << "more than its BAR";
  EXPECT_EQ(memory.bytes(), 0u);
  function.window = 4 * 4096;
  function.sqs = 0;
  EXPECT_FALSE(memory.turn_on(function, yes)) << "memory for other things";
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
