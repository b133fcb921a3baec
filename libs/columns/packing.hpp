// Packing of a column's values: frame of reference and bit width, as column_view reads it. Floating-point numbers that have few
// digits behind the point are packed as the integers that a divisor makes of them (ALP: Afroozeh, Kuffo, Boncz, SIGMOD 2024,
// section 3.1). All of it works on memory and shares nothing: a thread packs a column.
//
// Values are integers of 8 to 64 bits, or doubles.
#pragma once

#include "penstock/core/config.hpp"

#include <span>
#include <vector>

namespace penstock::columns {

/// A value is stored as `bits` bits: itself, times `divisor` if it is a double, less `base`.
struct packed_form {
  u32 bits = 0;  ///< up to 57: a value lies in two words
  u64 base = 0;  ///< two's complement, unless the values are unsigned
  double divisor = 0;
};

template <class T>
struct value_range {
  T low{}, high{};
};

/// REQUIRES: there are values, and no NaN.
template <class T>
value_range<T> range_of(std::span<T const> values);

/// Those of the divisors that make integers of all values, such that a division returns the values, bit for bit (no NaN, no
/// negative zero).
/// REQUIRES: ascending divisors, each a multiple of the one before.
std::vector<double> exact_divisors(std::span<double const> values, std::vector<double> divisors);

/// Packs values one behind the other, the first in the lowest bits, in words of 64 bits.
class bit_packer {
 public:
  explicit bit_packer(packed_form const& form);

  /// Appends values; full words go behind `words`. A value below the base (in the place of a null) is stored as 0.
  template <class T>
  void append(std::span<T const> values, std::vector<u64>& words);

  /// The word that is not full, if there is one.
  void finish(std::vector<u64>& words);

 private:
  template <class T>
  u64 stored(T value) const;
  u64 append_one(u64 value, u64* out);

  packed_form form_;
  u64 mask_;
  u64 word_ = 0;
  u64 used_ = 0;  ///< bits of word_
};

/// Takes values out of words that a packer has filled.
/// REQUIRES: whole words, and one more behind the last value.
template <class T>
void unpack(packed_form const& form, u64 const* words, std::span<T> values);

}  // namespace penstock::columns
