// Kernels that read rows: gather, and prefetch into the cache.
#pragma once

#include "penstock/array/row_copy.hpp"
#include "penstock/array/row_reader.hpp"
#include "penstock/coalesce/bring_lines.hpp"
#include "penstock/executor/launch.hpp"
#include "row_numbers.hpp"
#include "unit_run.hpp"

namespace penstock::rows {

/// Rows that a group copies at once: which, and where their copies go. `none`: nothing goes there.
struct few_rows {
  static constexpr u32 most = short_rows_at_once;
  u64 row[most], position[most];
};

/// Groups that run side by side, and so should read what lies side by side.
template <thread_group G>
PENSTOCK_FN u32 neighbours(G const& g) {
  if constexpr (std::is_same_v<G, lone_thread>) return 1;
  return 32 / size(g);
}

/// Rows in memory that the kernel reaches, each of which a group loads at once: see copy_short_rows. Neighbouring groups have
/// neighbouring rows of the list in each load.
template <class Unit, class Rows>
struct gather_short {
  Rows rows;
  u64 source, row_bytes, out;
  u64 pitch = row_bytes;
  kept_rows kept{};

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    const u32 side = neighbours(g);
    for (u64 item = range.first; item < range.last; item += range.step) {
      const u64 first = item / side * (u64{side} * few_rows::most) + item % side;
      u64 from[few_rows::most], to[few_rows::most];
      u32 wanted = 0;
      PENSTOCK_UNROLL
      for (u32 r = 0; r < few_rows::most; ++r) {
        u64 position = 0;
        const u64 row = rows.take(first + r * side, position);
        wanted |= (row != row_numbers::none ? 1u : 0u) << r;
        from[r] = kept.address_of(row != row_numbers::none ? row : 0, source, pitch);
        to[r] = out + position * row_bytes;
      }
      copy_short_rows<Unit>(g, row_lanes::all(g), from, to, row_bytes, wanted);
    }
  }
};

/// Rows in memory of one unit each, which is a whole row: a lane to a row.
template <class Unit, class Rows>
struct gather_units {
  Rows rows;
  u64 source, pitch;
  Unit* out;
  kept_rows kept{};

  static constexpr u64 items_per_group = 128;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    constexpr u32 in_flight = 4;
    for (u64 item = range.first; item < range.last; item += range.step) {
      for (u64 k = item * items_per_group + index_in(g); k < (item + 1) * items_per_group; k += in_flight * size(g)) {
        Unit held[in_flight]{};
        u64 position[in_flight];
        u32 wanted = 0;
        PENSTOCK_UNROLL
        for (u32 r = 0; r < in_flight; ++r) {
          const u64 row = rows.take(k + r * size(g), position[r]);
          if (row == row_numbers::none) continue;
          wanted |= 1u << r;
          held[r] = *reinterpret_cast<Unit const*>(kept.address_of(row, source, pitch));
        }
        PENSTOCK_UNROLL
        for (u32 r = 0; r < in_flight; ++r) {
          if ((wanted >> r & 1) != 0) out[position[r]] = held[r];
        }
      }
    }
  }
};

/// Longer ones, a segment to a group.
template <class Unit, class Rows>
struct gather_long {
  Rows rows;
  u64 source, row_bytes, out;
  u64 segments, segment_bytes;
  u64 pitch = row_bytes;
  kept_rows kept{};

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 item = range.first; item < range.last; item += range.step) {
      u64 position = 0;
      const u64 row = rows.take(item / segments, position);
      if (row == row_numbers::none) continue;
      const u64 begin = item % segments * segment_bytes, left = row_bytes - begin;
      copy_row<Unit>(g, kept.address_of(row, source, pitch) + begin, out + position * row_bytes + begin,
                     left < segment_bytes ? left : segment_bytes);
    }
  }
};

