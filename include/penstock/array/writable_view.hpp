// `writable_view<T>`: an array that kernels read and write, wherever its bytes live. Made by `line_cache::writable`.
//
// What is written is seen by every later read through the cache, and is in storage when `line_cache::flush` has returned. An
// element of up to 8 bytes is old or new to a concurrent reader, never a mix. Elements beside it keep their bytes.
#pragma once

#include "penstock/array/pinned_line.hpp"

namespace penstock {

/// What becomes of a line that is in no frame and that a store covers in part.
enum class absent_lines : u32 {
  are_read,   ///< it is brought in
  are_zeros,  ///< its other bytes are zeros, whatever storage has
};

template <class T>
class writable_view : public array_view<T> {
  static_assert(sizeof(T) == piece_bytes<T>, "an element must lie on one line");

 public:
  writable_view() = default;

  /// Over memory that the kernel reaches.
  PENSTOCK_FN writable_view(T* resident, u64 elements) : array_view<T>(resident, elements), memory_(resident) {}

  /// Over a writable dataset behind a cache. REQUIRES: as array_view.
  PENSTOCK_FN writable_view(line_reader const& reader, u64 origin, u64 elements) : array_view<T>(reader, origin, elements) {}

  /// Stores element i. REQUIRES: i < size().
  /// Cost:   three atomics on the line's entry, shared by lanes that are on one line. Miss: one command, and waits for it.
  /// Errors: the first one is latched and thrown by the host at the next synchronize (line_cache::check_faults); nothing is
  ///         stored then. failure::out_of_range beyond the dataset.
  PENSTOCK_FN void write(u64 i, T v) const { latch(store(lanes_here{}, true, i, v), i); }

  /// The same for one element per lane that wants to. Collective.
  template <thread_group G>
  PENSTOCK_FN void write(G const& g, bool want, u64 i, T v) const {
    latch(store(g, want, i, v), i);
  }

  /// The same, and returns each lane its status.
  template <thread_group G>
  PENSTOCK_FN status try_write(G const& g, bool want, u64 i, T v) const {
    return store(g, want, i, v);
  }

  /// Adds to element i and gives what it was. Integers (modulo their size) and floating point of 4 or 8 bytes. Atomic against
  /// all others that change it through the cache; orders nothing else.
  /// Cost and errors: as `write`; T{} after an error.
  PENSTOCK_FN T fetch_add(u64 i, T v) const { return update(lanes_here{}, true, i, add_op, v); }
  template <thread_group G>
  PENSTOCK_FN T fetch_add(G const& g, bool want, u64 i, T v) const {
    return update(g, want, i, add_op, v);
  }

  /// Makes element i the lesser of itself and v, and gives what it was; likewise. A line whose element stays as it is stays
  /// clean.
  PENSTOCK_FN T fetch_min(u64 i, T v) const { return update(lanes_here{}, true, i, min_op, v); }
  template <thread_group G>
  PENSTOCK_FN T fetch_min(G const& g, bool want, u64 i, T v) const {
    return update(g, want, i, min_op, v);
  }

  /// Stores `desired` in element i if it is `expected`, by its bytes; if not, or after an error, false, and `expected` is what
  /// it is.
  PENSTOCK_FN bool compare_exchange(u64 i, T& expected, T desired) const {
    return exchange(lanes_here{}, true, i, expected, desired);
  }
  template <thread_group G>
  PENSTOCK_FN bool compare_exchange(G const& g, bool want, u64 i, T& expected, T desired) const {
    return exchange(g, want, i, expected, desired);
  }

  /// Stores make(i) for `elements` elements from `first` on, each once, in some lane of the group. Lines that this covers whole
  /// are not read from storage. Collective.
  /// Cost:   three atomics for each line.
  /// Errors: the first failure; the other lines are written. failure::out_of_range beyond the dataset: then nothing is.
  /// REQUIRES: make does not access the cache: it is called with a line in hand.
  template <thread_group G, class Make>
  PENSTOCK_FN status write_span(G const& g, u64 first, u64 elements, Make const& make,
                                absent_lines absent = absent_lines::are_read) const {
    return for_all(g, write_spans(g, is_leader(g), first, elements, [&](u32, u64 j) { return make(first + j); }, absent));
  }

