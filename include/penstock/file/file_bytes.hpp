// Bytes of a line space to and from memory of a group, at any offset and address.
#pragma once

#include "penstock/array/writable_view.hpp"

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

/// `count` bytes from `begin` on to `to`, where all of them are whole pieces, at both places, of one line that may be read
/// without a pin. False: they are not, or not any more; what lies at `to` is undefined then. Collective.
template <thread_group G>
PENSTOCK_FORCE_INLINE bool read_hit(G const& g, line_reader const& reader, u64 begin, char* to, u64 count) {
  const u64 address = reader.base + begin;
  const bool whole = ((begin | count | reinterpret_cast<u64>(to)) & 15) == 0 && count != 0 &&
                     reader.line_of(address) == reader.line_of(address + count - 1);
  hit_line at{};
  if (any(g.ballot(!whole || !reader.find(address, at)))) return false;
  const u32 pieces = static_cast<u32>(count / 16), width = size(g), lane = index_in(g);
  auto const* const from = reinterpret_cast<piece16 const*>(at.frame + reader.within(address));
  auto* const there = reinterpret_cast<piece16*>(to);
  for (u32 first = 0; first < pieces; first += pieces_in_flight * width) {
    piece16 read[pieces_in_flight];
    PENSTOCK_UNROLL
    for (u32 k = 0; k < pieces_in_flight; ++k) {
      const u32 piece = first + lane + k * width;
      read[k] = load_streamed(from + (piece < pieces ? piece : 0));
    }
    order_before_recheck<read_order::sound>();
    if (any(g.ballot(!reader.unchanged(at, tie_recheck_to_all<read_order::sound>(read, reader.zero))))) return false;
    PENSTOCK_UNROLL
    for (u32 k = 0; k < pieces_in_flight; ++k) {
      const u32 piece = first + lane + k * width;
      if (piece < pieces) there[piece] = read[k];
    }
  }
  converge_after_call(g);
  return true;
}

/// `count` bytes from `begin` on to `to`. `space_bytes`: of the line space. Collective.
template <thread_group G>
PENSTOCK_FN status read(G const& g, line_reader const& reader, u64 space_bytes, u64 begin, char* to, u64 count) {
  const array_view<piece16> pieces(reader, 0, space_bytes / 16);
  const u64 end = begin + count, per_line = reader.line_bytes / 16;
  const u64 last = (end + 15) / 16;
  if (begin / reader.line_bytes != (end - 1) / reader.line_bytes) pieces.ask_span(g, begin / 16, last - begin / 16);
  const auto take = [&](u64 number, piece16 piece) { store_out(piece, 16 * number, begin, end, to); };
  status outcome{};
  for (u64 at = begin / 16; at < last;) {
    const u64 line_end = (at / per_line + 1) * per_line, stop = line_end < last ? line_end : last;
    const u64 first = at;
    at += read_on_one_line<read_order::sound>(g, reader, reader.base + 16 * at, static_cast<u32>(stop - at),
                                              [&](u32 k, piece16 piece) { take(first + k, piece); });
    if (at == stop) continue;
    // It is not there: the first pieces bring it in, the others find it.
    const u64 mine = at + index_in(g);
    piece16 piece{};
    outcome = pieces.try_read(g, mine < stop, mine, piece);
    if (mine < stop && outcome.ok()) take(mine, piece);
    at = at + size(g) < stop ? at + size(g) : stop;
    const auto failed = g.ballot(!outcome.ok());
    if (any(failed)) return unpack_status(static_cast<u32>(g.shfl(pack(outcome), lowest(failed))));
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
