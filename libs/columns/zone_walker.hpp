// A group's way through a table: it takes a zone of rows after the other, evaluates the condition for all of them, and goes on
// with those that meet it. The bytes of the columns that the condition names come line after line; of the others only what the
// rows that are left need.
//
// How a zone is walked follows from what the zone before had. Few rows: the condition first, then the rest for the rows that
// meet it, side by side, so that a batch is full of them. Many: both in one pass, and what the condition has read is not read
// again.
#pragma once

#include "libs/columns/evaluate.hpp"
#include "libs/columns/range_marks.hpp"
#include "penstock/executor/grid.hpp"

namespace penstock::columns {

inline constexpr u32 zone_rows = 2048, zone_words = zone_rows / 32;
/// From this share of a zone's rows on the next one is walked in one pass.
inline constexpr u32 dense_rows = zone_rows / 4;
/// If fewer are in the ranges of a condition, the rest of it is looked at for these alone.
inline constexpr u32 most_in_ranges = zone_rows / 2;

/// Rows of one piece of the table, one after another.
struct zone_place {
  u32 piece = 0;
  u32 rows = 0;
  u64 first = 0;  ///< in the piece
};

struct table_view {
  column_view const* columns = nullptr;  ///< [pieces][count]
  u32 count = 0;
  u32 zones = 0;
  zone_place const* places = nullptr;  ///< [zones]
};

/// The least and the greatest value of a zone's rows, sortable; low > high where there is none.
struct zone_range {
  std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = std::numeric_limits<std::int64_t>::min();
};

/// What is noted of columns that a condition reads, on the way: zone maps.
struct zone_notes {
  static constexpr u32 most = 8;
  u32 count = 0;
  u8 registers[most] = {};        ///< that keep what was loaded to the end of the condition
  u8 numbers[most] = {};          ///< 1: floating point
  zone_range* ranges[most] = {};  ///< [zones of the table]
};

/// A query's program in both ways, and what it names.
struct query_view {
  table_view table;
  evaluation with;
  program_view dense;            ///< the rest uses what the condition has in its registers
  program_view sparse;           ///< the rest has all that it uses itself
  u16 const* scanned = nullptr;  ///< columns that the condition names
  u32 scanned_count = 0;
  u32 const* zones = nullptr;  ///< those to be looked at; nullptr: all
  zone_notes notes;
  column_range const* ranges = nullptr;  ///< of columns, that rows which meet the condition are in
  u32 ranges_count = 0;
  program_view residual;   ///< what else the condition is, by itself; no instructions: nothing
  bool line_aware = true;  ///< false, an ablation: nothing is asked for ahead
};

/// Rows of a batch: many for a thread of a CPU.
template <class G>
inline constexpr u32 batch_rows = std::is_same_v<G, lone_thread> ? 256 : 2;

/// Of the members' values, in all of them. Collective; groups of 1 or of whole warps.
template <thread_group G, class Combine>
PENSTOCK_FN inline u64 combined(G const& g, u64 mine, Combine const& of) {
  for (u32 apart = size(g) / 2; apart != 0; apart /= 2) mine = of(mine, g.shfl(mine, g.rank() ^ apart));
  return mine;
}

/// One group's way through the zones.
template <thread_group G, class Code = interpreted, u32 V = batch_rows<G>>
class zone_walker {
 public:
  PENSTOCK_FN zone_walker(G const& g, query_view const& query) : g_(g), q_(query) {
    each_below<Code::is_compiled>(max_registers, [&](u32 number) {
      for (u32 k = 0; k < V; ++k) r_.valid[number][k] = 1;
    });
    rows_.count = V;
    for (u32 k = 0; k < V; ++k) rows_.active[k] = 0;
    run<part::constants>();
  }

  /// Calls use(rows, registers) for batches of the rows of a zone that meet the condition. Returns how many do. Collective.
  template <class Use>
  PENSTOCK_FN u32 walk(u32 zone, Use const& use) {
    enter(zone);
    const bool all = meets_all();
    u32 met = 0;
    if (all || was_dense_) {
      met = walk_at_once(use);
    } else {
      u32 words[words_here];
      met = mark(words);
      walk_marked(words, met, use);
    }
    was_dense_ = met >= dense_rows;
    store_notes(zone);
    return met;
  }

