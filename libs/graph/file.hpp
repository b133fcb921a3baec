// Files with the errors of this library: every failure names the operation, the path and the remedy. One object may be read and
// written by several threads at once (positions are arguments); opening and closing are for one.
#pragma once

#include "penstock/core/config.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace penstock::graph {

/// Owns a file descriptor. Movable.
class file {
 public:
  /// Errors: world when it cannot be opened; bad_input when `path` is no regular file.
  static file open(std::string const& path);
  /// The same for a file that is to be changed in place.
  static file open_to_write(std::string const& path);
  /// Errors: world; the file must not exist yet.
  static file create(std::string const& path);

  file() = default;  ///< closed
  file(file&& other) noexcept;
  file& operator=(file&& other) noexcept;
  ~file();

  std::string const& path() const { return path_; }
  u64 size() const { return size_; }  ///< bytes when it was opened; 0 for a created file

  /// Reads exactly to.size() bytes. Errors: world, also when the file ends before (it shrank since it was opened).
  void read(u64 offset, std::span<std::byte> to) const;
  /// Writes all of `from`. Errors: world, among them a full disk.
  void write(u64 offset, std::span<std::byte const> from) const;
  /// Asks the system to bring these bytes, which were written, to the disk from now on: then sync_and_close() has less to wait
  /// for.
  void start_sync(u64 offset, u64 bytes) const;
  /// On return the bytes are on the disk, or an error is thrown; then the file is closed.
  void sync_and_close();

 private:
  file(int descriptor, std::string path, u64 size) : descriptor_(descriptor), path_(std::move(path)), size_(size) {}

  int descriptor_ = -1;
  std::string path_;
  u64 size_ = 0;
};

/// A file that lies elsewhere than in a file system. Thread-safe.
class stored_bytes {
 public:
  virtual ~stored_bytes() = default;
  virtual u64 size() const = 0;
  /// REQUIRES: offset + to.size() <= size(). Errors: world.
  virtual void read(u64 offset, std::span<std::byte> to) const = 0;
};

/// Bytes to parse: a file, wherever it lies, or memory (for tests and fuzzing). Reads may come from several threads at once.
class byte_input {
 public:
  explicit byte_input(file from) : file_(std::move(from)), name_(file_.path()), size_(file_.size()) {}
  /// `name`: what people know the file by, where that is not its path.
  byte_input(file from, std::string name) : file_(std::move(from)), name_(std::move(name)), size_(file_.size()) {}
  byte_input(std::span<std::byte const> bytes, std::string name);
  byte_input(std::shared_ptr<stored_bytes const> stored, std::string name);

  std::string const& name() const { return name_; }
  u64 size() const { return size_; }
  /// REQUIRES: offset + to.size() <= size().
  void read(u64 offset, std::span<std::byte> to) const;

 private:
  file file_;
  std::shared_ptr<stored_bytes const> stored_;
  std::span<std::byte const> memory_;
  std::string name_;
  u64 size_ = 0;
  bool in_memory_ = false;
};

}  // namespace penstock::graph
