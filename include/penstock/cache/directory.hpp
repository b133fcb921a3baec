// The directory: finds the entry of a line. An entry says whether the line has a frame, and where that frame is.
//
// `direct`: one entry per line of the datasets, which names the frame. `set_associative`: one entry per frame, seven to a set;
// it names the line by a tag and how far it lies from its home, and which frame it stands for follows from where it lies. Which
// of the two a cache has is chosen at run time, and no caller needs to know: one uniform branch, on a field that lies in a
// kernel's constant memory.
#pragma once

#include "penstock/cache/entry.hpp"
#include "penstock/cache/frame_set.hpp"
#include "penstock/cache/set_map.hpp"
#include "penstock/core/read_order.hpp"
#include "penstock/core/units.hpp"

namespace penstock {

/// A line's entry and the word seen there. No entry (`set_associative`): the line has no frame, and the word is empty.
struct found_line {
  u64* entry = nullptr;
  u64 word = 0;

  PENSTOCK_FN line_state state() const { return entry::state(word); }
};

template <class Directory>
PENSTOCK_COLD found_line find_in_sets(Directory const& directory, u64 x);

/// Trivially copyable; the host-side `line_cache` owns what it points at.
struct directory_view {
  u64* entries = nullptr;  ///< `direct`: [lines of all datasets]; else [sets][header and seven entries], aligned to 64 bytes
  entry_layout layout;
  set_map map;

  PENSTOCK_FN bool is_direct() const { return map.sets == 0; }

  /// The entry of a line, loaded with acquire: R1 of the validated read, which may ask for a cheaper order.
  template <read_order Order = read_order::sound>
  PENSTOCK_FORCE_INLINE found_line find(line_id line) const {
    if (is_direct()) {
      u64* const entry = entries + value(line);
      return {entry, load_entry<Order>(*entry)};
    }
    const found_line at = find_in_sets(*this, map.mix(value(line)));
    if (at.entry == nullptr) return at;
    // The way may have changed hands since the scan.
    const u64 word = load_scanned_entry<Order>(*at.entry, at.word);
    const bool names_it = layout.same_place(word, at.word) && entry::state(word) != line_state::empty;
    return names_it ? found_line{at.entry, word} : found_line{};
  }

  /// The same at a glance: what it says is a hint.
  PENSTOCK_FN found_line glance(line_id line) const {
    u64* const entry = entries + value(line);
    const bool direct = is_direct();
    load_above();
    if (direct) return {entry, device_ref<u64>(*entry).load(relaxed)};
    return find_in_sets(*this, map.mix(value(line)));
  }

  /// Number of the frame that an entry names. REQUIRES: it was seen filling, valid or failed.
  PENSTOCK_FN u64 frame_of(u64 const* entry, u64 word) const {
    if (is_direct()) return layout.place(word);
    const auto at = static_cast<u32>(entry - entries);  // set * 8 + 1 + way
    return at - at / set_words - 1;
  }

  /// Whether an entry that named `a`'s line names it now that it is `b`.
  PENSTOCK_FN bool same_line(u64 a, u64 b) const { return is_direct() || layout.same_place(a, b); }

  /// Of `set_associative`, for claims. `x` is the line's mixed number, a distance is in sets from its home.
  PENSTOCK_FN u32 reach() const { return 1u << map.reach_bits; }
  PENSTOCK_FN u64* home_of(u64 x) const { return entries + set_words * map.set_of(x); }
  PENSTOCK_FN u64* set_after(u64* home, u32 distance) const {
    const u64 words = u64{map.sets} * set_words, at = static_cast<u64>(home - entries) + distance * set_words;
    return entries + (at < words ? at : at - words);
  }
  PENSTOCK_FN found_line find_in(u64* set, set_snapshot const& seen, u64 x, u32 distance) const {
    found_line at;
    const u32 way =
        seen.find(static_cast<u32>(place_of(x, distance)) << entry::identity_shift, layout.low_place_mask(), at.word);
    if (way != no_way) at.entry = set + 1 + way;
    return at;
  }
  /// What an entry of the line has for a place.
  PENSTOCK_FN u64 place_of(u64 x, u32 distance) const {
    return (x << map.reach_bits & ((1ull << layout.place_bits) - 1)) | distance;
  }
};

/// In the sets, by the line's mixed number: what the scan saw, a hint. Not inlined: the slow path looks lines up in many ways.
/// A template, so that it is compiled once (src/device).
template <class Directory>
PENSTOCK_COLD found_line find_in_sets(Directory const& directory, u64 x) {
  u64* const home = directory.home_of(x);
  const set_snapshot seen = set_snapshot::of(home);
  found_line at = directory.find_in(home, seen, x, 0);
  for (u32 away = set_header::away(seen.header); at.entry == nullptr && away != 0; away &= away - 1) {
    const u32 distance = lowest_bit(away);
    u64* const set = directory.set_after(home, distance);
    at = directory.find_in(set, set_snapshot::of(set), x, distance);
  }
  return at;
}

#if PENSTOCK_SEPARATE_DEVICE_CODE || PENSTOCK_SEPARATE_HOST_CODE
extern template PENSTOCK_FN found_line find_in_sets(directory_view const&, u64);
#endif

}  // namespace penstock
