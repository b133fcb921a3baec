// Reads of a file without Penstock: host threads bring pieces of its mapping to GPU memory, many at once, and a kernel checks
// them. CUDA only.
#pragma once

#include "libs/bench/files_kernels.hpp"

#include <memory>
#include <string>
#include <vector>

namespace penstock::bench {

/// How a batch gets there.
enum class copy_source {
  mapping,     ///< one call of cudaMemcpyBatchAsync, from the mapping
  registered,  ///< the same from a mapping that CUDA has registered
  staged,      ///< the thread gathers the pieces in pinned memory, and one copy takes them
};

/// Not thread-safe: it has threads of its own.
class batched_copies {
 public:
  virtual ~batched_copies() = default;

  virtual copy_source source() const = 0;
  /// Copies `reads` pieces in this order, checks each, and counts wrong ones in `wrong`, which lies in GPU memory. Returns when
  /// all are checked. Throws penstock::error for a failed CUDA call.
  virtual void run(piece_order const& order, u64 reads, u64* wrong) = 0;
};

/// One of each; without the registered one where the file system or the driver refuses it. `on` outlives them.
std::vector<std::unique_ptr<batched_copies>> open_batched_copies(executor& on, std::string const& path, u32 threads);

}  // namespace penstock::bench