/// Rows of several arrays in memory, a row to a group.
template <class Unit>
struct gather_joined {
  struct part {
    row_numbers numbers;
    u64 source, row_bytes, out;
    u64 end;  ///< of its items: those of the parts before it, and its own
    kept_rows kept{};
  };
  part parts[most_joined];

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    u32 p = 0;
    u64 begin = 0;
    for (u64 item = range.first; item < range.last; item += range.step) {
      while (item >= parts[p].end) begin = parts[p++].end;
      part const& mine = parts[p];
      const u64 k = item - begin, row = mine.numbers.at(k);
      if (row == row_numbers::none) continue;
      copy_row<Unit>(g, mine.kept.address_of(row, mine.source, mine.row_bytes), mine.out + k * mine.row_bytes, mine.row_bytes);
    }
  }
};

/// Through a cache.
template <class Unit, class Rows>
struct gather_cached {
  array_view<Unit> source;
  Rows rows;
  u64 row_units;
  Unit* out;
  u64 pitch_units = row_units;
  u32 rows_ahead = 0;  ///< that a lone thread has asked for when it reads a row, and at most twice as many

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    u64 asked = range.first;
    for (u64 item = range.first; item < range.last; item += range.step) {
      if constexpr (std::is_same_v<G, lone_thread>) {
        if (rows_ahead != 0 && asked <= item + rows_ahead * range.step) asked = ask(g, asked, range);
      }
      u64 position = 0;
      const u64 row = rows.take(item, position);
      if (row != row_numbers::none) read(g, row * pitch_units, position);
    }
  }

  template <thread_group G>
  PENSTOCK_FN void read(G const& g, u64 first, u64 position) const {
    Unit* const to = out + position * row_units;
    source.read_span(g, first, row_units, [&](u64 i, Unit v) { to[i - first] = v; });
  }

 private:
  /// Requests the lines of `rows_ahead` rows, from item `first` on. Returns the item after them.
  template <thread_group G>
  PENSTOCK_FN u64 ask(G const& g, u64 first, grid_range range) const {
    u64 item = first;
    for (u32 k = 0; k < rows_ahead && item < range.last; ++k, item += range.step) {
      u64 position = 0;
      const u64 row = rows.take(item, position);
      if (row != row_numbers::none) source.ask_span(g, row * pitch_units, row_units);
    }
    return item < range.last ? item : ~0ull;
  }
};

/// How many rows of a list are kept, and how many of them by others.
struct count_kept {
  row_numbers numbers;
  kept_rows kept;
  own_slots own;
  u64* taken;

  static constexpr u64 items_per_group = 128;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    u64 found = 0, far = 0;
    for (u64 item = range.first; item < range.last; item += range.step) {
      for (u64 first = item * items_per_group; first < (item + 1) * items_per_group; first += size(g)) {
        const u64 k = first + index_in(g);
        const u64 row = k < numbers.list.count ? numbers.at(k) : row_numbers::none;
        const u64 slot = row != row_numbers::none ? kept.place_of(row) : kept_rows::none;
        found += count(g.ballot(slot != kept_rows::none));
        far += count(g.ballot(slot != kept_rows::none && !own.has(slot)));
      }
    }
    if (!is_leader(g)) return;
    if (found != 0) device_ref<u64>(taken[0]).fetch_add(found, relaxed);
    if (far != 0) device_ref<u64>(taken[1]).fetch_add(far, relaxed);
  }
};

/// Calls with(k) in the lanes of a group, for the rows of its items, which are `rows_each` rows each; in a lane that has none,
/// with(~0). Collective.
template <thread_group G, class With>
PENSTOCK_FN void for_rows_of_lanes(G const& g, grid_range range, u32 rows_each, With const& with) {
  for (u64 item = range.first; item < range.last; item += range.step) {
    for (u32 first = 0; first < rows_each; first += size(g)) {
      const u32 k = first + index_in(g);
      with(k < rows_each ? item * rows_each + k : ~0ull);
    }
  }
}

/// How long lines are waited for that nobody needs yet, or that whoever does would wait for again.
PENSTOCK_FN inline u64 prefetch_ends_ns(line_cache_view const& cache) {
  constexpr u64 longest_ns = one_second_ns;
  return now_ns() + (cache.patience_ns < longest_ns ? cache.patience_ns : longest_ns);
}

