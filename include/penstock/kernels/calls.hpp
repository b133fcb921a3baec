// The calls that `array<T>` makes. On a GPU they are device functions with C linkage, linked as LTO-IR, so a hit is inlined
// into the kernel; on the CPU they go through a table that the library fills when it loads the kernel.
//
// Addresses are bytes in the cache's line space, aligned to the piece. Errors are latched in the cache and raised by the host.
#pragma once

#include "penstock/kernels/descriptor.hpp"
#include "penstock/kernels/folder_call.hpp"

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define PENSTOCK_KERNEL_FN __device__ inline
#else
#define PENSTOCK_KERNEL_FN inline
#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

extern "C" {
__device__ unsigned char penstock_read_1(penstock::kernels::array_descriptor const*, unsigned long long address);
__device__ unsigned short penstock_read_2(penstock::kernels::array_descriptor const*, unsigned long long address);
__device__ unsigned int penstock_read_4(penstock::kernels::array_descriptor const*, unsigned long long address);
__device__ unsigned long long penstock_read_8(penstock::kernels::array_descriptor const*, unsigned long long address);
__device__ void penstock_read_16(penstock::kernels::array_descriptor const*, unsigned long long address,
                                 penstock::kernels::piece*);
__device__ void penstock_store(penstock::kernels::array_descriptor const*, unsigned long long address, unsigned int bytes,
                               unsigned long long low, unsigned long long high);
__device__ unsigned long long penstock_change(penstock::kernels::array_descriptor const*, unsigned long long address,
                                              unsigned int bytes, penstock::kernels::change_kind, unsigned long long value,
                                              unsigned long long expected);
__device__ void penstock_read_span(penstock::kernels::array_descriptor const*, unsigned long long address,
                                   unsigned long long bytes, void* to);
__device__ void penstock_prefetch(penstock::kernels::array_descriptor const*, unsigned long long address);
__device__ void penstock_out_of_range(penstock::kernels::array_descriptor const*, unsigned long long index);
__device__ unsigned int penstock_stopped();
__device__ void penstock_call_folder(void const* folder, penstock::kernels::folder_request const*,
                                     penstock::kernels::folder_answer*);
__device__ void penstock_call_folder_by_warp(void const* folder, penstock::kernels::folder_request const*,
                                             penstock::kernels::folder_answer*);
__device__ unsigned int penstock_read_file_hit(void const* folder, penstock::kernels::file_words, unsigned long long offset,
                                               unsigned long long count, void* to);
__device__ unsigned int penstock_read_file_hit_by_warp(void const* folder, penstock::kernels::file_words,
                                                       unsigned long long offset, unsigned long long count, void* to);
}

namespace penstock::kernels {

template <u32 Bytes>
__device__ inline piece read(array_descriptor const* from, u64 address) {
  piece read{};
  if constexpr (Bytes == 1) read.low = penstock_read_1(from, address);
  if constexpr (Bytes == 2) read.low = penstock_read_2(from, address);
  if constexpr (Bytes == 4) read.low = penstock_read_4(from, address);
  if constexpr (Bytes == 8) read.low = penstock_read_8(from, address);
  if constexpr (Bytes == 16) penstock_read_16(from, address, &read);
  return read;
}
__device__ inline void store(array_descriptor const* to, u64 address, u32 bytes, piece value) {
  penstock_store(to, address, bytes, value.low, value.high);
}
__device__ inline u64 change(array_descriptor const* in, u64 address, u32 bytes, change_kind kind, u64 value, u64 expected) {
  return penstock_change(in, address, bytes, kind, value, expected);
}
__device__ inline void read_span(array_descriptor const* from, u64 address, u64 bytes, void* to) {
  penstock_read_span(from, address, bytes, to);
}
__device__ inline void prefetch(array_descriptor const* from, u64 address) { penstock_prefetch(from, address); }
__device__ inline void out_of_range(array_descriptor const* from, u64 index) { penstock_out_of_range(from, index); }
__device__ inline index_range share_of(u64 count, u64 self, u64 threads) { return {self, count, threads}; }
__device__ inline bool stopped() { return penstock_stopped() != 0; }
__device__ inline void try_again() {}  // the other threads run meanwhile
template <bool ByWarp>
__device__ inline void call_folder(void const* folder, folder_request const& asked, folder_answer& given) {
  if constexpr (ByWarp) {
    __syncwarp();  // the call is of the lanes that come to it together
    penstock_call_folder_by_warp(folder, &asked, &given);
  } else {
    penstock_call_folder(folder, &asked, &given);
  }
}
/// Of `count` bytes that lie whole in one line of the cache. False: they do not; what lies at `to` is undefined.
template <bool ByWarp>
__device__ inline bool read_file_hit(void const* folder, file_words const& file, u64 offset, u64 count, void* to) {
  if constexpr (ByWarp) {
    __syncwarp();
    return penstock_read_file_hit_by_warp(folder, file, offset, count, to) != 0;
  } else {
    return penstock_read_file_hit(folder, file, offset, count, to) != 0;
  }
}
__device__ inline void* dynamic_shared() {
  extern __shared__ unsigned long long penstock_dynamic_shared[];
  return penstock_dynamic_shared;
}

}  // namespace penstock::kernels

