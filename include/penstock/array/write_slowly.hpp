// What stands behind every write of an element: the line is brought in if it is not there, pinned, stored into, and left dirty.
//
// Stores and read-modify-writes of elements are release operations, on every executor; `store_piece` says why.
#pragma once

#include "penstock/array/read_slowly.hpp"
#include "penstock/coalesce/line_access.hpp"

namespace penstock {

/// What is done to an element in its frame.
enum class element_op : u32 {
  store,
  add,        ///< integers, modulo their size
  add_float,  ///< float or double, by its bytes
  min_signed,
  min_unsigned,
  min_float,
  compare_exchange,
};

/// One change of an element of `bytes` bytes: 1, 2, 4, 8 or 16 for a store, else 4 or 8. Values lie in the low bytes.
struct element_change {
  element_op op = element_op::store;
  u32 bytes = 0;
  piece16 value{};
  u64 expected = 0;
};

/// What the element was, and how its access ended.
struct changed_element {
  u64 before = 0;  ///< nothing after a store
  status error{};
};

namespace element {

/// By compare-and-swap, for what has no instruction on every executor. `next(old)` is stored where it differs from `old`.
template <class Word, class Next>
PENSTOCK_FN bool exchange(u64 address, u64& before, Next const& next) {
  device_ref<Word> word(*reinterpret_cast<Word*>(address));
  Word old = word.load(relaxed);
  for (;;) {
    const Word wanted = next(old);
    before = old;
    if (wanted == old) return false;
    if (word.compare_exchange_weak(old, wanted, release, relaxed)) return true;
  }
}

/// An operation on values of another type that lie in words.
template <class Word, class T, class Of>
PENSTOCK_FN bool exchange_as(u64 address, u64& before, Word value, Of const& of) {
  return exchange<Word>(address, before,
                        [&](Word old) { return std::bit_cast<Word>(of(std::bit_cast<T>(old), std::bit_cast<T>(value))); });
}

template <class Word, class Signed, class Float>
PENSTOCK_FN bool change(u64 address, element_change const& c, u64& before) {
  const auto least = [](auto a, auto b) { return b < a ? b : a; };
  const Word value = static_cast<Word>(c.value.low);
  switch (c.op) {
    case element_op::add:
      before = device_ref<Word>(*reinterpret_cast<Word*>(address)).fetch_add(value, release);
      return value != 0;
    case element_op::add_float: {
      const Float more = std::bit_cast<Float>(value);
      const Float old = fetch_add_number(address, more);
      before = std::bit_cast<Word>(old);
      return std::bit_cast<Word>(old + more) != before;
    }
    case element_op::min_signed: return exchange_as<Word, Signed>(address, before, value, least);
    case element_op::min_unsigned: return exchange_as<Word, Word>(address, before, value, least);
    case element_op::min_float: return exchange_as<Word, Float>(address, before, value, least);
    default:
      return exchange<Word>(address, before, [&](Word old) { return old == static_cast<Word>(c.expected) ? value : old; });
  }
}

PENSTOCK_FN inline bool store(u64 address, element_change const& c) {
  switch (c.bytes) {
    case 1: store_piece(reinterpret_cast<u8*>(address), static_cast<u8>(c.value.low)); break;
    case 2: store_piece(reinterpret_cast<u16*>(address), static_cast<u16>(c.value.low)); break;
    case 4: store_piece(reinterpret_cast<u32*>(address), static_cast<u32>(c.value.low)); break;
    case 8: store_piece(reinterpret_cast<u64*>(address), c.value.low); break;
    default:
      store_piece(reinterpret_cast<u64*>(address), c.value.low);
      store_piece(reinterpret_cast<u64*>(address) + 1, c.value.high);
  }
  return true;
}

/// Does it. True if the element has, or may have, other bytes now.
PENSTOCK_FN inline bool apply(u64 address, element_change const& c, u64& before) {
  if (c.op == element_op::store) return store(address, c);
  return c.bytes == 4 ? change<u32, std::int32_t, float>(address, c, before)
                      : change<u64, std::int64_t, double>(address, c, before);
}

}  // namespace element

/// Changes the element at `address` in the cache's line space, for each lane that wants to; lanes that name the same line share
/// one pin. Collective.
/// Errors: as a read's, and failure::out_of_range for an address outside of the dataset: nothing is stored there.
template <thread_group G, class Cache>
PENSTOCK_COLD changed_element change_slowly(G g, Cache const& cache, u32 dataset, bool want, u64 address,
                                            element_change change) {
  dataset_view const& data = cache.datasets[dataset];
  const u64 offset = address - (data.first_line << cache.line_shift);
  changed_element result;
  const bool inside = offset < data.bytes && change.bytes <= data.bytes - offset;
  if (want && !inside) result.error = make_status(failure::out_of_range);
  const bool goes = want && inside;
  const u64 within = address & (cache.line_bytes() - 1);
  const status outcome = write_line(g, cache, dataset, goes, line_id{address >> cache.line_shift},
                                    [&](u64 frame) { return element::apply(frame + within, change, result.before); });
  if (goes) result.error = outcome;
  const auto changed = g.ballot(goes && outcome.ok());
  if (is_leader(g) && any(changed)) data.counters.add(counter::bytes_changed, u64{count(changed)} * change.bytes);
  return result;
}

/// The same for the lanes that are here, all of which want to, and those of their warp that come while they are. `at`: what
/// they change, a hash.
template <thread_group G, class Cache>
PENSTOCK_COLD changed_element change_together(G g, lane_meeting* meeting, u32 at, Cache const& cache, u32 dataset, u64 address,
                                              element_change change) {
  return with_others(g, meeting, cache.process, at, reinterpret_cast<u64>(&cache), dataset,
                     [&](auto const& all) { return change_slowly(all, cache, dataset, true, address, change); });
}

/// Pins the lines of a group to store into them, as pin_slowly. `whole`: all lanes name the same line and store all of it, so
/// it is not brought in; between this and unpin_stored the group waits for nothing. Collective.
template <thread_group G, class Cache>
PENSTOCK_COLD held_line pin_to_store(G g, Cache const& cache, u32 dataset, line_id line, bool whole) {
  if (!whole) return pin_slowly(g, cache, dataset, line);
  line_request<G, Cache, line_use::overwrite> request(g, cache, dataset, true, line);
  held_line held;
  held.error = request.pin(held.frame);
  held.hits = static_cast<u32>(request.hits());
  if (held.error.ok() && request.leads()) held.entry = request.entry();
  held.owned = request.owned();
  return held;
}

/// Pins those lines of a group that are in frames: all that a store needs, most of the time, and short. Lanes that name the
/// same line share a pin, which the lowest of them holds. No frame: the line is anything else, and nothing was done;
/// pin_to_store has it. The group waits for nothing until it has given the pins back (W4). Collective.
template <thread_group G, class Cache>
PENSTOCK_FN held_line pin_hits(G const& g, Cache const& cache, bool want, line_id line) {
  held_line held;
  const auto peers = peers_of(g, cache, want, line);
  if (want && lowest(peers) == g.rank()) {
    const found_line at = cache.try_pin(line, size(g) >= 32 && cache.coalesces);
    if (at.entry != nullptr) {
      held.entry = at.entry;
      held.frame = cache.frame_address(at.entry, at.word);
    }
  }
  held.frame = g.shfl(held.frame, lowest(peers));
  g.sync();  // the leaders' acquires are every member's
  return held;
}

/// Gives back what pin_to_store or pin_hits gave. Collective.
template <thread_group G, class Cache>
PENSTOCK_COLD void unpin_stored(G g, Cache const& cache, u32 dataset, u64* entry, bool owned) {
  bool overfull = false;
  g.sync();  // every lane's stores are done
  const auto pinned = g.ballot(entry != nullptr);
  if (is_leader(g) && any(pinned)) cache.datasets[dataset].counters.add(counter::writes, count(pinned));
  if (entry != nullptr) {
    bool was_clean = true;
    if (owned) {
      cache.publish_written(entry);
    } else {
      was_clean = cache.unpin_written(entry);
    }
    overfull = was_clean && cache.writes.note_dirty();
  }
  const u32 lines = count(g.ballot(overfull));
  if (lines != 0) keep_clean(g, cache, cache.datasets[dataset].counters, lines);
}

#if PENSTOCK_SEPARATE_DEVICE_CODE
extern template PENSTOCK_FN changed_element change_slowly(warp, line_cache_view const&, u32, bool, u64, element_change);
extern template PENSTOCK_FN changed_element change_together(warp, lane_meeting*, u32, line_cache_view const&, u32, u64,
                                                            element_change);
extern template PENSTOCK_FN held_line pin_to_store(warp, line_cache_view const&, u32, line_id, bool);
extern template PENSTOCK_FN void unpin_stored(warp, line_cache_view const&, u32, u64*, bool);
#endif
#if PENSTOCK_SEPARATE_HOST_CODE
extern template changed_element change_slowly(lone_thread, line_cache_view const&, u32, bool, u64, element_change);
extern template changed_element change_together(lone_thread, lane_meeting*, u32, line_cache_view const&, u32, u64,
                                                element_change);
extern template held_line pin_to_store(lone_thread, line_cache_view const&, u32, line_id, bool);
extern template void unpin_stored(lone_thread, line_cache_view const&, u32, u64*, bool);
#endif

}  // namespace penstock
