// A gather of short rows in host memory that a kernel and threads of the CPU share.
//
// What bounds a GPU that reads narrow rows in place is translations of addresses, not the link. So the list, sorted, is cut
// into chunks: groups of the kernel walk over it from the front and read rows in place; threads of the CPU begin chunks from
// the back on, and copy their rows side by side into staging memory; other groups take them from there, a stream of bytes.
//
// - Groups are whole warps, which claim rows for all their lanes: parts of a warp that claimed for themselves fell apart.
// - A word that both sides reach has one side that stores it: there are no read-modify-writes over a link.
// - Whether the rows of a chunk are read in place one by one, or taken by one group, is decided once, by the first group that
//   comes to it (`decide`), and all keep to it: each row is copied once.
// - Each chunk has one group that takes it, if it is decided so. That group comes to it when the CPU has begun the chunk or all
//   its items are claimed, and walks itself until then: what nobody has decided is decided then.
// - No group waits for another group, nor for the CPU any longer than its patience: then it reads the chunk in place.
// - Threads of the CPU look how fast the kernel walks before they begin anything, and leave what it reads as fast as the link
//   bears: rows that are near each other, or kept next to the kernels.
#pragma once

#include "gather_bodies.hpp"
#include "penstock/core/backoff.hpp"

namespace penstock::rows {

/// Rows of a chunk: a multiple of those that a warp copies at once.
inline constexpr u32 chunk_rows = 256;

// Two thirds of a list are more than threads of the CPU copy of it.
inline constexpr u64 shared_list_bytes = 288ull << 20, staging_bytes = 192ull << 20, most_listed_rows = 1ull << 22;
/// Host memory that sharing takes, about.
inline constexpr u64 sharing_bytes = staging_bytes + most_listed_rows * sizeof(u32);

/// Whether gathers from an array are shared at all: of short rows, and of so many that lists have few to a page.
inline bool may_be_shared(row_shape const& shape) {
  constexpr u64 most_short_row = 512, least_bytes = 512ull << 20;
  return shape.row_bytes <= most_short_row && shape.bytes() >= least_bytes;
}

/// Rows of a list, and chunks of it that there is staging memory for.
inline u64 most_shared_rows(u64 row_bytes) {
  return row_bytes * most_listed_rows < shared_list_bytes ? most_listed_rows : shared_list_bytes / row_bytes;
}
inline u32 most_staged_chunks(u64 row_bytes) { return static_cast<u32>(staging_bytes / (chunk_rows * row_bytes)); }

/// How far each side is. In memory that both reach; the number of the list in the upper halves.
struct shared_words {
  u64 begun;   ///< by the CPU: chunks, from the back
  u64 walked;  ///< by the kernel: chunks, from the front

  static PENSTOCK_FN u64 of(u32 list, u32 chunks) { return u64{list} << 32 | chunks; }
  /// 0 for another list's.
  static PENSTOCK_FN u32 chunks(u64 word, u32 list) { return word >> 32 == list ? static_cast<u32>(word) : 0; }
};

/// A list that is shared. Chunks are numbered from the back.
struct shared_list {
  shared_words* words = nullptr;
  u32* staged = nullptr;  ///< of each chunk the number of the list whose rows are in its staging memory, by the CPU
  u64 staging = 0;        ///< chunk_rows rows for each
  u32 number = 0;         ///< not that of the list before
  u32 chunks = 0;
};

/// What is done with the rows of a chunk.
enum class chunk_way : u32 { open, in_place, taken };

/// What the groups of the kernel know. Zero at first.
struct shared_progress {
  u64 walked = 0;              ///< items claimed, from the front
  alignas(128) u32 begun = 0;  ///< as the CPU's; read by all, so apart from what all add to
  u32 taken = 0;               ///< chunks claimed, from the back
};

template <class Unit, class Rows>
struct gather_shared {
  gather_short<Unit, Rows> from;
  shared_list list;
  shared_progress* progress;
  chunk_way* ways;  ///< of each chunk; open at first
  u32 width;        ///< lanes to a row: a power of two
  u32 takers;       ///< groups that take chunks from the beginning on; the others when there is nothing left to walk over
  u64 patience_ns;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    const bool exchanges = range.first == 0;
    if (exchanges || range.first > takers) {
      do {
        if (exchanges) exchange_words(g);
      } while (walk(g));
    }
    for (u32 k = claim(g, progress->taken); k < list.chunks; k = claim(g, progress->taken)) {
      const bool begun = is_begun(g, k);
      if (decide(g, k, chunk_way::taken) == chunk_way::taken) take(g, k, begun);
    }
  }

 private:
  /// Rows that lie side by side in each load of a group.
  template <thread_group G>
  PENSTOCK_FN u32 side(G const& g) const {
    if constexpr (std::is_same_v<G, lone_thread>) return 1;
    return size(g) / width;
  }
  /// Of a chunk.
  template <thread_group G>
  PENSTOCK_FN u32 items_each(G const& g) const {
    return chunk_rows / (few_rows::most * side(g));
  }

