// Groups of lanes on QEMU's controller with nobody polling: doorbells are words of memory that one thread of the controller's
// forwards, as where a GPU's threads ring. (tests/gpu has the same with CUDA threads.)
#include "device/block_io_test_body.hpp"
#include "support/qemu_machine.hpp"
#include "support/run_everywhere.hpp"

#include "penstock/host/error.hpp"
#include "penstock/pcie/pcie_controller.hpp"
#include "penstock/runtime/block_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace penstock::test {
namespace {

using test_support::qemu_machine;
using test_support::qemu_memory;

constexpr u32 at_once = 2;
constexpr u64 most_piece_bytes = 16384;
constexpr u32 most_threads = 64;

/// Fresh queues, requests and buffers in the device's memory for each run.
template <class Body>
struct on_qemu : Body {
  qemu_machine* machine = nullptr;
  pcie_controller* drive = nullptr;
  u32 depth = 16;
  u64 piece_bytes = 0;
  std::shared_ptr<executor> on{};
  std::shared_ptr<block_device> device{};
  std::shared_ptr<buffer<block_request>> requests{};
  std::shared_ptr<buffer<u64>> data{};

  void prepare(run_shape run) {
    device.reset();
    on = open_executor_over(machine->memory(), "cpu", 1);
    piece_bytes = std::min(most_piece_bytes, drive->limits().transfer_bytes);
    device = std::make_shared<block_device>(*on, *drive, 1,
                                            block_device_options{.queues = std::min(2u, drive->limits().queues),
                                                                 .queue_depth = depth,
                                                                 .timeout_ns = 20 * one_second_ns,
                                                                 .transfer_bytes = piece_bytes});
    const u64 count = u64{run.threads} * at_once;
    requests = std::make_shared<buffer<block_request>>(on->memory(), memory_kind::local, count);
    data = std::make_shared<buffer<u64>>(on->memory(), memory_kind::local, count * piece_bytes / sizeof(u64));
    this->bed = {device->view(), requests->data(), data->data(), static_cast<u32>(piece_bytes), at_once};
  }

  void verify(check_report& report, run_shape) const {
    for (queue_counts const& counts : device->queues()) {
      PENSTOCK_CHECK_EQ(report, status{}, counts.failure);
      PENSTOCK_CHECK_EQ(report, counts.commands, counts.completions);
      PENSTOCK_CHECK_EQ(report, u64{0}, counts.strays);
    }
  }
};

class qemu_lanes_test : public testing::TestWithParam<qemu_memory> {
 protected:
  void SetUp() override {
    const std::string reason = test_support::reason_without_qemu();
    if (!reason.empty()) GTEST_SKIP() << reason;
#if defined(PENSTOCK_TSAN)
    GTEST_SKIP() << "lanes learn from the device what others have done, which ThreadSanitizer does not see";
#elif defined(__SANITIZE_ADDRESS__)
    if (GetParam() == qemu_memory::above_4gib) GTEST_SKIP() << "the sanitizer's own memory lies there";
#endif
    machine_ = std::make_unique<qemu_machine>(
        std::vector<test_support::qemu_drive>{{{{most_threads * at_once * most_piece_bytes, block_bytes, ""}}, ""}},
        GetParam());
    drive_ = std::make_unique<pcie_controller>(machine_->function(0), pcie_options{.queues = 4, .threads = 1});
  }

  void TearDown() override {
    if (machine_ == nullptr) return;
    EXPECT_EQ(drive_->counts().refused_doorbells, 0u);
    for (std::string const& complaint : machine_->complaints()) ADD_FAILURE() << "the controller notes: " << complaint;
  }

  on_qemu<copies_body> copies(u32 depth) {
    on_qemu<copies_body> body;
    static_cast<copies_body&>(body) = {{}, 1};
    body.machine = machine_.get();
    body.drive = drive_.get();
    body.depth = depth;
    return body;
  }

  std::unique_ptr<qemu_machine> machine_;
  std::unique_ptr<pcie_controller> drive_;
};

INSTANTIATE_TEST_SUITE_P(memory, qemu_lanes_test, testing::Values(qemu_memory::low, qemu_memory::above_4gib),
                         [](auto const& test) { return test.param == qemu_memory::low ? "low" : "above_4gib"; });

TEST_P(qemu_lanes_test, one_thread_forwards_what_lanes_ring) {
  auto body = copies(16);
  run_warps(body, "a whole warp", {{0xffffffffu}}, test_seed());
  run_warps(body, "two warps, split", {{0x0000ffffu, 0xffff0000u}, {0x1u, 0xfffffffeu}}, test_seed());
  run_lone(body, 3, test_seed());
}

TEST_P(qemu_lanes_test, a_ring_of_few_entries_goes_round_many_times) {
  auto body = copies(5);
  run_warps(body, "a whole warp", {{0xffffffffu}}, test_seed());
}

TEST_P(qemu_lanes_test, an_executor_over_a_device_s_memory_allocates_there) {
  const auto on = open_executor_over(machine_->memory(), "cpu", 1);
  const buffer<u64> words(on->memory(), memory_kind::shared, 512);
  EXPECT_TRUE(machine_->function(0).reaches(words.data(), words.bytes()));
  EXPECT_THROW(open_executor_over(machine_->memory(), "fpga"), error);
}

}  // namespace
}  // namespace penstock::test
