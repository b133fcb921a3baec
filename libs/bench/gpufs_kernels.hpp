// What groups do in `penstock bench gpufs`. Each counts what went wrong, and ends at its first error.
#pragma once

#include "libs/bench/files_kernels.hpp"
#include "libs/bench/gpufs_view.hpp"

namespace penstock::bench {

enum class gpufs_draw : u32 {
  once,    ///< each piece once, in an order without one
  random,  ///< uniform draws
  skewed,  ///< three of four go to a sixteenth of the pieces
  zipf,    ///< a power law: piece x with a probability of about (x + 1)^-0.75
  linear,  ///< one after the other
};

struct gpufs_order {
  u64 pieces;  ///< a power of two up to 2^32
  u64 seed;
  gpufs_draw draw;

  PENSTOCK_FN u64 operator()(u64 k) const {
    if (draw == gpufs_draw::linear) return k & (pieces - 1);
    if (draw == gpufs_draw::once) return permute((k + seed) & (pieces - 1), pieces);
    if (draw != gpufs_draw::zipf) return piece_order{pieces, mix_word(seed), draw == gpufs_draw::skewed}(k);
    u64 x = mix_word(k ^ mix_word(seed)) >> 32;
    for (u32 power = 0; power < 2; ++power) x = x * x >> 32;  // the fourth power of a number below 1
    return x * pieces >> 32;
  }
};

template <class Group>
PENSTOCK_FN void count_gpufs_error(Group const& g, u64* wrong) {
  if (is_leader(g)) device_ref<u64>(*wrong).fetch_add(1, relaxed);
}

/// Compares four words per member of what was read; word w of the file is value_at(w).
template <class Group>
PENSTOCK_FN void check_gpufs_piece(Group const& g, u64 const* room, u64 first_word, u32 words, u64* wrong) {
  constexpr u32 words_per_member = 4;
  converge_after_call(g);
  const u32 index = index_in(g), members = size(g);
  for (u32 k = 0; k < words_per_member; ++k) {
    const u32 w = (index * words_per_member + k) * words / (members * words_per_member);
    if (room[w] != value_at(first_word + w)) device_ref<u64>(*wrong).fetch_add(1, relaxed);
  }
  converge_after_call(g);
}

struct gpufs_read_shape {
  u32 bytes;   ///< of a read, up to read_bytes
  u64 stride;  ///< from one piece to the next

  PENSTOCK_FN u64 first_word(u64 piece) const { return piece * stride / sizeof(u64); }
  PENSTOCK_FN u32 words() const { return bytes / static_cast<u32>(sizeof(u64)); }
};

struct gpufs_read_pieces {
  gpufs_view cache;
  gpufs_order order;
  gpufs_read_shape shape;
  group_rooms rooms;
  u64* wrong;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    u64* const room = rooms.of(range);
    const u32 group = static_cast<u32>(range.first / rooms.items_per_room);
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u64 piece = order(k);
      const gpufs_error error = cache.read(g, group, 0, piece * shape.stride, shape.bytes, reinterpret_cast<std::byte*>(room));
      if (error != gpufs_error::none) return count_gpufs_error(g, wrong);
      check_gpufs_piece(g, room, shape.first_word(piece), shape.words(), wrong);
    }
  }
};

struct gpufs_read_folder {
  folder_view folder;
  file_descriptor file;
  gpufs_order order;
  gpufs_read_shape shape;
  group_rooms rooms;
  u64* wrong;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    u64* const room = rooms.of(range);
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u64 piece = order(k);
      if (folder.pread(g, file, room, shape.bytes, piece * shape.stride).value != shape.bytes) {
        return count_gpufs_error(g, wrong);
      }
      check_gpufs_piece(g, room, shape.first_word(piece), shape.words(), wrong);
    }
  }
};

/// Pins pages and looks at the stamps of the stub that replaces transfers.
struct gpufs_touch_pages {
  gpufs_view cache;
  gpufs_order order;
  u64 items_per_group;
  u64* wrong;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    const u32 group = static_cast<u32>(range.first / items_per_group);
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u64 number = order(k);
      const gpufs_page page = cache.pin(g, group, 0, number);
      if (!page.ok()) return count_gpufs_error(g, wrong);
      const u64 stamp = load_piece(reinterpret_cast<u64 const*>(cache.bytes_of(page.frame)));
      if (stamp != value_at((number << cache.page_shift) / sizeof(u64))) count_gpufs_error(g, wrong);
      cache.unpin(g, page);
    }
  }
};

/// Maps lines of a file that is one hole.
struct gpufs_touch_folder {
  folder_view folder;
  file_descriptor file;
  gpufs_order order;
  u64 line_bytes;
  u64* wrong;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      const mapped_bytes line = folder.map(g, file, order(k) * line_bytes, line_bytes, file_flag::read);
      if (!line.ok() || line.count != line_bytes) return count_gpufs_error(g, wrong);
      if (load_piece(reinterpret_cast<u64 const*>(line.bytes)) != 0) count_gpufs_error(g, wrong);
      if (folder.unmap(g, file, line) != 0) return count_gpufs_error(g, wrong);
    }
  }
};

/// By warps. `groups`: most that run at once; 0: as many as fit.
template <class Body>
void run_gpufs_cuda(executor& on, u64 items, Body const& body, u64 groups);

/// By blocks of cuda_block_threads threads.
template <class Body>
void run_gpufs_blocks_cuda(executor& on, u64 items, Body const& body, u64 blocks);

}  // namespace penstock::bench