  template <thread_group G, class Word>
  PENSTOCK_FN static Word claim(G const& g, Word& next) {
    u64 mine = 0;
    if (is_leader(g)) mine = device_ref<Word>(next).fetch_add(1, relaxed);
    return static_cast<Word>(g.shfl(mine, lowest(g.members())));
  }
  template <thread_group G, class Word>
  PENSTOCK_FN static Word look(G const& g, Word& at) {
    u64 seen = 0;
    if (is_leader(g)) seen = static_cast<u64>(device_ref<Word>(at).load(relaxed));
    return static_cast<Word>(g.shfl(seen, lowest(g.members())));
  }

  /// What is done with chunk k: `way`, unless it was decided before.
  template <thread_group G>
  PENSTOCK_FN chunk_way decide(G const& g, u32 k, chunk_way way) const {
    u64 decided = 0;
    if (is_leader(g)) {
      chunk_way before = chunk_way::open;
      const bool ours = device_ref<chunk_way>(ways[k]).compare_exchange_strong(before, way, relaxed, relaxed);
      decided = static_cast<u64>(ours ? way : before);
    }
    return static_cast<chunk_way>(g.shfl(decided, lowest(g.members())));
  }

  template <thread_group G>
  PENSTOCK_FN void exchange_words(G const& g) const {
    if (!is_leader(g)) return;
    const u32 begun = shared_words::chunks(system_ref<u64>(list.words->begun).load(relaxed), list.number);
    device_ref<u32>(progress->begun).store(begun, relaxed);
    const u64 walked = device_ref<u64>(progress->walked).load(relaxed) / items_each(g);
    system_ref<u64>(list.words->walked).store(shared_words::of(list.number, static_cast<u32>(walked)), relaxed);
  }

  /// Reads some rows in place. False: there are none left, or one group takes their chunk and so those behind it.
  template <thread_group G>
  PENSTOCK_FN bool walk(G const& g) const {
    const u64 item = claim(g, progress->walked);
    if (item >= u64{list.chunks} * items_each(g)) return false;
    const u32 k = list.chunks - 1 - static_cast<u32>(item / items_each(g));
    chunk_way way = look(g, ways[k]);
    if (way == chunk_way::open) {
      way = decide(g, k, k < look(g, progress->begun) ? chunk_way::taken : chunk_way::in_place);
    }
    if (way == chunk_way::taken) return false;
    copy(g, item * few_rows::most * side(g), 0);
    return true;
  }

  /// Walks until the CPU has begun chunk k, or all its items are claimed: false.
  template <thread_group G>
  PENSTOCK_FN bool is_begun(G const& g, u32 k) const {
    for (;;) {
      if (k < look(g, progress->begun)) return true;
      if (look(g, progress->walked) >= u64{list.chunks - k} * items_each(g)) return false;
      walk(g);
    }
  }

  template <thread_group G>
  PENSTOCK_FN void take(G const& g, u32 k, bool begun) const {
    const u64 first = u64{list.chunks - 1 - k} * chunk_rows;
    const u64 staged = begun && is_staged(g, k) ? list.staging + u64{k} * chunk_rows * from.row_bytes : 0;
    for (u32 r = 0; r < chunk_rows; r += few_rows::most * side(g)) {
      copy(g, first + r, staged != 0 ? staged + r * from.row_bytes : 0);
    }
  }

  template <thread_group G>
  PENSTOCK_FN bool is_staged(G const& g, u32 k) const {
    const system_ref<u32> word(list.staged[k]);
    u64 there = 0;
    if (is_leader(g)) {
      backoff wait(patience_ns);
      do {
        there = word.load(relaxed) == list.number ? 1 : 0;
      } while (there == 0 && wait.pause());
    }
    // What one has seen, each sees, and then the rows.
    return g.shfl(there, lowest(g.members())) != 0 && word.load(acquire) == list.number;
  }

  /// `staged`: where the rows lie side by side; 0: each in its place.
  template <thread_group G>
  PENSTOCK_FN void copy(G const& g, u64 first, u64 staged) const {
    const row_lanes lanes = row_lanes::parts(g, std::is_same_v<G, lone_thread> ? 1 : width);
    const u32 mine = (index_in(g) - lanes.lane) / lanes.width;
    u64 source[few_rows::most], to[few_rows::most];
    u32 wanted = 0;
    PENSTOCK_UNROLL
    for (u32 r = 0; r < few_rows::most; ++r) {
      const u32 at = r * side(g) + mine;
      u64 position = 0;
      const u64 row = from.rows.take(first + at, position);
      const bool there = row != row_numbers::none;
      wanted |= (there ? 1u : 0u) << r;
      source[r] = staged != 0 ? staged + at * from.row_bytes : from.kept.address_of(there ? row : 0, from.source, from.pitch);
      to[r] = from.out + position * from.row_bytes;
    }
    copy_short_rows<Unit>(g, lanes, source, to, from.row_bytes, wanted);
  }
};

}  // namespace penstock::rows
