// What groups do in a search of files: list folders, and look for a pattern in parts of files.
#pragma once

#include "libs/files/tree_search.hpp"
#include "penstock/executor/launch.hpp"
#include "penstock/runtime/folder.hpp"

namespace penstock::files {

#if defined(PENSTOCK_HAS_CUDA)
inline constexpr bool has_kernels = true;
#else
inline constexpr bool has_kernels = false;
#endif

inline constexpr u32 group_width = 32;  ///< lanes to a file, on CUDA

/// Of a path in a list's text.
struct name_place {
  u64 begin = 0;
  u32 bytes = 0;
  u32 is_folder = 0;
};

/// Names that groups append. More than there is room for are counted, but not kept.
struct name_list {
  char* text;
  name_place* names;
  u64 text_room, names_room;
  u64* text_used;
  u64* names_used;

  /// `folder`/`name`. Of one thread.
  PENSTOCK_FN void append(char const* folder, u32 folder_bytes, char const* name, u32 name_bytes, bool is_folder) const {
    const u32 bytes = folder_bytes + (folder_bytes != 0 ? 1 : 0) + name_bytes;
    const u64 at = device_ref<u64>(*text_used).fetch_add(bytes, relaxed),
              k = device_ref<u64>(*names_used).fetch_add(1, relaxed);
    if (at + bytes > text_room || k >= names_room) return;
    char* to = text + at;
    for (u32 i = 0; i < folder_bytes; ++i) *to++ = folder[i];
    if (folder_bytes != 0) *to++ = '/';
    for (u32 i = 0; i < name_bytes; ++i) *to++ = name[i];
    names[k] = {at, bytes, is_folder ? 1u : 0u};
  }
};

/// Appends the names of an item's folder: those of files and folders, not of links.
struct list_folders {
  folder_view folder;
  char const* text;
  name_place const* folders;
  char* entries;  ///< [items][folder_view::max_entry_bytes]
  name_list found;
  u32* errors;  ///< [items] an errno

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u32 error = list(g, folders[k], entries + k * folder_view::max_entry_bytes);
      if (is_leader(g)) errors[k] = error;
    }
  }

 private:
  template <class Group>
  PENSTOCK_FN u32 list(Group const& g, name_place const& at, char* room) const {
    for (u64 cursor = 0;;) {
      const file_result got = folder.read_folder(g, text + at.begin, at.bytes, cursor, room);
      if (got.error != 0 || got.value == 0) return got.error;
      converge_after_call(g);
      if (is_leader(g)) append(at, room, got.value);
      converge_after_call(g);  // the entries are read before the next ones come
    }
  }

  PENSTOCK_FN void append(name_place const& at, char const* room, u64 bytes) const {
    constexpr u32 type_bits = 0170000, folder_type = 0040000, file_type = 0100000;  // S_IFMT, S_IFDIR, S_IFREG
    for (u64 next = 0; next < bytes;) {
      auto const& entry = *reinterpret_cast<folder_entry const*>(room + next);
      char const* const name = room + next + sizeof entry;
      const u32 kind = entry.kind & type_bits;
      if (kind == folder_type || kind == file_type) {
        found.append(text + at.begin, at.bytes, name, entry.name_bytes, kind == folder_type);
      }
      next += entry.bytes;
    }
  }
};

/// A part of a file that a group searches.
struct file_part {
  name_place name;
  u64 first = 0, last = 0;  ///< bytes; `last` may lie beyond the end
};

/// What came of it.
struct part_result {
  u64 size = 0;      ///< of the file
  u64 bytes = 0;     ///< of the part that were looked at
  u64 newlines = 0;  ///< among them
  u32 error = 0;
  u32 binary = 0;
};

struct match_place {
  u64 part = 0;
  u64 offset = 0;
  u64 newlines = 0;  ///< of the part, before it
};

