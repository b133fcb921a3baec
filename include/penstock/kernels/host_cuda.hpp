// The words of CUDA C++ for a host compiler, so that a kernel's source runs on the CPU executor as it is.
//
// One OS thread runs a block: its threads one after the other, or in turns where they wait for each other (__syncthreads,
// shuffles) or for lines, as fibers that the library switches. So `__shared__` is memory of that OS thread.
#pragma once

#include "penstock/kernels/host_calls.hpp"
#include "penstock/kernels/host_intrinsics.hpp"

#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

// NOLINTBEGIN(bugprone-reserved-identifier): they are the names that CUDA has.
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__  // libstdc++ has __attribute__((__noinline__))
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ thread_local  // in a function it is static, whether it says so or not
// NOLINTEND(bugprone-reserved-identifier)

using dim3 = penstock::kernels::extent;
using uint3 = penstock::kernels::extent;

#define PENSTOCK_VECTOR_TYPE(name, T)                                           \
  struct alignas(2 * sizeof(T)) name##2 { T x, y; };                            \
  struct alignas(sizeof(T) < 8 ? 4 * sizeof(T) : 16) name##4 { T x, y, z, w; }; \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }                    \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
PENSTOCK_VECTOR_TYPE(char, signed char)
PENSTOCK_VECTOR_TYPE(uchar, unsigned char)
PENSTOCK_VECTOR_TYPE(short, short)
PENSTOCK_VECTOR_TYPE(ushort, unsigned short)
PENSTOCK_VECTOR_TYPE(int, int)
PENSTOCK_VECTOR_TYPE(uint, unsigned)
PENSTOCK_VECTOR_TYPE(float, float)
PENSTOCK_VECTOR_TYPE(double, double)
#undef PENSTOCK_VECTOR_TYPE
#define PENSTOCK_VECTOR_TYPE(name, T) \
  struct name##3 { T x, y, z; };      \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }
PENSTOCK_VECTOR_TYPE(char, signed char)
PENSTOCK_VECTOR_TYPE(uchar, unsigned char)
PENSTOCK_VECTOR_TYPE(short, short)
PENSTOCK_VECTOR_TYPE(ushort, unsigned short)
PENSTOCK_VECTOR_TYPE(int, int)
PENSTOCK_VECTOR_TYPE(float, float)
PENSTOCK_VECTOR_TYPE(double, double)
#undef PENSTOCK_VECTOR_TYPE
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
#define PENSTOCK_VECTOR_TYPE(name, T)                \
  struct alignas(2 * sizeof(T)) name##2 { T x, y; }; \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }
PENSTOCK_VECTOR_TYPE(longlong, long long)
PENSTOCK_VECTOR_TYPE(ulonglong, unsigned long long)
#undef PENSTOCK_VECTOR_TYPE

