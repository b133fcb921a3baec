// A text file cut into blocks of equal size that can be read in any order, by several threads: a line belongs to the block that
// its first byte lies in, so a block may hold no line, and its last line may end far behind it.
#pragma once

#include "libs/graph/file.hpp"

#include <algorithm>
#include <string>

namespace penstock::graph {

/// The lines of one block, from the first byte of the first to the newline of the last.
struct block_lines {
  u64 block = 0;
  u64 begin = 0;  ///< of the text in the file, in bytes
  std::string text{};
};

class text_blocks {
 public:
  /// `longest_line`: bytes after which a line that goes on beyond its block is taken for no text.
  text_blocks(byte_input input, u64 block_bytes, u64 longest_line)
      : input_(std::move(input)), block_bytes_(block_bytes), longest_line_(longest_line) {}

  std::string const& name() const { return input_.name(); }
  u64 size() const { return input_.size(); }  ///< bytes
  u64 count() const { return (size() + block_bytes_ - 1) / block_bytes_; }

  /// Errors: bad_input when a line is too long; world when the file cannot be read.
  block_lines read(u64 block) const;
  /// REQUIRES: size() != 0.
  bool ends_in_newline() const;

  /// From 1. `at` points into the text of `lines`, or to its end.
  u64 line_number(block_lines const& lines, char const* at) const;
  /// Throws bad_input that names the line of `at`.
  [[noreturn]] void fail(block_lines const& lines, char const* at, std::string const& problem) const;

 private:
  byte_input input_;
  u64 block_bytes_;
  u64 longest_line_;
};

/// Calls f(at, end) for each line without its newline.
template <class F>
void each_line(std::string const& text, F const& f) {
  char const* const end = text.data() + text.size();
  for (char const* at = text.data(); at < end;) {
    char const* const line_end = std::find(at, end, '\n');
    f(at, line_end);
    at = line_end + 1;
  }
}

}  // namespace penstock::graph
