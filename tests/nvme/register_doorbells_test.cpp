// Doorbells that kernels store to by themselves: registers of a device that are memory to them.
#include "support/modelled_function.hpp"
#include "support/qemu_machine.hpp"
#include "support/stamped_media.hpp"

#include "penstock/group/lone_thread.hpp"
#include "penstock/host/error.hpp"
#include "penstock/pcie/drive_path.hpp"
#include "penstock/pcie/pcie_controller.hpp"
#include "penstock/runtime/block_device.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <set>
#include <thread>

#include <sys/mman.h>

namespace penstock::test_support {
namespace {

using test::stamp;

constexpr u64 block_bytes = 512, blocks = 2048;

/// Memory of another resource, whose kernels reach registers at the address that this process has.
class memory_with_registers final : public memory_resource {
 public:
  explicit memory_with_registers(memory_resource& inner) : inner_(inner) {}
  void* allocate(memory_kind kind, u64 bytes) override {
    if (!hides_doorbell_words || bytes != doorbell_words) return inner_.allocate(kind, bytes);
    return *hidden.insert(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)).first;
  }
  void deallocate(memory_kind kind, void* address, u64 bytes) noexcept override {
    if (hidden.erase(address) == 0) return inner_.deallocate(kind, address, bytes);
    munmap(address, bytes);
  }
  void write(void* to, void const* from, u64 bytes) override { inner_.write(to, from, bytes); }
  void read(void* to, void const* from, u64 bytes) override { inner_.read(to, from, bytes); }
  registers_for_kernels map_registers(void* address, u64) override {
    if (!willing) return {nullptr, "it is not willing"};
    mapped = address;
    return {static_cast<std::byte*>(address), ""};
  }
  void unmap_registers(void* address) noexcept override {
    EXPECT_EQ(address, mapped);
    mapped = nullptr;
  }
  /// As a GPU's does it: what the device must reach is told of piece by piece.
  std::string open_to(peer_mapper& device) override {
    if (!opens) return memory_resource::open_to(device);
    try {
      device.map_peer(this, 4096, -1);
    } catch (error const& problem) {
      return problem.what();
    }
    return "";
  }

  static constexpr u64 doorbell_words = 256;  ///< bytes, of a queue
  bool willing = true, opens = false;
  bool hides_doorbell_words = false;  ///< of new queues, from this process, as a GPU's memory is
  std::set<void*> hidden;
  void* mapped = nullptr;

 private:
  memory_resource& inner_;
};

/// A modelled function whose BAR 0 is also memory: what is stored to its doorbells there, a thread hands to the function, as a
/// bus does. A value stays until it is handed over.
class function_in_memory final : public pci_function {
 public:
  function_in_memory(std::span<std::byte> media, modelled_function_options const& options)
      : inner_(media, options), memory_(inner_.memory()) {
    bar_.fill(nothing);
    bus_ = std::thread([this] { carry(); });
  }
  ~function_in_memory() override {
    ending_ = true;
    bus_.join();
  }

  std::string name() const override { return inner_.name(); }
  u64 register_bytes() const override { return inner_.register_bytes(); }
  u32 read(u64 offset) override { return inner_.read(offset); }
  /// What kernels have stored arrives before what the driver writes when they have ended.
  void write(u64 offset, u32 value) override {
    settle();
    if (offset >= first_of_io) ++written;
    inner_.write(offset, value);
  }
  memory_resource& memory() override { return memory_; }
  bool reaches(void const* address, u64 bytes) const override { return inner_.reaches(address, bytes); }
  void reset() override { inner_.reset(); }
  std::span<std::byte> register_window() override { return std::as_writable_bytes(std::span(bar_)); }

  /// Returns when what has been stored is handed over.
  void settle() const {
    const u64 now = rounds_;
    while (rounds_ < now + 2) std::this_thread::yield();
  }

  void map_peer(void* address, u64 bytes, int dma_buf) override {
    if (takes_peers) return;
    pci_function::map_peer(address, bytes, dma_buf);
  }

  bool takes_peers = false;
  memory_with_registers& kernels() { return memory_; }
  modelled_function& inner() { return inner_; }
  std::atomic<u64> written{0}, rung{0};  ///< of I/O queues: by the driver, and by stores to memory

 private:
  static constexpr u32 nothing = 0xffffffffu;
  static constexpr u64 first_of_io = nvme::at::doorbells + 2 * 4;

  void carry() {
    while (!ending_) {
      for (u64 at = first_of_io; at < bar_.size() * sizeof(u32); at += sizeof(u32)) {
        const u32 value = std::atomic_ref<u32>(bar_[at / sizeof(u32)]).exchange(nothing);
        if (value == nothing) continue;
        ++rung;
        inner_.write(at, value);
      }
      ++rounds_;
      std::this_thread::yield();
    }
  }

  modelled_function inner_;
  memory_with_registers memory_;
  std::array<u32, 0x1400 / sizeof(u32)> bar_;
  std::atomic<bool> ending_{false};
  std::atomic<u64> rounds_{0};
  std::thread bus_;
};

class register_doorbells_test : public testing::Test {
 protected:
  void open(modelled_function_options const& options = {}) {
    function_ = std::make_unique<function_in_memory>(media_.bytes(), options);
    path_ = std::make_unique<drive_path>(*function_, "cpu", false, 1);
    drive_ = std::make_unique<pcie_controller>(*function_, path_->options({.queues = 4}));
    device_ = std::make_unique<block_device>(
        path_->on(), *drive_, 1,
        block_device_options{.queues = 3, .queue_depth = 8, .timeout_ns = 10 * one_second_ns, .transfer_bytes = 4096});
  }

