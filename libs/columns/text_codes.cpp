#include "libs/columns/text_codes.hpp"

#include <cstring>

namespace penstock::columns {
namespace {

constexpr u64 first_slots = 64;
constexpr u64 odd = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio: Fibonacci hashing

u64 mixed(u64 hash, u64 word) {
  hash = (hash ^ word) * odd;
  return hash ^ hash >> 32;
}

u64 hash_of(std::string_view text) {
  u64 hash = text.size() * odd;
  char const* at = text.data();
  u64 left = text.size();
  for (; left >= 8; at += 8, left -= 8) {
    u64 word = 0;
    std::memcpy(&word, at, 8);
    hash = mixed(hash, word);
  }
  u64 word = 0;
  for (u64 k = 0; k < left; ++k) word |= u64{static_cast<unsigned char>(at[k])} << 8 * k;
  return mixed(mixed(hash, word), 0);
}

}  // namespace

text_codes::text_codes() : slots_(first_slots) {}

u32 text_codes::code_of(std::string_view text) {
  const u64 hash = hash_of(text);
  for (u64 slot = hash & (slots_.size() - 1); slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
    const u32 code = slots_[slot] - 1;
    if (hashes_[code] == hash && this->text(code) == text && !is_null(code)) return code;
  }
  return add(text, hash);
}

u32 text_codes::code_of_null() {
  if (!has_null_) {
    null_code_ = add({}, hash_of({}));
    has_null_ = true;
  }
  return null_code_;
}

std::string_view text_codes::text(u32 code) const { return {bytes_.data() + ends_[code], ends_[code + 1] - ends_[code]}; }

u32 text_codes::add(std::string_view text, u64 hash) {
  const auto code = static_cast<u32>(hashes_.size());
  hashes_.push_back(hash);
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  ends_.push_back(bytes_.size());
  if (2 * hashes_.size() > slots_.size()) {
    slots_.assign(2 * slots_.size(), 0);
    for (u32 each = 0; each < code; ++each) place(each);
  }
  place(code);
  return code;
}

void text_codes::place(u32 code) {
  u64 slot = hashes_[code] & (slots_.size() - 1);
  while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = code + 1;
}

}  // namespace penstock::columns