namespace penstock::kernels {

inline host_calls const* the_calls = nullptr;
inline thread_local host_thread const* the_thread = nullptr;
/// Whether this kernel's threads wait for each other.
inline bool has_barriers = false;

inline u32 thread_in_block() {
  host_thread const& t = *the_thread;
  return t.thread.x + t.block_size.x * (t.thread.y + t.block_size.y * t.thread.z);
}
inline u32 lane_in_warp() { return thread_in_block() % 32; }
inline u32 lanes_of_warp() {
  host_thread const& t = *the_thread;
  const u32 all = t.block_size.x * t.block_size.y * t.block_size.z, first = thread_in_block() / 32 * 32;
  return all - first < 32 ? all - first : 32;
}

inline u32 lanes_named(u32 lanes = 0xffffffffu) { return lanes; }

/// Called where a thread may wait for a word that another one of its block changes, which lets others go on at a line: by
/// atomics that change nothing.
inline void try_again() {
  static thread_local u32 tries = 0;
  if (++tries % 64 == 0 && the_calls != nullptr) the_calls->wait(of_nobody, 0);
}

/// Instantiated by the kernels that use it: that is how the library knows. So only templates may call it here.
template <u32 Kind>
struct barrier {
  static inline bool is_used = has_barriers = true;  // set when the library is loaded
  static void wait(u32 lanes) {
    if (!is_used) return;
    the_calls->wait(Kind, lanes);
  }
};

template <class T>
inline T exchange(u32 lanes, T value, u32 from) {
  static_assert(sizeof(T) <= 8);
  u64* const slots = the_thread->exchanged;
  std::memcpy(slots + lane_in_warp(), &value, sizeof value);
  barrier<of_warp>::wait(lanes);
  T read = value;
  if (from < lanes_of_warp()) std::memcpy(&read, slots + from, sizeof read);
  barrier<of_warp>::wait(lanes);
  slots[lane_in_warp()] = 0;  // a lane that has ended votes no
  return read;
}

// As CUDA has it: a source outside of the part is the lane itself, and indices wrap in it.
template <class T>
inline T shuffle(u32 lanes, T value, int from, int width = 32) {
  const u32 lane = lane_in_warp(), part = lane & ~(static_cast<u32>(width) - 1);
  return exchange(lanes, value, part + (static_cast<u32>(from) & (static_cast<u32>(width) - 1)));
}
template <class T>
inline T shuffle_xor(u32 lanes, T value, int with, int width = 32) {
  const u32 lane = lane_in_warp(), last = lane | (static_cast<u32>(width) - 1), from = lane ^ static_cast<u32>(with);
  return exchange(lanes, value, from <= last ? from : lane);
}
template <class T>
inline T shuffle_down(u32 lanes, T value, unsigned by, int width = 32) {
  const u32 lane = lane_in_warp(), last = lane | (static_cast<u32>(width) - 1);
  return exchange(lanes, value, lane + by <= last ? lane + by : lane);
}
template <class T>
inline T shuffle_up(u32 lanes, T value, unsigned by, int width = 32) {
  const u32 lane = lane_in_warp(), first = lane & ~(static_cast<u32>(width) - 1);
  return exchange(lanes, value, lane >= first + by ? lane - by : lane);
}

template <u32 Kind = of_warp>
inline u32 vote(u32 lanes, bool yes) {
  u64* const slots = the_thread->exchanged;
  slots[lane_in_warp()] = yes;
  barrier<Kind>::wait(lanes);
  u32 all = 0;
  for (u32 lane = 0; lane < 32; ++lane) all |= (lanes >> lane & 1) != 0 && slots[lane] != 0 ? 1u << lane : 0;
  barrier<Kind>::wait(lanes);
  slots[lane_in_warp()] = 0;
  return all;
}

/// How many threads of the block say yes. Collective: all that have not ended.
template <u32 Kind = of_block>
inline int vote_of_block(bool yes) {
  u64* const slots = the_thread->exchanged - thread_in_block() / 32 * 32;
  u64& own = slots[thread_in_block()];
  own = yes;
  barrier<Kind>::wait(0);
  host_thread const& t = *the_thread;
  int all = 0;
  for (u32 k = 0; k < t.block_size.x * t.block_size.y * t.block_size.z; ++k) all += slots[k] != 0;
  barrier<Kind>::wait(0);
  own = 0;
  return all;
}

/// Those of `lanes` that have the value of this one.
template <class T>
inline u32 match(u32 lanes, T value) {
  static_assert(sizeof(T) <= 8);
  u64* const slots = the_thread->exchanged;
  u64 bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  slots[lane_in_warp()] = bits;
  barrier<of_warp>::wait(lanes);
  u32 alike = 0;
  for (u32 lane = 0; lane < lanes_of_warp(); ++lane) alike |= (lanes >> lane & 1) != 0 && slots[lane] == bits ? 1u << lane : 0;
  barrier<of_warp>::wait(lanes);
  slots[lane_in_warp()] = 0;
  return alike;
}
/// The same if all of them have it, else none.
template <class T>
inline u32 match_all(u32 lanes, T value, int* all) {
  const u32 alike = match(lanes, value), asked = lanes_of_warp() < 32 ? lanes & ((1u << lanes_of_warp()) - 1) : lanes;
  *all = alike == asked;
  return *all != 0 ? alike : 0;
}

template <class T>
struct word_of {
  using type = T;
};
template <>
struct word_of<float> {
  using type = u32;
};
template <>
struct word_of<double> {
  using type = u64;
};

template <class T>
struct same {
  using type = T;
};

template <class To, class From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

/// Atomically makes *at what `next` makes of it, and returns what it was.
template <class T, class Next>
inline T update(T* at, Next const& next) {
  using word = typename word_of<T>::type;
  word old = __atomic_load_n(reinterpret_cast<word*>(at), __ATOMIC_RELAXED);
  for (;;) {
    T value;
    std::memcpy(&value, &old, sizeof value);
    const T wanted = next(value);
    word changed;
    std::memcpy(&changed, &wanted, sizeof changed);
    const word seen = old;
    if (__atomic_compare_exchange_n(reinterpret_cast<word*>(at), &old, changed, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      if (changed == seen) try_again();
      return value;
    }
  }
}

}  // namespace penstock::kernels

#define threadIdx (::penstock::kernels::the_thread->thread)
#define blockIdx (::penstock::kernels::the_thread->block)
#define blockDim (::penstock::kernels::the_thread->block_size)
#define gridDim (::penstock::kernels::the_thread->grid_size)
#define warpSize 32

// NOLINTBEGIN(bugprone-reserved-identifier)
#define __syncthreads() ::penstock::kernels::barrier<::penstock::kernels::of_block>::wait(0)
#define __syncwarp(...) \
  ::penstock::kernels::barrier<::penstock::kernels::of_warp>::wait(::penstock::kernels::lanes_named(__VA_ARGS__))
// The last argument, if any, is the width of the part of the warp that a shuffle stays in.
#define __shfl_sync(lanes, value, ...) ::penstock::kernels::shuffle(lanes, value, __VA_ARGS__)
#define __shfl_xor_sync(lanes, value, ...) ::penstock::kernels::shuffle_xor(lanes, value, __VA_ARGS__)
#define __shfl_down_sync(lanes, value, ...) ::penstock::kernels::shuffle_down(lanes, value, __VA_ARGS__)
#define __shfl_up_sync(lanes, value, ...) ::penstock::kernels::shuffle_up(lanes, value, __VA_ARGS__)
#define __ballot_sync(lanes, yes) ::penstock::kernels::vote(lanes, yes)
// Those that may go on together: no other thread of the warp runs at the same time.
#define __activemask() (1u << ::penstock::kernels::lane_in_warp())
#define __any_sync(lanes, yes) (::penstock::kernels::vote(lanes, yes) != 0)
#define __all_sync(lanes, yes) (::penstock::kernels::vote(lanes, !(yes)) == 0)
#define __match_any_sync(lanes, value) ::penstock::kernels::match(lanes, value)
#define __match_all_sync(lanes, value, all) ::penstock::kernels::match_all(lanes, value, all)
#define __syncthreads_count(yes) ::penstock::kernels::vote_of_block(yes)
#define __syncthreads_or(yes) (::penstock::kernels::vote_of_block(yes) != 0)
#define __syncthreads_and(yes) (::penstock::kernels::vote_of_block(!(yes)) == 0)

using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() {}
inline void __threadfence_system() { __threadfence(); }
inline void __nanosleep(unsigned) {
  if (::penstock::kernels::the_calls != nullptr) ::penstock::kernels::the_calls->wait(::penstock::kernels::of_nobody, 0);
}
inline float __int_as_float(int x) { return ::penstock::kernels::bits_as<float>(x); }
inline float __uint_as_float(unsigned x) { return ::penstock::kernels::bits_as<float>(x); }
inline int __float_as_int(float x) { return ::penstock::kernels::bits_as<int>(x); }
inline unsigned __float_as_uint(float x) { return ::penstock::kernels::bits_as<unsigned>(x); }
inline double __longlong_as_double(long long x) { return ::penstock::kernels::bits_as<double>(x); }
inline long long __double_as_longlong(double x) { return ::penstock::kernels::bits_as<long long>(x); }
#define PENSTOCK_LOAD(name)    \
  template <class T>           \
  inline T name(T const* at) { \
    return *at;                \
  }
PENSTOCK_LOAD(__ldg)
PENSTOCK_LOAD(__ldca)
PENSTOCK_LOAD(__ldcg)
PENSTOCK_LOAD(__ldcs)
#undef PENSTOCK_LOAD
template <class A, class B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
inline auto min(A a, B b) -> decltype(a < b ? a : b) {
  return b < a ? b : a;
}
template <class A, class B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
inline auto max(A a, B b) -> decltype(a < b ? a : b) {
  return a < b ? b : a;
}
// Of what converts to a number, as an element of an array does.
#define PENSTOCK_MIN_MAX(T)                        \
  inline T min(T a, T b) { return b < a ? b : a; } \
  inline T max(T a, T b) { return a < b ? b : a; }
PENSTOCK_MIN_MAX(int)
PENSTOCK_MIN_MAX(unsigned)
PENSTOCK_MIN_MAX(long long)
PENSTOCK_MIN_MAX(unsigned long long)
PENSTOCK_MIN_MAX(float)
PENSTOCK_MIN_MAX(double)
#undef PENSTOCK_MIN_MAX

#define PENSTOCK_ATOMIC(name, makes)                                                                     \
  template <class T>                                                                                     \
  inline T name(T* at, typename penstock::kernels::same<T>::type v) {                                    \
    return penstock::kernels::update(at, [=]([[maybe_unused]] T old) { return static_cast<T>(makes); }); \
  }
PENSTOCK_ATOMIC(atomicAdd, old + v)
PENSTOCK_ATOMIC(atomicSub, old - v)
PENSTOCK_ATOMIC(atomicMin, v < old ? v : old)
PENSTOCK_ATOMIC(atomicMax, old < v ? v : old)
PENSTOCK_ATOMIC(atomicExch, v)
PENSTOCK_ATOMIC(atomicAnd, old& v)
PENSTOCK_ATOMIC(atomicOr, old | v)
PENSTOCK_ATOMIC(atomicXor, old ^ v)
PENSTOCK_ATOMIC(atomicInc, old >= v ? 0 : old + 1)
PENSTOCK_ATOMIC(atomicDec, old == 0 || old > v ? v : old - 1)
#undef PENSTOCK_ATOMIC
template <class T>
inline T atomicCAS(T* at, typename penstock::kernels::same<T>::type expected,
                   typename penstock::kernels::same<T>::type desired) {
  return penstock::kernels::update(at, [=](T old) { return old == expected ? desired : old; });
}
// Of a block, or of the whole machine: no other than those above.
#define PENSTOCK_SCOPES(name)             \
  template <class T, class... V>          \
  inline T name##_block(T* at, V... v) {  \
    return name(at, v...);                \
  }                                       \
  template <class T, class... V>          \
  inline T name##_system(T* at, V... v) { \
    return name(at, v...);                \
  }
PENSTOCK_SCOPES(atomicAdd)
PENSTOCK_SCOPES(atomicSub)
PENSTOCK_SCOPES(atomicMin)
PENSTOCK_SCOPES(atomicMax)
PENSTOCK_SCOPES(atomicExch)
PENSTOCK_SCOPES(atomicAnd)
PENSTOCK_SCOPES(atomicOr)
PENSTOCK_SCOPES(atomicXor)
PENSTOCK_SCOPES(atomicInc)
PENSTOCK_SCOPES(atomicDec)
PENSTOCK_SCOPES(atomicCAS)
#undef PENSTOCK_SCOPES
// NOLINTEND(bugprone-reserved-identifier)
