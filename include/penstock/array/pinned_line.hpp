// Lines that a group stays on: `pinned_line` to read, `writable_line` to store into.
#pragma once

#include "penstock/array/array_view.hpp"
#include "penstock/array/write_slowly.hpp"

namespace penstock {

/// Pins a line that is there, the same for all of a group: the leader's pin does. Frame 0: nothing was done. Whole warps only:
/// of them there are too few to overflow the field between the addition and the look at what it was. Collective.
template <read_order Order, thread_group G>
PENSTOCK_FN held_line pin_at_once(G const& g, line_reader const& reader, line_id line) {
  held_line held;
  if (size(g) < 32 || any(g.ballot(value(line) != from_leader(g, value(line))))) return held;
  if (is_leader(g)) {
    hit_line at{};
    if (reader.find_entry(value(line) << reader.line_shift, at)) {
      const u64 old = fetch_add_kept<Order != read_order::data>(*at.entry, entry::one_pin);
      if (reader.is_pinned(old, at) && entry::pins(old) < entry::most_pins) {
        held = {at.entry, at.frame, {}, 1};
      } else {
        add_relaxed(*at.entry, 0 - entry::one_pin);
      }
    }
  }
  held.frame = from_leader(g, held.frame);
  g.sync();  // the leader's acquire is every member's; in the order `data` each lane's loads follow from the frame
  return held;
}

/// Gives a pin back after reads: a load that is still on its way must not read the next tenant. In the order `data` the word
/// that is added follows from all that the group's lanes have `read` (tie_recheck_to), so it can't be added before they have.
/// Collective; `entry` is null in lanes that hold no pin.
template <read_order Order, thread_group G>
PENSTOCK_FN void unpin_read(G const& g, u64* entry, [[maybe_unused]] u64 read) {
  u64 tie = 0;
  if constexpr (Order == read_order::data) tie = any(g.ballot(read != 0)) ? 1 : 0;
  g.sync();  // every lane's loads are done
  if (entry == nullptr) return;
  add_kept<Order != read_order::data>(*entry, tie - entry::one_pin);
}

/// What both have. Made collectively, and gives nothing back by itself. `Order`: sound, or data.
template <thread_group G, read_order Order = read_order::sound>
class held_group_line {
 public:
  /// Hits are counted in `tally`; null: at once.
  PENSTOCK_FN held_group_line(G const& g, line_reader const& reader, line_id line, access_tally* tally = nullptr)
      : g_(g), zero_(reader.zero) {
    held_ = pin_at_once<Order>(g_, reader, line);
    if (held_.frame == 0) held_ = pin_slowly(g_, *reader.cache, reader.dataset, line);
    if (tally != nullptr) tally->hits += held_.hits;
    if (tally == nullptr && held_.hits != 0) reader.counters.add(counter::hits, held_.hits);
  }
  held_group_line(held_group_line const&) = delete;
  held_group_line& operator=(held_group_line const&) = delete;

  PENSTOCK_FN status error() const { return held_.error; }

  /// The piece `at` bytes into the line. REQUIRES: error().ok(), aligned to its size.
  template <class Piece>
  PENSTOCK_FN Piece load(u64 at) const {
    const Piece read = load_piece(reinterpret_cast<Piece const*>(held_.frame + at));
    read_ |= tie_recheck_to<Order>(read, zero_);
    return read;
  }

  /// Calls use(k, piece) for the 16-byte pieces from number `first` to `last` of the line, each in one lane. Collective.
  /// REQUIRES: error().ok().
  template <class Use>
  PENSTOCK_FN void read_pieces(u32 first, u32 last, Use const& use) const {
    auto const* const pieces = reinterpret_cast<piece16 const*>(held_.frame);
    const u32 width = size(g_), batch = pieces_in_flight * width;
    u32 from = first + index_in(g_);
    for (u32 whole = last > first ? (last - first) / batch : 0; whole != 0; --whole, from += batch) {
      piece16 read[pieces_in_flight];
      PENSTOCK_UNROLL
      for (u32 k = 0; k < pieces_in_flight; ++k) read[k] = load_streamed(pieces + from + k * width);
      g_.sync();  // all are on their way before the first is waited for
      read_ |= tie_recheck_to_all<Order>(read, zero_);
      PENSTOCK_UNROLL
      for (u32 k = 0; k < pieces_in_flight; ++k) use(from + k * width, read[k]);
    }
    constexpr u32 some = pieces_in_flight / 2;
    for (; from < last; from += some * width) {
      piece16 read[some];
      PENSTOCK_UNROLL
      for (u32 k = 0; k < some; ++k) read[k] = load_piece(pieces + (from + k * width < last ? from + k * width : last - 1));
      read_ |= tie_recheck_to_all<Order>(read, zero_);
      PENSTOCK_UNROLL
      for (u32 k = 0; k < some; ++k) {
        if (from + k * width < last) use(from + k * width, read[k]);
      }
    }
  }

