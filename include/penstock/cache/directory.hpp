// The directory: finds the entry of a line. An entry says whether the line has a frame, and where that frame is.
//
// `direct`: one entry per line of the datasets, which names the frame.
#pragma once

#include "penstock/cache/entry.hpp"
#include "penstock/core/read_order.hpp"
#include "penstock/core/units.hpp"

namespace penstock {

/// A line's entry and the word seen there.
struct found_line {
  u64* entry = nullptr;
  u64 word = 0;

  PENSTOCK_FN line_state state() const { return entry::state(word); }
};

/// Trivially copyable; the host-side `line_cache` owns what it points at.
struct directory_view {
  u64* entries = nullptr;  ///< [lines of all datasets]
  entry_layout layout;

  /// The entry of a line, loaded with acquire: R1 of the validated read, which may ask for a cheaper order.
  template <read_order Order = read_order::sound>
  PENSTOCK_FN found_line find(line_id line) const {
    u64* const entry = entries + value(line);
    return {entry, load_entry<Order>(*entry)};
  }

  /// The same at a glance: what it says is a hint.
  PENSTOCK_FN found_line glance(line_id line) const {
    u64* const entry = entries + value(line);
    return {entry, device_ref<u64>(*entry).load(relaxed)};
  }

  /// Number of the frame that an entry names. REQUIRES: it was seen filling, valid or failed.
  PENSTOCK_FN u64 frame_of(u64 const*, u64 word) const { return layout.place(word); }
};

}  // namespace penstock
