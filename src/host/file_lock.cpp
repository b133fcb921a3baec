#include "penstock/host/file_lock.hpp"

#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include <fcntl.h>
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
    if (now_ns() >= give_up_ns) {
      throw_os_error(operation, path, code, "somebody else has it open for writing: end that, or open it read-only");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
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
  if (file_ >= 0 && process_ == ::getpid()) set_lock(file_, F_UNLCK, range_);
  file_ = -1;
}

}  // namespace penstock
