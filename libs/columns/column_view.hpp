// A column's values for kernels, as they lie in their files: integers and floating-point numbers of any width, truth values as
// bits, integers that were packed (frame of reference and bit width). Each comes as an int64 or a double.
#pragma once

#include "libs/columns/column_bytes.hpp"

#include <limits>

namespace penstock::columns {

enum class encoding : u32 { int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, bits, packed, int128 };

/// Bits that a value takes where it lies.
PENSTOCK_FN constexpr u32 bits_of(encoding how, u32 packed_bits) {
  switch (how) {
    case encoding::bits: return 1;
    case encoding::packed: return packed_bits;
    case encoding::int128: return 128;
    case encoding::int8:
    case encoding::uint8: return 8;
    case encoding::int16:
    case encoding::uint16: return 16;
    case encoding::int32:
    case encoding::uint32:
    case encoding::float32: return 32;
    default: return 64;
  }
}

/// What all pieces of a column have in common.
struct column_facts {
  encoding how = encoding::int64;
  u32 packed_bits = 0;
  bool is_divided = false;   ///< packed: the divisor is not 0
  bool is_nullable = true;   ///< a piece may be
  bool is_resident = false;  ///< all bytes are; false: they may be
};

/// One piece of a column: rows that lie one after another. Trivially copyable.
struct column_view {
  column_bytes bytes;     ///< from value 0 on, to the end of what may be read
  column_bytes validity;  ///< a bit each, 1: there is a value
  encoding how = encoding::int64;
  u32 packed_bits = 0;
  u64 base = 0;        ///< packed: the value of 0
  double divisor = 0;  ///< packed: floating-point numbers are so many times smaller than what is stored; 0: integers
  u32 first_bit = 0;
  u32 first_valid = 0;
  u32 nullable = 0;

  PENSTOCK_FORCE_INLINE column_facts facts() const { return {how, packed_bits, divisor != 0, nullable != 0, false}; }

  /// REQUIRES: the piece has row i, and whole pieces of its size lie at `bytes` from there on.
  template <class T>
  PENSTOCK_FORCE_INLINE T at(u64 i, bool is_resident = false) const {
    if (is_resident || bytes.is_resident()) return reinterpret_cast<T const*>(bytes.resident())[i];
    return std::bit_cast<T>(read_piece<piece_of<sizeof(T)>>(bytes, i * sizeof(T)));
  }
  PENSTOCK_FN static bool bit_of(column_bytes const& from, u64 bit, bool is_resident) {
    const unsigned byte = is_resident ? from.resident()[bit / 8] : from[bit / 8];
    return (byte >> bit % 8 & 1) != 0;
  }

  PENSTOCK_FN bool is_valid(u64 i) const { return is_valid(i, facts()); }
  PENSTOCK_FN bool is_valid(u64 i, column_facts const& of) const {
    return !of.is_nullable || nullable == 0 || bit_of(validity, first_valid + i, of.is_resident);
  }

  /// An int64 or a double, by its bits.
  PENSTOCK_FN u64 value(u64 i) const { return value(i, facts()); }
  /// `of`: its facts, which may be constants.
  PENSTOCK_FN u64 value(u64 i, column_facts const& of) const {
    using signed_word = std::int64_t;
    const bool here = of.is_resident;
    switch (of.how) {
      case encoding::int8: return static_cast<u64>(static_cast<signed_word>(static_cast<signed char>(at<u8>(i, here))));
      case encoding::int16: return static_cast<u64>(static_cast<signed_word>(static_cast<short>(at<u16>(i, here))));
      case encoding::int32: return static_cast<u64>(static_cast<signed_word>(static_cast<int>(at<u32>(i, here))));
      case encoding::uint8: return at<u8>(i, here);
      case encoding::uint16: return at<u16>(i, here);
      case encoding::uint32: return at<u32>(i, here);
      case encoding::float32: return std::bit_cast<u64>(static_cast<double>(std::bit_cast<float>(at<u32>(i, here))));
      case encoding::bits: return bit_of(bytes, first_bit + i, here) ? 1 : 0;
      case encoding::packed: return widened(base + packed_raw(i, of), of.is_divided);
      case encoding::int128: return at<u64>(2 * i, here);
      default: return at<u64>(i, here);
    }
  }

  /// A packed value lies in two words at most; whole words lie behind the last value.
  PENSTOCK_FN u64 packed_raw(u64 i) const { return packed_raw(i, facts()); }
  PENSTOCK_FN u64 packed_raw(u64 i, column_facts const& of) const {
    const u32 bits = of.packed_bits;
    if (bits == 0) return 0;
    const u64 bit = i * bits, word = bit / 64;
    const auto within = static_cast<u32>(bit % 64);
    u64 low = at<u64>(word, of.is_resident) >> within;
    if (within + bits > 64) low |= at<u64>(word + 1, of.is_resident) << (64 - within);
    return low & (~u64{0} >> (64 - bits));
  }
  /// Rounded as division is, so the number that was stored comes out (ALP: Afroozeh, Kuffo, Boncz, SIGMOD 2024).
  PENSTOCK_FN u64 widened(u64 integer) const { return widened(integer, divisor != 0); }
  PENSTOCK_FN u64 widened(u64 integer, bool is_divided) const {
    if (!is_divided) return integer;
    return std::bit_cast<u64>(static_cast<double>(static_cast<std::int64_t>(integer)) / divisor);
  }
  /// Of 128 bits, whether they are no more than the lower 64 say. REQUIRES: int128.
  PENSTOCK_FN bool fits(u64 i, bool is_resident) const {
    return at<u64>(2 * i + 1, is_resident) == 0 - (at<u64>(2 * i, is_resident) >> 63);
  }

  /// Where the bytes of rows lie, from `begin` to `end` bytes behind the first.
  struct byte_range {
    u64 begin, end;
  };
  PENSTOCK_FN byte_range bytes_of(u64 first, u64 rows) const {
    const u64 wide = bits_of(how, packed_bits);
    if (how == encoding::packed) {
      const u64 last = (first + rows) * wide;
      return {first * wide / 64 * 8, (last + 63) / 64 * 8};
    }
    return {(first_bit + first * wide) / 8, (first_bit + (first + rows) * wide + 7) / 8};
  }
};

/// Numbers in an order in which integers compare as they do: NaN last, and one zero.
PENSTOCK_FN inline std::int64_t sortable(double number) {
  if (number != number) return std::numeric_limits<std::int64_t>::max();
  const auto bits = std::bit_cast<std::int64_t>(number + 0.0);  // -0 becomes 0
  return bits < 0 ? bits ^ std::numeric_limits<std::int64_t>::max() : bits;
}
PENSTOCK_FN inline double number_of(std::int64_t sorted) {
  if (sorted == std::numeric_limits<std::int64_t>::max()) return std::numeric_limits<double>::quiet_NaN();
  return std::bit_cast<double>(sorted < 0 ? sorted ^ std::numeric_limits<std::int64_t>::max() : sorted);
}

}  // namespace penstock::columns
