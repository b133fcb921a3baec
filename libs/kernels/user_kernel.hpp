// A kernel of the user's own, compiled elsewhere and loaded: launched over arrays that it borrows.
#pragma once

#include "penstock/executor/executor.hpp"
#include "penstock/kernels/host_calls.hpp"
#include "penstock/rows/row_array.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::kernels {

struct launch_shape {
  extent grid, block;
  u32 shared_bytes = 0;    ///< dynamic
  void* stream = nullptr;  ///< CUDA
  u64 timeout_ns = 0;      ///< CPU: stopped() is true from then on; 0: none
  /// CPU: called by the process's main thread some times a second, where that launches; what it throws ends the launch.
  std::function<void()> check = {};
};

/// What a kernel takes of a GPU. CPU: zeros, but for the threads.
struct launch_facts {
  u32 registers = 0;     ///< per thread
  u32 local_bytes = 0;   ///< stack and spills per thread
  u32 shared_bytes = 0;  ///< static
  u32 max_block_threads = 0;
  u32 blocks_per_unit = 0;  ///< that fit one multiprocessor
  u32 units = 0;
  u32 unit_threads = 0;  ///< of a multiprocessor
};

/// One parameter: bytes as the kernel takes them, or an array.
struct kernel_argument {
  std::vector<std::byte> bytes;
  row_array* array = nullptr;
  u64 element_bytes = 0;
  bool stores = false;
  std::vector<u64> shape;
};

/// A place on a stream that can be waited for.
class launch_end {
 public:
  virtual ~launch_end() = default;
  virtual bool is_reached() = 0;
  virtual void wait() = 0;
};

class user_kernel {
 public:
  virtual ~user_kernel() = default;

  virtual executor& on() const = 0;
  virtual launch_facts facts(u32 block_threads, u32 shared_bytes) const = 0;
  /// CUDA: makes stopped() true, or false again, in threads that run, and in those of later launches. CPU: of each launch, by
  /// its deadline.
  virtual void set_stopped(bool stopped) = 0;
  /// Bytes of a parameter; 0: unknown, or there is none.
  virtual u64 parameter_bytes(u64 index) const = 0;
  /// `parameters`: an address for each; `lent`: those of arrays. CUDA: returns when the kernel is on the stream; CPU: when it
  /// is done. Throws penstock::error: a shape that the executor does not have; CPU: threads that wait for others that never
  /// come. False: it passed its deadline, and blocks are left.
  virtual bool start(std::span<void* const> parameters, std::span<array_descriptor const> lent, launch_shape const& shape) = 0;
  /// Behind what is on the stream now; null on the CPU, and while the stream is captured.
  virtual std::unique_ptr<launch_end> end_on(void* stream) = 0;
};

/// What a launch is waited for by.
struct started_launch {
  std::vector<row_call> calls;      ///< of each array, in the order of the arguments
  std::unique_ptr<launch_end> end;  ///< of one without arrays
  bool in_time = true;              ///< CPU: before its deadline
};

/// Lends the arrays and starts the kernel.
started_launch launch(user_kernel& kernel, std::span<kernel_argument> arguments, launch_shape const& shape);

/// What array<T> calls in code for the CPU that others have compiled and loaded. Not for its barriers: those are a launch's.
host_calls const& calls_of_host();

/// `library`: of a host compiler, with the entry that host_entry.hpp defines. Throws penstock::error for one that cannot be
/// loaded. REQUIRES: the executor, one of CPUs, outlives it.
std::unique_ptr<user_kernel> load_host_kernel(executor& on, std::string const& name, std::string const& library);

/// `cubin`: linked, for this GPU. Throws penstock::error: an image for another one, a name that it does not have.
std::unique_ptr<user_kernel> load_cuda_kernel(executor& on, std::string const& name, std::span<std::byte const> cubin);

/// Compute capability of the executor's GPU, times ten.
u32 gpu_architecture(executor const& on);

}  // namespace penstock::kernels
