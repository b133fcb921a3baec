// Runs a body of this folder on either executor. CUDA: only those that regular_cuda.cu names.
#pragma once

#include "penstock/executor/launch.hpp"

namespace penstock::regular {

#if defined(PENSTOCK_HAS_CUDA)
inline constexpr bool has_kernels = true;
#else
inline constexpr bool has_kernels = false;
#endif

/// Lanes of a worker on CUDA.
inline constexpr u32 group_width = 32;

template <class Body>
void run_cuda(executor& on, u64 items, Body const& body);
template <class Body>
void prepare_cuda(executor& on, Body const& body);
template <class Body>
kernel_facts describe_cuda(executor& on, Body const& body);

template <class Body>
void run(executor& on, u64 items, Body const& body) {
  if constexpr (has_kernels) {
    if (on.kind() == executor_kind::cuda) return run_cuda(on, items, body);
  }
  launch<group_width>(on, items, body);
}

/// Before a resident kernel starts, which it would wait for.
template <class Body>
void prepare([[maybe_unused]] executor& on, [[maybe_unused]] Body const& body) {
  if constexpr (has_kernels) {
    if (on.kind() == executor_kind::cuda) prepare_cuda(on, body);
  }
}

template <class Body>
kernel_facts describe([[maybe_unused]] executor& on, [[maybe_unused]] Body const& body) {
  if constexpr (has_kernels) {
    if (on.kind() == executor_kind::cuda) return describe_cuda(on, body);
  }
  return {};
}

}  // namespace penstock::regular
