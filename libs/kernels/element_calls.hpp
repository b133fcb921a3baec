// What a kernel's calls do, on either executor: a descriptor's words as the views that the library reads and writes by.
#pragma once

#include "penstock/array/writable_view.hpp"
#include "penstock/kernels/descriptor.hpp"

#include <type_traits>

namespace penstock::kernels {

static_assert(sizeof(line_reader) == sizeof(array_descriptor::reader) && std::is_trivially_copyable_v<line_reader>);

PENSTOCK_FN inline line_reader const& reader_of(array_descriptor const& of) {
  return *reinterpret_cast<line_reader const*>(&of.reader[0]);
}

PENSTOCK_FN inline element_op op_of(change_kind kind) { return static_cast<element_op>(kind); }
static_assert(static_cast<u32>(element_op::compare_exchange) == static_cast<u32>(change_kind::compare_exchange) &&
              static_cast<u32>(element_op::min_float) == static_cast<u32>(change_kind::min_float));

/// Of the lanes that are here. Errors are latched.
PENSTOCK_FN inline changed_element change_here(array_descriptor const& in, u64 address, element_change const& what) {
  line_reader const& reader = reader_of(in);
  const changed_element changed = change_together(passing_group(), this_meeting<meeting_in::changes>(), reader.meets_at(),
                                                  *reader.cache, reader.dataset, address, what);
  if (!changed.error.ok()) {
    reader.cache->latch(changed.error, fault_access::write, reader.dataset, address - reader.base);
  }
  return changed;
}

PENSTOCK_FN inline void store_element(array_descriptor const& to, u64 address, u32 bytes, piece value) {
  change_here(to, address, {element_op::store, bytes, {value.low, value.high}, 0});
}

/// Returns what the element was. `address`: of an array in memory the offset in it.
PENSTOCK_FN inline u64 change_element(array_descriptor const& in, u64 address, u32 bytes, change_kind kind, u64 value,
                                      u64 expected) {
  const element_change what{op_of(kind), bytes, {value, 0}, expected};
  if (in.memory == nullptr) return change_here(in, address, what).before;
  penstock::u64 before = 0;
  element::apply(reinterpret_cast<u64>(in.memory) + address, what, before);
  return before;
}

template <class Piece, thread_group G>
PENSTOCK_FN void read_span_in(G const& g, array_descriptor const& from, u64 address, u64 bytes, void* to) {
  auto* const out = static_cast<Piece*>(to);
  line_reader const& reader = reader_of(from);
  const u64 offset = from.memory != nullptr ? address : address - reader.base;
  const array_view<Piece> view = from.memory != nullptr
                                     ? array_view<Piece>(static_cast<Piece const*>(from.memory), from.bytes / sizeof(Piece))
                                     : array_view<Piece>(reader, 0, (offset + bytes) / sizeof(Piece));
  const u64 first = offset / sizeof(Piece);
  view.read_span(g, first, bytes / sizeof(Piece), [&](u64 i, Piece v) { out[i - first] = v; });
}

/// Collective. Pieces as wide as both sides are aligned.
template <thread_group G>
PENSTOCK_FN void read_span_by(G const& g, array_descriptor const& from, u64 address, u64 bytes, void* to) {
  const u64 aligned = address | bytes | reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from.memory);
  if (aligned % 16 == 0) return read_span_in<piece16>(g, from, address, bytes, to);
  if (aligned % 4 == 0) return read_span_in<u32>(g, from, address, bytes, to);
  read_span_in<u8>(g, from, address, bytes, to);
}

PENSTOCK_FN inline void prefetch_line_of(array_descriptor const& from, u64 address) {
  line_reader const& reader = reader_of(from);
  const line_id line = reader.line_of(address);
  const auto g = this_group();
  const bool absent = reader.cache->directory.glance(line).state() == line_state::empty;
  if (any(g.ballot(absent))) prefetch_line(g, *reader.cache, reader.dataset, absent, line, fill_purpose::guess);
}

}  // namespace penstock::kernels
