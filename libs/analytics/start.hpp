// Launches of bodies over graphs, on either executor; the kernels are compiled by nvcc in files of their own.
#pragma once

#include "libs/analytics/edge_lists.hpp"

namespace penstock::analytics {

#if defined(PENSTOCK_HAS_CUDA)
inline constexpr bool has_kernels = true;
#else
inline constexpr bool has_kernels = false;
#endif

/// On CUDA, in the translation units that can compile it. `Width`: lanes of a group.
template <u32 Width, class Body>
void launch_on_gpu(executor& on, u64 items, Body const& body, launch_limits limits);
template <u32 Width, class Body>
void prepare_on_gpu(executor& on, Body const& body);

/// Runs a body over items on either executor; a GPU only has it before it when this returns, and what is read of its memory
/// comes after. `limits.groups` is in groups of list_group_width.
template <u32 Width = list_group_width, class Body>
void start(executor& on, u64 items, Body const& body, [[maybe_unused]] launch_limits limits = {}) {
#if defined(PENSTOCK_HAS_CUDA)
  if (on.kind() == executor_kind::cuda) return launch_on_gpu<Width>(on, items, body, limits);
#endif
  launch<Width>(on, items, body);
}

/// As prepare_launch.
template <u32 Width = list_group_width, class Body>
void prepare_start([[maybe_unused]] executor& on, [[maybe_unused]] Body const& body) {
#if defined(PENSTOCK_HAS_CUDA)
  if (on.kind() == executor_kind::cuda) prepare_on_gpu<Width>(on, body);
#endif
}

/// Sorts `count` numbers below `limit`. `scratch` is the executor's own, kept between calls. Returns the array that has them.
template <class Id>
Id* sort_numbers(executor& on, Id* from, Id* other, u64 count, u64 limit, buffer<u8>& scratch);
/// The same, and leaves each number in `from` once; gives how many are left. `left`: a word of local memory.
template <class Id>
u64 sort_unique(executor& on, Id* from, Id* other, u64 count, u64 limit, buffer<u8>& scratch, u64* left);

template <class Id>
void sort_on_gpu(executor& on, Id const* from, Id* sorted, u64 count, u64 limit, buffer<u8>& scratch);
template <class Id>
u64 unique_on_gpu(executor& on, Id const* sorted, Id* unique, u64 count, buffer<u8>& scratch, u64* left);

}  // namespace penstock::analytics
