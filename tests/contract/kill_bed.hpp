// Processes that write a file until they are killed, and what they tell of it in memory that outlives them. A killed process
// loses what only it knew, not what the kernel has: so this tells whether Penstock holds anything back, not whether the device
// does.
#pragma once

#include "contract/controller_bed.hpp"
#include "penstock/host/file_lock.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace penstock::test_support {

/// Shared with the processes that are forked from here.
template <class T>
class shared_object {
 public:
  shared_object()
      : page_(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        object_(page_ == MAP_FAILED ? throw std::bad_alloc() : new (page_) T) {}
  ~shared_object() { munmap(page_, sizeof(T)); }
  shared_object(shared_object const&) = delete;
  shared_object& operator=(shared_object const&) = delete;
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }

 private:
  void* page_;
  T* object_;
};

/// How the file is written.
struct file_case {
  char const* name;
  medium where;
  io_engine engine;

  bool direct() const { return where == medium::direct_file; }
  std::string reason_to_skip() const { return test_support::reason_to_skip({"", where, engine}); }
  file_namespace file(std::string const& path, u32 block_bytes) const { return {path, direct(), true, block_bytes}; }
  software_options options() const {
    software_options options;
    options.engine = engine;
    return options;
  }
};

inline constexpr file_case kill_cases[] = {{"mapping", medium::file, io_engine::automatic},
                                           {"pread_direct", medium::direct_file, io_engine::pread}};

/// Waits until the kernel has let go of what the last writer had: it keeps the lock of one with an io_uring for a while, and on
/// a busy machine for longer than a second writer is patient.
inline void await_lock(std::string const& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const u64 deadline = now_ns() + 60 * one_second_ns;
  while (try_lock(file, lock_kind::exclusive, {}) != 0 && now_ns() < deadline) usleep(1000);
  close(file);
}

/// Calls write() in a process of its own, which does not return, and kills it at a moment that `seed` draws: up to `most` more
/// of `done`, which the writer of the file `path` counts up, and a little later. So a slow machine tries as much as a fast one.
template <class Count, class Write>
void kill_while(std::string const& path, u64 seed, std::atomic<Count> const& done, u64 most, Write const& write) {
  await_lock(path);
  const u64 enough = done + 1 + seed * 7919 % most;
  const pid_t writer = fork();
  ASSERT_GE(writer, 0);
  if (writer == 0) {
    try {
      write();
    } catch (std::exception const& problem) {
      std::fprintf(stderr, "the writer: %s\n", problem.what());
    }
    _exit(4);  // not back into the test
  }
  const u64 deadline = now_ns() + 100 * one_second_ns;  // others may keep the disk busy
  while (done < enough && now_ns() < deadline) usleep(50);
  usleep(static_cast<useconds_t>(seed * 104729 % 400));
  kill(writer, SIGKILL);
  int outcome = 0;
  ASSERT_EQ(waitpid(writer, &outcome, 0), writer);
  ASSERT_TRUE(WIFSIGNALED(outcome)) << "the writer left by itself, with " << WEXITSTATUS(outcome);
  ASSERT_GE(done, enough) << "the writer did not get on";
}

}  // namespace penstock::test_support
