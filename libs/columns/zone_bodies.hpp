// What groups do with a query: they sum up, mark or emit the rows that meet its condition.
#pragma once

#include "libs/columns/accumulator.hpp"
#include "libs/columns/zone_walker.hpp"

namespace penstock::columns {

/// Sums and the like of the rows that meet the condition.
struct aggregate_zones {
  query_view query;
  aggregation_view into;
  u64 zones_per_item = 1, zones = 0;

  template <class Group, class Code = interpreted>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    zone_walker<Group, Code> walker(g, query);
    accumulators<Group, Code> sums(g, into, query.with.errors, range.first);
    for (u64 item = range.first; item < range.last; item += range.step) {
      const u64 begin = item * zones_per_item, end = begin + zones_per_item < zones ? begin + zones_per_item : zones;
      for (u64 z = begin; z < end; ++z) {
        const u32 zone = query.zones != nullptr ? query.zones[z] : static_cast<u32>(z);
        walker.walk(zone, [&](auto const& rows, auto const& r) { sums.add(rows, r); });
      }
    }
    sums.store();
  }
};

/// Which rows meet the condition.
struct mark_zones {
  query_view query;
  u32* words;   ///< [zones of the table][zone_words]
  u32* counts;  ///< [zones of the table]

  template <class Group, class Code = interpreted>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    zone_walker<Group, Code> walker(g, query);
    for (u64 z = range.first; z < range.last; z += range.step) {
      const u32 zone = query.zones != nullptr ? query.zones[z] : static_cast<u32>(z);
      const u32 met = walker.mark(zone, words + u64{zone} * zone_words);
      if (is_leader(g)) counts[zone] = met;
    }
  }
};

/// Where the values of results go.
struct output_view {
  u32 columns = 0;
  u8 registers[max_registers] = {};
  u64* values = nullptr;  ///< [columns][rows]
  u8* valid = nullptr;
  u64 rows = 0;

  template <class Code, class Rows, class Registers>
  PENSTOCK_FN void store(Rows const& rows_of, Registers const& r, u32 k, u64 at) const {
    if (rows_of.active[k] == 0) return;
    const auto store_one = [&](u32 c, u32 from) {
      values[c * rows + at] = r.value[from][k];
      valid[c * rows + at] = r.valid[from][k];
    };
    if constexpr (Code::is_compiled) {
      each_below<true>(Code::output.columns, [&](u32 c) { store_one(c, Code::output.registers[c]); });
    } else {
      for (u32 c = 0; c < columns; ++c) store_one(c, registers[c]);
    }
  }
};

/// The results of the rows that were marked, in order.
struct emit_zones {
  query_view query;
  u32 const* words;   ///< nullptr: all rows
  u64 const* begins;  ///< [zones] rows before
  output_view out;

  template <class Group, class Code = interpreted>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    zone_walker<Group, Code> walker(g, query);
    for (u64 z = range.first; z < range.last; z += range.step) {
      const u32 zone = query.zones != nullptr ? query.zones[z] : static_cast<u32>(z);
      u32 const* const marked = words == nullptr ? nullptr : words + u64{zone} * zone_words;
      walker.walk(zone, marked, [&](auto const& rows, auto const& r) {
        each_below<Code::is_compiled>(rows.size(),
                                      [&](u32 k) { out.template store<Code>(rows, r, k, begins[zone] + walker.position(k)); });
      });
    }
  }
};

/// The results of rows that are named, in the order of the list.
struct take_rows {
  query_view query;
  u32 const* codes;  ///< number of the zone * zone_rows + number in it
  u64 count;
  output_view out;
  static constexpr u64 rows_per_item = 256;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    zone_walker<Group> walker(g, query);
    for (u64 item = range.first; item < range.last; item += range.step) {
      const u64 begin = item * rows_per_item, rows = count - begin < rows_per_item ? count - begin : rows_per_item;
      walker.take(codes + begin, rows, [&](auto const& batch, auto const& r) {
        for (u32 k = 0; k < batch.count; ++k) out.store<interpreted>(batch, r, k, begin + walker.position(k));
      });
    }
  }
};

}  // namespace penstock::columns
