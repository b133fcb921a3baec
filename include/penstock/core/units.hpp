// Quantities that must not be mixed up: each is an integer with a name of its own. `value(x)` gives the integer back.
#pragma once

#include "penstock/core/config.hpp"

#include <type_traits>

namespace penstock {

/// Number of a line in the space of one cache (all its arrays, one after the other); at most 40 bits.
enum class line_id : u64 {};
/// Number of a frame of a cache.
enum class frame_id : u32 {};
/// Logical block address on a namespace, in blocks of the namespace's block size.
enum class lba : u64 {};
/// Position in a dataset, in bytes.
enum class byte_offset : u64 {};

template <class Unit>
  requires std::is_enum_v<Unit>
PENSTOCK_FN constexpr auto value(Unit unit) {
  return static_cast<std::underlying_type_t<Unit>>(unit);
}

constexpr u64 operator""_KiB(unsigned long long n) { return n << 10; }
constexpr u64 operator""_MiB(unsigned long long n) { return n << 20; }
constexpr u64 operator""_GiB(unsigned long long n) { return n << 30; }

}  // namespace penstock