  /// The same of rows that were marked before. `words`: [zone_words]; nullptr: all rows.
  template <class Use>
  PENSTOCK_FN void walk(u32 zone, u32 const* words, Use const& use) {
    enter(zone);
    u32 mine[words_here];
    for (u32 w = 0; w < words_here; ++w) {
      const u32 number = index_in(g_) + w * size(g_);
      mine[w] = words != nullptr ? words[number] : all_of(number);
    }
    walk_marked(mine, count_marked(mine), use);
  }

  /// Marks the rows that meet the condition: bit b of word w is row 32 w + b. Returns how many, in all members.
  PENSTOCK_FN u32 mark(u32 zone, u32* words) {
    enter(zone);
    u32 mine[words_here];
    const u32 met = mark(mine);
    store_notes(zone);
    for (u32 w = 0; w < words_here; ++w) words[index_in(g_) + w * size(g_)] = mine[w];
    return met;
  }

  /// Rows by number, those of this group: `row[k]` of pieces[k]. Calls use(rows, registers). Collective.
  template <class Use>
  PENSTOCK_FN void take(u32 const* codes, u64 count, Use const& use) {
    for (u64 first = 0; first < count; first += V * size(g_)) {
      for (u32 k = 0; k < V; ++k) {
        const u64 at = first + k * size(g_) + index_in(g_);
        const u32 code = at < count ? codes[at] : codes[0];
        // One batch has rows of one piece: what lies in others waits for a batch of its own.
        zone_place const& place = q_.table.places[code / zone_rows];
        set_row(k, place.first + code % zone_rows, at < count);
        piece_[k] = place.piece;
        position_[k] = at;
      }
      take_by_piece(use);
    }
  }
  PENSTOCK_FN u64 position(u32 k) const { return position_[k]; }

 private:
  static constexpr u32 words_here = std::is_same_v<G, lone_thread> ? zone_words : zone_words / 32;
  static_assert(batch_rows<lone_thread> % 32 == 0);
  enum class part { constants, condition, rest, sparse, residual };

  // What the program has, of a compiled one constants.

  PENSTOCK_FN program_view dense() const {
    if constexpr (Code::is_compiled) {
      return Code::dense;
    } else {
      return q_.dense;
    }
  }
  PENSTOCK_FN program_view residual() const {
    if constexpr (Code::is_compiled) {
      return Code::residual;
    } else {
      return q_.residual;
    }
  }
  PENSTOCK_FN bool meets_all() const { return dense().filter == dense().constants; }
  PENSTOCK_FN u32 ranges_count() const {
    if constexpr (Code::is_compiled) {
      return Code::ranges_count;
    } else {
      return q_.ranges_count;
    }
  }
  /// Calls use(n, register, whether it is a floating-point number) for the columns that are noted.
  template <class Use>
  PENSTOCK_FN void each_note(Use const& use) const {
    if constexpr (Code::is_compiled) {
      each_below<true>(Code::notes.count, [&](u32 n) { use(n, Code::notes.registers[n], Code::notes.numbers[n] != 0); });
    } else {
      for (u32 n = 0; n < q_.notes.count; ++n) use(n, q_.notes.registers[n], q_.notes.numbers[n] != 0);
    }
  }

  PENSTOCK_FN void enter(u32 zone) {
    place_ = q_.table.places[zone];
    rows_.columns = q_.table.columns + u64{place_.piece} * q_.table.count;
    each_note([&](u32 n, u32, bool) { noted_[n] = {}; });
    if (!q_.line_aware) return;
    if constexpr (Code::is_compiled) {
      if (Code::is_resident) return;
    }
    for (u32 c = 0; c < q_.scanned_count; ++c) {
      column_view const& column = rows_.columns[q_.scanned[c]];
      const auto range = column.bytes_of(place_.first, place_.rows);
      column.bytes.ask_span(g_, range.begin, range.end - range.begin);
      if (column.nullable == 0) continue;
      const u64 begin = (column.first_valid + place_.first) / 8,
                end = (column.first_valid + place_.first + place_.rows + 7) / 8;
      column.validity.ask_span(g_, begin, end - begin);
    }
  }

