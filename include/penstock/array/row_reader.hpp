// Short rows behind a cache, as many as a group has lanes at once.
//
// Each lane finds the line of one row; what is missing is asked for by all lanes together, before any of them waits. Rows that
// are in frames are then read by the whole group, several at a time: the argument of the validated read, across lanes, is that
// of array/span_reader.hpp. All lanes have read and fenced before the lane that found a line looks at its entry again.
#pragma once

#include "penstock/array/array_view.hpp"

namespace penstock {

/// Loads that each lane keeps in flight.
inline constexpr u32 row_loads_in_flight = 4;

/// A row for each lane that wants one.
struct wanted_row {
  bool wanted;
  u64 first;  ///< element of the array that it begins with
  u64 to;     ///< address of its copy
};

namespace row_reading {

/// Finds the line of an address, valid and referenced: one that the clock has gone by since it was used counts as used again.
template <read_order Order>
PENSTOCK_FN bool find_line(line_reader const& reader, u64 address, hit_line& at) {
  if (reader.template find<Order>(address, at)) return true;
  const found_line seen = reader.cache->directory.glance(reader.line_of(address));
  if (seen.state() != line_state::valid) return false;
  reader.cache->reference(seen);
  return reader.template find<Order>(address, at);
}

/// Lanes that a row of so many pieces takes: a power of two.
PENSTOCK_FN constexpr u32 lanes_for(u32 pieces) {
  u32 lanes = 1;
  while (lanes < pieces) lanes *= 2;
  return lanes;
}

}  // namespace row_reading

/// Copies the rows of a group's lanes that lie in frames, each on one line, and asks for the lines of the others. Returns the
/// lanes whose rows were not copied: a `read_span` of each has it. Collective.
/// Cost:   a look-up for each lane, and for each row a load of every lane that it takes; the rows wait for memory in turns of
///         `row_loads_in_flight`, not one by one.
/// REQUIRES: a whole group of a power of two lanes without holes, not fewer than a row has elements of T, which has 1, 2, 4, 8
///           or 16 bytes; the array lies behind a cache, its element 0 at a multiple of sizeof(T).
template <class T, thread_group G, read_order Order = read_order::sound>
PENSTOCK_FN auto copy_rows_in_frames(G const& g, array_view<T> const& source, wanted_row const& mine, u32 row_elements) {
  using piece = piece_of<sizeof(T)>;
  line_reader const& reader = source.reader();
  const u64 begin = source.address_of(mine.wanted ? mine.first : 0);
  const bool on_one_line = reader.line_of(begin) == reader.line_of(begin + row_elements * sizeof(T) - 1);
  hit_line seen{};
  const bool there = mine.wanted && on_one_line && row_reading::find_line<Order>(reader, begin, seen);
  const bool absent = mine.wanted && on_one_line && !there;
  if (any(g.ballot(absent))) {
    prefetch_line(g, *reader.cache, reader.dataset, absent, reader.line_of(begin), fill_purpose::asked);
  }

  const u64 from = there ? seen.frame + reader.within(begin) : 0;
  auto left = g.ballot(mine.wanted);
  const u32 width = size(g), lane = index_in(g), first_rank = lowest(g.members());
  const u32 lanes = row_reading::lanes_for(row_elements), side = width / lanes;
  const u32 element = lane & (lanes - 1);
  for (u32 turn = 0; turn < width; turn += row_loads_in_flight * side) {
    const bool in_turn = there && lane >= turn && lane < turn + row_loads_in_flight * side;
    if (!any(g.ballot(in_turn))) continue;
    piece read[row_loads_in_flight];
    PENSTOCK_UNROLL
    for (u32 k = 0; k < row_loads_in_flight; ++k) {
      const u32 row = turn + k * side + lane / lanes;
      const u64 at = g.shfl(from, first_rank + (row & (width - 1)));
      const bool reads = row < width && at != 0 && element < row_elements;
      read[k] = reads ? load_piece(reinterpret_cast<piece const*>(at) + element) : piece{};
    }
    order_before_recheck<Order>();
    g.sync();
    const auto good = g.ballot(in_turn && reader.unchanged(seen));
    PENSTOCK_UNROLL
    for (u32 k = 0; k < row_loads_in_flight; ++k) {
      const u32 row = turn + k * side + lane / lanes;
      const u32 rank = first_rank + (row & (width - 1));
      const u64 to = g.shfl(mine.to, rank);
      if (row < width && contains(good, rank) && element < row_elements) reinterpret_cast<piece*>(to)[element] = read[k];
    }
    left = without(left, good);
  }
  return left;
}

}  // namespace penstock
