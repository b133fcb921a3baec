// How an array is cut into pieces, and how the pieces are dealt to workers: the same for all ways to go over an array.
#pragma once

#include "penstock/core/bits.hpp"
#include "penstock/core/config.hpp"

namespace penstock::regular {

/// Pieces of `per_piece` elements; the first is shorter by `skip`, so that all others start where lines (tiles) of the array
/// do.
struct pieces {
  u64 elements = 0;
  u64 per_piece = 1;
  u64 skip = 0;  ///< less than per_piece

  PENSTOCK_FN u64 count() const { return elements == 0 ? 0 : ceil_div(elements + skip, per_piece); }
  PENSTOCK_FN u64 first(u64 piece) const { return piece == 0 ? 0 : piece * per_piece - skip; }
  PENSTOCK_FN u64 last(u64 piece) const {
    const u64 end = (piece + 1) * per_piece - skip;
    return end < elements ? end : elements;
  }
};

/// A worker is a group that stays with its pieces. In turn: all workers walk side by side (a GPU). Else each has a run of its
/// own (CPU threads), of which some go on at once.
struct dealt {
  u64 pieces = 0;
  u64 workers = 1;
  bool in_turn = false;

  PENSTOCK_FN u64 share() const { return ceil_div(pieces, workers); }
  /// Pieces of a worker.
  PENSTOCK_FN u64 count(u64 worker) const {
    if (in_turn) return worker < pieces ? ceil_div(pieces - worker, workers) : 0;
    const u64 begin = worker * share();
    if (begin >= pieces) return 0;
    return pieces - begin < share() ? pieces - begin : share();
  }
  /// Its piece number k.
  PENSTOCK_FN u64 piece(u64 worker, u64 k) const { return in_turn ? worker + k * workers : worker * share() + k; }
};

}  // namespace penstock::regular
