// Threads of the CPU that copy rows of gathers which they share with a kernel (shared_gather.hpp).
#pragma once

#include "shared_gather.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace penstock::rows {

/// What threads of the CPU know of a list. It stays until `row_helpers::end` has returned.
struct helped_list {
  shared_list list;
  u32 const* keys = nullptr;  ///< sorted, of chunks * chunk_rows rows at most; in memory of the host
  u64 count = 0;
  u32 others = 0;  ///< keys below are of rows that are no help: they come first, and lie next to the kernels
  u64 rows = 0;    ///< keys from others + rows on are of none
  u64 source = 0, pitch = 0, row_bytes = 0;
  u32 most_chunks = 0;  ///< that there is staging memory for

  std::atomic<u32> begun{0};  ///< chunks, from the back
  std::atomic<bool> over{false};
};

/// Bytes a second that a GPU reads of rows of host memory in order, from a list with one to so many bytes of the array.
double read_per_second(double bytes_between, u64 row_bytes);
/// A list that the GPU reads so fast needs no help, whether that is foreseen or seen: near what the link bears threads of the
/// CPU slow a kernel (rows of 128 bytes near each other, over PCIe Gen5: 24 GB/s instead of 45). What is foreseen is no more
/// than what was measured, so a list that is left alone from the first is none that would have been helped later.
inline constexpr double enough_per_second = 32e9;

/// Whether the rows that are no others are far from each other, by their keys.
bool needs_help(helped_list const& what);

/// Copies chunks of a list, from the back, until the kernel has come to them.
void help_gather(helped_list& what);

/// The threads of this process, which are made when they are first asked for and then stay. Thread-safe.
class row_helpers {
 public:
  static row_helpers& of_process();

  /// `threads` of them help from now on. Nothing while they help with another list.
  void begin(helped_list& what, u32 threads);
  /// When this returns none of them has to do with the list.
  void end(helped_list& what);

 private:
  /// Up to so many threads in all. Under mutex_.
  void make(u32 threads);
  void run(u32 number);

  std::mutex mutex_;
  std::condition_variable begins_, ends_;
  helped_list* helped_ = nullptr;  ///< all under mutex_
  u64 lists_ = 0;                  ///< that were begun
  u32 threads_ = 0, wanted_ = 0, helping_ = 0;
};

}  // namespace penstock::rows
