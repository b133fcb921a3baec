// Locks on the bytes of a file, between processes and between two opens in one. Advisory: they keep out an opener that asks.
#pragma once

#include "penstock/core/config.hpp"

#include <string>

#include <sys/types.h>

namespace penstock {

enum class lock_kind { shared, exclusive };

/// Bytes of a file. bytes 0: to its end, wherever that will be.
struct file_range {
  u64 begin = 0;
  u64 bytes = 0;
};

/// Takes a lock of the open file description (fcntl, F_OFD_SETLK), or says why not: an errno, EAGAIN where another owner has
/// one in its way; 0 if it was taken. It goes with the last descriptor. REQUIRES: open to read (shared) or write (exclusive).
int try_lock(int file, lock_kind kind, file_range const& range);

/// One writer at a time: two that do not know of each other would store over what the other has changed. Readers take no lock.
/// A process that is forked has none of this, and gives none back: the lock is its parent's.
class write_lock {
 public:
  write_lock() = default;  ///< of nothing
  /// Waits up to a second, for the kernel keeps the locks of a killed process that had an io_uring for a moment, but not for
  /// another of this process. Throws penstock::error (world) with the path, and which of the two has the lock. REQUIRES: `file`
  /// is closed after this is gone.
  write_lock(char const* operation, std::string const& path, int file, file_range const& range);
  write_lock(write_lock&& other) noexcept;
  write_lock& operator=(write_lock&& other) noexcept;
  ~write_lock() { release(); }

  /// Again: nothing. Closing the file would do, but that a ring which had it lets go of it later, and a forked process, too.
  void release();

 private:
  int file_ = -1;
  file_range range_;
  pid_t process_ = 0;
};

}  // namespace penstock
