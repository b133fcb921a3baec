#include "libs/volume/crc32c.hpp"

#include <array>
#include <cstring>

namespace penstock::volumes {
namespace {

constexpr u32 polynomial = 0x82f63b78;  // reflected
constexpr u32 slices = 8;

/// tables[k][b]: what a byte b does to the sum when k bytes follow it.
constexpr auto make_tables() {
  std::array<std::array<u32, 256>, slices> tables{};
  for (u32 b = 0; b < 256; ++b) {
    u32 sum = b;
    for (u32 bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1u) != 0 ? polynomial : 0);
    tables[0][b] = sum;
  }
  for (u32 k = 1; k < slices; ++k) {
    for (u32 b = 0; b < 256; ++b) tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 0xff];
  }
  return tables;
}

constexpr auto tables = make_tables();

u32 step(u32 sum, std::byte next) { return (sum >> 8) ^ tables[0][(sum ^ static_cast<u32>(next)) & 0xff]; }

u32 byte_at(std::byte const* from, u32 k) { return static_cast<u32>(from[k]); }

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) u32 by_instruction(std::span<std::byte const> bytes, u32 sum) {
  u64 wide = sum;
  for (; bytes.size() >= sizeof(u64); bytes = bytes.subspan(sizeof(u64))) {
    u64 word;
    std::memcpy(&word, bytes.data(), sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  sum = static_cast<u32>(wide);
  for (const std::byte each : bytes) sum = __builtin_ia32_crc32qi(sum, static_cast<u8>(each));
  return sum;
}
#endif

}  // namespace

u32 crc32c_by_tables(std::span<std::byte const> bytes, u32 before) {
  u32 sum = ~before;
  for (; bytes.size() >= slices; bytes = bytes.subspan(slices)) {
    std::byte const* from = bytes.data();
    const u32 low = sum ^ (byte_at(from, 0) | byte_at(from, 1) << 8 | byte_at(from, 2) << 16 | byte_at(from, 3) << 24);
    sum = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^ tables[4][low >> 24] ^
          tables[3][byte_at(from, 4)] ^ tables[2][byte_at(from, 5)] ^ tables[1][byte_at(from, 6)] ^ tables[0][byte_at(from, 7)];
  }
  for (const std::byte each : bytes) sum = step(sum, each);
  return ~sum;
}

u32 crc32c(std::span<std::byte const> bytes, u32 before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ~by_instruction(bytes, ~before);
#endif
  return crc32c_by_tables(bytes, before);
}

}  // namespace penstock::volumes
