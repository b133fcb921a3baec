// What a table keeps between queries, for the files that run these.
#pragma once

#include "libs/columns/column_launches.hpp"
#include "libs/columns/column_media.hpp"
#include "libs/columns/compiled_kernels.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <mutex>

namespace penstock::columns {

inline constexpr auto local = memory_kind::local;

template <class T>
buffer<T> copied(executor& on, std::vector<T> const& from) {
  buffer<T> to(on.memory(), local, from.size());
  if (!from.empty()) to.write(from);
  return to;
}

template <class T>
std::vector<T> read_all(buffer<T> const& from) {
  std::vector<T> all(from.size());
  if (!all.empty()) from.read(all);
  return all;
}

inline std::vector<zone_place> zones_of(std::vector<u64> const& pieces) {
  std::vector<zone_place> zones;
  for (u32 p = 0; p < pieces.size(); ++p) {
    for (u64 first = 0; first < pieces[p]; first += zone_rows) {
      zones.push_back({p, static_cast<u32>(std::min<u64>(zone_rows, pieces[p] - first)), first});
    }
  }
  return zones;
}

struct column_table::state {
  state(table_layout layout, media::media_options const& with)
      : plan(std::move(layout)), options(with), on(open_executor_for(plan.extents, with, has_kernels)),
        media(*on, plan.extents, with), places(zones_of(plan.pieces)), compiled(*on) {
    if (places.size() > (u64{1} << 32) / zone_rows) {
      throw_bad_input("open", "a table",
                      std::to_string(places.size()) + " zones of " + std::to_string(zone_rows) +
                          " rows: that is more than a table has; split it");
    }
    std::vector<column_view> views;
    for (u64 p = 0; p < plan.pieces.size(); ++p) {
      for (column_layout const& column : plan.columns) views.push_back(view_of(column, p));
    }
    columns = copied(*on, views);
    zones = copied(*on, places);
    u64 row = 0;
    for (zone_place const& place : places) {
      rows_before.push_back(row);
      row += place.rows;
    }
    maps.resize(plan.columns.size());
    for (column_layout const& column : plan.columns) facts.push_back(facts_of(column));
  }

  /// Of all its pieces.
  column_facts facts_of(column_layout const& column) const {
    column_facts all{column.how, column.packed_bits, column.divisor != 0, false, true};
    for (piece_place const& piece : column.pieces) {
      all.is_nullable |= piece.nullable;
      all.is_resident &= media.view(piece.extent).is_resident();
      if (piece.nullable) all.is_resident &= media.view(piece.validity_extent).is_resident();
    }
    return all;
  }

  column_view view_of(column_layout const& column, u64 piece) const {
    piece_place const& place = column.pieces[piece];
    column_view view;
    view.how = column.how;
    view.packed_bits = column.packed_bits;
    view.base = column.base;
    view.divisor = column.divisor;
    view.first_bit = place.first_bit;
    view.nullable = place.nullable ? 1 : 0;
    view.first_valid = place.validity_first_bit;
    view.bytes = part_of(column, place.extent, place.offset, view.bytes_of(0, plan.pieces[piece]).end);
    if (place.nullable) {
      view.validity = part_of(column, place.validity_extent, place.validity_offset,
                              ceil_div(u64{place.validity_first_bit} + plan.pieces[piece], 8));
    }
    return view;
  }
  array_view<u8> part_of(column_layout const& column, u32 extent, u64 offset, u64 bytes) const {
    const u64 there = media.bytes_of(extent);
    if (offset > there || bytes > there - offset) {
      throw_bad_input("open", plan.extents[extent].path,
                      "column " + column.name + " needs " + std::to_string(offset + bytes) + " bytes of the file, which has " +
                          std::to_string(there) + ": it was cut short; write it anew");
    }
    const array_view<u8> all = media.view(extent);
    if (all.is_resident()) return {all.resident() + offset, bytes};
    return {all.reader(), all.address_of(0) - all.reader().base + offset, bytes};
  }

  table_view view() const {
    return {columns.data(), static_cast<u32>(plan.columns.size()), static_cast<u32>(places.size()), zones.data()};
  }

  /// The zones that may have rows that meet the condition; all: nothing is known.
  std::optional<std::vector<u32>> zones_to_look_at(query_program const& program) const {
    bool known = false;
    for (zone_bound const& bound : program.bounds) known |= !maps[bound.column].empty();
    if (!known) return {};
    std::vector<u32> some;
    for (u32 z = 0; z < places.size(); ++z) {
      const bool may = std::all_of(program.bounds.begin(), program.bounds.end(), [&](zone_bound const& bound) {
        auto const& map = maps[bound.column];
        return map.empty() || (map[z].low <= bound.high && map[z].high >= bound.low);
      });
      if (may) some.push_back(z);
    }
    if (some.size() == places.size()) return {};
    return some;
  }

  table_layout plan;
  media::media_options options;
  std::unique_ptr<executor> on;
  column_media media;
  std::vector<zone_place> places;
  std::vector<u64> rows_before;     ///< of each zone
  std::vector<column_facts> facts;  ///< of each column
  compiled_kernels compiled;
  std::shared_ptr<query_compiler> compiler;  ///< nullptr: all is interpreted
  double least_seconds = 0;                  ///< of a pass that is worth to be compiled
  buffer<column_view> columns;
  buffer<zone_place> zones;
  buffer<std::byte> arrays;                   ///< of the last query
  buffer<accumulator> accumulators;           ///< likewise
  std::vector<std::vector<zone_range>> maps;  ///< of each column; empty: not known
  std::mutex mutex;
};

}  // namespace penstock::columns
