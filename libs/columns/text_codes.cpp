#include "libs/columns/text_codes.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace penstock::columns {
namespace {

constexpr u64 first_text_slots = 64;
constexpr u64 group_rows = 32;           // whose memory is asked for at once
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

u64 upper(u64 hash) { return hash >> 32 << 32; }

}  // namespace

text_codes::text_codes() : slots_(first_text_slots) {}

std::string_view text_rows::at(u64 k) const {
  const auto begin = static_cast<u64>(offsets[k]), end = static_cast<u64>(offsets[k + 1]);
  if (begin > end || end > bytes.size()) throw std::invalid_argument("a text is not within its buffer");
  return {bytes.data() + begin, end - begin};
}

u32 text_codes::code_of(std::string_view text) { return find(text, hash_of(text)); }

void text_codes::encode(text_rows const& texts, std::span<std::int64_t> codes) {
  std::array<u64, group_rows> hashes;
  for (u64 first = 0; first < texts.size(); first += group_rows) {
    const u64 rows = std::min(group_rows, texts.size() - first);
    for (u64 k = 0; k < rows; ++k) hashes[k] = texts.has(first + k) ? hash_of(texts.at(first + k)) : 0;
    prefetch({hashes.data(), rows});
    for (u64 k = 0; k < rows; ++k) {
      const u64 row = first + k;
      codes[row] = texts.has(row) ? find(texts.at(row), hashes[k]) : texts.words ? code_of_null() : 0;
    }
  }
}

/// What `find` will read: slots, then where their texts lie, then these.
void text_codes::prefetch(std::span<u64 const> hashes) const {
  for (const u64 hash : hashes) __builtin_prefetch(&slots_[home_of(hash)]);
  const auto code = [this](u64 hash) { return static_cast<u32>(std::max<u64>(slots_[home_of(hash)], 1)) - 1; };
  for (const u64 hash : hashes) __builtin_prefetch(&ends_[code(hash)]);
  for (const u64 hash : hashes) __builtin_prefetch(bytes_.data() + ends_[code(hash)]);
}

u32 text_codes::find(std::string_view text, u64 hash) {
  for (u64 at = home_of(hash); slots_[at] != 0; at = (at + 1) & (slots_.size() - 1)) {
    const auto code = static_cast<u32>(slots_[at]) - 1;
    if (upper(slots_[at]) == upper(hash) && this->text(code) == text && !is_null(code)) return code;
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
  const auto code = static_cast<u32>(size());
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  ends_.push_back(bytes_.size());
  if (2 * size() > slots_.size()) {
    std::vector<u64> full(2 * slots_.size());
    full.swap(slots_);
    for (const u64 slot : full) {
      if (slot != 0) place(slot);
    }
  }
  place(upper(hash) | (code + u64{1}));
  return code;
}

void text_codes::place(u64 slot) {
  u64 at = home_of(slot);
  while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = slot;
}

}  // namespace penstock::columns
