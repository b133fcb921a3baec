// Weights as text and other numbers give them, and what of them int32 or float32 can hold.
#pragma once

#include "penstock/core/config.hpp"

#include <cmath>
#include <limits>

namespace penstock::graph {

/// A parsed weight: an integer, or a number with a fraction or an exponent.
struct weight_value {
  bool whole = true;
  int whole_value = 0;
  float real_value = 0;
};

/// Why float32 cannot hold `value`, as the end of "the weight ..."; nullptr where it can: with the usual rounding of a
/// fraction, exactly if it is an integer (of 64 bits).
inline char const* float32_misfit(double value) {
  constexpr double smallest_normal = std::numeric_limits<float>::min(), end_of_integers = 18446744073709551616.0;
  double const held = static_cast<double>(static_cast<float>(value)), size = std::fabs(value);
  if (!std::isfinite(value)) return "is no finite number";
  if (!std::isfinite(held)) return "is too large for float32";
  if (size < smallest_normal && held != value) return "is too small for float32";
  if (size < end_of_integers && std::trunc(value) == value && held != value)
    return "is an integer that float32 cannot hold exactly";
  return nullptr;
}

/// Whether float32 holds it exactly.
inline bool fits_float32(int value) {
  constexpr int all_below = 1 << std::numeric_limits<float>::digits;
  return (value >= -all_below && value <= all_below) || float32_misfit(value) == nullptr;
}

}  // namespace penstock::graph