 protected:
  ~held_group_line() = default;

  G g_;
  held_line held_;
  u64 zero_;              ///< the reader's; the order `data` alone needs it
  mutable u64 read_ = 0;  ///< the order `data`: 0, which depends on all that this lane has loaded
};

/// A line that a group holds: its bytes stay in place until the last of the group lets go. Made by `pin`; collective, from
/// construction to destruction.
template <thread_group G, read_order Order = read_order::sound>
class pinned_line : public held_group_line<G, Order> {
 public:
  using held_group_line<G, Order>::held_group_line;
  PENSTOCK_FN ~pinned_line() { unpin_read<Order>(this->g_, this->held_.entry, this->read_); }
};

/// The same to store into. What was stored is on its way to storage some time after the line was let go; `line_cache::flush`
/// says when it is there. Where many lines are dirty, letting go sends some of them. Made by `pin_to_write`.
template <thread_group G>
class writable_line : public held_group_line<G> {
 public:
  /// REQUIRES: the reader, of a writable dataset, outlives the line.
  PENSTOCK_FN writable_line(G const& g, line_reader const& reader, line_id line)
      : held_group_line<G>(g, reader, line), reader_(reader) {}
  PENSTOCK_FN ~writable_line() {
    if (stored_ != 0) reader_.counters.add(counter::bytes_changed, stored_);
    if (!any(this->g_.ballot(stored_ != 0))) {
      this->g_.sync();
      if (this->held_.entry != nullptr) reader_.cache->unpin(this->held_.entry);
      return;
    }
    unpin_stored(this->g_, *reader_.cache, reader_.dataset, this->held_.entry, false);
  }

  /// Stores a piece of 1, 2, 4 or 8 bytes `at` bytes into the line. REQUIRES: error().ok(), aligned to its size, inside the
  /// dataset.
  template <class Piece>
  PENSTOCK_FN void store(u64 at, Piece piece) {
    store_piece(reinterpret_cast<Piece*>(this->held_.frame + at), piece);
    stored_ += sizeof(Piece);
  }

  /// Stores make(k), 16 bytes, as piece k, for `first` to `last`, each in one lane. Collective. REQUIRES: as `store`.
  template <class Make>
  PENSTOCK_FN void write_pieces(u32 first, u32 last, Make const& make) {
    order_claim_before_bytes();
    auto* const pieces = reinterpret_cast<piece16*>(this->held_.frame);
    for (u32 k = first + index_in(this->g_); k < last; k += size(this->g_)) {
      store_piece_after_fence(pieces + k, make(k));
      stored_ += sizeof(piece16);
    }
  }

 private:
  line_reader const& reader_;
  u32 stored_ = 0;  ///< bytes, by this lane
};

/// Pins the line of element i of a view; lanes may name different lines, and get all of them or none.
/// Cost:   hit: one atomic per distinct line of the group. Miss: one command per line, and waits for them.
/// Errors: the fill's status; failure::no_frame when the group's lines do not fit beside what others pin.
/// REQUIRES: a view over a cache.
template <thread_group G, class T>
PENSTOCK_FN pinned_line<G> pin(G const& g, array_view<T> const& view, u64 i) {
  return pinned_line<G>(g, view.reader(), view.reader().line_of(view.address_of(i)));
}

/// The same for groups that pin one line after another: what they find is counted in `tally`, which they add to the counters of
/// the view's reader when they are done. An addition to a shared word for each line is one more that the release of every pin
/// on this multiprocessor waits for. `Order`: sound; or data, which has no fence (core/read_order.hpp).
template <read_order Order = read_order::sound, thread_group G, class T>
PENSTOCK_FN pinned_line<G, Order> pin(G const& g, array_view<T> const& view, u64 i, access_tally& tally) {
  return pinned_line<G, Order>(g, view.reader(), view.reader().line_of(view.address_of(i)), &tally);
}

}  // namespace penstock
