// What stands behind every read: all but an undisturbed hit. Sets the referenced bit, tries again, takes a pin, fills, waits.
//
// These are the functions that a kernel calls rather than inlines. A kernel needs as many registers as the hungriest function
// that it calls; so in programs with relocatable device code (nvcc -rdc=true) they come compiled, with a register cap of their
// own, from the library penstock (src/device). In a program of one translation unit they are instantiated there, and the
// kernel takes their registers.
#pragma once

#include "penstock/coalesce/line_access.hpp"
#include "penstock/coalesce/read_ahead.hpp"
#include "penstock/core/memory_access.hpp"
#include "penstock/group/lane_meeting.hpp"
#include "penstock/group/lone_thread.hpp"
#include "penstock/group/warp.hpp"

#include <type_traits>

namespace penstock {

/// A piece of 1 to 16 bytes out of the low bytes of one of 16.
template <class Piece>
PENSTOCK_FN Piece first_bytes(piece16 of) {
  if constexpr (sizeof(Piece) == 16) {
    return std::bit_cast<Piece>(of);
  } else {
    return static_cast<Piece>(of.low);
  }
}

/// Loads a piece of a run-time size, into the low bytes.
PENSTOCK_FN inline piece16 load_piece_of(u64 address, u32 bytes) {
  switch (bytes) {
    case 1: return {load_piece(reinterpret_cast<u8 const*>(address)), 0};
    case 2: return {load_piece(reinterpret_cast<u16 const*>(address)), 0};
    case 4: return {load_piece(reinterpret_cast<u32 const*>(address)), 0};
    case 8: return {load_piece(reinterpret_cast<u64 const*>(address)), 0};
    default: return load_piece(reinterpret_cast<piece16 const*>(address));
  }
}

/// What a read gave, and how it ended.
struct read_piece {
  piece16 bytes{};  ///< zeros after an error
  status error{};
};

/// The piece of `bytes` (1, 2, 4, 8 or 16) at `address` in the cache's line space, for each lane that wants one; the others
/// help: a line that came through a bounce buffer is copied by all of the group. Collective.
template <thread_group G, class Cache>
PENSTOCK_FN piece16 read_piece_of(G const& g, Cache const& cache, u32 dataset, bool want, u64 address, u32 bytes,
                                  status& outcome) {
  const line_id line{address >> cache.line_shift};
  const u64 within = address & (cache.line_bytes() - 1);
  const bool starts = want && starts_ahead(cache, line);
  dataset_view const& data = cache.datasets[dataset];
  piece16 piece{};
  bool todo = want;
  // A line that is in no frame is not looked at twice. Without a branch, so that the fields for this come in one trip.
  found_line seen = cache.directory.glance(want ? line : line_id{0});
  if (!want) seen = {};
  if (cache.validates && any(g.ballot(seen.state() != line_state::empty))) {
    fill_watch<G, Cache> watch(g, cache, data);
    for (;;) {
      found_line at;
      if (todo) at = cache.directory.find(line);
      bool fills = todo && at.state() == line_state::filling;
      for (u32 attempt = 0; todo && at.state() == line_state::valid && attempt < 3; ++attempt) {
        cache.reference(at);
        const piece16 read = load_piece_of(cache.frame_address(at.entry, at.word) + within, bytes);
        order_read_before_recheck();
        todo = !entry::same(at.word, device_ref<u64>(*at.entry).load(relaxed));
        if (todo) data.counters.add(counter::retries, 1);
        if (todo) at = cache.directory.find(line);
        if (!todo) piece = read;
      }
      // A line without a fill in flight is requested before the group waits for anything.
      if (any(g.ballot(todo && !fills)) || !any(g.ballot(fills))) break;
      if (!watch.wait(fills, at)) break;
    }
  }
  if (any(g.ballot(todo))) {
    outcome = read_line(g, cache, dataset, todo, line, seen, [&](u64 frame) { piece = load_piece_of(frame + within, bytes); });
  }
  if (any(g.ballot(starts))) read_ahead(g, cache, dataset, starts, line);
  return piece;
}

/// That piece. Collective. Errors: zeros; the first one is latched in the cache's fault slot.
///
/// A lane that has missed alone goes on as a lone thread: what lanes do together is most of the instructions of a miss, and
/// they follow each other.
template <thread_group G, class Cache>
PENSTOCK_COLD piece16 read_slowly(G g, Cache const& cache, u32 dataset, bool want, u64 address, u32 bytes) {
  if constexpr (!std::is_same_v<G, lone_thread>) {
    if (size(g) == 1) return read_slowly(lone_thread{}, cache, dataset, want, address, bytes);
  }
  status outcome{};
  const piece16 piece = read_piece_of(g, cache, dataset, want, address, bytes, outcome);
  if (!outcome.ok()) {
    cache.latch(outcome, fault_access::read, dataset, address - (cache.datasets[dataset].first_line << cache.line_shift));
  }
  return piece;
}

/// The same for the lanes that are here, and those of their warp that come while they are. `at`: what they read, a hash.
template <thread_group G, class Cache>
PENSTOCK_COLD piece16 read_together(G g, lane_meeting* meeting, u32 at, Cache const& cache, u32 dataset, bool want, u64 address,
                                    u32 bytes) {
  return with_others(g, meeting, cache.process, at, reinterpret_cast<u64>(&cache), dataset,
                     [&](auto const& all) { return read_slowly(all, cache, dataset, want, address, bytes); });
}

/// The same, with each lane's status instead of a latched one. Collective.
template <thread_group G, class Cache>
PENSTOCK_COLD read_piece try_read_slowly(G g, Cache const& cache, u32 dataset, bool want, u64 address, u32 bytes) {
  read_piece read;
  read.bytes = read_piece_of(g, cache, dataset, want, address, bytes, read.error);
  return read;
}

/// The same for the lanes that are here, as read_together.
template <thread_group G, class Cache>
PENSTOCK_COLD read_piece try_read_together(G g, lane_meeting* meeting, u32 at, Cache const& cache, u32 dataset, bool want,
                                           u64 address, u32 bytes) {
  return with_others(g, meeting, cache.process, at, reinterpret_cast<u64>(&cache), dataset,
                     [&](auto const& all) { return try_read_slowly(all, cache, dataset, want, address, bytes); });
}

/// What a group holds of a line.
struct held_line {
  u64* entry = nullptr;  ///< of the line, in the lane that holds the pin; null in others
  u64 frame = 0;         ///< address; valid while the pin is held
  status error{};
  u32 hits = 0;
  bool owned = false;  ///< claimed to be overwritten
};

/// Pins the lines of a group: see line_request::pin. Collective.
template <thread_group G, class Cache>
PENSTOCK_COLD held_line pin_slowly(G g, Cache const& cache, u32 dataset, line_id line) {
  line_request<G, Cache> request(g, cache, dataset, true, line);
  held_line held;
  held.error = request.pin(held.frame);
  held.hits = static_cast<u32>(request.hits());
  if (held.error.ok() && request.leads()) held.entry = request.entry();
  return held;
}

#if PENSTOCK_SEPARATE_DEVICE_CODE
extern template PENSTOCK_FN piece16 read_slowly(warp, line_cache_view const&, u32, bool, u64, u32);
extern template PENSTOCK_FN piece16 read_together(warp, lane_meeting*, u32, line_cache_view const&, u32, bool, u64, u32);
extern template PENSTOCK_FN read_piece try_read_slowly(warp, line_cache_view const&, u32, bool, u64, u32);
extern template PENSTOCK_FN read_piece try_read_together(warp, lane_meeting*, u32, line_cache_view const&, u32, bool, u64, u32);
extern template PENSTOCK_FN held_line pin_slowly(warp, line_cache_view const&, u32, line_id);
extern template PENSTOCK_FN bool prefetch_line(warp, line_cache_view const&, u32, bool, line_id, fill_purpose);
#endif
#if PENSTOCK_SEPARATE_HOST_CODE
extern template piece16 read_slowly(lone_thread, line_cache_view const&, u32, bool, u64, u32);
extern template piece16 read_together(lone_thread, lane_meeting*, u32, line_cache_view const&, u32, bool, u64, u32);
extern template read_piece try_read_slowly(lone_thread, line_cache_view const&, u32, bool, u64, u32);
extern template read_piece try_read_together(lone_thread, lane_meeting*, u32, line_cache_view const&, u32, bool, u64, u32);
extern template held_line pin_slowly(lone_thread, line_cache_view const&, u32, line_id);
extern template bool prefetch_line(lone_thread, line_cache_view const&, u32, bool, line_id, fill_purpose);
#endif

}  // namespace penstock