  /// The same for a span of each lane that wants one: make(k, j) gives element j of the span of the lane with index k in the
  /// group. Pins of what lies in frames are taken and given back by all lanes together, so many short spans take little longer
  /// than one. Spans may share lines; an element that lies in two spans is that of either. Collective.
  /// Cost:   three atomics for each line of each span, those of the lanes side by side.
  /// Errors: each lane gets the first failure of its span, whose other lines are written. failure::out_of_range beyond the
  ///         dataset: then nothing of that span is, and others are.
  /// REQUIRES: `elements` is the same in all lanes; make does not access the cache: it is called with a pin per lane held.
  template <thread_group G, class Make>
  PENSTOCK_FN status write_spans(G const& g, bool want, u64 first, u64 elements, Make const& make,
                                 absent_lines absent = absent_lines::are_read) const {
    if (this->is_resident()) {
      each_lane(g, g.ballot(want), [&](u32 rank, u32 index) {
        const u64 from = g.shfl(first, rank);
        for (u64 j = index_in(g); j < elements; j += penstock::size(g)) memory_[from + j] = make(index, j);
      });
      return {};
    }
    const span_change covers{true, absent};
    return change_spans(g, want, first, elements, covers, [&](u64 to, u32 index, u64 from, u64 count) {
      const auto element = [&](u64 j) { return make(index, j); };
      if ((to | count * sizeof(T)) % 16 == 0) return store_pieces(g, to, from, count, element);
      if constexpr (sizeof(T) != 16) {
        for (u64 k = index_in(g); k < count; k += penstock::size(g)) {
          store_piece(reinterpret_cast<piece*>(to) + k, std::bit_cast<piece>(element(from + k)));
        }
      }
    });
  }

  /// Adds make(i) to `elements` elements from `first` on, numbers of 4 or 8 bytes. Atomic for each against all others that
  /// change it through the cache; in no order. Otherwise as write_span.
  template <thread_group G, class Make>
  PENSTOCK_FN status add_span(G const& g, u64 first, u64 elements, Make const& make) const {
    return for_all(g, add_spans(g, is_leader(g), first, elements, [&](u32, u64 j) { return make(first + j); }));
  }

  /// The same for a span of each lane that wants one, as write_spans. Spans that overlap add up.
  template <thread_group G, class Make>
  PENSTOCK_FN status add_spans(G const& g, bool want, u64 first, u64 elements, Make const& make) const {
    static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "a number of 4 or 8 bytes");
    const auto add = [&](T* to, u32 index, u64 from, u64 count) {
      const u32 width = penstock::size(g);
      for (u64 k = index_in(g); k < count; k += adds_in_flight * width) {
        T more[adds_in_flight];  // what is added may come from far: all of it is asked for before any is awaited
        PENSTOCK_UNROLL
        for (u32 n = 0; n < adds_in_flight; ++n) more[n] = k + n * width < count ? make(index, from + k + n * width) : T{};
        PENSTOCK_UNROLL
        for (u32 n = 0; n < adds_in_flight; ++n) {
          if (k + n * width < count) add_piece_after_fence(to + k + n * width, more[n]);
        }
      }
    };
    if (this->is_resident()) {
      each_lane(g, g.ballot(want), [&](u32 rank, u32 index) { add(memory_ + g.shfl(first, rank), index, 0, elements); });
      return {};
    }
    return change_spans(g, want, first, elements, {false, absent_lines::are_read},
                        [&](u64 to, u32 index, u64 from, u64 count) { add(reinterpret_cast<T*>(to), index, from, count); });
  }

 private:
  static constexpr u32 adds_in_flight = 4;

  struct span_change {
    bool covers;  ///< all elements are stored and none is looked at, so lines that lie in the span whole are not brought in
    absent_lines absent;
  };

  using piece = piece_of<sizeof(T)>;

  PENSTOCK_FN static piece16 widened(T v) {
    if constexpr (sizeof(T) == 16) {
      return std::bit_cast<piece16>(v);
    } else {
      return {static_cast<u64>(std::bit_cast<piece>(v)), 0};
    }
  }

