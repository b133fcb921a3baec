// Three ways to hand all elements of an array to a taker (libs/regular/sums.hpp): thread by thread through the cache, line by
// line through the cache, and by tiles without one.
#pragma once

#include "libs/regular/pieces.hpp"
#include "libs/regular/sums.hpp"
#include "libs/regular/tiles.hpp"
#include "penstock/array/array_view.hpp"
#include "penstock/executor/launch.hpp"

namespace penstock::regular {

/// a[i], as if the array were in memory.
template <class Take>
struct take_elements {
  array_view<typename Take::element> a;
  pieces cut;
  dealt work;
  Take take;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 worker = range.first; worker < range.last; worker += range.step) {
      auto state = take.begin(g, worker);
      for (u64 k = 0; k < work.count(worker); ++k) {
        const u64 piece = work.piece(worker, k);
        const u64 last = cut.last(piece);
        take.begin_piece(state, cut.first(piece));
        for (u64 i = cut.first(piece) + index_in(g); i < last; i += size(g)) take.one(g, state, i, a[i]);
        take.end_piece(state);
      }
      take.end(g, state, worker);
    }
  }
};

/// Whole lines, each by one group; `ahead` pieces are asked for before they are read.
template <class Take>
struct take_lines {
  array_view<typename Take::element> a;
  pieces cut;
  dealt work;
  u32 ahead;
  Take take;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 worker = range.first; worker < range.last; worker += range.step) {
      auto state = take.begin(g, worker);
      const u64 count = work.count(worker);
      for (u64 k = 0; k < ahead && k < count; ++k) ask(g, work.piece(worker, k));
      for (u64 k = 0; k < count; ++k) {
        if (ahead != 0 && k + ahead < count) ask(g, work.piece(worker, k + ahead));
        const u64 first = cut.first(work.piece(worker, k));
        take.begin_piece(state, first);
        a.read_span(g, first, cut.last(work.piece(worker, k)) - first,
                    [&](u64 i, typename Take::element v) { take.one(g, state, i, v); });
        take.end_piece(state);
      }
      take.end(g, state, worker);
    }
  }

 private:
  template <thread_group G>
  PENSTOCK_FN void ask(G const& g, u64 piece) const {
    a.ask_span(g, cut.first(piece), cut.last(piece) - cut.first(piece));
  }
};

/// Tiles, `depth` in flight.
template <class Take>
struct take_tiles {
  tile_array a;
  pieces cut;
  dealt work;
  tile_rooms rooms;
  u32 depth;
  Take take;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 worker = range.first; worker < range.last; worker += range.step) {
      auto state = take.begin(g, worker);
      const u64 count = work.count(worker);
      for (u64 k = 0; k < depth && k < count; ++k) ask(g, worker, k);
      for (u64 k = 0; k < count; ++k) {
        const u64 first = cut.first(work.piece(worker, k)), last = cut.last(work.piece(worker, k));
        const tile_room room(g, rooms, worker, static_cast<u32>(k % depth));
        if (room.wait(a, first, last)) {
          take.begin_piece(state, first);
          take.run(g, state, first, room.template elements<typename Take::element const>(a, first, last), last - first);
          take.end_piece(state);
          g.sync();  // all have read before the next tile comes in
        }
        if (k + depth < count) ask(g, worker, k + depth);
      }
      take.end(g, state, worker);
    }
  }

 private:
  template <thread_group G>
  PENSTOCK_FN void ask(G const& g, u64 worker, u64 k) const {
    const u64 piece = work.piece(worker, k);
    tile_room(g, rooms, worker, static_cast<u32>(k % depth)).submit(nvme::opcode::read, a, cut.first(piece), cut.last(piece));
  }
};

/// Looks at nothing: what the tiles cost by themselves.
struct take_nothing {
  using element = u8;
  struct state {};

  template <thread_group G>
  PENSTOCK_FN state begin(G const&, u64) const {
    return {};
  }
  PENSTOCK_FN void begin_piece(state&, u64) const {}
  template <thread_group G>
  PENSTOCK_FN void run(G const&, state&, u64, u8 const*, u64) const {}
  PENSTOCK_FN void end_piece(state&) const {}
  template <thread_group G>
  PENSTOCK_FN void end(G const&, state&, u64) const {}
};

}  // namespace penstock::regular
