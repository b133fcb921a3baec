#include "penstock/host/file_lock.hpp"

#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

namespace penstock {
namespace {

constexpr u64 timeout_ns = one_second_ns;

int set_lock(int file, short type, file_range const& range) {
  struct flock wanted = {};  // its l_pid is 0, as it must be here
  wanted.l_type = type;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = static_cast<off_t>(range.begin);
  wanted.l_len = static_cast<off_t>(range.bytes);
  return fcntl(file, F_OFD_SETLK, &wanted) == 0 ? 0 : errno;
}

u64 end_of(file_range const& range) { return range.bytes == 0 ? std::numeric_limits<u64>::max() : range.begin + range.bytes; }

bool overlap(file_range const& a, file_range const& b) { return a.begin < end_of(b) && b.begin < end_of(a); }

/// The write locks of this process, by which it knows a second writer of its own: the kernel does not say who has a lock of an
/// open file description. Those of the process that this one was forked from stay in it, and are not its own. Thread-safe.
class own_locks {
 public:
  static own_locks& get() {
    static own_locks& only = *new own_locks;  // locks are released until the process has ended
    return only;
  }

  void add(int file, file_range const& range) {
    struct stat about{};
    if (::fstat(file, &about) != 0) return;
    const std::lock_guard lock(mutex_);
    held_.push_back({file, about.st_dev, about.st_ino, range, ::getpid()});
  }

  void remove(int file) {
    const std::lock_guard lock(mutex_);
    std::erase_if(held_, [file](held const& each) { return each.file == file && each.process == ::getpid(); });
  }

  bool has(int file, file_range const& range) {
    struct stat about{};
    if (::fstat(file, &about) != 0) return false;
    const std::lock_guard lock(mutex_);
    return std::any_of(held_.begin(), held_.end(), [&](held const& each) {
      return each.device == about.st_dev && each.inode == about.st_ino && each.process == ::getpid() &&
             overlap(each.range, range);
    });
  }

 private:
  struct held {
    int file;
    dev_t device;
    ino_t inode;
    file_range range;
    pid_t process;
  };

  own_locks() {  // a process that is forked while another thread is in here would wait for ever
    ::pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); }, [] { get().mutex_.unlock(); });
  }

  std::mutex mutex_;
  std::vector<held> held_;  ///< under mutex_
};

}  // namespace

int try_lock(int file, lock_kind kind, file_range const& range) {
  const int code = set_lock(file, kind == lock_kind::shared ? F_RDLCK : F_WRLCK, range);
  return code == EACCES ? EAGAIN : code;  // POSIX allows either
}

write_lock::write_lock(char const* operation, std::string const& path, int file, file_range const& range)
    : range_(range), process_(::getpid()) {
  const u64 give_up_ns = now_ns() + timeout_ns;
  while (const int code = try_lock(file, lock_kind::exclusive, range)) {
    if (code != EAGAIN) {
      throw_os_error(operation, path, code, "its file system has no locks against a second writer: copy the file elsewhere");
    }
    if (own_locks::get().has(file, range)) {
      throw_os_error(operation, path, code,
                     "this process has it open to be written already: close that array first, and drop views of its memory");
    }
    if (now_ns() >= give_up_ns) {
      throw_os_error(operation, path, code, "another process has it open to be written: end that one, or open it read-only");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  own_locks::get().add(file, range);
  file_ = file;
}

write_lock::write_lock(write_lock&& other) noexcept
    : file_(std::exchange(other.file_, -1)), range_(other.range_), process_(other.process_) {}

write_lock& write_lock::operator=(write_lock&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(range_, other.range_);
  std::swap(process_, other.process_);
  return *this;
}

void write_lock::release() {
  if (file_ >= 0 && process_ == ::getpid()) {
    own_locks::get().remove(file_);  // first: until it is unlocked, a second writer waits
    set_lock(file_, F_UNLCK, range_);
  }
  file_ = -1;
}

}  // namespace penstock
