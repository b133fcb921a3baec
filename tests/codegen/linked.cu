// Kernels as programs have them, each beside the same one over a plain array: linked with the library's cold functions, for a
// kernel has as many registers as the hungriest function that it calls.
#include "penstock/array/array_view.hpp"

using namespace penstock;

template <class T, class Array>
__device__ void gather(Array const& a, u64 const* index, T* out) {
  const u64 i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = a[index[i]];
}

template <class T, class Array>
__device__ void sum_strided(Array const& a, u64 elements, T* out) {
  const u64 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  T sum = 0;
  PENSTOCK_UNROLL_BY(1)
  for (u64 i = thread; i < elements; i += threads) sum += a[i];
  out[thread] = sum;
}

extern "C" __global__ void gather_plain(u64 const* a, u64 const* index, u64* out) { gather(a, index, out); }
extern "C" __global__ void gather_view(array_view<u64> a, u64 const* index, u64* out) { gather(a, index, out); }
extern "C" __global__ void gather32_plain(u32 const* a, u64 const* index, u32* out) { gather(a, index, out); }
extern "C" __global__ void gather32_view(array_view<u32> a, u64 const* index, u32* out) { gather(a, index, out); }
extern "C" __global__ void sum_plain(double const* a, u64 elements, double* out) { sum_strided(a, elements, out); }
extern "C" __global__ void sum_view(array_view<double> a, u64 elements, double* out) { sum_strided(a, elements, out); }
