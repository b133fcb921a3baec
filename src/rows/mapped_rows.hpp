// A file seen through the page cache: mapped shared, read-only or (CPU) to write as well; and mapped to be stored into without
// the file changing, for those who take memory and do not ask whether it may be written to.
#pragma once

#include "../host/owned_file.hpp"
#include "penstock/core/config.hpp"
#include "penstock/host/error.hpp"
#include "penstock/host/file_lock.hpp"
#include "penstock/host/watched_mapping.hpp"

#include <mutex>
#include <optional>
#include <string>

namespace penstock::rows {

/// Pages of a file in memory, until this goes away. Where the file is cut short they are zeros.
class file_mapping {
 public:
  /// What stores do: fault, reach the file, or stay in memory that is this mapping's own (copy on write).
  enum class stores { refused, shared, kept };

  /// Throws penstock::error (world). REQUIRES: begin is a multiple of the page size.
  file_mapping(std::string const& path, int file, u64 begin, u64 bytes, stores how);
  file_mapping(file_mapping const&) = delete;
  file_mapping& operator=(file_mapping const&) = delete;
  ~file_mapping();

  unsigned char* data() const { return static_cast<unsigned char*>(base_); }
  u64 bytes() const { return bytes_; }
  bool was_cut() const { return watch_->was_cut(); }

 private:
  void* base_;
  u64 bytes_;
  std::optional<watched_mapping> watch_;
};

/// Of a file that has `bytes` bytes, and an array in it that ends at byte `end`.
error too_short(std::string const& path, u64 bytes, u64 end);
/// The same for a member of a volume, which needs so many of it.
error member_too_short(std::string const& path, u64 bytes, u64 needed);

/// Of a file in which an array ends at byte `end`, and that the file system refused to give blocks for what was stored.
error no_room(std::string const& path, u64 end, char const* remedy);

class mapped_rows {
 public:
  /// Throws penstock::error with path, reason, remedy: no such file, no permission, fewer bytes than asked for, another writer
  /// of them.
  mapped_rows(std::string const& path, u64 offset, u64 bytes, bool writable);
  mapped_rows(mapped_rows const&) = delete;
  mapped_rows& operator=(mapped_rows const&) = delete;

  /// Address of byte `offset` of the file.
  unsigned char* data() const { return shared_->data() + lead_; }
  /// What is mapped: whole pages.
  void* base() const { return shared_->data(); }
  u64 mapped_bytes() const { return shared_->bytes(); }
  /// The same byte in a second mapping, whose stores the file never sees. Made when it is first asked for. Thread-safe.
  unsigned char* own_data();

  /// All of it will be read, from the beginning on: the system reads ahead, as it does not for rows.
  void expect_all() const;
  /// These will be read, in order: what of them is not in memory is asked for, without waiting.
  void expect(void const* begin, u64 bytes) const;
  /// Throws penstock::error (world) when the file has become shorter than what is mapped of it, or was when it was read.
  void check() const;
  /// The latter: what was read since may be zeros.
  bool was_cut() const;
  /// Lets others write to the rows. REQUIRES: nobody stores into them from now on.
  void give_up_writing() { lock_.release(); }
  /// msync of everything. Throws penstock::error (world).
  void sync() const;

 private:
  std::string path_;
  owned_file file_;
  write_lock lock_;  ///< of the rows
  u64 end_;
  bool writable_;
  u64 begin_ = 0;  ///< of what is mapped
  u64 lead_ = 0;   ///< bytes of the first page before the rows
  std::optional<file_mapping> shared_;
  mutable std::mutex making_;
  std::optional<file_mapping> own_;  ///< under making_
};

/// All of this memory will be stored into: pages that are large, if there are none yet, come in fewer faults.
void expect_stores(void* begin, u64 bytes);

}  // namespace penstock::rows
