// What differs between compilers and targets, and nothing else. Everything under include/penstock compiles with g++ and with
// nvcc; only core/ and group/ may ask which of the two is at work.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
/// Marks a function that runs on every executor.
#define PENSTOCK_FN __host__ __device__
#define PENSTOCK_FORCE_INLINE __host__ __device__ __forceinline__
/// A cold function: never inlined, so that the hot path around its call stays short.
#define PENSTOCK_COLD __host__ __device__ __noinline__
#else
#define PENSTOCK_FN
#define PENSTOCK_FORCE_INLINE inline __attribute__((always_inline))
#define PENSTOCK_COLD __attribute__((noinline))
#endif

/// 1 where this translation unit can hold kernels.
#if defined(__CUDACC__)
#define PENSTOCK_COMPILED_BY_NVCC 1
#else
#define PENSTOCK_COMPILED_BY_NVCC 0
#endif

#if defined(__CUDA_ARCH__)
#define PENSTOCK_ON_DEVICE 1
#else
#define PENSTOCK_ON_DEVICE 0
#endif

#if defined(__CUDA_ARCH__)
#define PENSTOCK_UNROLL _Pragma("unroll")
#elif defined(__CUDACC__)
#define PENSTOCK_UNROLL  // nvcc's own front end knows the first one only, and the host's compiler the last
#else
#define PENSTOCK_UNROLL _Pragma("GCC unroll 32")
#endif

namespace penstock {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

}  // namespace penstock