  template <part Which>
  PENSTOCK_FN void run() {
    const evaluator<V, Code> with(q_.with, r_, rows_);
    if constexpr (Code::is_compiled) {
      if constexpr (Which == part::constants) with.template run<Code::dense, 0, Code::dense.constants>();
      if constexpr (Which == part::condition) with.template run<Code::dense, Code::dense.constants, Code::dense.filter>();
      if constexpr (Which == part::rest) with.template run<Code::dense, Code::dense.filter, Code::dense.end>();
      if constexpr (Which == part::sparse) with.template run<Code::sparse, Code::sparse.filter, Code::sparse.end>();
      if constexpr (Which == part::residual) with.template run<Code::residual, 0, Code::residual.end>();
    } else {
      instruction const* const code = q_.dense.code;
      if constexpr (Which == part::constants) with.run(code, code + q_.dense.constants);
      if constexpr (Which == part::condition) with.run(code + q_.dense.constants, code + q_.dense.filter);
      if constexpr (Which == part::rest) with.run(code + q_.dense.filter, code + q_.dense.end);
      if constexpr (Which == part::sparse) with.run(q_.sparse.code + q_.sparse.filter, q_.sparse.code + q_.sparse.end);
      if constexpr (Which == part::residual) with.run(q_.residual.code, q_.residual.code + q_.residual.end);
    }
  }

  PENSTOCK_FN void set_row(u32 k, u64 row, bool active) {
    rows_.row[k] = row;
    rows_.active[k] = active ? 1 : 0;
    all_active_ = false;
  }
  /// Rows offset, offset + 1, ... of the zone, over the members first.
  PENSTOCK_FN void set_rows(u32 offset) {
    const u32 width = size(g_), mine = index_in(g_);
    rows_.count = place_.rows - offset < V ? place_.rows - offset : V;
    rows_.together = std::is_same_v<G, lone_thread>;
    if (rows_.together && all_active_ && rows_.count == V) {
      rows_.row[0] = place_.first + offset;
      return;
    }
    for (u32 k = 0; k < V; ++k) {
      const u32 at = offset + k * width + mine;
      set_row(k, place_.first + at, at < place_.rows);
    }
    all_active_ = rows_.count == V;
  }

  PENSTOCK_FN void note() {
    each_note([&](u32 n, u32 from, bool number) {
      zone_range& range = noted_[n];
      for (u32 k = 0; k < V; ++k) {
        if (rows_.active[k] == 0 || r_.valid[from][k] == 0) continue;
        const u64 bits = r_.value[from][k];
        const std::int64_t value = number ? sortable(std::bit_cast<double>(bits)) : static_cast<std::int64_t>(bits);
        range.low = value < range.low ? value : range.low;
        range.high = value > range.high ? value : range.high;
      }
    });
  }
  PENSTOCK_FN void store_notes(u32 zone) {
    each_note([&](u32 n, u32, bool) {
      const auto word = [](std::int64_t v) { return static_cast<u64>(v); };
      const auto value = [](u64 v) { return static_cast<std::int64_t>(v); };
      const u64 low = combined(g_, word(noted_[n].low), [&](u64 a, u64 b) { return value(b) < value(a) ? b : a; });
      const u64 high = combined(g_, word(noted_[n].high), [&](u64 a, u64 b) { return value(b) > value(a) ? b : a; });
      if (is_leader(g_)) q_.notes.ranges[n][zone] = {value(low), value(high)};
    });
  }

  PENSTOCK_FN bool meets(u32 k) const {
    const u32 condition = dense().condition;
    return rows_.active[k] != 0 && r_.valid[condition][k] != 0 && r_.value[condition][k] != 0;
  }

  template <class Use>
  PENSTOCK_FN u32 walk_at_once(Use const& use) {
    const bool all = meets_all();
    u32 met = 0;
    for (u32 offset = 0; offset < place_.rows; offset += V * size(g_)) {
      set_rows(offset);
      run<part::condition>();
      note();
      if (!all) {
        for (u32 k = 0; k < V; ++k) rows_.active[k] = meets(k) ? 1 : 0;
        all_active_ = false;
      }
      for (u32 k = 0; k < V; ++k) met += rows_.active[k];
      run<part::rest>();
      use(rows_, r_);
    }
    return static_cast<u32>(combined(g_, met, [](u64 a, u64 b) { return a + b; }));
  }

