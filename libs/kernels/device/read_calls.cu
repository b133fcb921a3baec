// The reads of kernels of the user's own, as LTO-IR: a hit is inlined into the kernel (include/penstock/kernels/calls.hpp).
#include "libs/kernels/element_calls.hpp"

#include <cstdint>
#include <type_traits>

using namespace penstock;
using kernels::array_descriptor;

#ifdef PENSTOCK_WHOLE_LIBRARY
// Linked as one, what a kernel calls takes registers that its callers have not: 255 for a miss. Called through a variable that
// the compiler does not know it keeps to the calling convention, which ends at 128.
namespace {

__device__ piece16 read_missed(warp g, lane_meeting* meeting, u32 at, line_cache_view const& cache, u32 dataset, bool want,
                               u64 address, u32 bytes) {
  return with_others(g, meeting, cache.process, at, reinterpret_cast<u64>(&cache), dataset,
                     [&](auto const& all) { return read_slowly(all, cache, dataset, want, address, bytes); });
}
__device__ decltype(read_missed)* volatile missed = read_missed;

}  // namespace

template <>
__device__ piece16 penstock::read_together(warp g, lane_meeting* meeting, u32 at, line_cache_view const& cache, u32 dataset,
                                           bool want, u64 address, u32 bytes) {
  return missed(g, meeting, at, cache, dataset, want, address, bytes);
}
#endif

namespace {

template <class Piece>
__device__ Piece read(array_descriptor const* from, u64 address) {
  return kernels::reader_of(*from).read<Piece>(address);
}

}  // namespace

extern "C" {

__device__ unsigned char penstock_read_1(array_descriptor const* from, unsigned long long address) {
  return read<u8>(from, address);
}
__device__ unsigned short penstock_read_2(array_descriptor const* from, unsigned long long address) {
  return read<u16>(from, address);
}
__device__ unsigned int penstock_read_4(array_descriptor const* from, unsigned long long address) {
  return read<u32>(from, address);
}
__device__ unsigned long long penstock_read_8(array_descriptor const* from, unsigned long long address) {
  return read<u64>(from, address);
}
__device__ void penstock_read_16(array_descriptor const* from, unsigned long long address, kernels::piece* to) {
  *to = std::bit_cast<kernels::piece>(read<piece16>(from, address));
}

// By element, for front ends that are no C++: element i of an array in device memory, as array.device_ptr gives it.
#define PENSTOCK_LOAD(name, T)                                                                                        \
  __device__ T penstock_load_##name(array_descriptor const* from, unsigned long long i) {                             \
    return from->memory != nullptr ? static_cast<T const*>(from->memory)[i]                                           \
                                   : std::bit_cast<T>(read<piece_of<sizeof(T)>>(from, from->origin + i * sizeof(T))); \
  }
PENSTOCK_LOAD(i8, std::int8_t)
PENSTOCK_LOAD(u8, std::uint8_t)
PENSTOCK_LOAD(i16, std::int16_t)
PENSTOCK_LOAD(u16, std::uint16_t)
PENSTOCK_LOAD(i32, std::int32_t)
PENSTOCK_LOAD(u32, std::uint32_t)
PENSTOCK_LOAD(i64, std::int64_t)
PENSTOCK_LOAD(u64, std::uint64_t)
PENSTOCK_LOAD(f32, float)
PENSTOCK_LOAD(f64, double)
#undef PENSTOCK_LOAD

__device__ unsigned long long penstock_size(array_descriptor const* of, unsigned int element_bytes) {
  return of->bytes / element_bytes;
}

}  // extern "C"