#else

#include "penstock/kernels/host_cuda.hpp"

namespace penstock::kernels {

template <u32 Bytes>
inline piece read(array_descriptor const* from, u64 address) {
  return the_calls->read(from, address, Bytes);
}
inline void store(array_descriptor const* to, u64 address, u32 bytes, piece value) {
  the_calls->store(to, address, bytes, value);
}
inline u64 change(array_descriptor const* in, u64 address, u32 bytes, change_kind kind, u64 value, u64 expected) {
  return the_calls->change(in, address, bytes, kind, value, expected);
}
inline void read_span(array_descriptor const* from, u64 address, u64 bytes, void* to) {
  the_calls->read_span(from, address, bytes, to, lane_in_warp(), lanes_of_warp());
}
inline void prefetch(array_descriptor const* from, u64 address) { the_calls->prefetch(from, address); }
inline void out_of_range(array_descriptor const* from, u64 index) { the_calls->out_of_range(from, index); }
inline index_range share_of(u64 count, u64 self, u64 threads) {
  const u64 each = count / threads, more = count % threads;
  const u64 first = self * each + (self < more ? self : more);
  return {first, first + each + (self < more ? 1 : 0), 1};
}
/// Where code that penstock.kernel has not compiled, an extension of torch's, finds what array<T> calls: before its first use
/// of one. `address`: penstock.kernels.host_calls().
inline void use_calls(u64 address) { the_calls = reinterpret_cast<host_calls const*>(address); }
/// By a warp: its first lane calls when all have come, and the others take over what it was given.
template <bool ByWarp>
inline void call_folder(void const* folder, folder_request const& asked, folder_answer& given) {
  if constexpr (!ByWarp) {
    the_calls->call_folder(folder, &asked, &given);
  } else {
    const u32 here = vote(0xffffffffu, true), leader = static_cast<u32>(__builtin_ctz(here));
    if (lane_in_warp() == leader) the_calls->call_folder(folder, &asked, &given);
    auto const* const of_leader = exchange<folder_answer const*>(0xffffffffu, &given, leader);
    if (lane_in_warp() != leader) given = *of_leader;
    barrier<of_warp>::wait(0xffffffffu);
  }
}
/// The call itself is as near there.
template <bool ByWarp>
constexpr bool read_file_hit(void const* /*folder*/, file_words const& /*file*/, u64 /*offset*/, u64 /*count*/, void* /*to*/) {
  return false;
}
inline bool stopped() {
  try_again();
  return __atomic_load_n(the_thread->stop, __ATOMIC_RELAXED) != 0;
}
inline void* dynamic_shared() { return the_thread->dynamic_shared; }

}  // namespace penstock::kernels

#endif
