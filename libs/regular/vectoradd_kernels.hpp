// Three ways to c = a + b over stored arrays: thread by thread through the cache, line by line through the cache, and by
// explicit tiles without one.
#pragma once

#include "libs/regular/pieces.hpp"
#include "libs/regular/tiles.hpp"
#include "penstock/array/array_view.hpp"
#include "penstock/array/writable_view.hpp"
#include "penstock/executor/launch.hpp"

#include <type_traits>

namespace penstock::regular {

/// Integers wrap.
template <class T>
PENSTOCK_FN T sum_of_two(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using word = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<word>(a) + static_cast<word>(b));
  } else {
    return a + b;
  }
}

/// As if the arrays were in memory.
template <class T>
struct add_elements {
  array_view<T> a, b;
  writable_view<T> c;
  pieces cut;
  dealt work;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 worker = range.first; worker < range.last; worker += range.step) {
      for (u64 k = 0; k < work.count(worker); ++k) {
        const u64 last = cut.last(work.piece(worker, k));
        for (u64 i = cut.first(work.piece(worker, k)) + index_in(g); i < last; i += size(g)) {
          c.write(i, sum_of_two(a[i], b[i]));
        }
      }
    }
  }
};

/// Whole lines of c, each by one group; `ahead` pieces of a and b are asked for before they are read. What a span brings lies
/// in scratch until it is stored: spans of a, b and c may fall differently on their lines, and while it stores a group does not
/// read.
template <class T>
struct add_lines {
  array_view<T> a, b;
  writable_view<T> c;
  pieces cut;
  dealt work;
  u32 ahead;
  T* scratch;    ///< [workers * cut.per_piece]
  u32* problem;  ///< packed status of a span that could not be stored

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 worker = range.first; worker < range.last; worker += range.step) {
      const u64 count = work.count(worker);
      for (u64 k = 0; k < ahead && k < count; ++k) ask(g, work.piece(worker, k));
      for (u64 k = 0; k < count; ++k) {
        if (ahead != 0 && k + ahead < count) ask(g, work.piece(worker, k + ahead));
        add(g, scratch + worker * cut.per_piece, cut.first(work.piece(worker, k)), cut.last(work.piece(worker, k)));
      }
    }
  }

 private:
  template <thread_group G>
  PENSTOCK_FN void ask(G const& g, u64 piece) const {
    a.ask_span(g, cut.first(piece), cut.last(piece) - cut.first(piece));
    b.ask_span(g, cut.first(piece), cut.last(piece) - cut.first(piece));
  }

  template <thread_group G>
  PENSTOCK_FN void add(G const& g, T* sums, u64 first, u64 last) const {
    a.read_span(g, first, last - first, [&](u64 i, T v) { sums[i - first] = v; });
    g.sync();  // an element of b may come to another lane
    b.read_span(g, first, last - first, [&](u64 i, T v) { sums[i - first] = sum_of_two(sums[i - first], v); });
    g.sync();
    const status outcome = c.write_span(g, first, last - first, [&](u64 i) { return sums[i - first]; });
    if (!outcome.ok()) device_ref<u32>(*problem).store(pack(outcome), relaxed);
    g.sync();  // all have stored what the next piece overwrites
  }
};

/// The next tiles of a and b come in, and the last ones of c go out, while one is added. Three rooms for each tile in flight.
template <class T>
struct add_tiles {
  tile_array a, b, c;
  pieces cut;
  dealt work;
  tile_rooms rooms;
  u32 depth;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 worker = range.first; worker < range.last; worker += range.step) {
      const u64 count = work.count(worker);
      u32 going_out = 0;  // slots whose tile of c is on its way
      for (u64 k = 0; k < depth && k < count; ++k) ask(g, worker, k);
      for (u64 k = 0; k < count; ++k) {
        const u32 slot = static_cast<u32>(k % depth);
        if (k >= depth) wait_out(g, worker, k - depth, going_out);
        if (add(g, worker, k)) going_out |= 1u << slot;
        if (k + depth < count) ask(g, worker, k + depth);
      }
      for (u64 k = count < depth ? 0 : count - depth; k < count; ++k) wait_out(g, worker, k, going_out);
    }
  }

 private:
  template <thread_group G>
  PENSTOCK_FN tile_room<G> room(G const& g, u64 worker, u64 k, u32 which) const {
    return {g, rooms, worker, 3 * static_cast<u32>(k % depth) + which};
  }

  template <thread_group G>
  PENSTOCK_FN void ask(G const& g, u64 worker, u64 k) const {
    const u64 piece = work.piece(worker, k);
    room(g, worker, k, 0).submit(nvme::opcode::read, a, cut.first(piece), cut.last(piece));
    room(g, worker, k, 1).submit(nvme::opcode::read, b, cut.first(piece), cut.last(piece));
  }

  /// False: a tile could not be read, and nothing goes out.
  template <thread_group G>
  PENSTOCK_FN bool add(G const& g, u64 worker, u64 k) const {
    const u64 first = cut.first(work.piece(worker, k)), last = cut.last(work.piece(worker, k));
    const auto room_a = room(g, worker, k, 0), room_b = room(g, worker, k, 1), room_c = room(g, worker, k, 2);
    const bool read_a = room_a.wait(a, first, last);
    const bool read_b = room_b.wait(b, first, last);
    if (!read_a || !read_b) return false;
    T const* const from_a = room_a.template elements<T>(a, first, last);
    T const* const from_b = room_b.template elements<T>(b, first, last);
    T* const to = room_c.template elements<T>(c, first, last);
    for (u64 i = index_in(g); i < last - first; i += size(g)) to[i] = sum_of_two(from_a[i], from_b[i]);
    g.sync();  // all have read and written before the commands go
    room_c.submit(nvme::opcode::write, c, first, last);
    return true;
  }

  template <thread_group G>
  PENSTOCK_FN void wait_out(G const& g, u64 worker, u64 k, u32& going_out) const {
    const u32 bit = 1u << (k % depth);
    if ((going_out & bit) == 0) return;
    going_out &= ~bit;
    const u64 piece = work.piece(worker, k);
    room(g, worker, k, 2).wait(c, cut.first(piece), cut.last(piece));
  }
};

/// Sends tiles as they lie in the rooms: what writing costs by itself. One room for each tile in flight.
struct send_tiles {
  tile_array c;
  pieces cut;
  dealt work;
  tile_rooms rooms;
  u32 depth;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 worker = range.first; worker < range.last; worker += range.step) {
      const u64 count = work.count(worker);
      for (u64 k = 0; k < count + depth; ++k) {
        const tile_room room(g, rooms, worker, static_cast<u32>(k % depth));
        if (k >= depth && k - depth < count) {
          const u64 before = work.piece(worker, k - depth);
          room.wait(c, cut.first(before), cut.last(before));
        }
        if (k >= count) continue;
        const u64 piece = work.piece(worker, k);
        room.submit(nvme::opcode::write, c, cut.first(piece), cut.last(piece));
      }
    }
  }
};

/// Makes what was written to an array good on all of its drives. For one worker.
struct flush_tiles {
  tile_array c;
  tile_rooms rooms;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 item = range.first; item < range.last; item += range.step) {
      for (u32 d = 0; d < c.drives_count; ++d) {
        const status outcome = flush_blocks(g, c.drives[d], is_leader(g), rooms.request(g, 0, 0));
        if (!outcome.ok()) device_ref<u32>(*rooms.problem).store(pack(outcome), relaxed);
      }
    }
  }
};

}  // namespace penstock::regular
