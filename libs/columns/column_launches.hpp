// Runs bodies on either executor.
#pragma once

#include "libs/columns/group_bodies.hpp"
#include "libs/columns/join_bodies.hpp"
#include "libs/columns/zone_bodies.hpp"
#include "penstock/executor/launch.hpp"

namespace penstock::columns {

#if defined(PENSTOCK_HAS_CUDA)
inline constexpr bool has_kernels = true;
#else
inline constexpr bool has_kernels = false;
#endif

template <class Body>
void run_cuda(executor& on, u64 items, Body const& body, launch_limits limits);
/// Before a resident kernel runs beside the launch.
template <class Body>
void prepare_cuda(executor& on, Body const& body);
/// Compiled for vector instructions.
template <class Body>
void run_cpu(executor& on, u64 items, Body const& body);

template <class Body>
void run(executor& on, u64 items, Body const& body, launch_limits limits) {
  if constexpr (has_kernels) {
    if (on.kind() == executor_kind::cuda) return run_cuda(on, items, body, limits);
  }
  run_cpu(on, items, body);
}

template <class Body>
void prepare(executor& on, Body const& body) {
  if constexpr (has_kernels) {
    if (on.kind() == executor_kind::cuda) prepare_cuda(on, body);
  }
}

}  // namespace penstock::columns