  /// Each member has words index, index + size, ... of the zone.
  PENSTOCK_FN u32 mark(u32 (&words)[words_here]) {
    if (ranges_count() != 0 && (ranges_pay_ || zones_walked_++ % zones_for_ranges == 0)) {
      const u32 met = mark_ranges(words);
      if (residual().end == 0) return met;
      ranges_pay_ = met < most_in_ranges;
      if (ranges_pay_) return met == 0 ? 0 : keep_residual(words, met);
    }
    for (u32& word : words) word = 0;
    const u32 width = size(g_);
    for (u32 offset = 0; offset < place_.rows; offset += V * width) {
      set_rows(offset);
      run<part::condition>();
      note();
      if constexpr (std::is_same_v<G, lone_thread>) {
        for (u32 w = 0; w < V / 32; ++w) words[offset / 32 + w] = word_of(32 * w);
      } else {
        for (u32 k = 0; k < V; ++k) {
          const u32 word = static_cast<u32>(g_.ballot(meets(k))), number = offset / 32 + k;
          if (number % width == index_in(g_)) with_word(words, number / width, [&](u32& mine) { mine = word; });
        }
      }
    }
    return count_marked(words);
  }
  PENSTOCK_FN u32 mark_ranges(u32 (&words)[words_here]) {
    for (u32 w = 0; w < words_here; ++w) words[w] = all_of(index_in(g_) + w * size(g_));
    if constexpr (Code::is_compiled) {
      mark_ranges_from<0>(words);
    } else {
      for (u32 k = 0; k < q_.ranges_count; ++k) {
        mark_range(q_.ranges[k], rows_.columns[q_.ranges[k].column].facts(), words);
      }
    }
    return count_marked(words);
  }
  /// Of a compiled program. No loop that is unrolled: before it is, there would be all encodings in it.
  template <u32 K>
  PENSTOCK_FN void mark_ranges_from(u32 (&words)[words_here]) {
    if constexpr (K < Code::ranges_count) {
      constexpr column_facts facts = Code::columns[Code::ranges[K].column];
      column_range range = Code::ranges[K];
      range.low = q_.ranges[K].low;
      range.high = q_.ranges[K].high;
      mark_range(range, facts, words);
      mark_ranges_from<K + 1>(words);
    }
  }
  PENSTOCK_FN void mark_range(column_range const& range, column_facts const& facts, u32 (&words)[words_here]) {
    zone_range* const noted = range.note == column_range::no_note ? nullptr : &noted_[range.note];
    keep_range(g_, rows_.columns[range.column], facts, range, place_.first, place_.rows, words, noted);
  }
  /// Of rows that are in the ranges, fewer than most_in_ranges, those that meet the rest of the condition. Collective.
  PENSTOCK_FN u32 keep_residual(u32 (&words)[words_here], u32 met) {
    u32 meets_rest[most_in_ranges / 32] = {};  // bit n % 32 of word n / 32: the n-th that is marked
    u32 done = 0;
    walk_batches(words, met, [&] {
      run<part::residual>();
      each_below<Code::is_compiled>(rows_.size(), [&](u32 k) {
        const u32 condition = residual().condition, number = done + k * size(g_);
        const bool kept = rows_.active[k] != 0 && r_.valid[condition][k] != 0 && r_.value[condition][k] != 0;
        if constexpr (std::is_same_v<G, lone_thread>) {
          meets_rest[number / 32] |= (kept ? 1u : 0u) << number % 32;
        } else {
          const u32 votes = static_cast<u32>(g_.ballot(kept));
          if (number < met) meets_rest[number / 32] = votes;
        }
      });
      done += V * size(g_);
    });
    u32 before = 0;
    for (u32 n = 0; n < zone_words && before < met; ++n) {
      const u32 bits = word_in_zone(words, n);
      if (n % size(g_) == index_in(g_)) {
        with_word(words, n / size(g_), [&](u32& mine) { mine = chosen_bits(bits, meets_rest, before); });
      }
      before += bit_count(bits);
    }
    return count_marked(words);
  }
  /// Of the set bits of a word, those whose numbers, from `number` on, are chosen.
  PENSTOCK_FN static u32 chosen_bits(u32 bits, u32 const (&chosen)[most_in_ranges / 32], u32 number) {
    u32 kept = 0;
    for (; bits != 0; bits &= bits - 1, ++number) {
      if ((chosen[number / 32] >> number % 32 & 1) != 0) kept |= bits & (0 - bits);
    }
    return kept;
  }
  PENSTOCK_FN u32 word_of(u32 first) const {
    u64 some = 0;
    for (u32 k = 0; k < 32; ++k) some |= r_.value[dense().condition][first + k];
    if (some == 0) return 0;  // most words, of a query that selects little
    u32 word = 0;
    for (u32 k = 0; k < 32; ++k) word |= (meets(first + k) ? 1u : 0u) << k;
    return word;
  }
  PENSTOCK_FN u32 count_marked(u32 const (&words)[words_here]) const {
    u32 met = 0;
    for (u32 word : words) met += bit_count(word);
    return static_cast<u32>(combined(g_, met, [](u64 a, u64 b) { return a + b; }));
  }
  PENSTOCK_FN u32 all_of(u32 number) const {
    const u32 first = 32 * number;
    return first + 32 <= place_.rows ? ~0u : first < place_.rows ? (1u << (place_.rows - first)) - 1 : 0;
  }

