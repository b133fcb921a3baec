#include "pieces.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/core/copy_into_frame.hpp"

#include <algorithm>
#include <cstring>

namespace penstock::controllers {

namespace {

constexpr u64 cache_line = 64;
constexpr u64 fetched_at_once = 512;

void prefetch_lines(std::byte const* bytes, u64 count) {
  for (u64 done = 0; done < count; done += cache_line) __builtin_prefetch(bytes + done);
}

/// Calls copy(done, part) for parts of `bytes`, each behind the prefetch of as many bytes of `next`, if that is not nullptr.
template <class Copy>
void prefetch_and_copy(u64 bytes, std::byte const* next, Copy const& copy) {
  if (next == nullptr) return copy(0, bytes);
  for (u64 done = 0; done < bytes; done += fetched_at_once) {
    const u64 part = std::min(fetched_at_once, bytes - done);
    prefetch_lines(next + done, part);
    copy(done, part);
  }
}

u64 word_at(std::byte const* bytes) {
  u64 word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace

void prefetch_pieces(pieces const& data) { for_each_piece(data, 0, fetched_at_once, prefetch_lines); }

void zero_pieces(pieces const& to, u64 begin, u64 end) {
  static constexpr u64 zeros[512] = {};
  const u64 inside = begin % 8;
  if (begin < end && inside != 0) {
    for_each_piece(to, begin - inside, 8, [&](std::byte* address, u64) {
      u64 word = 0;
      std::memcpy(&word, address, inside);
      copy_into_frame(address, &word, 8);
    });
  }
  begin = round_up(begin, 8);
  if (begin >= end) return;
  for_each_piece(to, begin, end - begin, [](std::byte* address, u64 bytes) {
    for (u64 done = 0; done < bytes; done += sizeof zeros) {
      copy_into_frame(address + done, zeros, std::min<u64>(sizeof zeros, bytes - done));
    }
  });
}

void copy_to_pieces(pieces const& to, void const* from, u64 valid, u64 total, void const* next) {
  auto const* source = static_cast<std::byte const*>(from);
  auto const* ahead = static_cast<std::byte const*>(next);
  const u64 whole = valid - valid % 8;
  for_each_piece(to, 0, whole, [&](std::byte* address, u64 bytes) {
    prefetch_and_copy(bytes, ahead, [&](u64 done, u64 part) { copy_into_frame(address + done, source + done, part); });
    if (ahead != nullptr) ahead += bytes;
    source += bytes;
  });
  if (whole != valid) {
    u64 word = 0;
    std::memcpy(&word, source, valid - whole);
    for_each_piece(to, whole, 8, [&](std::byte* address, u64) { copy_into_frame(address, &word, 8); });
  }
  if (valid != total) zero_pieces(to, round_up(valid, 8), total);
}

void copy_from_pieces(void* to, pieces const& from, u64 bytes, void const* next) {
  auto* target = static_cast<std::byte*>(to);
  auto const* ahead = static_cast<std::byte const*>(next);
  for_each_piece(from, 0, round_up(bytes, 8), [&](std::byte* address, u64 whole) {
    prefetch_and_copy(whole, ahead, [&](u64 done, u64 part) { copy_from_frame(target + done, address + done, part); });
    if (ahead != nullptr) ahead += whole;
    target += whole;
  });
}

void cut_pieces(pieces const& from, u64 skip, u64 bytes, pieces& result) {
  result.clear();
  for_each_piece(from, skip, bytes, [&](std::byte* address, u64 part) { result.push_back({address, part}); });
}

byte_run find_nonzero(pieces const& data, u64 begin, u64 end) {
  byte_run run{end, end};
  u64 at = begin;
  for_each_piece(data, begin, end - begin, [&](std::byte const* bytes, u64 count) {
    u64 k = 0;
    if (run.begin == end) {
      while (k + 8 <= count && word_at(bytes + k) == 0) k += 8;
      while (k < count && bytes[k] == std::byte{0}) ++k;
      if (k < count) run.begin = at + k;
    }
    if (run.begin != end && run.end == end) {
      void const* const zero = std::memchr(bytes + k, 0, count - k);
      if (zero != nullptr) run.end = at + static_cast<u64>(static_cast<std::byte const*>(zero) - bytes);
    }
    at += count;
  });
  return run;
}

}  // namespace penstock::controllers
