// Gathers that a kernel and threads of the CPU share, checked row by row: by emulated warps, and by those of a GPU.
#pragma once

#include "penstock/executor/memory.hpp"
#include "src/rows/row_helpers.hpp"
#include "support/check.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace penstock::test {

/// A list of rows, sorted as launches sort it, some of which are kept; and all that both sides share.
class shared_task {
 public:
  static constexpr u32 number = 7, width = 8;
  static constexpr u64 rows = 900, patience_ns = one_millisecond_ns;

  shared_task(memory_resource& memory, u64 row_bytes, u64 count, bool keeps, u64 seed)
      : row_bytes_(row_bytes), count_(count), chunks_(static_cast<u32>(ceil_div(count, rows::chunk_rows))),
        others_(keeps ? 1024 : 0), source_(memory, memory_kind::shared, rows * row_bytes + 2 * margin),
        kept_(memory, memory_kind::shared, rows * row_bytes + 2 * margin), slots_(memory, memory_kind::shared, rows),
        keys_(memory, memory_kind::shared, count), positions_(memory, memory_kind::shared, count),
        out_(memory, memory_kind::shared, count * row_bytes + 2 * margin), words_(memory, memory_kind::shared, 1),
        staged_(memory, memory_kind::shared, chunks_),
        staging_(memory, memory_kind::shared, u64{chunks_} * rows::chunk_rows * row_bytes + 2 * margin),
        progress_(memory, memory_kind::local, 1), ways_(memory, memory_kind::local, chunks_) {
    std::mt19937_64 random(seed);
    for (u64 k = 0; k < source_.size(); ++k) source_.data()[k] = static_cast<u8>(random());
    for (u64 row = 0; row < rows; row += 3) {
      slots_.data()[row] = static_cast<u32>(row / 3) + 1;
      std::memcpy(kept_.data() + margin + row / 3 * row_bytes, source_of(row), row_bytes);
    }
    std::vector<u32> key(count);
    for (u32& each : key) {
      const u64 row = random() % (rows + 20);  // some outside
      each = static_cast<u32>(std::min(row, rows)) + (keeps && row < rows && row % 3 == 0 ? 0 : others_);
    }
    std::vector<u32> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](u32 k) { return key[k]; });
    for (u64 k = 0; k < count; ++k) {
      positions_.data()[k] = order[k];
      keys_.data()[k] = key[order[k]];
    }
    std::memset(out_.data(), untouched, out_.size());
    words_.data()->begun = rows::shared_words::of(number - 1, chunks_);  // of the list before
    for (u32 k = 0; k < chunks_; ++k) staged_.data()[k] = number - 1;
  }

  u32 chunks() const { return chunks_; }
  rows::shared_list list() const {
    return {words_.data(), staged_.data(), reinterpret_cast<u64>(staging_.data()) + margin, number, chunks_};
  }
  auto body(u32 takers) const {
    const rows::rows_by_number sorted{keys_.data(), positions_.data(), count_, rows, {}, others_};
    const rows::kept_rows kept{others_ != 0 ? slots_.data() : nullptr, reinterpret_cast<u64>(kept_.data()) + margin};
    const rows::gather_short<u8, rows::rows_by_number> short_rows{sorted,     reinterpret_cast<u64>(source_.data()) + margin,
                                                                  row_bytes_, reinterpret_cast<u64>(out_.data()) + margin,
                                                                  row_bytes_, kept};
    return rows::gather_shared<u8, rows::rows_by_number>{short_rows, list(), progress_.data(), ways_.data(),
                                                         width,      takers, patience_ns};
  }
  void help(rows::helped_list& what, u32 most_chunks) const {
    what.list = list();
    what.keys = keys_.data();
    what.count = count_;
    what.others = others_;
    what.rows = rows;
    what.source = reinterpret_cast<u64>(source_.data()) + margin;
    what.pitch = what.row_bytes = row_bytes_;
    what.most_chunks = most_chunks;
  }

  /// As the CPU would, and with other bytes, so that it can be seen who copied a row.
  void begin_marked(u32 begun, bool stages) {
    for (u32 k = 0; k < begun; ++k) {
      const u64 first = u64{chunks_ - 1 - k} * rows::chunk_rows;
      for (u64 at = first; at < std::min(first + rows::chunk_rows, count_); ++at) {
        u8* const to = staging_.data() + margin + (u64{k} * rows::chunk_rows + at - first) * row_bytes_;
        if (row_at(at) < rows) std::memcpy(to, source_of(row_at(at)), row_bytes_);
        for (u64 b = 0; b < row_bytes_; ++b) to[b] ^= mark;
      }
      if (stages) staged_.data()[k] = number;
    }
    words_.data()->begun = rows::shared_words::of(number, begun);
  }

  /// Each row in its place, nothing in the place of those outside. Returns the rows that are marked; of a chunk all are or
  /// none.
  u64 check(check_report& report) const {
    u64 marked = 0;
    for (u64 at = 0; at < count_; ++at) {
      u8 const* const found = out_.data() + margin + positions_.data()[at] * row_bytes_;
      if (row_at(at) >= rows) {
        PENSTOCK_CHECK(report, std::all_of(found, found + row_bytes_, [](u8 b) { return b == untouched; }));
        continue;
      }
      u8 const* const wanted = source_of(row_at(at));
      const bool is_marked = (*found ^ *wanted) == mark;
      const u8 with = is_marked ? mark : 0;
      PENSTOCK_CHECK(report, std::equal(found, found + row_bytes_, wanted, [=](u8 a, u8 b) { return (a ^ b) == with; }));
      PENSTOCK_CHECK(report, !is_marked || (ways_of(at) == rows::chunk_way::taken));
      marked += is_marked ? 1 : 0;
    }
    return marked;
  }
  /// Rows of the last chunks that are in the array.
  u64 rows_behind(u32 chunks) const {
    u64 found = 0;
    for (u64 at = u64{chunks_ - chunks} * rows::chunk_rows; at < count_; ++at) found += row_at(at) < rows ? 1 : 0;
    return found;
  }
  rows::shared_words const& words() const { return *words_.data(); }

 private:
  static constexpr u8 untouched = 0xee, mark = 0x55;
  static constexpr u64 margin = 16;

  u8* source_of(u64 row) const { return source_.data() + margin + row * row_bytes_; }
  u64 row_at(u64 at) const { return keys_.data()[at] < others_ ? keys_.data()[at] : keys_.data()[at] - others_; }
  rows::chunk_way ways_of(u64 at) const {
    rows::chunk_way way{};
    read_way(static_cast<u32>(at / rows::chunk_rows), way);
    return way;
  }
  void read_way(u32 chunk, rows::chunk_way& to) const {
    std::vector<rows::chunk_way> all(chunks_);
    ways_.read(all);
    to = all[chunks_ - 1 - chunk];
  }

  u64 row_bytes_, count_;
  u32 chunks_, others_;
  buffer<u8> source_, kept_;
  buffer<u32> slots_, keys_, positions_;
  buffer<u8> out_;
  buffer<rows::shared_words> words_;
  buffer<u32> staged_;
  buffer<u8> staging_;
  buffer<rows::shared_progress> progress_;
  buffer<rows::chunk_way> ways_;
};

