// Runs the steps of a sample on either executor.
#pragma once

#include "libs/sampling/sample_bodies.hpp"

namespace penstock::sampling {

#if defined(PENSTOCK_HAS_CUDA)
inline constexpr bool has_kernels = true;
#else
inline constexpr bool has_kernels = false;
#endif

/// Where the steps go. CUDA: a cudaStream_t, and multiprocessors at most; 0: all.
struct step_place {
  executor* on = nullptr;
  void* stream = nullptr;
  u32 units = 0;
};

template <class Body>
void run_cuda(step_place const& to, u64 items, Body const& body);

template <class Body>
void run(step_place const& to, u64 items, Body const& body) {
  if constexpr (has_kernels) {
    if (to.on->kind() == executor_kind::cuda) return run_cuda(to, items, body);
  }
  constexpr u64 few_items = 4;  // waking other threads takes longer
  if (items <= few_items) return body(lone_thread{}, grid_range{0, items, 1});
  run_lone_threads(*to.on, items, body);
}

/// A lane to a row.
template <class Body>
void run_rows(step_place const& to, u64 rows, Body const& body) {
  run(to, ceil_div(rows, rows_of_item), body);
}

/// What a scan or a sort of a GPU works in.
struct scan_room {
  buffer<std::byte> bytes;
};

void scan_cuda(step_place const& to, u64* numbers, u64 count, scan_room& room);
void scan_cuda(step_place const& to, u32* numbers, u64 count, scan_room& room);
/// CUDA: sorts `order` by `keys`, whose bits from `begin` up to `end` count. Returns where the sorted order lies, of the two.
u32 const* sort_cuda(step_place const& to, u64* keys, u64* other_keys, u32* order, u32* other_order, u64 count, u32 begin,
                     u32 end, scan_room& room);
/// CUDA: waits for the stream.
void finish_cuda(step_place const& to);

/// Each number becomes the sum of those before it.
template <class T>
void scan(step_place const& to, T* numbers, u64 count, scan_room& room) {
  if constexpr (has_kernels) {
    if (to.on->kind() == executor_kind::cuda) return scan_cuda(to, numbers, count, room);
  }
  T sum = 0;
  for (u64 k = 0; k < count; ++k) {
    const T here = numbers[k];
    numbers[k] = sum;
    sum = static_cast<T>(sum + here);
  }
}

inline void finish(step_place const& to) {
  if constexpr (has_kernels) {
    if (to.on->kind() == executor_kind::cuda) finish_cuda(to);
  }
}

}  // namespace penstock::sampling
