// Codes of texts: the first text that comes has 0, each new one the next. A hash table with open addressing, whose slots are
// codes. One thread at a time uses it.
#pragma once

#include "penstock/core/config.hpp"

#include <string_view>
#include <vector>

namespace penstock::columns {

class text_codes {
 public:
  text_codes();

  /// REQUIRES: fewer than 2^32 - 1 texts.
  u32 code_of(std::string_view text);

  /// The code of what is no text, where a dictionary lists that; it counts as one.
  u32 code_of_null();

  u64 size() const { return hashes_.size(); }
  /// REQUIRES: code < size().
  std::string_view text(u32 code) const;
  bool is_null(u32 code) const { return has_null_ && code == null_code_; }

 private:
  u32 add(std::string_view text, u64 hash);
  void place(u32 code);

  std::vector<u32> slots_;    ///< code + 1; 0: empty. A power of two, at most half of them used
  std::vector<u64> hashes_;   ///< of each code
  std::vector<u64> ends_{0};  ///< of each text in `bytes_`, behind the first one's begin
  std::vector<char> bytes_;
  bool has_null_ = false;
  u32 null_code_ = 0;
};

}  // namespace penstock::columns