/// `run` is called as run(width, items, body): all groups, at once or one after the other. `by_one`: the latter.
template <class Run>
void check_shared_gathers(memory_resource& memory, check_report& report, u64 seed, bool by_one, Run const& run) {
  using whole_warp = std::integral_constant<u32, 32>;
  constexpr u64 count = 3 * rows::chunk_rows - 77;
  const u64 items = ceil_div(count, u64{rows::few_rows::most} * (32 / shared_task::width));
  for (const bool keeps : {false, true}) {
    for (const u64 row_bytes : {u64{36}, u64{98}}) {
      const shared_task alone(memory, row_bytes, count, keeps, seed);
      run(whole_warp{}, items, alone.body(1));
      PENSTOCK_CHECK_EQ(report, u64{0}, alone.check(report));

      for (const bool stages : {true, false}) {  // one that does not has died
        shared_task marked(memory, row_bytes, count, keeps, seed + 1);
        marked.begin_marked(2, stages);
        run(whole_warp{}, items, marked.body(1));
        const u64 taken = marked.check(report);
        if (!stages) PENSTOCK_CHECK_EQ(report, u64{0}, taken);
        if (stages && by_one) PENSTOCK_CHECK_EQ(report, marked.rows_behind(2), taken);
      }

      const shared_task helped(memory, row_bytes, count, keeps, seed + 2);
      rows::helped_list what;
      helped.help(what, 2);
      std::array threads{std::thread([&] { rows::help_gather(what); }), std::thread([&] { rows::help_gather(what); })};
      if (by_one) {
        for (std::thread& each : threads) each.join();
      }
      run(whole_warp{}, items, helped.body(2));
      if (!by_one) {
        for (std::thread& each : threads) each.join();
      }
      PENSTOCK_CHECK_EQ(report, u64{0}, helped.check(report));
    }
  }
}

}  // namespace penstock::test