  /// In place of a group: the lanes that are here, all of which want to, and those of their warp that they meet.
  struct lanes_here {};

  static constexpr element_op add_op = std::is_floating_point_v<T> ? element_op::add_float : element_op::add;
  static constexpr element_op min_op = std::is_floating_point_v<T> ? element_op::min_float
                                       : std::is_signed_v<T>       ? element_op::min_signed
                                                                   : element_op::min_unsigned;

  template <thread_group G>
  PENSTOCK_FN changed_element change(G const& g, bool want, u64 i, element_change const& change) const {
    return change_slowly(g, *this->reader().cache, this->reader().dataset, want, this->address_of(i), change);
  }
  PENSTOCK_FN changed_element change(lanes_here, bool, u64 i, element_change const& change) const {
    line_reader const& reader = this->reader();
    return change_together(passing_group(), this_meeting<meeting_in::changes>(), reader.meets_at(), *reader.cache,
                           reader.dataset, this->address_of(i), change);
  }

  template <class G>
  PENSTOCK_FN status store(G const& g, bool want, u64 i, T v) const {
    if (this->is_resident()) {
      if (want) memory_[i] = v;
      return {};
    }
    return change(g, want, i, {element_op::store, sizeof(T), widened(v), 0}).error;
  }

  template <class G>
  PENSTOCK_FN bool exchange(G const& g, bool want, u64 i, T& expected, T desired) const {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    const piece wanted = std::bit_cast<piece>(expected);
    status outcome{};
    const piece before =
        apply(g, want, i, {element_op::compare_exchange, sizeof(T), widened(desired), static_cast<u64>(wanted)}, outcome);
    const bool done = outcome.ok() && before == wanted;
    if (want && !done) expected = std::bit_cast<T>(before);
    return done;
  }

  template <class G>
  PENSTOCK_FN piece apply(G const& g, bool want, u64 i, element_change const& c, status& outcome) const {
    if (this->is_resident()) {
      u64 before = 0;
      if (want) element::apply(reinterpret_cast<u64>(memory_ + i), c, before);
      return static_cast<piece>(before);
    }
    const changed_element changed = change(g, want, i, c);
    outcome = changed.error;
    latch(outcome, i);
    return static_cast<piece>(changed.before);
  }

