// The file at the other end of a copy: read or written in order.
#pragma once

#include "penstock/core/config.hpp"

#include <string>

namespace penstock::drive {

/// Gets bytes in order. A regular file appears under its name when `finish` is called, and not at all without that; what is no
/// regular file (a pipe, the standard output, /dev/null) gets them at once.
class output_file {
 public:
  /// "-": the standard output. Throws penstock::error.
  output_file(std::string const& path, bool replace);
  output_file(output_file const&) = delete;
  output_file& operator=(output_file const&) = delete;
  ~output_file();

  /// `interrupted` is called where a signal comes in between, and may throw.
  template <class Interrupted>
  void write(void const* from, u64 bytes, Interrupted const& interrupted) {
    for (u64 done = 0; done < bytes;) {
      const u64 some = write_some(static_cast<char const*>(from) + done, bytes - done);
      if (some == 0) interrupted();
      done += some;
    }
  }
  void finish();

 private:
  u64 write_some(char const* from, u64 bytes);
  [[noreturn]] void fail(int code) const;

  std::string path_;
  std::string draft_;  ///< empty: there is none
  int handle_ = -1;
  bool owned_ = true;
};

/// A regular file.
class input_file {
 public:
  explicit input_file(std::string const& path);
  input_file(input_file const&) = delete;
  input_file& operator=(input_file const&) = delete;
  ~input_file();

  u64 bytes() const { return bytes_; }
  /// Throws penstock::error where the file has become shorter.
  void read(void* to, u64 bytes);

 private:
  std::string path_;
  int handle_ = -1;
  u64 bytes_ = 0;
};

}  // namespace penstock::drive
