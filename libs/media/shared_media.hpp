// The arrays of a graph behind one cache: what modelled drives and volumes have in common.
#pragma once

#include "penstock/runtime/line_cache.hpp"

#include <string>

namespace penstock::media {

class shared_media {
 public:
  virtual ~shared_media() = default;

  virtual line_cache& cache() = 0;
  /// Of an array in its dataset, which has its number.
  virtual u64 origin(u32 array) const = 0;
  virtual u64 count(u32 array) const = 0;
  template <class T>
  array_view<T> view(u32 array) {
    return cache().array<T>(array, origin(array), count(array));
  }

  virtual std::string engine() const = 0;
  /// Of modelled drives, what they were specified to read together, and how many there are.
  virtual double bytes_per_second() const { return 0; }
  virtual u32 modelled_drives() const { return 0; }
  /// SMs that are left to kernels; 0: all, or a CPU.
  virtual u32 units_left() const { return 0; }

  /// A trial is in between. CUDA: where the GPU serves, meanwhile nothing may be allocated or freed, and no kernel be launched
  /// for the first time.
  virtual void start() {}
  virtual void stop() {}
};

}  // namespace penstock::media
