// The bytes of a column for NVRTC: ../../README.md. What lies behind a cache is read by the device library
// (libs/kernels/device/column_calls.cu), whose reads the linker inlines.
#pragma once

#include "penstock/array/piece_of.hpp"
#include "penstock/group/thread_group.hpp"

namespace penstock::columns {

/// An array_view<u8>, whose layout this is: the address of what is resident comes first.
class column_bytes {
 public:
  PENSTOCK_FN bool is_resident() const { return resident_ != nullptr; }
  PENSTOCK_FN u8 const* resident() const { return resident_; }
  PENSTOCK_FN u8 operator[](u64 i) const;
  template <thread_group G>
  PENSTOCK_FN void ask_span(G const& g, u64 first, u64 bytes) const;

 private:
  u8 const* resident_;
  u64 others_[17];
};
static_assert(sizeof(column_bytes) == 144);

}  // namespace penstock::columns

extern "C" {
__device__ penstock::u8 penstock_column_1(penstock::columns::column_bytes const*, penstock::u64 offset);
__device__ penstock::u16 penstock_column_2(penstock::columns::column_bytes const*, penstock::u64 offset);
__device__ penstock::u32 penstock_column_4(penstock::columns::column_bytes const*, penstock::u64 offset);
__device__ penstock::u64 penstock_column_8(penstock::columns::column_bytes const*, penstock::u64 offset);
__device__ void penstock_column_ask(penstock::columns::column_bytes const*, penstock::u64 first, penstock::u64 bytes);
}

namespace penstock::columns {

/// The aligned piece that begins `offset` bytes behind the first byte. REQUIRES: it is not resident.
template <class Piece>
PENSTOCK_FN inline Piece read_piece(column_bytes const& bytes, u64 offset) {
  if constexpr (sizeof(Piece) == 1) return penstock_column_1(&bytes, offset);
  if constexpr (sizeof(Piece) == 2) return penstock_column_2(&bytes, offset);
  if constexpr (sizeof(Piece) == 4) return penstock_column_4(&bytes, offset);
  if constexpr (sizeof(Piece) == 8) return penstock_column_8(&bytes, offset);
}

PENSTOCK_FN inline u8 column_bytes::operator[](u64 i) const { return is_resident() ? resident_[i] : read_piece<u8>(*this, i); }

/// Collective: whole warps.
template <thread_group G>
PENSTOCK_FN inline void column_bytes::ask_span(G const&, u64 first, u64 bytes) const {
  if (bytes != 0 && !is_resident()) penstock_column_ask(this, first, bytes);
}

}  // namespace penstock::columns