  template <class G>
  PENSTOCK_FN T update(G const& g, bool want, u64 i, element_op op, T v) const {
    static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "a number of 4 or 8 bytes");
    status outcome{};
    return std::bit_cast<T>(apply(g, want, i, {op, sizeof(T), widened(v), 0}, outcome));
  }

  PENSTOCK_FN void latch(status why, u64 i) const {
    if (why.ok()) return;
    line_reader const& reader = this->reader();
    reader.cache->latch(why, fault_access::write, reader.dataset, this->address_of(i) - reader.base);
  }

  /// Calls use(rank, index) for each lane of a mask, in all lanes. Collective.
  template <thread_group G, class Mask, class Use>
  PENSTOCK_FN static void each_lane(G const& g, Mask lanes, Use const& use) {
    while (any(lanes)) {
      const u32 rank = lowest(lanes);
      use(rank, count_below(g.members(), rank));
      lanes = without(lanes, g.ballot(g.rank() == rank));
    }
  }

  /// The leader's status.
  template <thread_group G>
  PENSTOCK_FN static status for_all(G const& g, status s) {
    return unpack_status(static_cast<u32>(from_leader(g, pack(s))));
  }

  /// Line by line, for the spans of all lanes at once: store(to, k, from, count) changes `count` elements of the span of the
  /// lane with index k, from its number `from` on, which lie at `to` in a frame that is held meanwhile.
  ///
  /// What is in frames goes first, under pins that all lanes take and give back together. Then, with no pin held (W4), what is
  /// missing is asked for at once, and had line after line.
  template <thread_group G, class Store>
  PENSTOCK_FN status change_spans(G const& g, bool want, u64 first, u64 elements, span_change how, Store const& store) const {
    line_reader const& reader = this->reader();
    line_cache_view const& cache = *reader.cache;
    const u64 last = reader.base + cache.datasets[reader.dataset].bytes;
    const u64 begin = this->address_of(first);
    status outcome{};
    if (want && (begin > last || elements > (last - begin) / sizeof(T))) outcome = make_status(failure::out_of_range);
    const u64 end = want && outcome.ok() ? begin + elements * sizeof(T) : begin;
    u64 stored = 0;
    for (u64 at = begin; any(g.ballot(at < end));) {
      const u64 line_end = (at | reader.line_mask) + 1;
      const u64 stop = line_end < end ? line_end : end;
      const bool todo = at < end;
      const bool cut = reader.within(at) != 0 || stop != line_end;
      const bool whole = how.covers && (!cut || how.absent == absent_lines::are_zeros);  // nothing is to be brought in
      const auto store_of = [&](u32 rank, u32 index, u64 frame) {
        const u64 from = g.shfl(at, rank), bytes = g.shfl(stop, rank) - from;
        store(frame + reader.within(from), index, (from - g.shfl(begin, rank)) / sizeof(T), bytes / sizeof(T));
        stored += bytes;
      };
      const held_line hit = pin_hits(g, cache, todo, reader.line_of(at));
      const auto hits = g.ballot(todo && hit.frame != 0);
      if (any(hits)) {
        order_claim_before_bytes();
        each_lane(g, hits, [&](u32 rank, u32 index) { store_of(rank, index, g.shfl(hit.frame, rank)); });
        unpin_stored(g, cache, reader.dataset, hit.entry, false);
      }
      const bool absent = todo && hit.frame == 0;
      const auto others = g.ballot(absent);
      if (count(others) > 1) {
        prefetch_line(g, cache, reader.dataset, absent && !whole, reader.line_of(at), fill_purpose::asked);
      }
      each_lane(g, others, [&](u32 rank, u32 index) {
        const line_id line{g.shfl(value(reader.line_of(at)), rank)};
        const held_line held = pin_to_store(g, cache, reader.dataset, line, g.shfl(whole, rank) != 0);
        if (held.error.ok()) {
          order_claim_before_bytes();
          if (g.shfl(cut, rank) != 0 && any(g.ballot(held.owned))) store_zeros(g, held.frame);
          store_of(rank, index, held.frame);
          unpin_stored(g, cache, reader.dataset, held.entry, held.owned);
        } else if (g.rank() == rank && outcome.ok()) {
          outcome = held.error;
        }
      });
      if (todo) at = stop;
    }
    if (is_leader(g)) cache.datasets[reader.dataset].counters.add(counter::bytes_changed, stored);
    return outcome;
  }

  /// Into all of a frame that this group has claimed; what it stores next comes after it.
  template <thread_group G>
  PENSTOCK_FN void store_zeros(G const& g, u64 frame) const {
    auto* const pieces = reinterpret_cast<piece16*>(frame);
    const u64 count = this->reader().line_bytes / sizeof(piece16);
    for (u64 p = index_in(g); p < count; p += penstock::size(g)) store_piece_after_fence(pieces + p, piece16{});
    g.sync();
  }

  template <thread_group G, class Make>
  PENSTOCK_FN static void store_pieces(G const& g, u64 to, u64 first, u64 count, Make const& make) {
    constexpr u32 per_piece = 16 / sizeof(T);
    struct elements_of {
      T of[per_piece];
    };
    auto* const pieces = reinterpret_cast<piece16*>(to);
    for (u64 p = index_in(g); p < count / per_piece; p += penstock::size(g)) {
      elements_of all;
      PENSTOCK_UNROLL
      for (u32 k = 0; k < per_piece; ++k) all.of[k] = make(first + p * per_piece + k);
      store_piece_after_fence(pieces + p, std::bit_cast<piece16>(all));
    }
  }

  T* memory_ = nullptr;
};

/// Pins the line of element i to store into it; otherwise as `pin`.
template <thread_group G, class T>
PENSTOCK_FN writable_line<G> pin_to_write(G const& g, writable_view<T> const& view, u64 i) {
  return writable_line<G>(g, view.reader(), view.reader().line_of(view.address_of(i)));
}

}  // namespace penstock
