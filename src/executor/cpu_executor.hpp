// The CPU executor: a pool of threads that take pieces of a grid one after another.
#pragma once

#include "penstock/executor/executor.hpp"

namespace penstock {

/// `threads` = 0: one per core that this process may use.
std::unique_ptr<executor> make_cpu_executor(u32 threads);

/// One thread per core that this process may use, and no more than the limits say.
std::unique_ptr<executor> make_cpu_executor(executor_limits const& limits);

}  // namespace penstock