/// Through a cache, rows of no more units than a warp has lanes.
template <class Unit, class Rows>
struct gather_cached_short {
  gather_cached<Unit, Rows> one_by_one;
  u32 rows_each;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for_rows_of_lanes(g, range, rows_each, [&](u64 k) {
      u64 position = 0;
      const u64 row = one_by_one.rows.take(k, position);
      const bool wanted = row != row_numbers::none;
      const u64 first = wanted ? row * one_by_one.pitch_units : 0;
      auto left = g.ballot(wanted);
      if constexpr (!std::is_same_v<G, lone_thread>) left = read_together(g, wanted, first, position);
      while (any(left)) {
        const u32 rank = lowest(left);
        one_by_one.read(g, g.shfl(first, rank), g.shfl(position, rank));
        left = without(left, g.ballot(g.rank() == rank));
      }
    });
  }

 private:
  /// What is in frames, and then what was missing. Returns the lanes whose rows are still to be read.
  template <thread_group G>
  PENSTOCK_FN auto read_together(G const& g, bool wanted, u64 first, u64 position) const {
    array_view<Unit> const& source = one_by_one.source;
    const u32 units = static_cast<u32>(one_by_one.row_units);
    wanted_row mine{wanted, first, reinterpret_cast<u64>(one_by_one.out + position * units)};
    const auto left = copy_rows_in_frames(g, source, mine, units);
    if (!any(left)) return left;
    mine.wanted = contains(left, g.rank());
    line_reader const& reader = source.reader();
    const u64 until_ns = prefetch_ends_ns(*reader.cache);
    for (const bring_step step : {bring_step::ask, bring_step::await}) {
      bring_lines(g, *reader.cache, reader.dataset, mine.wanted, reader.line_of(source.address_of(first)), step, until_ns);
    }
    return copy_rows_in_frames(g, source, mine, units);
  }
};

template <class Unit>
struct gather_run_cached {
  unit_run<Unit> run;
  Unit* out;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 block = range.first; block < range.last; block += range.step) {
      const u64 begin = run.begin(block), count = run.end(block) - begin;
      if constexpr (std::is_same_v<G, lone_thread>) ask_ahead(g, block);
      Unit* const to = out;
      run.source.read_span(g, begin, count, [to](u64 i, Unit v) { to[i] = v; });
    }
  }

 private:
  /// A warp asks for a block's lines at once when it reads them, beside the other warps. A lone thread reads line by line: the
  /// lines of its next blocks are on their way meanwhile.
  template <thread_group G>
  PENSTOCK_FN void ask_ahead(G const& g, u64 block) const {
    constexpr u64 blocks_ahead = 2;
    for (u64 k = block; k <= block + blocks_ahead && k < run.blocks(); ++k) {
      run.source.ask_span(g, run.begin(k), run.end(k) - run.begin(k));
    }
  }
};

/// Brings the lines of rows into the cache: asks for all of them, and then perhaps waits until they are there.
template <class Unit>
struct prefetch_rows {
  array_view<Unit> source;
  row_numbers numbers;
  u64 row_units;
  u32 rows_each;
  bool awaits;
  u64 pitch_units = row_units;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    const u64 until_ns = prefetch_ends_ns(*source.reader().cache);
    for_rows_of_lanes(g, range, rows_each, [&](u64 k) { bring(g, k, bring_step::ask, until_ns); });
    if (awaits) for_rows_of_lanes(g, range, rows_each, [&](u64 k) { bring(g, k, bring_step::await, until_ns); });
  }

 private:
  template <thread_group G>
  PENSTOCK_FN void bring(G const& g, u64 k, bring_step step, u64 until_ns) const {
    line_reader const& reader = source.reader();
    const u64 row = k < numbers.list.count ? numbers.at(k) : row_numbers::none;
    const bool wanted = row != row_numbers::none;
    const u64 first = wanted ? row * pitch_units : 0;
    u64 line = value(reader.line_of(source.address_of(first)));
    const u64 last = value(reader.line_of(source.address_of(first + row_units) - 1));
    for (; any(g.ballot(wanted && line <= last)); ++line) {
      bring_lines(g, *reader.cache, reader.dataset, wanted && line <= last, line_id{line}, step, until_ns);
    }
  }
};

}  // namespace penstock::rows
