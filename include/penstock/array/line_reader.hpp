// The validated read: one aligned piece of a line, without an atomic read-modify-write (PROTOCOLS.md §2).
//
// R1 loads the entry, R2 the piece, R4 the entry again; R3 keeps R4 behind R2. If both entries name the same fill the piece is
// good: had it been a later fill's, that fill's claim would be visible to R4. Before that comparison holds, the piece is used
// for nothing.
#pragma once

#include "penstock/coalesce/line_request.hpp"
#include "penstock/core/memory_access.hpp"
#include "penstock/group/this_group.hpp"

namespace penstock {

/// How a kernel reaches the bytes of one dataset through a cache. Trivially copyable; the fields that a hit needs are copies.
struct line_reader {
  u64* entries = nullptr;  ///< of the dataset's first line
  u64 frames_base = 0;
  line_cache_view const* cache = nullptr;
  u64 first_line = 0;
  entry_layout layout;
  u32 line_shift = 0;
  u32 dataset = 0;
  bool validates = false;

  PENSTOCK_FN u64 line_of(u64 offset) const { return offset >> line_shift; }
  PENSTOCK_FN u64 within(u64 offset) const { return offset & ((1ull << line_shift) - 1); }
  PENSTOCK_FN line_id id_of(u64 line) const { return line_id{first_line + line}; }
  PENSTOCK_FN counter_set_view const& counters() const { return cache->datasets[dataset].counters; }
  PENSTOCK_FN u64 frame_of(u64 e) const { return frames_base + (layout.place(e) << line_shift); }

  /// Whether `e` allows to read its frame without a pin.
  PENSTOCK_FN bool readable(u64 e) const { return entry::state(e) == line_state::valid && validates; }

  PENSTOCK_FN u64 load_entry(u64 line) const { return device_ref<u64>(entries[line]).load(acquire); }  // R1

  /// Neither in a frame nor on its way there, at a glance.
  PENSTOCK_FN bool is_absent(u64 line) const {
    return entry::state(device_ref<u64>(entries[line]).load(relaxed)) == line_state::empty;
  }

  /// R2 to R4 against the entry `e` that R1 gave. False: nothing was learned.
  template <class Piece>
  PENSTOCK_FN bool try_read(u64 line, u64 e, u64 at, Piece& piece) const {
    const Piece read = load_piece(reinterpret_cast<Piece const*>(frame_of(e) + at));
    order_read_before_recheck();
    if (!entry::same(e, device_ref<u64>(entries[line]).load(relaxed))) return false;
    piece = read;
    return true;
  }

  /// The piece at `offset`. REQUIRES: aligned to its size.
  /// Cost:   hit: three loads. Miss: one command, and waits for it.
  /// Errors: Piece{}; the first one is latched in the cache's fault slot.
  template <class Piece>
  PENSTOCK_FORCE_INLINE Piece read(u64 offset) const {
    const u64 line = line_of(offset);
    const u64 e = load_entry(line);
    Piece piece{};
    if (readable(e) && (e & entry::referenced_bit) != 0 && try_read(line, e, within(offset), piece)) return piece;
    return read_slowly<Piece>(this_group(), true, offset);
  }

  /// Everything but an undisturbed hit: sets the referenced bit, tries again, takes a pin, fills. Collective; lanes that want
  /// nothing help the others: a line that came through a bounce buffer is copied by all of the group.
  template <class Piece, thread_group G>
  PENSTOCK_COLD Piece read_slowly(G const& g, bool want, u64 offset) const {
    const u64 line = line_of(offset);
    Piece piece{};
    bool todo = want;
    for (u32 attempt = 0; todo && attempt < 3; ++attempt) {
      const u64 e = load_entry(line);
      if (!readable(e)) break;
      cache->reference(id_of(line), e);
      todo = !try_read(line, e, within(offset), piece);
      if (todo) counters().add(counter::retries, 1);
    }
    if (!any(g.ballot(todo))) return piece;
    const status outcome = read_line(g, *cache, dataset, todo, id_of(line), [&](u64 frame) {
      piece = load_piece(reinterpret_cast<Piece const*>(frame + within(offset)));
    });
    if (!outcome.ok()) cache->latch(outcome, dataset, offset);
    return piece;
  }
};

}  // namespace penstock
