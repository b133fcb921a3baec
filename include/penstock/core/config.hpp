// What differs between compilers and targets, and nothing else. Everything under include/penstock compiles with g++ and with
// nvcc; only core/ and group/ may ask which of the two is at work.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC_RTC__)
/// Marks a function that runs on every executor. Here of code that is compiled when it runs, with constants in the place of
/// variables: they reach what is inlined.
#define PENSTOCK_FN __device__ __attribute__((always_inline))
#define PENSTOCK_FORCE_INLINE __device__ __forceinline__
#define PENSTOCK_DEVICE_INLINE PENSTOCK_FORCE_INLINE
#define PENSTOCK_COLD __device__ __noinline__
#elif defined(__CUDACC__)
/// Marks a function that runs on every executor.
#define PENSTOCK_FN __host__ __device__
#define PENSTOCK_FORCE_INLINE __host__ __device__ __forceinline__
/// Inlined into kernels, whose registers it shares; on the CPU a call, which costs less than a copy in each source.
#define PENSTOCK_DEVICE_INLINE PENSTOCK_FORCE_INLINE
/// A cold function: never inlined, so that the hot path around its call stays short.
#define PENSTOCK_COLD __host__ __device__ __noinline__
#else
#define PENSTOCK_FN
#define PENSTOCK_FORCE_INLINE inline __attribute__((always_inline))
#define PENSTOCK_DEVICE_INLINE __attribute__((noinline))
#define PENSTOCK_COLD __attribute__((noinline))
#endif

/// 1 where this translation unit can hold kernels.
#if defined(__CUDACC__)
#define PENSTOCK_COMPILED_BY_NVCC 1
#else
#define PENSTOCK_COMPILED_BY_NVCC 0
#endif

/// 1 where functions of the library come compiled instead of being instantiated here: relocatable device code, unless this
/// unit is to be all of the library that its users link (cmake/penstock_device_library.cmake).
#if defined(__CUDACC_RDC__) && !defined(PENSTOCK_WHOLE_LIBRARY)
#define PENSTOCK_SEPARATE_DEVICE_CODE 1
#else
#define PENSTOCK_SEPARATE_DEVICE_CODE 0
#endif

/// 1 where those for lone threads do: in what a host's compiler compiles and links with the library, as CMake's target says;
/// but for tests whose atomics a scheduler intercepts. An extension that has the headers alone instantiates its own.
#if defined(PENSTOCK_LINKS_LIBRARY) && !defined(PENSTOCK_SCHEDULED)
#define PENSTOCK_SEPARATE_HOST_CODE 1
#else
#define PENSTOCK_SEPARATE_HOST_CODE 0
#endif

#if defined(__CUDA_ARCH__)
#define PENSTOCK_ON_DEVICE 1
#else
#define PENSTOCK_ON_DEVICE 0
#endif

/// Before a loop: unrolled wholly, or by a number. nvcc's pass over host code takes neither pragma.
#define PENSTOCK_PRAGMA(text) _Pragma(#text)
#if PENSTOCK_ON_DEVICE
#define PENSTOCK_UNROLL _Pragma("unroll")
#define PENSTOCK_UNROLL_BY(n) PENSTOCK_PRAGMA(unroll n)
#elif defined(__CUDACC__)
#define PENSTOCK_UNROLL
#define PENSTOCK_UNROLL_BY(n)
#else
#define PENSTOCK_UNROLL _Pragma("GCC unroll 32")
#define PENSTOCK_UNROLL_BY(n) PENSTOCK_PRAGMA(GCC unroll n)
#endif
// Before a loop whose steps have nothing to do with each other, for a CPU's vector instructions.
#if defined(__CUDACC__) || defined(__clang__)
#define PENSTOCK_EACH_BY_ITSELF
#else
#define PENSTOCK_EACH_BY_ITSELF _Pragma("GCC ivdep")
#endif

namespace penstock {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

}  // namespace penstock
