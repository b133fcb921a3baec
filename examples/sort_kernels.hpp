// The kernels of sort_file.cpp: open a file, read and write pieces of it, search it for keys. A library sorts.
#pragma once

#include "penstock/executor/launch.hpp"
#include "penstock/runtime/folder.hpp"

using penstock::u32;
using penstock::u64;

struct open_file {
  penstock::folder_view folder;
  char const* name;
  u32 name_bytes, flags;
  penstock::open_result* opened;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, penstock::grid_range) const {
    const auto result = folder.open(g, name, name_bytes, flags);
    if (penstock::is_leader(g)) *opened = result;
  }
};

/// An open file, and where a kernel stores an errno.
struct file_access {
  penstock::folder_view folder;
  penstock::file_descriptor file;
  u32* error;

  template <class Group>
  PENSTOCK_FN void note(Group const& g, u32 failed) const {
    if (failed != 0 && penstock::is_leader(g)) penstock::device_ref<u32>(*error).store(failed, penstock::relaxed);
  }
};

/// Writes back all stores and waits for the device (fsync), then closes.
struct sync_and_close {
  file_access on;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, penstock::grid_range) const {
    const u32 lost = on.folder.sync(g, on.file), left = on.folder.close(g, on.file);
    on.note(g, lost != 0 ? lost : left);
  }
};

/// Bytes of a file and their place in memory.
struct file_piece {
  u64 offset, bytes;
  char* memory;
};

struct move_pieces {
  file_access on;
  file_piece const* pieces;
  bool write;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, penstock::grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      const file_piece piece = pieces[k];
      const auto got = write ? on.folder.pwrite(g, on.file, piece.memory, piece.bytes, piece.offset)
                             : on.folder.pread(g, on.file, piece.memory, piece.bytes, piece.offset);
      on.note(g, got.ok() && got.value != piece.bytes ? ESTALE : got.error);  // the file was truncated
    }
  }
};

struct record_layout {
  u64 bytes = 16, key_bytes = 8;

  PENSTOCK_FN u64 key_of(char const* record) const {
    u64 key = 0;
    for (u64 k = 0; k < key_bytes; ++k) key |= static_cast<u64>(static_cast<unsigned char>(record[k])) << 8 * k;
    return key;
  }
};

/// Extracts the keys of records, and numbers them.
struct take_keys {
  record_layout layout;
  char const* records;
  u64* keys;
  u32* order;

  template <class Group>
  PENSTOCK_FN void operator()(Group const&, penstock::grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      keys[k] = layout.key_of(records + k * layout.bytes);
      order[k] = static_cast<u32>(k);
    }
  }
};

/// Gathers records in sorted order.
struct put_in_order {
  record_layout layout;
  char const* records;
  u32 const* order;
  char* sorted;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, penstock::grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      char const* const from = records + order[k] * layout.bytes;
      for (u64 i = penstock::index_in(g); i < layout.bytes; i += penstock::size(g)) sorted[k * layout.bytes + i] = from[i];
    }
  }
};

struct pick_samples {
  record_layout layout;
  char const* sorted;
  u64 step;
  u64* keys;

  template <class Group>
  PENSTOCK_FN void operator()(Group const&, penstock::grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) keys[k] = layout.key_of(sorted + k * step * layout.bytes);
  }
};

/// A binary search for the position of a splitter in one run.
struct cut_search {
  u64 low, high;  // bounds of the position
  u64 key;
  u64 behind_equals;  // 1: behind records with the same key
};

struct find_cuts {
  file_access on;
  record_layout layout;
  cut_search const* searches;
  u64* cuts;
  char* keys;  // [items][8]

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, penstock::grid_range range) const {
    char* const room = keys + 8 * range.first;
    for (u64 k = range.first; k < range.last; k += range.step) {
      cut_search at = searches[k];
      while (at.low < at.high) {
        const u64 middle = (at.low + at.high) / 2;
        const auto got = on.folder.pread(g, on.file, room, layout.key_bytes, middle * layout.bytes);
        on.note(g, got.error);
        const u64 key = layout.key_of(room);
        penstock::converge_after_call(g);  // all lanes have read the key before it is overwritten
        const bool is_behind = key < at.key || (key == at.key && at.behind_equals != 0);
        (is_behind ? at.low : at.high) = is_behind ? middle + 1 : middle;
      }
      if (penstock::is_leader(g)) cuts[k] = at.low;
    }
  }
};
