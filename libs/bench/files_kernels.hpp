// What groups do in `penstock bench files`. Each counts what went wrong.
#pragma once

#include "libs/bench/block_word.hpp"
#include "penstock/array/array_view.hpp"
#include "penstock/executor/launch.hpp"
#include "penstock/runtime/folder.hpp"

namespace penstock::bench {

inline constexpr u32 read_bytes = 4096, read_words = read_bytes / sizeof(u64);
inline constexpr u32 file_name_bytes = 6;

/// A room for a piece of each group of a launch.
struct group_rooms {
  u64* words;
  u64 items_per_room;  ///< 1 where a group walks over all items, else as many as follow each other at the least

  PENSTOCK_FN u64* of(grid_range const& range) const { return words + range.first / items_per_room * read_words; }
};

/// The pieces that are read, in an order without one.
struct piece_order {
  u64 pieces;
  u64 seed;
  bool skewed;  ///< the first sixteenth gets three of four

  PENSTOCK_FN u64 operator()(u64 k) const {
    const u64 drawn = mix_word(k ^ seed);
    const u64 hot = pieces / 16 != 0 ? pieces / 16 : 1;
    return skewed && drawn >> 62 != 0 ? drawn % hot : drawn % pieces;
  }
};

/// Compares what a lane has of a piece: word w of the file is value_at(w).
template <class Group>
PENSTOCK_FN void check_piece(Group const& g, u64 const* room, u64 piece, u64* wrong) {
  converge_after_call(g);
  const u64 w = index_in(g) * (read_words / 32);
  if (room[w] != value_at(piece * read_words + w)) device_ref<u64>(*wrong).fetch_add(1, relaxed);
  converge_after_call(g);
}

struct read_file_pieces {
  folder_view folder;
  file_descriptor file;
  piece_order order;
  group_rooms rooms;
  u64* wrong;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    u64* const room = rooms.of(range);
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u64 piece = order(k);
      const file_result got = folder.pread(g, file, room, read_bytes, piece * read_bytes);
      if (got.value != read_bytes && is_leader(g)) device_ref<u64>(*wrong).fetch_add(1, relaxed);
      check_piece(g, room, piece, wrong);
    }
  }
};

struct read_array_pieces {
  array_view<piece16> array;
  piece_order order;
  group_rooms rooms;
  u64* wrong;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    auto* const room = reinterpret_cast<piece16*>(rooms.of(range));
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u64 piece = order(k), first = piece * (read_bytes / 16);
      array.read_span(g, first, read_bytes / 16, [&](u64 i, piece16 p) { room[i - first] = p; });
      check_piece(g, rooms.of(range), piece, wrong);
    }
  }
};

/// Checks the pieces from number `first` of the order, which lie one after another in `room`.
struct check_copied_pieces {
  piece_order order;
  u64 first;
  u64 const* room;
  u64* wrong;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      check_piece(g, room + k * read_words, order(first + k), wrong);
    }
  }
};

/// "s" and a number of five digits.
PENSTOCK_FN inline void write_file_name(char* to, u32 number) {
  to[0] = 's';
  for (u32 d = 0; d < 5; ++d, number /= 10) to[5 - d] = static_cast<char>('0' + number % 10);
}

struct open_and_close {
  folder_view folder;
  u32 files;
  u64 seed;
  u64* wrong;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      char name[file_name_bytes];
      write_file_name(name, static_cast<u32>(mix_word(k ^ seed) % files));
      const open_result opened = folder.open(g, name, file_name_bytes, file_flag::read);
      const bool good = opened.ok() && folder.close(g, opened.file) == 0;
      if (!good && is_leader(g)) device_ref<u64>(*wrong).fetch_add(1, relaxed);
    }
  }
};

/// Opens the small files and the large one, and keeps them.
struct open_all {
  folder_view folder;
  u32 files;
  file_descriptor* opened;  ///< [files + 1]
  u64* wrong;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      char name[file_name_bytes];
      write_file_name(name, static_cast<u32>(k));
      const open_result one =
          k == files ? folder.open(g, "large", 5, file_flag::read) : folder.open(g, name, file_name_bytes, file_flag::read);
      if (is_leader(g)) opened[k] = one.file;
      if (!one.ok() && is_leader(g)) device_ref<u64>(*wrong).fetch_add(1, relaxed);
    }
  }
};

/// A call that the host answers without doing anything: what every call costs that goes to it.
struct ask_host {
  folder_view folder;
  u64* wrong;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u32 slot = folder.calls.acquire(g);
      file_call::answer given;
      const file_call::request nothing{~0u};
      if (slot != call_slots::none && folder.calls.call(g, slot, nothing, nullptr, nullptr, given))
        folder.calls.release(g, slot);
      if (given.error != ENOSYS && is_leader(g)) device_ref<u64>(*wrong).fetch_add(1, relaxed);
    }
  }
};

template <class Body>
void run_files_cuda(executor& on, u64 items, Body const& body);

}  // namespace penstock::bench