/// Bytes of a word that are equal to `byte`, as the low eight bits.
PENSTOCK_FN inline u32 equal_bytes(u64 word, u8 byte) {
  constexpr u64 low = 0x7f7f7f7f7f7f7f7full, ones = 0x0101010101010101ull;
  const u64 x = word ^ ones * byte;
  const u64 zero = ~(((x & low) + low) | x | low);  // 0x80 in each byte of x that is zero
  return static_cast<u32>((zero >> 7) * 0x0102040810204080ull >> 56);
}
PENSTOCK_FN inline u32 equal_bytes(piece16 piece, u8 byte) {
  return equal_bytes(piece.low, byte) | equal_bytes(piece.high, byte) << 8;
}
PENSTOCK_FN inline u8 lower_case(u8 c) { return c >= 'A' && c <= 'Z' ? static_cast<u8>(c + ('a' - 'A')) : c; }
PENSTOCK_FN inline u8 upper_case(u8 c) { return c >= 'a' && c <= 'z' ? static_cast<u8>(c - ('a' - 'A')) : c; }

struct pattern_text {
  char text[max_pattern_bytes + 1] = {};  ///< lower case where case is ignored
  u32 bytes = 0;
  bool ignore_case = false;

  /// Where it may begin in a piece.
  PENSTOCK_FN u32 candidates(piece16 piece) const {
    const u8 first = static_cast<u8>(text[0]);
    const u32 found = equal_bytes(piece, first);
    return ignore_case && upper_case(first) != first ? found | equal_bytes(piece, upper_case(first)) : found;
  }
  PENSTOCK_FN bool is_at(char const* bytes_there) const {
    for (u32 k = 0; k < bytes; ++k) {
      const u8 c = static_cast<u8>(bytes_there[k]);
      if ((ignore_case ? lower_case(c) : c) != static_cast<u8>(text[k])) return false;
    }
    return true;
  }
};

/// Searches an item's part: the lines of the cache in place, and what lies across their ends from a copy.
struct search_parts {
  folder_view folder;
  char const* text;
  file_part const* parts;
  part_result* results;  ///< [items]
  pattern_text pattern;
  char* windows;  ///< [items][window_bytes]
  match_place* matches;
  u64 matches_room;
  u64* matches_used;

