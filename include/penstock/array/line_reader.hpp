// The validated read: one aligned piece of a line, without an atomic read-modify-write (PROTOCOLS.md §2).
//
// R1 loads the entry, R2 the piece, R4 the entry again; R3 keeps R4 behind R2. If both entries name the same fill the piece is
// good: had it been a later fill's, that fill's claim would be visible to R4. Before that comparison holds, the piece is used
// for nothing.
#pragma once

#include "penstock/array/read_slowly.hpp"
#include "penstock/core/read_order.hpp"
#include "penstock/group/this_group.hpp"

namespace penstock {

/// How a kernel reaches the bytes of one dataset through a cache. Trivially copyable; the fields that a hit needs are copies.
///
/// Positions are addresses in the cache's line space: `base` + offset in the dataset, so that the line's number is one shift
/// away.
struct line_reader {
  directory_view directory;
  u64 frames_base = 0;
  u64 base = 0;                            ///< address of the dataset's first byte
  line_cache_view const* cache = nullptr;  ///< for all but hits
  u64 zero = 0;                            ///< a zero that the compiler does not know of
  u32 hit_word = never;                    ///< what the low bits of an entry are that may be read without a pin
  u32 line_shift = 0;
  u32 dataset = 0;

  /// State and referenced bit: a line that is not referenced yet takes the slow way, which sets it.
  static constexpr u32 hit_mask = 3u | static_cast<u32>(entry::referenced_bit);
  static constexpr u32 readable_word = static_cast<u32>(line_state::valid) | static_cast<u32>(entry::referenced_bit);
  /// Versions too short for reads without a pin on this executor.
  static constexpr u32 never = ~0u;

  PENSTOCK_FN line_id line_of(u64 address) const { return line_id{address >> line_shift}; }
  PENSTOCK_FN u64 within(u64 address) const { return address & ((1ull << line_shift) - 1); }
  PENSTOCK_FN u64 line_bytes() const { return 1ull << line_shift; }
  PENSTOCK_FN counter_set_view const& counters() const { return cache->datasets[dataset].counters; }
  PENSTOCK_FN u64 frame_of(found_line at) const { return frames_base + (directory.frame_of(at.entry, at.word) << line_shift); }

  /// Whether what R1 gave allows to read the frame without a pin.
  PENSTOCK_FN bool readable(found_line at) const { return at.state() == line_state::valid && hit_word != never; }
  /// The same, and nothing else is to be done: the line is referenced.
  PENSTOCK_FN bool hits(found_line at) const { return (static_cast<u32>(at.word) & hit_mask) == hit_word; }

  /// R2 to R4 of one piece against what R1 gave. False: nothing was learned.
  template <read_order Order = read_order::sound, class Piece>
  PENSTOCK_FN bool try_read(found_line at, u64 within_line, Piece& piece) const {
    const Piece read = load_piece_in_order<Order>(reinterpret_cast<Piece const*>(frame_of(at) + within_line));
    if (!unchanged(at, tie_recheck_to<Order>(read, zero))) return false;
    piece = read;
    return true;
  }

  /// R4.
  PENSTOCK_FN bool unchanged(found_line at, u64 nothing = 0) const {
    return entry::same(at.word, load_entry_again(at.entry[nothing]));
  }

  /// The piece at `address`. REQUIRES: aligned to its size.
  /// Cost:   hit: three loads. Miss: one command, and waits for it.
  /// Errors: Piece{}; the first one is latched in the cache's fault slot.
  template <class Piece, read_order Order = read_order::sound>
  PENSTOCK_FORCE_INLINE Piece read(u64 address) const {
    const found_line at = directory.find<Order>(line_of(address));
    Piece piece{};
    if (hits(at) && try_read<Order>(at, within(address), piece)) return piece;
    return read_slowly<Piece>(this_group(), true, address);
  }

  /// Everything but an undisturbed hit. Collective; lanes that want nothing help the others.
  template <class Piece, thread_group G>
  PENSTOCK_FN Piece read_slowly(G const& g, bool want, u64 address) const {
    return first_bytes<Piece>(penstock::read_slowly(g, *cache, dataset, want, address, sizeof(Piece)));
  }
};

}  // namespace penstock
