// The launches of row_job.hpp. Included once: by row_launch.cu, or without CUDA by row_launch.cpp.
#pragma once

#include "gather_bodies.hpp"
#include "penstock/host/error.hpp"
#include "scatter_bodies.hpp"

#include <algorithm>
#include <bit>

namespace penstock::rows {
namespace {

/// So few items of a CPU's are done by whoever asks: waking others takes longer.
constexpr u64 few_items = 64;

/// Nor when they are so many bytes.
constexpr u64 few_bytes = 1ull << 20;

/// `item_bytes`: that an item moves at most.
template <u32 Width, class Body>
void start(executor& on, row_launch const& how, u64 items, Body const& body, u64 item_bytes = 0) {
  if (on.kind() == executor_kind::cpu && items <= few_items && items * item_bytes <= few_bytes)
    return body(lone_thread{}, grid_range{0, items, 1});
  launch_on<Width>(how.stream, on, items, body, {0, how.units});
}

/// Lanes for a row: no more than it has loads.
template <class Body>
void start_by_width(executor& on, row_launch const& how, u64 items, u64 pieces, Body const& body, u64 item_bytes = 0) {
  if (pieces <= 2) return start<2>(on, how, items, body);
  if (pieces <= 4) return start<4>(on, how, items, body);
  if (pieces <= 8) return start<8>(on, how, items, body);
  if (pieces <= 16) return start<16>(on, how, items, body);
  start<32>(on, how, items, body, item_bytes);
}

row_numbers numbers_of(row_launch const& how, row_place const& place) { return {how.list, place.rows, how.report}; }

/// Of source, target, row and pitch: what all are multiples of.
u64 common_alignment(row_place const& place, void const* other) {
  const u64 all = (place.address != 0 ? place.address : place.reader.base + place.origin) | place.row_bytes | place.pitch |
                  reinterpret_cast<u64>(other) | 16;
  return u64{1} << std::countr_zero(all);
}

template <class Unit>
struct unit_tag {
  using type = Unit;
};

/// Calls with(unit_tag of bytes or of words): what the ends of rows in memory are stored by.
template <class With>
void with_edge(u64 alignment, With const& with) {
  alignment % 4 == 0 ? with(unit_tag<u32>{}) : with(unit_tag<u8>{});
}

/// Calls with(unit_tag of the widest piece that rows behind a cache consist of).
template <class With>
void with_unit(u64 alignment, With const& with) {
  switch (alignment) {
    case 16: return with(unit_tag<piece16>{});
    case 8: return with(unit_tag<u64>{});
    case 4: return with(unit_tag<u32>{});
    case 2: return with(unit_tag<u16>{});
    default: return with(unit_tag<u8>{});
  }
}

template <class Unit>
array_view<Unit> cached(row_place const& place) {
  return {place.reader, place.origin, place.bytes / sizeof(Unit)};
}

/// The pieces of 16 bytes that a row in memory is loaded by.
u64 pieces_of(row_place const& place, u64 alignment) { return ceil_div(place.row_bytes, 16) + (alignment == 16 ? 0 : 2); }

constexpr u64 most_segment = 4096;
constexpr u64 most_cpu_segment = 1ull << 20;  // of a long row, for each of its threads

/// Rows behind a cache that a warp looks up side by side: no more than keep all warps busy, for whoever misses copies one line
/// after the other.
u32 rows_of_a_warp(executor const& on, row_launch const& how, u64 count) {
  constexpr u64 warps_per_unit = cuda_blocks_per_unit * cuda_block_threads / 32;
  const u64 units = how.units != 0 ? std::min(how.units, on.units()) : on.units();
  return static_cast<u32>(std::clamp<u64>(ceil_div(count, units * warps_per_unit), 1, 32));
}

/// Rows whose lines a CPU thread requests ahead of those that it reads: a part of the frames for each thread.
u32 rows_ahead(executor const& on, row_place const& from) {
  constexpr u64 most = 32, parts = 8;
  const u64 lines = ceil_div(from.row_bytes, from.reader.line_bytes) + 1;
  return static_cast<u32>(std::min(most, from.reader.cache->frames / (parts * on.units() * lines)));
}

template <class Rows>
void gather_two_passes(executor& on, row_launch const& how, row_place const& from, u64 count, Rows const& rows, void* out);

template <class Rows>
void gather_rows(executor& on, row_launch const& how, row_place const& from, u64 count, Rows const& rows, void* out) {
  if (from.kept.slots != nullptr && from.address == 0) return gather_two_passes(on, how, from, count, rows, out);
  const u64 alignment = common_alignment(from, out);
  if (from.address == 0) {
    return with_unit(alignment, [&](auto unit) {
      using piece = typename decltype(unit)::type;
      gather_cached<piece, Rows> body{cached<piece>(from), rows, from.row_bytes / sizeof(piece), static_cast<piece*>(out),
                                      from.pitch / sizeof(piece)};
      if (on.kind() == executor_kind::cpu) body.rows_ahead = rows_ahead(on, from);
      if (on.kind() == executor_kind::cpu || body.row_units > 32) return start<32>(on, how, count, body);
      const u32 each = rows_of_a_warp(on, how, count);
      start<32>(on, how, ceil_div(count, each), gather_cached_short<piece, Rows>{body, each});
    });
  }
  if (from.row_bytes == alignment) {
    return with_unit(alignment, [&](auto unit) {
      using body = gather_units<typename decltype(unit)::type, Rows>;
      start<32>(on, how, ceil_div(count, body::items_per_group),
                body{rows, from.address, from.pitch, static_cast<typename decltype(unit)::type*>(out), from.kept},
                body::items_per_group * alignment);
    });
  }
  with_edge(alignment, [&](auto unit) {
    using edge = typename decltype(unit)::type;
    const u64 pieces = pieces_of(from, alignment), to = reinterpret_cast<u64>(out);
    if (pieces <= 32) {
      // A group's last rows may lie behind those of groups that follow it: whole warps of groups.
      const u64 items = round_up(ceil_div(count, few_rows::most), 32);
      return start_by_width(on, how, items, pieces,
                            gather_short<edge, Rows>{rows, from.address, from.row_bytes, to, from.pitch, from.kept});
    }
    // A GPU has a group for each part of a row: few wide rows keep all of it busy.
    const u64 most = on.kind() == executor_kind::cpu ? most_cpu_segment : most_segment;
    const u64 segment = std::min(from.row_bytes, most), segments = ceil_div(from.row_bytes, segment);
    start_by_width(on, how, count * segments, pieces,
                   gather_long<edge, Rows>{rows, from.address, from.row_bytes, to, segments, segment, from.pitch, from.kept},
                   segment);
  });
}

/// Of an array behind a cache: rows that are kept, and then the others.
template <class Rows>
void gather_two_passes(executor& on, row_launch const& how, row_place const& from, u64 count, Rows const& rows, void* out) {
  Rows some = rows;
  some.pass = {row_pass::kind::kept, from.kept};
  row_place kept = from;
  kept.kept = {};
  kept.address = from.kept.address;
  gather_rows(on, how, kept, count, some, out);
  some.pass.of = row_pass::kind::others;
  row_place others = from;
  others.kept = {};
  gather_rows(on, how, others, count, some, out);
}

/// A run as one row, which lies where the first does.
std::pair<row_launch, row_place> as_one_row(row_launch const& how, row_place const& place) {
  const u64 bytes = how.list.count * place.row_bytes, begin = how.list.grid.first * place.pitch;
  row_launch one = how;
  one.list = row_list::range(0, 1, 1);
  row_place at = place;
  at.rows = 1;
  at.row_bytes = at.pitch = at.bytes = bytes;
  if (place.address != 0) at.address += begin;
  at.origin += begin;
  return {one, at};
}

/// `row`: the only one.
template <class Unit>
unit_run<Unit> run_of(row_place const& row) {
  const u64 line_units = row.reader.line_bytes / sizeof(Unit), address = row.reader.base + row.origin;
  return {cached<Unit>(row), row.row_bytes / sizeof(Unit), line_units, address % row.reader.line_bytes / sizeof(Unit)};
}

void gather_run(executor& on, row_launch const& how, row_place const& from, void* out) {
  const auto [one, row] = as_one_row(how, from);
  if (row.address != 0) return gather_rows(on, one, row, 1, rows_as_asked{numbers_of(one, row)}, out);
  with_unit(common_alignment(row, out), [&, &run = row](auto unit) {
    using piece = typename decltype(unit)::type;
    const gather_run_cached<piece> body{run_of<piece>(run), static_cast<piece*>(out)};
    start<32>(on, how, body.run.blocks(), body, unit_run<piece>::lines_each * run.reader.line_bytes);
  });
}

void scatter_run(executor& on, row_launch const& how, row_place const& to, void const* values) {
  const auto [one, row] = as_one_row(how, to);
  if (row.address != 0) {
    row_place source = row;
    source.address = reinterpret_cast<u64>(values);
    return gather_rows(on, one, source, 1, rows_as_asked{numbers_of(one, source)}, reinterpret_cast<void*>(row.address));
  }
  with_unit(common_alignment(row, values), [&, &run = row](auto unit) {
    using piece = typename decltype(unit)::type;
    const writable_view<piece> target(run.reader, run.origin, run.bytes / sizeof(piece));
    const scatter_run_cached<piece> body{run_of<piece>(run), target, static_cast<piece const*>(values), how.report};
    start<32>(on, how, body.run.blocks(), body, unit_run<piece>::lines_each * run.reader.line_bytes);
  });
}

}  // namespace

void launch_gather(executor& on, row_launch const& how, row_place const& from, void* out) {
  if (is_run(how.list, from)) return gather_run(on, how, from, out);
  gather_rows(on, how, from, how.list.count, rows_as_asked{numbers_of(how, from)}, out);
}

void launch_count_kept(executor& on, row_launch const& how, row_place const& from, own_slots const& own, u64* taken) {
  start<32>(on, how, ceil_div(how.list.count, count_kept::items_per_group),
            count_kept{numbers_of(how, from), from.kept, own, taken});
}

void launch_joined(executor& on, row_launch const& how, std::span<joined_gather const> gathers) {
  u64 alignment = 16, pieces = 0, items = 0;
  for (joined_gather const& each : gathers) {
    const u64 own = common_alignment(each.from, each.out);
    alignment = std::min(alignment, own);
    pieces = std::max(pieces, pieces_of(each.from, own));
  }
  with_edge(alignment, [&](auto unit) {
    gather_joined<typename decltype(unit)::type> body{};
    u32 p = 0;
    for (joined_gather const& each : gathers) {
      items += each.list.count;
      body.parts[p++] = {row_numbers{each.list, each.from.rows, each.report},
                         each.from.address,
                         each.from.row_bytes,
                         reinterpret_cast<u64>(each.out),
                         items,
                         each.from.kept};
    }
    start_by_width(on, how, items, pieces, body);
  });
}

namespace {

/// The lines of a run, each a row.
std::pair<row_launch, row_place> lines_of_run(row_launch const& how, row_place const& place) {
  auto [lines, at] = as_one_row(how, place);
  const u64 line = at.reader.line_bytes, lead = (at.reader.base + at.origin) % line;
  at.origin -= lead;
  at.rows = ceil_div(lead + at.bytes, line);
  at.bytes = at.rows * line;
  at.row_bytes = at.pitch = line;
  lines.list = row_list::range(0, 1, at.rows);
  return {lines, at};
}

}  // namespace

void launch_prefetch(executor& on, row_launch const& how, row_place const& from, bool awaits) {
  if (from.address != 0) return;
  const auto [lines, at] = is_run(how.list, from) ? lines_of_run(how, from) : std::pair(how, from);
  with_unit(common_alignment(at, nullptr), [&, &asked = lines, &place = at](auto unit) {
    using piece = typename decltype(unit)::type;
    const u32 each = rows_of_a_warp(on, asked, asked.list.count);
    start<32>(on, asked, ceil_div(asked.list.count, each),
              prefetch_rows<piece>{cached<piece>(place), numbers_of(asked, place), place.row_bytes / sizeof(piece), each,
                                   awaits, place.pitch / sizeof(piece)});
  });
}

void launch_scatter(executor& on, row_launch const& how, row_place const& to, void const* values) {
  if (is_run(how.list, to)) return scatter_run(on, how, to, values);
  const u64 alignment = common_alignment(to, values);
  const row_numbers numbers = numbers_of(how, to);
  if (to.address != 0) {
    return with_edge(alignment, [&](auto unit) {
      using edge = typename decltype(unit)::type;
      const scatter_resident<edge> body{numbers, to.address, to.row_bytes, reinterpret_cast<u64>(values), to.pitch};
      start_by_width(on, how, how.list.count, pieces_of(to, alignment), body);
    });
  }
  with_unit(alignment, [&](auto unit) {
    using piece = typename decltype(unit)::type;
    const writable_view<piece> target(to.reader, to.origin, to.bytes / sizeof(piece));
    start<32>(on, how, how.list.count,
              scatter_cached<piece>{target, numbers, to.row_bytes / sizeof(piece), static_cast<piece const*>(values),
                                    to.pitch / sizeof(piece)});
  });
}

namespace {

template <class T>
void add(executor& on, row_launch const& how, row_place const& to, void const* values) {
  const u64 all = to.bytes / sizeof(T);
  const writable_view<T> target =
      to.address != 0 ? writable_view<T>(reinterpret_cast<T*>(to.address), all) : writable_view<T>(to.reader, to.origin, all);
  const add_rows<T> body{target, numbers_of(how, to), to.row_bytes / sizeof(T), static_cast<T const*>(values),
                         to.pitch / sizeof(T)};
  start<32>(on, how, how.list.count, body);
}

}  // namespace

void launch_add(executor& on, row_launch const& how, row_place const& to, number_kind kind, void const* values) {
  switch (kind) {
    case number_kind::int32: return add<std::int32_t>(on, how, to, values);
    case number_kind::int64: return add<std::int64_t>(on, how, to, values);
    case number_kind::uint32: return add<u32>(on, how, to, values);
    case number_kind::uint64: return add<u64>(on, how, to, values);
    case number_kind::float32: return add<float>(on, how, to, values);
    case number_kind::float64: return add<double>(on, how, to, values);
  }
}

}  // namespace penstock::rows