  static constexpr u32 window_bytes = 2 * (max_pattern_bytes + 1);

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      const part_result result = search(g, k);
      if (is_leader(g)) results[k] = result;
    }
  }

 private:
  template <class Group>
  PENSTOCK_FN part_result search(Group const& g, u64 k) const {
    file_part const& part = parts[k];
    part_result result;
    const open_result opened = folder.open(g, text + part.name.begin, part.name.bytes, file_flag::read);
    result.error = opened.error;
    if (!opened.ok()) return result;
    result.size = from_leader(g, folder.size_of(opened.file).value);
    const u64 end = part.last < result.size ? part.last : result.size;
    u64 lane_newlines = 0;  // of this lane's pieces
    u64 at = part.first;
    while (at < end && result.error == 0 && result.binary == 0) {
      if (at != 0) result.error = search_across(g, k, opened.file, at, result.size, lane_newlines);
      const mapped_bytes mapped = folder.map(g, opened.file, at, end - at, file_flag::read);
      if (result.error == 0) result.error = mapped.error;
      if (mapped.count == 0) break;  // it was cut since
      result.binary = search_line(g, k, mapped, lane_newlines) ? 1 : 0;
      folder.unmap(g, opened.file, mapped);
      at += mapped.count;
    }
    folder.close(g, opened.file);
    result.bytes = at - part.first;
    result.newlines = sum_of(g, lane_newlines);
    return result;
  }

  template <class Group>
  PENSTOCK_FN static u64 sum_of(Group const& g, u64 mine) {
    u64 sum = 0;
    for (u32 i = 0; i < size(g); ++i) sum += g.shfl(mine, nth(g.members(), i));
    return sum;
  }

  /// Each lane looks at 16 bytes, side by side; `lane_newlines` grows by those that it has seen. True: there is a zero byte.
  template <class Group>
  PENSTOCK_FN bool search_line(Group const& g, u64 k, mapped_bytes const& mapped, u64& lane_newlines) const {
    const u64 width = 16 * size(g);
    bool zero = false;
    for (u64 strip = 0; strip < mapped.count; strip += width) {
      const u64 at = strip + 16 * index_in(g);
      u32 newlines = 0, matched = 0;
      if (at < mapped.count) {
        const piece16 piece = *reinterpret_cast<piece16 const*>(mapped.bytes + at);
        const u32 valid = at + 16 <= mapped.count ? 0xffffu : (1u << (mapped.count - at)) - 1;
        newlines = equal_bytes(piece, '\n') & valid;
        zero |= (equal_bytes(piece, 0) & valid) != 0;
        for (u32 rest = pattern.candidates(piece) & valid; rest != 0; rest &= rest - 1) {
          const u32 i = lowest_bit(rest);
          if (at + i + pattern.bytes <= mapped.count && pattern.is_at(mapped.bytes + at + i)) matched |= 1u << i;
        }
      }
      if (any(g.ballot(matched != 0))) note_matches(g, k, mapped.offset + at, matched, newlines, lane_newlines);
      lane_newlines += bit_count(newlines);
    }
    return any(g.ballot(zero));
  }

  template <class Group>
  PENSTOCK_FN void note_matches(Group const& g, u64 k, u64 offset, u32 matched, u32 newlines, u64 lane_newlines) const {
    u64 before = sum_of(g, lane_newlines);
    for (u32 i = 0; i < size(g); ++i) {
      const u32 rank = nth(g.members(), i);
      const u64 here = g.shfl(bit_count(newlines), rank);
      if (rank < g.rank()) before += here;
    }
    for (; matched != 0; matched &= matched - 1) {
      const u32 i = lowest_bit(matched);
      note(k, offset + i, before + bit_count(newlines & ((1u << i) - 1)));
    }
  }

  PENSTOCK_FN void note(u64 k, u64 offset, u64 newlines) const {
    const u64 slot = device_ref<u64>(*matches_used).fetch_add(1, relaxed);
    if (slot < matches_room) matches[slot] = {k, offset, newlines};
  }

  /// What begins before `at`, the start of a line of the cache, and ends behind it. A match that begins in the part before this
  /// one is its, with no newlines of this part before it. An errno.
  template <class Group>
  PENSTOCK_FN u32 search_across(Group const& g, u64 k, file_descriptor const& file, u64 at, u64 file_bytes,
                                u64 lane_newlines) const {
    const u64 reach = pattern.bytes - 1;
    if (reach == 0) return 0;
    const u64 begin = at > reach ? at - reach : 0, end = at + reach < file_bytes ? at + reach : file_bytes;
    char* const window = windows + k * window_bytes;
    converge_after_call(g);  // what the last look at it loads is loaded
    const file_result got = folder.pread(g, file, window, end - begin, begin);
    if (got.error != 0) return got.error;
    converge_after_call(g);
    const u64 before = sum_of(g, lane_newlines);
    for (u64 i = index_in(g); begin + i < at; i += size(g)) {
      if (i + pattern.bytes > got.value || begin + i + pattern.bytes <= at || !pattern.is_at(window + i)) continue;
      u64 behind = 0;
      for (u64 j = i; begin + j < at; ++j) behind += window[j] == '\n' ? 1 : 0;
      note(k, begin + i, before - behind);
    }
    return 0;
  }
};

template <class Body>
void run_cuda(executor& on, u64 items, Body const& body);

template <class Body>
void run(executor& on, u64 items, Body const& body) {
  if constexpr (has_kernels) {
    if (on.kind() == executor_kind::cuda) return run_cuda(on, items, body);
  }
  launch<group_width>(on, items, body);
}

}  // namespace penstock::files
