// Codes of texts: the first text that comes has 0, each new one the next. A hash table with open addressing, whose slots are
// codes. One thread at a time uses it.
#pragma once

#include "penstock/core/config.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace penstock::columns {

/// Texts that lie one behind the other, as Arrow's large_string has them.
struct text_rows {
  std::span<std::int64_t const> offsets;  ///< of each text, and the end of the last one
  std::span<char const> bytes;
  bool const* valid = nullptr;  ///< of each; null: all
  bool words = false;           ///< a dictionary: what is not valid counts as a word; else its code is 0

  u64 size() const { return offsets.size() - 1; }
  bool has(u64 k) const { return valid == nullptr || valid[k]; }
  /// Throws std::invalid_argument where the text is not within the bytes.
  std::string_view at(u64 k) const;
};

class text_codes {
 public:
  text_codes();

  /// REQUIRES: fewer than 2^32 - 1 texts.
  u32 code_of(std::string_view text);

  /// Codes of texts in order, as `code_of` and `code_of_null` give them. Cost: the misses of neighbours overlap.
  void encode(text_rows const& texts, std::span<std::int64_t> codes);

  /// The code of what is no text, where a dictionary lists that; it counts as one.
  u32 code_of_null();

  u64 size() const { return ends_.size() - 1; }
  /// REQUIRES: code < size().
  std::string_view text(u32 code) const;
  bool is_null(u32 code) const { return has_null_ && code == null_code_; }

 private:
  u32 find(std::string_view text, u64 hash);
  void prefetch(std::span<u64 const> hashes) const;
  u32 add(std::string_view text, u64 hash);
  void place(u64 slot);
  u64 home_of(u64 hash) const { return hash >> 32 & (slots_.size() - 1); }

  std::vector<u64> slots_;  ///< a hash, and a code + 1 for its lower half; 0: empty. A power of two, half of them used at most
  std::vector<u64> ends_{0};  ///< of each text in `bytes_`, behind the first one's begin
  std::vector<char> bytes_;
  bool has_null_ = false;
  u32 null_code_ = 0;
};

}  // namespace penstock::columns
