// What a namespace of the software controller lies in: an opened file or block device, or memory.
#pragma once

#include "command_decoder.hpp"
#include "page_cache_map.hpp"

#include "penstock/controller/software_controller.hpp"
#include "penstock/host/file_lock.hpp"

#include <atomic>
#include <memory>

#include <sys/uio.h>

namespace penstock::controllers {

class file_space;

/// What a file of a folder is open for. Of one that is written once all reads are zeros, and only bytes that are not zero are
/// written (file_flag::write_once).
enum class file_use { read, read_and_write, write_once };

/// Owns its file descriptors and its mapping. Its size is fixed when it is opened; bytes past the end of the file read as zeros
/// and are not written, as with a shared mapping: a file never grows by being used. One of a folder (`over_descriptor`) does,
/// by what is written.
class storage_namespace {
 public:
  /// Throws penstock::error as software_controller::add_namespace says.
  static std::unique_ptr<storage_namespace> open_file(file_namespace const& options, bool map, u64 transfer_bytes);
  static std::unique_ptr<storage_namespace> over_memory(std::span<std::byte> memory, u32 block_bytes, u64 transfer_bytes);
  /// The files of a folder, each in a range of its own.
  static std::unique_ptr<storage_namespace> over_folder(std::shared_ptr<file_space> files);
  /// One of them, of `size` bytes, which takes over its descriptor: the first `bytes` bytes that it may ever have.
  static std::unique_ptr<storage_namespace> over_descriptor(int file, file_use use, u64 size, u64 bytes);
  ~storage_namespace();
  storage_namespace(storage_namespace const&) = delete;
  storage_namespace& operator=(storage_namespace const&) = delete;

  namespace_shape const& shape() const { return shape_; }
  std::byte* memory() const { return memory_; }  ///< nullptr: a file
  /// The same bytes lie elsewhere now. REQUIRES: over memory; no command of it is under way.
  void move_memory(std::byte* to) { memory_ = to; }
  /// Lets others write to its bytes. REQUIRES: no command writes from now on.
  void give_up_writing() { lock_.release(); }
  page_cache_map* map() const { return map_.get(); }
  int file() const { return file_; }
  /// Of the namespace in its file.
  u64 first_byte() const { return first_byte_; }
  /// For writes to the last page of a file that ends inside of a block: O_DIRECT moves whole blocks only, so this one is
  /// without it.
  int tail_file() const { return tail_file_; }
  /// Where that page begins, from the first byte of the namespace; beyond its end where all is written directly. A page is
  /// written in one of the two ways only: the kernel loses the one that it does not write last, and fails the next sync.
  u64 tail_begin() const { return tail_begin_; }
  /// Direct transfers need addresses and lengths that are multiples of this; 1 where none is needed.
  u64 memory_alignment() const { return memory_alignment_; }
  bool direct() const { return direct_; }
  file_space* files() const { return files_.get(); }  ///< nullptr: not of a folder
  bool grows() const { return grows_; }
  bool is_written_once() const { return written_once_; }
  /// Of a file that grows: as many bytes as it had are mapped.
  u64 mapped_bytes() const { return mapped_bytes_; }

  /// Of a file that grows, whether one that ends at `end` was cut by others: it was opened to be read, and had more bytes
  /// then. One that was opened to be written may be shorter than it will be.
  bool was_cut(u64 end) const { return grows_ && end < needed_bytes_; }

  /// How a read is asked for that must not wait (of preadv2): RWF_NOWAIT; 0 where the file is in memory anyway; no_read where
  /// the file system has no such reads.
  int read_flags() const { return read_flags_.load(std::memory_order_relaxed); }
  static constexpr int no_read = -1;
  /// The file system has refused RWF_NOWAIT.
  void note_no_wait_refused() const;

  /// Of a file that grows, where the last of the bytes ends that writes were begun of; 0: of none.
  u64 written_end() const { return written_end_.load(std::memory_order_acquire); }
  void note_write(u64 end) const {
    u64 seen = written_end_.load(std::memory_order_relaxed);
    while (seen < end && !written_end_.compare_exchange_weak(seen, end, std::memory_order_acq_rel)) {}
  }
  /// REQUIRES: no write is under way.
  void forget_writes() const { written_end_.store(0, std::memory_order_release); }

  /// System calls of a file that may be closed beside them.
  void note_call() const { calls_.fetch_add(1, std::memory_order_relaxed); }
  void note_call_ended() const { calls_.fetch_sub(1, std::memory_order_release); }
  u32 calls_under_way() const { return calls_.load(std::memory_order_acquire); }

  /// How many of `bytes` at `offset` the file has.
  u64 valid_bytes(u64 offset, u64 bytes) const { return offset + bytes <= shape_.bytes ? bytes : shape_.bytes - offset; }

 private:
  storage_namespace() = default;
  void open_direct(file_namespace const& options);
  void lock(file_namespace const& options);

  namespace_shape shape_;
  std::byte* memory_ = nullptr;
  int file_ = -1;
  write_lock lock_;
  int tail_file_ = -1;
  u64 tail_begin_ = ~u64{0};
  bool direct_ = false;
  u64 memory_alignment_ = 1;
  u64 first_byte_ = 0;
  std::unique_ptr<page_cache_map> map_;
  u64 mapped_bytes_ = 0;
  std::shared_ptr<file_space> files_;
  bool grows_ = false;
  bool written_once_ = false;
  u64 needed_bytes_ = 0;
  mutable std::atomic<u64> written_end_{0};
  mutable std::atomic<u32> calls_{0};
  mutable std::atomic<int> read_flags_{RWF_NOWAIT};
};

}  // namespace penstock::controllers
