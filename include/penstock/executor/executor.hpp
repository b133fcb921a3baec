// Where kernels run. `launch` (executor/launch.hpp) runs one body over a grid of groups on either.
#pragma once

#include "penstock/core/config.hpp"
#include "penstock/executor/memory.hpp"

#include <functional>
#include <memory>
#include <string>

namespace penstock {

enum class executor_kind { cpu, cuda };

/// Thread-safe, except that launches of one executor follow one another.
class executor {
 public:
  virtual ~executor() = default;

  virtual executor_kind kind() const = 0;
  /// For people: "2 CPU threads", "NVIDIA H200 (132 SMs)", "NVIDIA H200 (16 of 132 SMs)".
  virtual std::string device() const = 0;
  virtual memory_resource& memory() = 0;
  /// CUDA only: the number of its GPU, as CUDA counts them. A thread's current GPU may be another one.
  virtual int gpu() const { return -1; }
  /// CPU threads, or multiprocessors: those that it may use.
  virtual u32 units() const = 0;
  /// Waits for what was launched. Throws penstock::error with the driver's words when a kernel failed.
  virtual void synchronize() = 0;
  /// CUDA only: the stream (a cudaStream_t) of everything that this executor launches and copies; work that must follow it goes
  /// there, too. It does not wait for other streams, nor they for it: a resident kernel (a modelled controller) may run beside
  /// it.
  virtual void* stream() { return nullptr; }
  /// CUDA only: asks the L2 cache to keep [address, address + bytes) for what this executor launches, instead of what it was
  /// asked to keep before. Bytes that it keeps at most: 0 on the CPU, whose caches take no such wish. REQUIRES: no kernel runs.
  virtual u64 keep_in_l2(void const*, u64) { return 0; }
  /// Nothing is kept any more, if it was what lies at `address`.
  virtual void forget_in_l2(void const*) {}
  /// CPU only: calls work(first, last) over pieces of [0, items) of at most `chunk`, on all threads; returns when all are done.
  /// An exception of a piece is rethrown here.
  virtual void run(u64 items, u64 chunk, std::function<void(u64, u64)> const& work) = 0;
};

/// The most that an executor may take of the machine, so that others have the rest.
struct executor_limits {
  /// CPU threads, or SMs; 0: all. CUDA: everything that the executor launches stays on them, whatever its grid (a green
  /// context; needs a driver for CUDA 12.5). A GPU gives SMs away by the group (eight on Hopper): whole groups, no more than
  /// asked for. Resident kernels keep off them if they are made with this executor; those of another one know nothing of it.
  u32 units = 0;
};

/// "auto": CUDA where the caller has kernels for it and the library and the machine have it, else CPU. "cuda": the thread's
/// current GPU, "cuda:1" another one. `threads`: of the CPU executor, 0 for one per core. Throws penstock::error (bad_input)
/// for another name, or for a GPU where there is none, saying what is missing.
std::unique_ptr<executor> open_executor(std::string const& name, u32 threads = 0,
                                        bool has_kernels = PENSTOCK_COMPILED_BY_NVCC != 0);

/// Likewise with limits. Throws bad_input also for fewer SMs than a GPU gives away, world where its driver knows no such
/// limits.
std::unique_ptr<executor> open_executor(std::string const& name, executor_limits const& limits,
                                        bool has_kernels = PENSTOCK_COMPILED_BY_NVCC != 0);

/// The CPU executor over memory of a device's own (pci_function::memory): caches and queues that are made with it lie there.
/// REQUIRES: `memory` outlives it.
std::unique_ptr<executor> open_cpu_executor(memory_resource& memory, u32 threads = 0);

/// An executor over memory of a device's own, by name as `open_executor` has it, so that rings, doorbell words and bounce
/// buffers of its queues lie where that device reaches them. CUDA: that is its shared memory, registered with CUDA piece by
/// piece at the address that it has; its local memory stays the GPU's. CPU: all of its memory. Throws as open_executor, and
/// when memory is allocated that the GPU does not see at that address. REQUIRES: `memory` outlives it.
std::unique_ptr<executor> open_executor_over(memory_resource& memory, std::string const& name, u32 threads = 0,
                                             bool has_kernels = PENSTOCK_COMPILED_BY_NVCC != 0);

/// Whether a CUDA executor could be opened; where not, `reason` says what is missing.
bool cuda_usable(std::string* reason = nullptr);

}  // namespace penstock
