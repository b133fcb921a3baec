// Where the bytes of an array lie, for kernels that read and write it by explicit tiles, without a cache.
#pragma once

#include "penstock/queue/block_io.hpp"

namespace penstock::media {

/// Most bytes of a tile: what one command moves.
inline constexpr u64 most_tile_bytes = 65536;
/// Where an array's bytes lie: on one drive, or in stripes of a tile that go round several.
struct tile_array {
  block_device_view const* drives = nullptr;
  u32 drives_count = 1;
  u32 block_shift = 9;
  u64 stripe_bytes = most_tile_bytes;
  u64 origin = 0;  ///< byte of element 0
  u32 item_bytes = 1;

  /// The blocks that hold some elements. Several drives: REQUIRES elements of one stripe.
  struct window {
    u32 drive;
    u32 blocks;
    u64 start;  ///< first block
    u64 lead;   ///< bytes before the first element
  };
  PENSTOCK_FN window of(u64 first, u64 last) const {
    u64 begin = origin + first * item_bytes;
    u64 end = origin + last * item_bytes;
    u32 drive = 0;
    if (drives_count > 1) {
      const u64 stripe = begin / stripe_bytes;
      drive = static_cast<u32>(stripe % drives_count);
      const u64 moved = (stripe - stripe / drives_count) * stripe_bytes;
      begin -= moved;
      end -= moved;
    }
    const u64 block = 1ull << block_shift;
    const u64 start = begin >> block_shift;
    return {drive, static_cast<u32>(((end + block - 1) >> block_shift) - start), start, begin - (start << block_shift)};
  }
};

}  // namespace penstock::media