  /// The rows that are marked, side by side in batches.
  template <class Use>
  PENSTOCK_FN void walk_marked(u32 const (&words)[words_here], u32 met, Use const& use) {
    walk_batches(words, met, [&] {
      run<part::sparse>();
      use(rows_, r_);
    });
  }
  template <class Evaluate>
  PENSTOCK_FN void walk_batches(u32 const (&words)[words_here], u32 met, Evaluate const& evaluate) {
    const u32 width = size(g_);
    u32 word = 0, before = 0;  // rows in the words before `word`
    for (u32 done = 0; done < met; done += V * width) {
      rows_.count = std::is_same_v<G, lone_thread> && met - done < V ? met - done : V;
      each_below<Code::is_compiled>(rows_.size(), [&](u32 k) {
        const u32 wanted = done + k * width + index_in(g_);
        set_row(k, place_.first, false);
        position_[k] = wanted;
        find_marked(words, met, wanted, word, before, k);
      });
      rows_.together = false;
      evaluate();
    }
  }

  /// Sets row k to the `wanted`th that is marked. All members go on to the word that has the first of theirs.
  PENSTOCK_FN void find_marked(u32 const (&words)[words_here], u32 met, u32 wanted, u32& word, u32& before, u32 k) {
    const u32 width = size(g_), last = wanted - index_in(g_) + width < met ? wanted - index_in(g_) + width : met;
    u32 at = word, sum = before;
    while (sum < last) {
      const u32 bits = word_in_zone(words, at);
      const u32 here = bit_count(bits);
      if (wanted >= sum && wanted < sum + here) set_row(k, place_.first + 32 * at + nth_bit(bits, wanted - sum), true);
      if (sum + here > last) break;  // the next rows begin in it, too
      sum += here;
      ++at;
      word = at;
      before = sum;
    }
  }
  /// Word `number` of the zone, whichever member has it. Collective.
  PENSTOCK_FN u32 word_in_zone(u32 const (&words)[words_here], u32 number) const {
    u32 mine = 0;
    with_word(words, number / size(g_), [&](u32 word) { mine = word; });
    return static_cast<u32>(g_.shfl(mine, rank_of(number % size(g_))));
  }
  PENSTOCK_FN u32 rank_of(u32 index) const { return nth(g_.members(), index); }
  PENSTOCK_FN static u32 nth_bit(u32 bits, u32 n) {
    for (; n != 0; --n) bits &= bits - 1;
    return lowest_bit(bits);
  }

  template <class Use>
  PENSTOCK_FN void take_by_piece(Use const& use) {
    u8 wanted[V];
    bool left = false;
    for (u32 k = 0; k < V; ++k) {
      wanted[k] = rows_.active[k];
      left |= wanted[k] != 0;
    }
    rows_.together = false;
    rows_.count = V;
    while (left) {  // a thread's own loop: its rows' pieces are its own
      u32 piece = 0;
      for (u32 k = V; k-- > 0;) piece = wanted[k] != 0 ? piece_[k] : piece;
      left = false;
      for (u32 k = 0; k < V; ++k) {
        const bool now = wanted[k] != 0 && piece_[k] == piece;
        rows_.active[k] = now ? 1 : 0;
        if (now) wanted[k] = 0;
        left |= wanted[k] != 0;
      }
      rows_.columns = q_.table.columns + u64{piece} * q_.table.count;
      run<part::sparse>();
      use(rows_, r_);
    }
  }

  G g_;
  query_view const& q_;
  registers<V> r_;
  row_batch<V> rows_;
  zone_place place_;
  u64 position_[V];
  u32 piece_[V];
  zone_range noted_[zone_notes::most];
  bool was_dense_ = false, all_active_ = false;
  bool ranges_pay_ = true;  ///< of the last zone they left few rows
  u32 zones_walked_ = 0;
  static constexpr u32 zones_for_ranges = 16;  ///< so that they are tried again
};

}  // namespace penstock::columns
