// Sums whose result does not depend on who was faster: every worker adds up its own pieces in their order, and the host adds up
// the workers in theirs. Integers wrap at 64 bits. Floating point is added up in double: plainly within a piece, with what the
// rounding lost (Neumaier's sum) from piece to piece, so that the error of a sum stays below `sum_tolerance` times the sum of
// the magnitudes: a piece has at most 2^14 elements, whose plain sum errs by 2^14 x 2^-53 at worst.
#pragma once

#include "penstock/core/atomic.hpp"
#include "penstock/group/thread_group.hpp"

#include <bit>
#include <type_traits>

namespace penstock::regular {

inline constexpr double sum_tolerance = 0x1p-38;

template <class T>
using sum_of = std::conditional_t<std::is_floating_point_v<T>, double, u64>;

/// Signed numbers keep their sign: as two's complement of 64 bits they add up as they should.
template <class T>
PENSTOCK_FN sum_of<T> widen(T v) {
  if constexpr (std::is_signed_v<T> && !std::is_floating_point_v<T>) {
    return static_cast<u64>(static_cast<std::int64_t>(v));
  } else {
    return static_cast<sum_of<T>>(v);
  }
}

template <class Sum>
class running_sum {
 public:
  PENSTOCK_FN void add(Sum v) {
    if constexpr (std::is_same_v<Sum, double>) {
      const double next = total_ + v;
      const bool larger = (total_ < 0 ? -total_ : total_) >= (v < 0 ? -v : v);
      lost_ += larger ? (total_ - next) + v : (v - next) + total_;
      total_ = next;
    } else {
      total_ += v;
    }
  }
  /// What was lost is no number once the total is infinite.
  PENSTOCK_FN Sum value() const { return lost_ - lost_ == Sum{} ? total_ + lost_ : total_; }

 private:
  Sum total_{};
  Sum lost_{};
};

/// Plain sum of elements in memory, those of one lane: several at once, so that additions need not wait for each other.
template <class T>
PENSTOCK_FN sum_of<T> plain_sum(T const* from, u64 count, u32 lane, u32 lanes) {
  constexpr u32 at_once = 8;
  sum_of<T> sums[at_once] = {};
  u64 k = lane;
  for (; k + (at_once - 1) * u64{lanes} < count; k += at_once * u64{lanes}) {
    PENSTOCK_UNROLL
    for (u32 a = 0; a < at_once; ++a) sums[a] += widen(from[k + a * lanes]);
  }
  for (; k < count; k += lanes) sums[0] += widen(from[k]);
  sum_of<T> all{};
  PENSTOCK_UNROLL
  for (u32 a = 0; a < at_once; ++a) all += sums[a];
  return all;
}

/// Of all lanes, in their order. Collective.
template <thread_group G, class Sum>
PENSTOCK_FN Sum total_of(G const& g, Sum mine) {
  running_sum<Sum> all;
  for (u32 k = 0; k < size(g); ++k) all.add(std::bit_cast<Sum>(g.shfl(std::bit_cast<u64>(mine), nth(g.members(), k))));
  return all.value();
}

/// Sum of all elements. What goes over an array hands its elements to a taker: singly, or as a run in memory.
template <class T>
struct take_total {
  using element = T;
  using sum = sum_of<T>;
  sum* partials = nullptr;  ///< one per worker

  struct state {
    running_sum<sum> total;
    sum piece{};
  };

  template <thread_group G>
  PENSTOCK_FN state begin(G const&, u64) const {
    return {};
  }
  PENSTOCK_FN void begin_piece(state& s, u64) const { s.piece = sum{}; }
  template <thread_group G>
  PENSTOCK_FN void one(G const&, state& s, u64, T v) const {
    s.piece += widen(v);
  }
  template <thread_group G>
  PENSTOCK_FN void run(G const& g, state& s, u64, T const* from, u64 count) const {
    s.piece = plain_sum(from, count, index_in(g), size(g));
  }
  PENSTOCK_FN void end_piece(state& s) const { s.total.add(s.piece); }
  template <thread_group G>
  PENSTOCK_FN void end(G const& g, state& s, u64 worker) const {
    const sum all = total_of(g, s.total.value());
    if (is_leader(g)) partials[worker] = all;
  }
};

/// Sum of each column of a matrix in C order. Workers add to `copies` rows of sums: a copy each, or where that takes too much
/// memory one for several of them.
template <class T>
struct take_columns {
  using element = T;
  using sum = sum_of<T>;
  sum* copies = nullptr;  ///< [copies_count * columns]
  u64 copies_count = 1;
  u64 columns = 1;
  bool shared = false;  ///< by several workers

  struct state {
    sum* mine;
    u64 first = 0;   ///< of the piece
    u64 column = 0;  ///< of that element
  };

  template <thread_group G>
  PENSTOCK_FN state begin(G const&, u64 worker) const {
    return {copies + worker % copies_count * columns};
  }
  PENSTOCK_FN void begin_piece(state& s, u64 first) const {
    s.first = first;
    s.column = first % columns;
  }
  template <thread_group G>
  PENSTOCK_FN void one(G const& g, state& s, u64 i, T v) const {
    u64 column = s.column + (i - s.first);
    if (column >= columns) column = column < 2 * columns ? column - columns : column % columns;
    add(g, s.mine[column], widen(v));
  }
  template <thread_group G>
  PENSTOCK_FN void run(G const& g, state& s, u64 first, T const* from, u64 count) const {
    if (size(g) != 1 || shared) {
      for (u64 k = index_in(g); k < count; k += size(g)) one(g, s, first + k, from[k]);
      return;
    }
    u64 column = s.column;
    for (u64 k = 0; k < count; column = 0) {
      const u64 rest = columns - column < count - k ? columns - column : count - k;
      for (u64 c = 0; c < rest; ++c) s.mine[column + c] += widen(from[k + c]);
      k += rest;
    }
  }
  PENSTOCK_FN void end_piece(state&) const {}
  template <thread_group G>
  PENSTOCK_FN void end(G const&, state&, u64) const {}

 private:
  // Lanes of a group may meet in a column.
  template <thread_group G>
  PENSTOCK_FN void add(G const& g, sum& to, sum v) const {
    if (size(g) == 1 && !shared) {
      to += v;
    } else {
      device_ref<sum>(to).fetch_add(v, relaxed);
    }
  }
};

/// Adds up the copies of each column, in their order, into the first.
template <class Sum>
struct fold_columns {
  Sum* copies;
  u64 copies_count;
  u64 columns;

  template <thread_group G, class Range>
  PENSTOCK_FN void operator()(G const& g, Range range) const {
    for (u64 item = range.first; item < range.last; item += range.step) {
      const u64 column = item * size(g) + index_in(g);
      if (column >= columns) continue;
      running_sum<Sum> all;
      for (u64 k = 0; k < copies_count; ++k) all.add(copies[k * columns + column]);
      copies[column] = all.value();
    }
  }
};

}  // namespace penstock::regular
