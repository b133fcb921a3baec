// The reads of kernels of the user's own, as LTO-IR: a hit is inlined into the kernel (include/penstock/kernels/calls.hpp).
#include "libs/kernels/element_calls.hpp"

#include <type_traits>

using namespace penstock;
using kernels::array_descriptor;

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

}  // extern "C"
