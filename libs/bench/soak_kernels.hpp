// Kernels of `penstock bench soak`: readers and writers that know what they must find, over a drive that fails.
//
// The first half of the lines is written element by element: element i by thread i mod threads alone. The second half is
// written line by line: line l by group l mod groups alone. What element i holds after its n-th write is `written_value(i, n)`,
// and `last` says how often each was written, so a reader knows the least and the most that it may find: what was recorded
// before it looked, and one more than what was recorded after it looked.
#pragma once

#include "penstock/array/writable_view.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/executor/launch.hpp"

namespace penstock::bench {

/// Never 0, which is what a read that failed gives.
PENSTOCK_FN inline u64 written_value(u64 i, u32 n) { return (i + 1) << 32 | n; }

/// What threads add to at their end.
struct soak_counts {
  u64 operations = 0;
  u64 stored = 0;  ///< elements, one by one
  u64 spans = 0;   ///< whole lines
  u64 failed = 0;  ///< operations that ended with a status
  u64 late = 0;    ///< groups that left at the deadline
  u64 wrong = 0;   ///< values that must not be; of the first:
  u64 element = 0;
  u64 value = 0;
  u64 least = 0, most = 0;
};

struct soak_data {
  writable_view<u64> array;
  u32* last = nullptr;  ///< [elements of the first half + lines of the second]
  u64 elements = 0;     ///< of the first half
  u64 lines = 0;        ///< of the second
  u32 line_elements = 0;
  u64 hot_elements = 0;  ///< that most operations on elements go to; they move on slowly
  u32 cold_ppm = 0;      ///< operations anywhere
  u64 threads = 0;
  u64 groups = 0;
  u64 seed = 0;
  u64 patience_ns = 0;  ///< of a phase, by the clock of whoever runs it
  soak_counts* counts = nullptr;

  PENSTOCK_FN u64 words_of_last() const { return elements + lines; }
  PENSTOCK_FN u32& last_of(u64 i) const { return last[i < elements ? i : elements + (i - elements) / line_elements]; }
};

/// splitmix64's mix, of three numbers.
PENSTOCK_FN inline u64 soak_draw(u64 seed, u64 a, u64 b) {
  u64 x = seed * 0x9e3779b97f4a7c15ull + a * 0xd1b54a32d192ed03ull + b * 0x8cb92ba72f3d8dd7ull;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

/// One phase: each thread does operations number `first` to `last` of the run. Their draws come from the number, and the places
/// that are hot move on with it.
struct soak_phase {
  soak_data data;
  u64 first = 0, last = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 group = range.first; group < range.last; group += range.step) run(g, group);
  }

 private:
  /// One thread's part of a phase.
  struct part {
    u64 group = 0, thread = 0;
    u64 draw = 0;    ///< this round's, of the thread
    u64 number = 0;  ///< of this round
    u64 deadline_ns = 0;
    soak_counts sums{};
  };

  template <thread_group G>
  PENSTOCK_FN void run(G const& g, u64 group) const {
    part p{
        .group = group, .thread = group * size(g) + index_in(g), .number = first, .deadline_ns = now_ns() + data.patience_ns};
    for (; p.number < last; ++p.number) {
      if (p.number % 64 == 0 && from_leader(g, now_ns() > p.deadline_ns) != 0) {
        p.sums.late += is_leader(g);
        break;
      }
      p.draw = soak_draw(data.seed, 2 * p.thread, p.number);
      const u64 kind = soak_draw(data.seed, 2 * group + 1, p.number) % 64;
      if (kind < 34) {
        read(p, kind % 2 == 0 ? own(p) : any_element(p));
      } else if (kind < 36) {
        read_pinned(g, p);
      } else if (kind < 50) {
        write(g, p);
      } else if (kind < 58) {
        add(g, p);
      } else if (kind < 60) {
        exchange(g, p);
      } else if (kind < 61) {
        write_line(g, p);
      } else {
        data.array.prefetch(g, true, any_element(p));
      }
      ++p.sums.operations;
    }
    tell(p.sums);
  }

  PENSTOCK_FN bool is_cold(u64 draw) const { return (draw >> 40) % 1'000'000 < data.cold_ppm; }

  /// Of `of` things, most often one of `hot` that follow a place which moves on.
  PENSTOCK_FN u64 pick(part const& p, u64 of, u64 hot) const {
    if (is_cold(p.draw) || hot >= of) return p.draw % of;
    return (p.number / 64 * hot / 512 + p.draw % hot) % of;
  }
  PENSTOCK_FN u64 own(part const& p) const {
    const u64 mine = data.elements / data.threads, hot = data.hot_elements / data.threads + 1;
    return pick(p, mine, hot) * data.threads + p.thread;
  }
  PENSTOCK_FN u64 any_element(part const& p) const {
    if (p.draw >> 60 != 0) return pick(p, data.elements, data.hot_elements);
    return data.elements + pick(p, data.lines * data.line_elements, data.hot_elements / 4);
  }

