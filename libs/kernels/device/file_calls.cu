// The reads of files by kernels of the user's own, as LTO-IR: a hit is inlined into the kernel, as a hit of an array is.
#include "libs/kernels/folder_calls.hpp"

using namespace penstock;

namespace {

template <class G>
__device__ bool read_hit(G const& g, void const* folder, kernels::file_words const& file, u64 offset, u64 count, void* to) {
  return static_cast<folder_view const*>(folder)->read_hit(g, kernels::descriptor_of(file), to, count, offset);
}

}  // namespace

extern "C" {

__device__ unsigned int penstock_read_file_hit(void const* folder, kernels::file_words file, unsigned long long offset,
                                               unsigned long long count, void* to) {
  return read_hit(lone_thread{}, folder, file, offset, count, to);
}
__device__ unsigned int penstock_read_file_hit_by_warp(void const* folder, kernels::file_words file, unsigned long long offset,
                                                       unsigned long long count, void* to) {
  return read_hit(warp::active(), folder, file, offset, count, to);
}

}  // extern "C"
