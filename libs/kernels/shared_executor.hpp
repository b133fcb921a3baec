// The executor that Python arrays and kernels share.
#pragma once

#include "penstock/executor/executor.hpp"

#include <memory>
#include <string>

#include <unistd.h>

namespace penstock {

#if defined(PENSTOCK_HAS_CUDA)
inline constexpr bool has_kernels = true;  // in the library
#else
inline constexpr bool has_kernels = false;
#endif

struct shared_executor {
  std::unique_ptr<executor> on;
  pid_t process = ::getpid();

  shared_executor() = default;
  shared_executor(shared_executor const&) = delete;
  shared_executor& operator=(shared_executor const&) = delete;
  // In a process that was forked the threads that it would wait for are its parent's.
  ~shared_executor() {
    if (process != ::getpid()) static_cast<void>(on.release());
  }

  static std::unique_ptr<shared_executor> open(std::string const& name, u32 threads) {
    auto made = std::make_unique<shared_executor>();
    made->on = open_executor(name, threads, has_kernels);
    return made;
  }
};

}  // namespace penstock
