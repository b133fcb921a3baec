// Locks of bytes: one writer at a time of each, whoever asks, and none for a process that was forked.
#include "penstock/host/file_lock.hpp"
#include "penstock/host/error.hpp"

#include "contract/controller_bed.hpp"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace penstock::test_support {
namespace {

class file_lock_test : public ::testing::Test {
 protected:
  file_lock_test() : first_(opened(O_RDWR | O_CREAT)), second_(opened(O_RDWR)) {}
  ~file_lock_test() override {
    close(first_);
    close(second_);
  }

  int opened(int flags) const { return open(path_.c_str(), flags | O_CLOEXEC, 0600); }
  write_lock lock(file_range const& range) const { return {"open", path_, first_, range}; }
  /// Whether somebody else could lock it, and does not.
  bool is_free(file_range const& range, lock_kind kind = lock_kind::exclusive) const {
    const int other = opened(O_RDWR);
    const int code = try_lock(other, kind, range);
    close(other);
    EXPECT_TRUE(code == 0 || code == EAGAIN) << code;
    return code == 0;
  }

  temporary_directory directory_;
  std::string path_ = directory_.file("locked");
  int first_, second_;
};

TEST_F(file_lock_test, keeps_others_from_its_bytes_and_from_no_others) {
  write_lock own = lock({100, 50});
  EXPECT_FALSE(is_free({149, 1}));
  EXPECT_FALSE(is_free({149, 1}, lock_kind::shared));
  EXPECT_FALSE(is_free({0, 0})) << "all of it";
  EXPECT_TRUE(is_free({0, 100}));
  EXPECT_TRUE(is_free({150, 0}));
  own.release();
  own.release();
  EXPECT_TRUE(is_free({0, 0}));
}

TEST_F(file_lock_test, goes_along_when_it_is_moved) {
  write_lock own;
  {
    write_lock first = lock({0, 10});
    own = std::move(first);
  }
  EXPECT_FALSE(is_free({0, 10}));
  { const write_lock taken(std::move(own)); }
  EXPECT_TRUE(is_free({0, 10}));
}

TEST_F(file_lock_test, says_that_there_is_another_writer) {
  ASSERT_EQ(try_lock(second_, lock_kind::exclusive, {0, 0}), 0);
  try {
    lock({0, 10});
    FAIL() << "two writers";
  } catch (error const& e) {
    EXPECT_NE(std::string(e.what()).find(path_), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("another process has it open to be written"), std::string::npos) << e.what();
  }
}

/// What taking the lock throws, without waiting for it; nothing if it is taken.
std::string refusal_of(std::string const& path, int file, file_range const& range) {
  try {
    const write_lock taken("open", path, file, range);
    return {};
  } catch (error const& e) {
    return e.what();
  }
}

TEST_F(file_lock_test, says_that_this_process_is_the_other_writer) {
  const std::string mine = "this process has it open to be written already: close that array first";
  write_lock own = lock({100, 50});
  EXPECT_NE(refusal_of(path_, second_, {149, 1}).find(mine), std::string::npos);
  EXPECT_NE(refusal_of(path_, second_, {0, 0}).find(mine), std::string::npos) << "all of it";
  EXPECT_EQ(refusal_of(path_, second_, {0, 100}), "");
  EXPECT_EQ(refusal_of(path_, second_, {150, 0}), "");
  write_lock moved = std::move(own);
  EXPECT_NE(refusal_of(path_, second_, {100, 1}).find(mine), std::string::npos);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int again = opened(O_RDWR);
    _exit(refusal_of(path_, again, {100, 1}).find("another process") != std::string::npos ? 0 : 1);
  }
  int how = 0;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0) << "the lock is its parent's";
  moved.release();
  EXPECT_EQ(refusal_of(path_, second_, {100, 1}), "");
}

TEST_F(file_lock_test, lets_readers_lock_side_by_side) {
  ASSERT_EQ(try_lock(second_, lock_kind::shared, {0, 0}), 0);
  EXPECT_TRUE(is_free({0, 0}, lock_kind::shared));
  EXPECT_FALSE(is_free({0, 0}));
}

TEST_F(file_lock_test, is_not_given_back_by_a_process_that_was_forked) {
  write_lock own = lock({0, 10});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    own.release();
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(is_free({0, 10}));
}

TEST_F(file_lock_test, is_free_once_it_is_released_although_a_forked_process_has_the_file) {
  write_lock own = lock({0, 10});
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close(go[1]);
    char end = 0;
    _exit(read(go[0], &end, 1) == 0 ? 0 : 1);
  }
  own.release();
  EXPECT_TRUE(is_free({0, 10}));
  close(go[0]);
  close(go[1]);
  int how = 0;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
}

}  // namespace
}  // namespace penstock::test_support