  /// Whether a value may be what element i holds, counted from what was recorded before the look.
  PENSTOCK_FN void judge(part& p, u64 i, u64 value, u32 least) const {
    if (value == 0) {
      ++p.sums.failed;
      return;
    }
    const u32 most = device_ref<u32>(data.last_of(i)).load(relaxed) + 1;
    const u32 n = static_cast<u32>(value);
    if (value >> 32 != i + 1 || n < least || n > most) accuse(i, value, least, most);
  }
  PENSTOCK_FN u32 recorded(u64 i) const { return device_ref<u32>(data.last_of(i)).load(acquire); }
  PENSTOCK_FN void record(u64 i, u32 n) const { device_ref<u32>(data.last_of(i)).store(n, release); }

  PENSTOCK_FN void accuse(u64 i, u64 value, u64 least, u64 most) const {
    if (device_ref<u64>(data.counts->wrong).fetch_add(1, relaxed) != 0) return;
    data.counts->element = i;
    data.counts->value = value;
    data.counts->least = least;
    data.counts->most = most;
  }

  /// Twice: the second must not be older.
  PENSTOCK_FN void read(part& p, u64 i) const {
    const u32 least = recorded(i);
    const u64 seen = data.array[i];
    judge(p, i, seen, least);
    if (seen == 0 || p.draw % 8 != 0) return;
    judge(p, i, data.array[i], static_cast<u32>(seen));
    ++p.sums.operations;
  }

  template <thread_group G>
  PENSTOCK_FN void read_pinned(G const& g, part& p) const {
    const u64 i = any_element(p);
    const u32 least = recorded(i);
    const pinned_line<G> line = pin(g, data.array, i);
    if (!line.error().ok()) {
      ++p.sums.failed;
      return;
    }
    judge(p, i, line.template load<u64>(data.array.reader().within(data.array.address_of(i))), least);
  }

  template <thread_group G>
  PENSTOCK_FN void write(G const& g, part& p) const {
    const u64 i = own(p);
    const u32 n = recorded(i) + 1;
    note_store(p, i, n, data.array.try_write(g, true, i, written_value(i, n)).ok());
  }

  /// Nobody else writes the element: what it was is known.
  template <thread_group G>
  PENSTOCK_FN void add(G const& g, part& p) const {
    const u64 i = own(p);
    const u32 n = recorded(i);
    const u64 before = data.array.fetch_add(g, true, i, 1);
    if (before != 0 && before != written_value(i, n)) accuse(i, before, n, n);
    note_store(p, i, n + 1, before != 0);
  }

  template <thread_group G>
  PENSTOCK_FN void exchange(G const& g, part& p) const {
    const u64 i = own(p);
    const u32 n = recorded(i);
    u64 seen = written_value(i, n);
    const bool done = data.array.compare_exchange(g, true, i, seen, written_value(i, n + 1));
    if (!done && seen != 0) accuse(i, seen, n, n);
    note_store(p, i, n + 1, done);
  }

  /// What failed has stored nothing: the count stays, and the next look at the element finds out.
  PENSTOCK_FN void note_store(part& p, u64 i, u32 n, bool done) const {
    if (done) record(i, n);
    ++(done ? p.sums.stored : p.sums.failed);
  }

  template <thread_group G>
  PENSTOCK_FN void write_line(G const& g, part& p) const {
    const u64 of = data.lines / data.groups, hot = data.hot_elements / data.line_elements / data.groups / 4 + 1;
    const u64 line = from_leader(g, pick(p, of, hot)) * data.groups + p.group;
    const u64 begin = data.elements + line * data.line_elements;
    const u32 n = static_cast<u32>(from_leader(g, recorded(begin))) + 1;
    const status outcome = data.array.write_span(g, begin, data.line_elements, [n](u64 i) { return written_value(i, n); });
    if (!is_leader(g)) return;
    if (outcome.ok()) record(begin, n);
    ++(outcome.ok() ? p.sums.spans : p.sums.failed);
  }

  PENSTOCK_FN void tell(soak_counts const& mine) const {
    const auto add = [](u64& to, u64 n) { device_ref<u64>(to).fetch_add(n, relaxed); };
    add(data.counts->operations, mine.operations);
    add(data.counts->stored, mine.stored);
    add(data.counts->spans, mine.spans);
    add(data.counts->failed, mine.failed);
    add(data.counts->late, mine.late);
  }
};

/// Moves all queues of a cache and retires its writes, in one group.
struct move_queues {
  line_cache_view const* cache = nullptr;
  u32 rounds = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range) const {
    for (u32 round = 0; round < rounds; ++round) {
      for (u32 q = 0; q < cache->queues_count; ++q) cache->queues[q].progress(g);
      retire_runs(g, *cache);
    }
  }
};

}  // namespace penstock::bench
