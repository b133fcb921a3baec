// QEMU's drives, and blocks read through the library's queue pairs on one of them.
#pragma once

#include "support/host_driver.hpp"
#include "support/qemu_machine.hpp"

#include "penstock/group/lone_thread.hpp"
#include "penstock/pcie/pcie_controller.hpp"
#include "penstock/runtime/block_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

namespace penstock::test_support {

inline constexpr u64 mebibyte = u64{1} << 20;

class qemu_drive_test : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = reason_without_qemu();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  void TearDown() override {
    if (machine_ == nullptr) return;
    for (std::string const& complaint : machine_->complaints()) ADD_FAILURE() << "the controller notes: " << complaint;
    memory_under_test() = nullptr;
  }

  qemu_function& start(std::vector<qemu_drive> const& drives = {{}}) {
    machine_ = std::make_unique<qemu_machine>(drives);
    memory_under_test() = &machine_->memory();
    return machine_->function(0);
  }

  /// Words of a namespace, as its file has them.
  std::vector<u64> stored(u64 name_space = 1) const {
    std::ifstream in(machine_->file(0, name_space), std::ios::binary | std::ios::ate);
    std::vector<u64> words(static_cast<u64>(in.tellg()) / sizeof(u64));
    in.seekg(0);
    in.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(words.size() * sizeof(u64)));
    return words;
  }

  void store(std::vector<u64> const& words, u64 name_space = 1) {
    std::fstream out(machine_->file(0, name_space), std::ios::binary | std::ios::in | std::ios::out);
    out.write(reinterpret_cast<char const*>(words.data()), static_cast<std::streamsize>(words.size() * sizeof(u64)));
  }

  /// Waits for it.
  static nvme::asynchronous_event next_event(pcie_controller& drive) {
    backoff wait(10 * one_second_ns);
    for (;;) {
      if (const auto event = drive.take_event()) return *event;
      if (wait.pause()) continue;
      ADD_FAILURE() << "no event";
      return {};
    }
  }

  std::unique_ptr<qemu_machine> machine_;
};

inline std::vector<u64> numbered(u64 bytes, u64 seed) {
  std::vector<u64> words(bytes / sizeof(u64));
  for (u64 k = 0; k < words.size(); ++k) words[k] = seed * 1'000'003 + k * 7;
  return words;
}

/// Sixty-four reads of one block each, through the library's queue pairs.
class qemu_recovery_test : public qemu_drive_test {
 protected:
  static constexpr u32 requests = 64;

  void open(qemu_drive const& of, u64 timeout_ns) {
    drive_ = std::make_unique<pcie_controller>(start({of}), pcie_options{.queues = 4, .admin_timeout_ns = 2 * one_second_ns});
    store(content_);
    on_ = open_cpu_executor(machine_->memory(), 1);
    queues_ = std::min(2u, drive_->limits().queues);
    device_ = std::make_unique<block_device>(
        *on_, *drive_, 1,
        block_device_options{.queues = queues_, .queue_depth = 128, .timeout_ns = timeout_ns, .transfer_bytes = 4096});
    requests_ = {on_->memory(), memory_kind::local, requests};
    data_ = {on_->memory(), memory_kind::local, requests * 4096};
  }

  void submit_all() {
    for (u32 k = 0; k < requests; ++k) {
      submit_blocks(lone_thread(), device_->view(), nvme::opcode::read, true, requests_.data()[k], lba{8 * u64{k}}, 8,
                    reinterpret_cast<u64>(data_.data()) + k * 4096);
    }
  }
  status wait(u32 k) { return wait_blocks(lone_thread(), device_->view(), true, requests_.data()[k]); }

  void expect_all_good() {
    submit_all();
    for (u32 k = 0; k < requests; ++k) ASSERT_EQ(status{}, wait(k)) << k;
    EXPECT_EQ(std::memcmp(data_.data(), content_.data(), data_.bytes()), 0);
    for (queue_counts const& q : device_->queues()) {
      EXPECT_EQ(q.commands, q.completions - q.strays + q.expired + q.failed + q.reset);
    }
  }

  std::vector<u64> content_ = numbered(4 * mebibyte, 9);
  std::unique_ptr<pcie_controller> drive_;
  std::unique_ptr<executor> on_;
  std::unique_ptr<block_device> device_;
  u32 queues_ = 0;  ///< two, where the drive has them
  buffer<block_request> requests_;
  buffer<u8> data_;
};

}  // namespace penstock::test_support