  void TearDown() override {
    device_.reset();
    drive_.reset();
    if (function_ == nullptr) return;
    for (std::string const& each : function_->inner().complaints()) ADD_FAILURE() << "the function notes: " << each;
    path_.reset();
    EXPECT_EQ(function_->kernels().mapped, nullptr) << "its registers are not mapped any more";
  }

  void read_all() {
    const buffer<block_request> request(path_->on().memory(), memory_kind::local, 1);
    const buffer<u64> data(path_->on().memory(), memory_kind::local, block_bytes / 8);
    for (u64 block = 0; block < blocks; block += 17) {
      ASSERT_EQ(status{}, read_blocks(lone_thread(), device_->view(), true, *request.data(), lba{block}, 1,
                                      reinterpret_cast<u64>(data.data())));
      ASSERT_EQ(data.data()[5], stamp(block * (block_bytes / 8) + 5));
    }
  }

  test::stamped_media media_{blocks * block_bytes};
  std::unique_ptr<function_in_memory> function_;
  std::unique_ptr<drive_path> path_;
  std::unique_ptr<pcie_controller> drive_;
  std::unique_ptr<block_device> device_;
};

TEST_F(register_doorbells_test, nobody_else_rings) {
  open();
  ASSERT_EQ(path_->tier(), drive_tier::registers);
  read_all();
  // One store for each command at least. Those that give completions back may be overwritten before the bus carries them.
  EXPECT_GE(function_->rung, (blocks + 16) / 17);
  EXPECT_EQ(function_->written, 0u) << "by the driver";
  EXPECT_EQ(drive_->counts().doorbells, 0u);
}

TEST_F(register_doorbells_test, they_are_as_far_apart_as_the_controller_says) {
  modelled_function_options options;
  options.capabilities |= 2ull << 32;
  open(options);
  ASSERT_EQ(path_->tier(), drive_tier::registers);
  read_all();
}

TEST_F(register_doorbells_test, a_reset_stores_to_none) {
  open();
  read_all();
  function_->settle();
  const u64 before = function_->rung;
  drive_->reset();
  EXPECT_EQ(device_->recover(recover_scope::all).queues, 3u);
  function_->settle();
  EXPECT_EQ(function_->rung, before);
  read_all();
}

TEST_F(register_doorbells_test, the_best_way_is_straight_to_the_executors_own_memory_and_why_not_is_told) {
  function_ = std::make_unique<function_in_memory>(media_.bytes(), modelled_function_options{});
  {
    const drive_path closed(*function_, "cpu", false, 1);
    EXPECT_EQ(closed.tier(), drive_tier::registers);
    EXPECT_NE(closed.reason().find("CPU's threads"), std::string::npos) << closed.reason();
    EXPECT_FALSE(closed.options().reaches_local);
  }
  function_->kernels().opens = true;
  {
    const drive_path refused(*function_, "cpu", false, 1);
    EXPECT_EQ(refused.tier(), drive_tier::registers);
    EXPECT_NE(refused.reason().find("vfio-pci behind an IOMMU"), std::string::npos) << refused.reason();
  }
  function_->takes_peers = true;
  path_ = std::make_unique<drive_path>(*function_, "cpu", false, 1);
  EXPECT_EQ(path_->tier(), drive_tier::peer_memory);
  EXPECT_EQ(path_->reason(), "");
  drive_ = std::make_unique<pcie_controller>(*function_, path_->options({.queues = 4}));
  EXPECT_TRUE(drive_->limits().reaches_local);
  function_->kernels().hides_doorbell_words = true;
  device_ = std::make_unique<block_device>(
      path_->on(), *drive_, 1,
      block_device_options{.queues = 3, .queue_depth = 8, .timeout_ns = 10 * one_second_ns, .transfer_bytes = 4096});
  function_->kernels().hides_doorbell_words = false;
  EXPECT_EQ(function_->kernels().hidden.size(), 3u);
  read_all();
  device_->recover(recover_scope::all);
  read_all();
  device_.reset();
}

// As `penstock doctor` looks for them.
TEST(drive_tiers, have_names_of_their_own) {
  EXPECT_STREQ(name_of(drive_tier::peer_memory), "data straight to the GPU, doorbells rung by kernels");
  EXPECT_STREQ(name_of(drive_tier::registers), "doorbells rung by kernels");
  EXPECT_STREQ(name_of(drive_tier::forwarded), "doorbells forwarded by a host thread");
  EXPECT_STREQ(name_of(drive_tier::polled), "doorbells forwarded by who waits");
}

TEST_F(register_doorbells_test, where_they_cannot_be_mapped_they_are_forwarded_and_the_reason_is_told) {
  function_ = std::make_unique<function_in_memory>(media_.bytes(), modelled_function_options{});
  function_->kernels().willing = false;
  const drive_path refused(*function_, "cpu", false, 1);
  EXPECT_EQ(refused.tier(), drive_tier::polled);
  EXPECT_NE(refused.reason().find("not willing"), std::string::npos) << refused.reason();
  const drive_path asked(*function_, "cpu", true, 1);
  EXPECT_EQ(asked.options().registers_for_kernels, nullptr);
  modelled_function without(media_.bytes());
  const drive_path none(without, "cpu", false, 1);
  EXPECT_EQ(none.tier(), drive_tier::polled);
  EXPECT_NE(none.reason().find("no memory of this process"), std::string::npos) << none.reason();
}

}  // namespace
}  // namespace penstock::test_support
