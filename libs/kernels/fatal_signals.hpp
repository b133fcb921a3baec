// A sentence for a kernel whose signal ends the process: what C++ leaves undefined (a null pointer, an index out of range, a
// division of integers by zero, endless recursion) is a signal on the CPU, and a process that ends by one says nothing itself.
#pragma once

#include <atomic>

namespace penstock::kernels {

/// Handles SIGSEGV, SIGFPE and SIGILL, once in each process. Handlers that were there before are called afterwards.
void install_fatal_signals();

/// While it is there, such a signal of this thread prints the kernel's name and what the signal means to stderr. Gives the
/// thread a stack for handlers, for its own may be full.
class running_kernel {
 public:
  /// `name` outlives this.
  explicit running_kernel(char const* name);
  running_kernel(running_kernel const&) = delete;
  running_kernel& operator=(running_kernel const&) = delete;
  ~running_kernel();

 private:
  std::atomic<char const*>* place_;
  char const* outer_;  ///< of a launch below which this one runs, as in a handler of Python's
};

}  // namespace penstock::kernels
