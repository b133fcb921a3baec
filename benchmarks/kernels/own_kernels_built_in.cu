// The kernels of own_kernels.py as the library's headers have them, compiled ahead of time by nvcc: what kernels that are
// compiled when the program runs are compared with. own_kernels.py gives the command.
#include "libs/kernels/element_calls.hpp"

using namespace penstock;

namespace {

__device__ array_view<u64> view_of(kernels::array_descriptor const& of) {
  if (of.memory != nullptr) return {static_cast<u64 const*>(of.memory), of.bytes / sizeof(u64)};
  line_reader const& reader = kernels::reader_of(of);
  return {reader, of.origin - reader.base, of.bytes / sizeof(u64)};
}

__device__ u64 mix(u64 x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256, 8)
    random_elements(__grid_constant__ const kernels::array_descriptor d, unsigned long long* out, unsigned long long count) {
  const array_view<u64> a = view_of(d);
  const u64 mask = a.size() - 1;
  u64 sum = 0;
  for (u64 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) sum += a[mix(i) & mask];
  atomicAdd(out, sum);
}

extern "C" __global__ void __launch_bounds__(256, 4)
    random_lines(__grid_constant__ const kernels::array_descriptor d, unsigned long long* out, unsigned long long count) {
  const array_view<u64> a = view_of(d);
  const u64 lines = a.size() / 512, lane = threadIdx.x % 32;
  u64 sum = 0;
  for (u64 i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < count; i += gridDim.x * blockDim.x / 32) {
    const u64 first = mix(i) % lines * 512;
    for (u64 k = lane; k < 512; k += 32) sum += a[first + k];
  }
  atomicAdd(out, sum);
}
