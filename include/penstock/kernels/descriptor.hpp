// What a kernel compiled by itself knows of an array: plain words, the same for nvcc, NVRTC and a host compiler.
#pragma once

namespace penstock::kernels {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

inline constexpr u32 max_dimensions = 6;

/// Errors of one launch over one array, in memory that the host and kernels share.
struct launch_report {
  u64 first_bad;  ///< lowest index out of range, ~0: none
  u32 failure;    ///< packed status
};

/// Filled by row_array::lend; kernels take it by value inside `array<T>`.
struct array_descriptor {
  void* memory;           ///< of element 0; null: behind a cache
  u64 bytes;              ///< of all elements
  u64 origin;             ///< of element 0 in the cache's line space
  launch_report* report;  ///< of this launch
  u64 shape[max_dimensions];
  u32 dimensions;
  u32 runner;                 ///< CPU: the block_runner on whose OS thread it is read, in a launch; else 0
  alignas(8) u8 reader[120];  ///< a line_reader (array/line_reader.hpp)
};
static_assert(sizeof(array_descriptor) == 208, "kernels and the library share this layout");

/// A piece of 16 bytes, by value.
struct alignas(16) piece {
  u64 low, high;
};

/// first, first + step, ... below last.
struct index_range {
  u64 first, last, step;
};

/// What `change` does to an element; as element_op (array/write_slowly.hpp).
enum class change_kind : u32 { store, add, add_float, min_signed, min_unsigned, min_float, compare_exchange };

}  // namespace penstock::kernels
