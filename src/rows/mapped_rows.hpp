// A file seen through the page cache: mapped shared, read-only or (CPU) to write as well.
#pragma once

#include "../controller/fault_guard.hpp"
#include "../host/owned_file.hpp"
#include "penstock/core/config.hpp"

#include <optional>
#include <string>

namespace penstock::rows {

class mapped_rows {
 public:
  /// Throws penstock::error with path, reason, remedy: no such file, no permission, fewer bytes than asked for.
  mapped_rows(std::string const& path, u64 offset, u64 bytes, bool writable);
  mapped_rows(mapped_rows const&) = delete;
  mapped_rows& operator=(mapped_rows const&) = delete;
  ~mapped_rows();

  /// Address of byte `offset` of the file.
  unsigned char* data() const { return static_cast<unsigned char*>(base_) + lead_; }
  /// What is mapped: whole pages.
  void* base() const { return base_; }
  u64 mapped_bytes() const { return mapped_; }

  /// All of it will be read, from the beginning on: the system reads ahead, as it does not for rows.
  void expect_all() const;
  /// Throws penstock::error (world) when the file has become shorter than what is mapped of it, or was when it was read.
  void check() const;
  /// The latter: what was read since may be zeros.
  bool was_cut() const { return watch_->was_cut(); }
  /// msync of everything. Throws penstock::error (world).
  void sync() const;

 private:
  std::string path_;
  owned_file file_;
  u64 end_;
  void* base_ = nullptr;
  u64 mapped_ = 0, lead_ = 0;
  std::optional<far_side::watched_mapping> watch_;
};

}  // namespace penstock::rows
