// Memory that maps a file which is cut short: zeros while it is watched, the mapping that it was afterwards.
#include "penstock/host/watched_mapping.hpp"

#include "support/scratch_files.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace penstock::test {
namespace {

constexpr u64 page = 4096, pages = 64;

/// A file of pages that each hold their number, mapped; `flags`: MAP_SHARED or MAP_PRIVATE.
class watched_mappings : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    write_all();
    memory_ = static_cast<unsigned char*>(mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, GetParam(), file_, 0));
    ASSERT_NE(MAP_FAILED, static_cast<void*>(memory_));
  }
  void TearDown() override {
    munmap(memory_, pages * page);
    close(file_);
  }
  void write_all() {
    for (u64 k = 0; k < pages; ++k) {
      const std::vector<unsigned char> bytes(page, static_cast<unsigned char>(k + 1));
      ASSERT_EQ(static_cast<ssize_t>(page), pwrite(file_, bytes.data(), page, static_cast<off_t>(k * page)));
    }
  }
  void cut(u64 left) { ASSERT_EQ(0, ftruncate(file_, static_cast<off_t>(left * page))); }
  u32 at(u64 k) const { return __atomic_load_n(memory_ + k * page + 7, __ATOMIC_RELAXED); }
  std::unique_ptr<watched_mapping> watch(u64 first, u64 count) const {
    return std::make_unique<watched_mapping>(memory_ + first * page, count * page, true, mapping_of::caller);
  }
  /// Whether a process that reads a page is ended by it.
  bool ends(u64 k) const {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGBUS, SIG_DFL);
      static_cast<void>(at(k));
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS;
  }

  test_support::scratch_folder folder_;
  int file_ = open((folder_ / "file").c_str(), O_RDWR | O_CREAT, 0600);
  unsigned char* memory_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(maps, watched_mappings, testing::Values(MAP_SHARED, MAP_PRIVATE),
                         [](auto const& kind) { return kind.param == MAP_SHARED ? "shared" : "copied_on_write"; });

TEST_P(watched_mappings, what_is_missing_is_zeros_for_as_long_as_it_is_watched) {
  auto one = watch(0, pages);
  EXPECT_FALSE(one->is_cut());
  cut(3);
  EXPECT_EQ(3u, at(2));
  EXPECT_FALSE(one->was_cut());
  EXPECT_EQ(0u, at(40));
  EXPECT_EQ(0u, at(5));
  EXPECT_TRUE(one->was_cut());
  one.reset();
  EXPECT_EQ(3u, at(2));
  EXPECT_TRUE(ends(40));
  EXPECT_TRUE(ends(5));
  write_all();
  for (u64 k = 0; k < pages; ++k) ASSERT_EQ(k + 1, at(k));
}

TEST_P(watched_mappings, each_watch_finds_it_anew) {
  cut(3);
  for (u32 round = 0; round < 600; ++round) {
    auto one = watch(1, 50);
    ASSERT_FALSE(one->was_cut());
    ASSERT_EQ(0u, at(10 + round % 40));
    ASSERT_TRUE(one->was_cut());
  }
  write_all();
  for (u64 k = 0; k < pages; ++k) ASSERT_EQ(k + 1, at(k));
}

TEST_P(watched_mappings, a_look_finds_it_without_a_read_of_what_is_missing) {
  auto one = watch(0, pages), part = watch(0, 2);
  cut(3);
  EXPECT_TRUE(one->is_cut());
  EXPECT_FALSE(part->is_cut());
}

TEST_P(watched_mappings, zeros_stay_until_the_last_watch_has_gone) {
  auto first = watch(0, 20), second = watch(10, 20);
  cut(3);
  EXPECT_EQ(0u, at(15));
  EXPECT_TRUE(first->was_cut());
  EXPECT_TRUE(second->was_cut());
  memory_[15 * page + 7] = 9;
  first.reset();
  EXPECT_EQ(9u, at(15));
  EXPECT_TRUE(watch(15, 1)->was_cut()) << "one that begins where zeros are already";
  second.reset();
  EXPECT_TRUE(ends(15));
}

TEST_P(watched_mappings, memory_that_is_others_by_now_is_left_alone) {
  auto one = watch(0, pages);
  cut(3);
  EXPECT_EQ(0u, at(20));
  munmap(memory_, pages * page);
  void* const others = mmap(memory_, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(static_cast<void*>(memory_), others);
  memory_[20 * page + 7] = 77;
  one.reset();
  EXPECT_EQ(77u, at(20));
}

TEST_P(watched_mappings, stores_go_to_the_zeros) {
  auto one = watch(0, pages);
  cut(3);
  memory_[20 * page + 7] = 5;
  EXPECT_EQ(5u, at(20));
  EXPECT_TRUE(one->was_cut());
  one.reset();
  write_all();
  EXPECT_EQ(21u, at(20));
}

TEST_P(watched_mappings, many_threads_meet_it_at_once) {
  for (u32 round = 0; round < 20; ++round) {
    auto one = watch(0, pages);
    cut(3);
    std::vector<std::thread> threads;
    for (u64 t = 0; t < 8; ++t) {
      threads.emplace_back([this, t] {
        for (u64 k = 0; k < pages; ++k) {
          const u64 mine = (k * 7 + t) % pages;
          EXPECT_EQ(mine < 3 ? mine + 1 : 0, at(mine));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(one->was_cut());
    one.reset();
    write_all();
    for (u64 k = 0; k < pages; ++k) ASSERT_EQ(k + 1, at(k));
  }
}

TEST_P(watched_mappings, a_forked_process_with_another_handler_meets_it_too) {
  auto one = watch(0, pages);
  cut(3);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGBUS, SIG_DFL);  // as others do there
    auto mine = watch(0, pages);
    const bool good = at(40) == 0 && mine->was_cut();
    _exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_P(watched_mappings, a_process_that_is_forked_beside_watches_has_the_locks_free) {
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over.load()) static_cast<void>(watch(0, pages));
  });
  for (u32 round = 0; round < 300; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(5);  // ends what waits for ever
      static_cast<void>(watch(0, pages)->is_cut());
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "round " << round;
  }
  over = true;
  other.join();
}

}  // namespace
}  // namespace penstock::test
