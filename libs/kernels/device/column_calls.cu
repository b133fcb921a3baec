// What kernels of queries that are compiled when they run call of columns behind a cache (libs/columns/nvrtc), as LTO-IR: a hit
// is inlined into the kernel.
#include "penstock/array/array_view.hpp"

using namespace penstock;

// Where libs/columns/nvrtc looks for what is resident.
static_assert(sizeof(array_view<u8>) == 144 && std::is_trivially_copyable_v<array_view<u8>>);

namespace {

template <class Piece>
__device__ Piece read(array_view<u8> const* from, u64 offset) {
  return from->reader().read<Piece>(from->address_of(0) + offset);
}

}  // namespace

extern "C" {

__device__ u8 penstock_column_1(array_view<u8> const* from, u64 offset) { return read<u8>(from, offset); }
__device__ u16 penstock_column_2(array_view<u8> const* from, u64 offset) { return read<u16>(from, offset); }
__device__ u32 penstock_column_4(array_view<u8> const* from, u64 offset) { return read<u32>(from, offset); }
__device__ u64 penstock_column_8(array_view<u8> const* from, u64 offset) { return read<u64>(from, offset); }
__device__ void penstock_column_ask(array_view<u8> const* from, u64 first, u64 bytes) {
  from->ask_span(warp::whole(), first, bytes);
}

}  // extern "C"
