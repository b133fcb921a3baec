// Bytes of a line space to and from memory of a group, at any offset and address.
#pragma once

#include "penstock/array/row_reader.hpp"
#include "penstock/array/writable_view.hpp"

#include <type_traits>

namespace penstock::file_bytes {

/// The bytes of a piece at `at` that lie from `begin` to `end`, to where `begin` is at `to`.
PENSTOCK_FN inline void store_out(piece16 piece, u64 at, u64 begin, u64 end, char* to) {
  char* const here = to + (at - begin);  // before `to` where a part of the piece is
  if (at >= begin && at + 16 <= end && reinterpret_cast<u64>(here) % 16 == 0) {
    *reinterpret_cast<piece16*>(here) = piece;
    return;
  }
  for (u32 k = 0; k < 16; ++k) {
    const u64 word = k < 8 ? piece.low : piece.high;
    if (at + k >= begin && at + k < end) here[k] = static_cast<char>(word >> 8 * (k % 8));
  }
}

PENSTOCK_FN inline piece16 load_from(char const* from) {
  if (reinterpret_cast<u64>(from) % 16 == 0) return *reinterpret_cast<piece16 const*>(from);
  piece16 piece{};
  for (u32 k = 0; k < 8; ++k) {
    piece.low |= static_cast<u64>(static_cast<u8>(from[k])) << 8 * k;
    piece.high |= static_cast<u64>(static_cast<u8>(from[8 + k])) << 8 * k;
  }
  return piece;
}

/// Calls use(k, piece k) for the first pieces of a run in a frame, validated, and returns how many: all, or whole batches until
/// the line was another one. Collective.
template <thread_group G, class Use>
PENSTOCK_FORCE_INLINE u32 read_in_frame(G const& g, line_reader const& reader, hit_line const& at, u32 within, u32 pieces,
                                        Use const& use) {
  const u32 width = size(g), lane = index_in(g);
  auto const* const from = reinterpret_cast<piece16 const*>(at.frame + within);
  for (u32 first = 0; first < pieces; first += pieces_in_flight * width) {
    piece16 read[pieces_in_flight];
    PENSTOCK_UNROLL
    for (u32 k = 0; k < pieces_in_flight; ++k) {
      const u32 piece = first + lane + k * width;
      read[k] = load_streamed(from + (piece < pieces ? piece : 0));
    }
    order_before_recheck<read_order::sound>();
    if (any(g.ballot(!reader.unchanged(at, tie_recheck_to_all<read_order::sound>(read, reader.zero))))) return first;
    PENSTOCK_UNROLL
    for (u32 k = 0; k < pieces_in_flight; ++k) {
      const u32 piece = first + lane + k * width;
      if (piece < pieces) use(piece, read[k]);
    }
  }
  return pieces;
}

/// `count` bytes from `begin` on to `to`, where all of them are whole pieces, at both places, of one line that may be read
/// without a pin. False: they are not, or not any more; what lies at `to` is undefined then. Collective.
template <thread_group G>
PENSTOCK_FORCE_INLINE bool read_hit(G const& g, line_reader const& reader, u64 begin, char* to, u64 count) {
  const u64 address = reader.base + begin;
  const bool whole = ((begin | count | reinterpret_cast<u64>(to)) & 15) == 0 && count != 0 &&
                     reader.line_of(address) == reader.line_of(address + count - 1);
  hit_line at{};
  if (any(g.ballot(!whole || !reader.find(address, at)))) return false;
  const u32 pieces = static_cast<u32>(count / 16);
  auto* const there = reinterpret_cast<piece16*>(to);
  if (read_in_frame(g, reader, at, reader.within(address), pieces, [&](u32 k, piece16 piece) { there[k] = piece; }) != pieces) {
    return false;
  }
  converge_after_call(g);
  return true;
}

/// Calls use(frame address) in each lane, under a pin of its line, which is brought in. Collective.
template <thread_group G, class Use>
PENSTOCK_COLD status read_pinned(G g, line_reader const& reader, line_id line, Use const& use) {
  line_cache_view const& cache = *reader.cache;
  const bool starts = starts_ahead(cache, line);
  const status outcome = read_line(g, cache, reader.dataset, true, line, cache.directory.glance(line), use);
  if (any(g.ballot(starts))) read_ahead(g, cache, reader.dataset, starts, line);
  return outcome;
}

/// The same. Threads that are called alone meet those of their warp that miss, too: a warp runs them one after the other, and
/// each that waited by itself would wait for the looks of all the others. Collective.
template <thread_group G, class Use>
PENSTOCK_COLD status read_missed(G g, line_reader const& reader, line_id line, Use const& use) {
  if constexpr (std::is_same_v<G, lone_thread>) {
    line_cache_view const& cache = *reader.cache;
    return with_others(passing_group(), this_meeting<meeting_in::files>(), cache.process, reader.meets_at(),
                       reinterpret_cast<u64>(&cache), reader.dataset,
                       [&](auto const& all) { return read_pinned(all, reader, line, use); });
  } else {
    const status outcome = read_pinned(g, reader, line, use);
    const auto failed = g.ballot(!outcome.ok());
    return any(failed) ? unpack_status(static_cast<u32>(g.shfl(pack(outcome), lowest(failed)))) : status{};
  }
}

/// Calls use(k, piece k) for a run of pieces on one line. Those that cannot be had without a pin are read under one, all at
/// once: read one by one, each could find that others have taken the line's frame since. Collective.
template <thread_group G, class Use>
PENSTOCK_FN status read_in_line(G const& g, line_reader const& reader, u64 address, u32 pieces, Use const& use) {
  const u32 within = reader.within(address);
  hit_line at{};
  u32 done = 0;
  if (!any(g.ballot(!row_reading::find_line<read_order::sound>(reader, address, at)))) {
    done = read_in_frame(g, reader, at, within, pieces, use);
    if (done == pieces) return {};
  }
  return read_missed(g, reader, reader.line_of(address), [&](u64 frame) {
    auto const* const from = reinterpret_cast<piece16 const*>(frame + within);
    PENSTOCK_UNROLL_BY(4)
    for (u32 k = done + index_in(g); k < pieces; k += size(g)) use(k, load_piece(from + k));
  });
}

/// `count` bytes from `begin` on to `to`. `space_bytes`: of the line space. Collective.
template <thread_group G>
PENSTOCK_FN status read(G const& g, line_reader const& reader, u64 space_bytes, u64 begin, char* to, u64 count) {
  const u64 end = begin + count, per_line = reader.line_bytes / 16;
  const u64 last = (end + 15) / 16;
  if (begin / reader.line_bytes != (end - 1) / reader.line_bytes) {
    array_view<piece16>(reader, 0, space_bytes / 16).ask_span(g, begin / 16, last - begin / 16);
  }
  for (u64 at = begin / 16; at < last;) {
    const u64 line_end = (at / per_line + 1) * per_line, stop = line_end < last ? line_end : last;
    const auto take = [&](u32 k, piece16 piece) { store_out(piece, 16 * (at + k), begin, end, to); };
    const status outcome = read_in_line(g, reader, reader.base + 16 * at, static_cast<u32>(stop - at), take);
    if (!outcome.ok()) return outcome;
    at = stop;
  }
  converge_after_call(g);
  return {};
}

/// The same from `from`. Lines that are covered whole are not read. Collective.
template <thread_group G>
PENSTOCK_FN status write(G const& g, line_reader const& reader, u64 space_bytes, u64 begin, char const* from, u64 count,
                         absent_lines absent) {
  const u64 end = begin + count;
  const u64 ceiling = (begin + 15) / 16 * 16, floor = end / 16 * 16;
  const u64 inner = ceiling < end ? ceiling : end, outer = floor > inner ? floor : inner;
  const writable_view<u8> singles(reader, 0, space_bytes);
  const auto single = [&](u64 i) { return static_cast<u8>(from[i - begin]); };
  status outcome{};
  if (begin < inner) outcome = singles.write_span(g, begin, inner - begin, single, absent);
  if (inner < outer && outcome.ok()) {
    const writable_view<piece16> pieces(reader, 0, space_bytes / 16);
    const auto piece = [&](u64 i) { return load_from(from + (16 * i - begin)); };
    outcome = pieces.write_span(g, inner / 16, (outer - inner) / 16, piece, absent);
  }
  if (outer < end && outcome.ok()) outcome = singles.write_span(g, outer, end - outer, single, absent);
  return outcome;
}

/// Zeros instead. Collective.
template <thread_group G>
PENSTOCK_FN status clear(G const& g, line_reader const& reader, u64 space_bytes, u64 begin, u64 count) {
  return writable_view<u8>(reader, 0, space_bytes).write_span(g, begin, count, [](u64) { return u8{0}; });
}

}  // namespace penstock::file_bytes
