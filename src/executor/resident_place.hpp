// Where a kernel that stays runs beside what an executor launches: SMs that it does not need, of the same GPU or of another
// one, and the memory next to them.
#pragma once

#include "penstock/executor/executor.hpp"

#include <memory>

namespace penstock {

/// Holds its SMs until it goes: two that could not run at once are refused when the second is made, not when it waits.
class resident_place {
 public:
  virtual ~resident_place() = default;

  virtual int device() const = 0;
  virtual u32 units() const = 0;
  /// Whether it is on the GPU of the executor.
  virtual bool same_gpu() const = 0;
  /// SMs that are counted in the executor's own units.
  virtual u32 units_taken() const = 0;
  virtual memory_resource& memory() = 0;
  /// A cudaStream_t for the kernel.
  virtual void* stream() const = 0;
};

/// `device`: a GPU that reaches the memory of the executor's and is reached by it; -1: the executor's own. `units`: 0: a third.
/// Throws bad_input when there are not so many SMs, no such GPU, or a pair of GPUs that do not reach each other.
/// REQUIRES: on.kind() == executor_kind::cuda; it outlives the place.
std::unique_ptr<resident_place> make_resident_place(executor& on, int device, u32 units);

}  // namespace penstock
