// Many commands on QEMU's controller, each one checked: without faults, with media errors and resets, and across the deaths of
// the process that drives it. PENSTOCK_NVME_COMMANDS and PENSTOCK_NVME_KILLS make the runs as long as one likes.
#include "support/qemu_machine.hpp"

#include "penstock/group/lone_thread.hpp"
#include "penstock/pcie/pcie_controller.hpp"
#include "penstock/runtime/block_device.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <random>
#include <set>

#include <sys/wait.h>
#include <unistd.h>

namespace penstock::test_support {
namespace {

constexpr u64 media_bytes = u64{16} << 20;
constexpr u32 block_bytes = 512, block_words = block_bytes / sizeof(u64);
constexpr u64 blocks = media_bytes / block_bytes;
constexpr status media_error = {status_domain::nvme, nvme::code::unrecovered_read_error};
constexpr status resetting = make_status(failure::resetting);

u64 asked(char const* name, u64 otherwise) {
  char const* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// What a command is to move: one block of one stamp.
struct job {
  u64 block = 0;
  u64 stamp = 0;  ///< 0: a read
};

/// One thread with many commands in flight, each on a block of its own, and what every block must hold.
class soak {
 public:
  static constexpr u32 depth = 64;

  /// `fresh`: the media are all zeros; else what a block holds is known once it has been read or written.
  soak(pci_function& function, pcie_controller& drive, u64 seed, bool fresh = true)
      : drive_(drive), on_(open_cpu_executor(function.memory(), 1)),
        device_(*on_, drive, 1,
                {.queues = 2, .queue_depth = depth, .timeout_ns = 20 * one_second_ns, .transfer_bytes = block_bytes}),
        requests_(on_->memory(), memory_kind::local, depth), data_(on_->memory(), memory_kind::local, depth * block_words),
        random_(seed), held_(blocks, {fresh, 0, 0}) {}

  /// Keeps `depth` commands in flight until so many more have ended.
  void run(u64 commands) {
    for (u64 k = 0; k < commands; ++k) {
      const u32 at = static_cast<u32>(k % depth);
      if (k >= depth) end(at);
      begin(at);
    }
    for (u64 k = commands; k < commands + std::min<u64>(depth, commands); ++k) end(static_cast<u32>(k % depth));
  }

  /// A reset with all commands in flight. Writes that it answered may have been done or not.
  void reset() {
    for (u32 at = 0; at < depth; ++at) begin(at);
    drive_.reset();
    device_.recover(recover_scope::all);
    for (u32 at = 0; at < depth; ++at) end(at);
  }

  void expect_bad(std::set<u64> bad) { bad_ = std::move(bad); }
  u64 done() const { return done_; }
  u64 media_errors() const { return media_errors_; }
  u64 answered_by_resets() const { return answered_by_resets_; }
  queue_counts counts() const {
    queue_counts all;
    for (queue_counts const& q : device_.queues()) {
      EXPECT_EQ(q.commands, q.completions - q.strays + q.expired + q.failed + q.reset);
      all.commands += q.commands, all.strays += q.strays, all.expired += q.expired, all.errors += q.errors;
    }
    return all;
  }

 private:
  struct held {
    bool known = false;
    u64 surely = 0;
    u64 perhaps = 0;  ///< of a write that a reset answered
  };

  void begin(u32 at) {
    job& next = jobs_[at];
    do next.block = random_() % blocks;
    while (!busy_.insert(next.block).second);
    const bool writes = random_() % 2 != 0 && !bad_.contains(next.block);
    next.stamp = writes ? ++stamp_ : 0;
    if (writes) std::fill_n(words(at), block_words, next.stamp);
    submit_blocks(lone_thread(), device_.view(), writes ? nvme::opcode::write : nvme::opcode::read, true, requests_.data()[at],
                  lba{next.block}, 1, reinterpret_cast<u64>(words(at)));
  }

  void end(u32 at) {
    job const& last = jobs_[at];
    busy_.erase(last.block);
    ++done_;
    const status outcome = wait_blocks(lone_thread(), device_.view(), true, requests_.data()[at]);
    held& now = held_[last.block];
    if (outcome == resetting) {
      ++answered_by_resets_;
      if (last.stamp != 0) now.perhaps = last.stamp;
      return;
    }
    if (last.stamp == 0 && bad_.contains(last.block)) {
      ++media_errors_;
      ASSERT_EQ(outcome, media_error) << "block " << last.block;
      return;
    }
    ASSERT_EQ(outcome, status{}) << "block " << last.block;
    if (last.stamp != 0) {
      now = {true, last.stamp, 0};
      return;
    }
    const u64 found = words(at)[0];
    ASSERT_TRUE(!now.known || found == now.surely || (now.perhaps != 0 && found == now.perhaps)) << "block " << last.block;
    for (u32 w = 1; w < block_words; ++w) ASSERT_EQ(words(at)[w], found) << "a block of two stamps";
    now = {true, found, 0};
  }

  u64* words(u32 at) { return data_.data() + at * block_words; }

  pcie_controller& drive_;
  std::unique_ptr<executor> on_;
  block_device device_;
  buffer<block_request> requests_;
  buffer<u64> data_;
  std::mt19937_64 random_;
  std::vector<held> held_;
  std::set<u64> bad_;
  std::set<u64> busy_;
  job jobs_[depth];
  u64 stamp_ = 0, done_ = 0, media_errors_ = 0, answered_by_resets_ = 0;
};

class qemu_soak_test : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = reason_without_qemu();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  void expect_no_complaints() const {
    for (std::string const& complaint : machine_->complaints()) ADD_FAILURE() << "the controller notes: " << complaint;
  }

  void start(std::vector<u64> const& bad_sectors = {}) {
    machine_ = std::make_unique<qemu_machine>(std::vector<qemu_drive>{{{{media_bytes, block_bytes, "", bad_sectors}}, ""}});
  }

  std::unique_ptr<qemu_machine> machine_;
};

TEST_F(qemu_soak_test, every_command_is_answered_once_and_right) {
  const u64 commands = asked("PENSTOCK_NVME_COMMANDS", 50'000);
  start();
  pcie_controller drive(machine_->function(0), {.queues = 2});
  soak all(machine_->function(0), drive, 1);
  for (u64 left = commands; left != 0 && !HasFailure(); left -= std::min<u64>(left, 1'000'000)) {
    all.run(std::min<u64>(left, 1'000'000));
  }
  EXPECT_EQ(all.counts().commands, commands);
  EXPECT_EQ(all.counts().strays, 0u);
  EXPECT_EQ(all.counts().errors, 0u);
  EXPECT_EQ(drive.counts().resets, 0u);
  expect_no_complaints();
}

TEST_F(qemu_soak_test, media_errors_and_resets_are_told_and_nothing_else) {
  constexpr u64 between_resets = 10'000;
  const u64 rounds = asked("PENSTOCK_NVME_COMMANDS", 50'000) / between_resets;
  std::mt19937_64 random(7);
  std::set<u64> bad;
  while (bad.size() < blocks / 100) bad.insert(random() % blocks);
  start({bad.begin(), bad.end()});
  pcie_controller drive(machine_->function(0), {.queues = 2});
  soak all(machine_->function(0), drive, 2);
  all.expect_bad(bad);
  for (u64 k = 0; k < rounds && !HasFailure(); ++k) {
    all.run(between_resets);
    all.reset();
  }
  EXPECT_EQ(all.done(), rounds * (between_resets + soak::depth));
  EXPECT_GT(all.media_errors(), 0u);
  EXPECT_EQ(all.counts().errors, all.media_errors());
  EXPECT_EQ(all.counts().expired, 0u);
  EXPECT_EQ(drive.counts().resets, rounds);
  expect_no_complaints();
}

/// The controller is found as the dead process left it: enabled, with queues, with commands in flight.
TEST_F(qemu_soak_test, a_process_that_is_killed_is_followed_by_another) {
  const u64 kills = asked("PENSTOCK_NVME_KILLS", 20);
  start();
  std::mt19937_64 random(11);
  for (u64 k = 0; k < kills; ++k) {
    const pid_t child = fork();
    if (child == 0) {
      try {
        pcie_controller drive(machine_->function(0), {.queues = 2});
        soak all(machine_->function(0), drive, k, false);
        while (!HasFailure()) all.run(1000);
      } catch (std::exception const& e) {
        std::fprintf(stderr, "after %llu kills: %s\n", static_cast<unsigned long long>(k), e.what());
      }
      _exit(1);
    }
    usleep(static_cast<useconds_t>(random() % 40'000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "after " << k << " kills a process could not go on";
    machine_->resynchronize();
  }
  pcie_controller drive(machine_->function(0), {.queues = 2});
  soak all(machine_->function(0), drive, kills, false);
  for (u64 k = 0; k < 10; ++k) all.reset();
  EXPECT_EQ(all.counts().strays, 0u);
  expect_no_complaints();
}

}  // namespace
}  // namespace penstock::test_support
