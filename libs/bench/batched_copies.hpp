// Reads of a file without Penstock: host threads copy pieces of its mapping to GPU memory, many by one call of
// cudaMemcpyBatchAsync, and a kernel checks them. CUDA only.
#pragma once

#include "libs/bench/files_kernels.hpp"

#include <memory>
#include <string>
#include <vector>

namespace penstock::bench {

/// Not thread-safe: it has threads of its own.
class batched_copies {
 public:
  virtual ~batched_copies() = default;

  /// What the source of the copies is, for a measurement's parameters.
  virtual std::string source() const = 0;
  /// Copies `reads` pieces in this order, checks each, and counts wrong ones in `wrong`, which lies in GPU memory. Returns when
  /// all are checked. Throws penstock::error for a failed CUDA call.
  virtual void run(piece_order const& order, u64 reads, u64* wrong) = 0;
};

/// Copies from the file's mapping, and from a mapping registered with CUDA, if the file system and the driver allow one.
/// `on` outlives them.
std::vector<std::unique_ptr<batched_copies>> open_batched_copies(executor& on, std::string const& path, u32 threads);

}  // namespace penstock::bench
