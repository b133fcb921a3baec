// Media whose every 8-byte word tells where it lies, so that one word out of place is seen.
#pragma once

#include "support/test_context.hpp"

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace penstock::test {

PENSTOCK_FN inline u64 stamp(u64 word) { return scatter(word ^ 0x50454e53544f434bull); }

class stamped_media {
 public:
  explicit stamped_media(u64 bytes) : words_(bytes / 8) { stamp_all(); }

  void stamp_all() {
    for (u64 w = 0; w < words_.size(); ++w) words_[w] = stamp(w);
  }

  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words_)); }
  std::span<u64 const> words() const { return words_; }
  u64 size() const { return words_.size() * 8; }

 private:
  std::vector<u64> words_;
};

}  // namespace penstock::test
