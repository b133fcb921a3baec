// The bytes of a column, wherever they are: an array_view, of which kernels that are compiled when they run know no more than
// what stands here (libs/columns/nvrtc has this header for them).
#pragma once

#include "penstock/array/array_view.hpp"

namespace penstock::columns {

using column_bytes = array_view<u8>;
static_assert(sizeof(column_bytes) == 144, "libs/columns/nvrtc has the same layout");

/// The aligned piece that begins `offset` bytes behind the first byte. REQUIRES: it is not resident.
template <class Piece>
PENSTOCK_FORCE_INLINE Piece read_piece(column_bytes const& bytes, u64 offset) {
  return bytes.reader().template read<Piece>(bytes.address_of(0) + offset);
}

}  // namespace penstock::columns
