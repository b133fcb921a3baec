// Kernels over rows, checked row by row: by emulated warps, and by those of a GPU.
#pragma once

#include "penstock/controller/software_controller.hpp"
#include "penstock/executor/memory.hpp"
#include "penstock/runtime/line_cache.hpp"
#include "src/rows/gather_bodies.hpp"
#include "src/rows/scatter_bodies.hpp"
#include "support/check.hpp"

#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace penstock::test {

/// Rows of one width and a list that names some of them, twice, from the end, and outside, in memory that both sides reach.
class row_task {
 public:
  row_task(memory_resource& memory, u64 rows, u64 row_bytes, u64 count, u32 item_bytes, u64 seed)
      : rows_(rows), row_bytes_(row_bytes), count_(count), item_bytes_(item_bytes),
        // Copies load the aligned pieces around a row.
        source_(memory, memory_kind::shared, rows * row_bytes + 64), list_(memory, memory_kind::shared, count * item_bytes + 8),
        out_(memory, memory_kind::shared, count * row_bytes + 64), report_(memory, memory_kind::shared, 1) {
    std::mt19937_64 random(seed);
    for (u64 k = 0; k < source_.size(); ++k) source_.data()[k] = static_cast<u8>(random());
    for (u64 k = 0; k < count; ++k) {
      auto number = static_cast<long long>(random() % rows);
      if (random() % 4 == 0) number -= static_cast<long long>(rows);
      if (random() % 16 == 0) number = static_cast<long long>(rows + random() % 3);
      std::memcpy(list_.data() + k * item_bytes, &number, item_bytes);
      numbers_.push_back(number);
    }
    report_.data()[0] = {};
    std::memset(out_.data(), untouched, out_.size());
  }

  rows::row_numbers numbers() const { return {{list_.data(), count_, item_bytes_}, rows_, report_.data()}; }
  u64 source() const { return reinterpret_cast<u64>(source_.data()) + margin; }
  u64 out() const { return reinterpret_cast<u64>(out_.data()) + margin; }
  u64 count() const { return count_; }
  u64 rows() const { return rows_; }
  /// What the rows lie in, `margin` bytes from its begin.
  std::span<std::byte> memory() const { return std::as_writable_bytes(std::span(source_.data(), source_.size())); }
  u64 row_bytes() const { return row_bytes_; }

  /// Each row in its place, nothing in the place of those outside, and the first of them told.
  void check(check_report& report) const {
    u64 first_bad = ~0ull;
    std::vector<u8> wanted(out_.size(), untouched);
    for (u64 k = count_; k-- > 0;) {
      const long long number = numbers_[k] < 0 ? numbers_[k] + static_cast<long long>(rows_) : numbers_[k];
      if (number < 0 || static_cast<u64>(number) >= rows_) {
        first_bad = k;
      } else {
        std::memcpy(&wanted[margin + k * row_bytes_], source_.data() + margin + static_cast<u64>(number) * row_bytes_,
                    row_bytes_);
      }
    }
    PENSTOCK_CHECK_EQ(report, first_bad, report_.data()[0].first_bad);
    PENSTOCK_CHECK(report, std::memcmp(wanted.data(), out_.data(), wanted.size()) == 0);
  }

  static constexpr u64 margin = 16;

 private:
  static constexpr u8 untouched = 0xee;

  u64 rows_, row_bytes_, count_;
  u32 item_bytes_;
  std::vector<long long> numbers_;
  buffer<u8> source_, list_, out_;
  buffer<rows::row_report> report_;
};

/// Gathers in each of the ways for rows in memory. `run` is called as run(width, items, body), where width.value lanes are a
/// group.
template <class Run>
void check_gathers(memory_resource& memory, check_report& report, u64 seed, Run const& run) {
  using namespace rows;
  using lanes_8 = std::integral_constant<u32, 8>;
  using lanes_32 = std::integral_constant<u32, 32>;
  for (const u64 row_bytes : {1, 36, 64, 98}) {
    const row_task task(memory, 50, row_bytes, 203, 4, seed + row_bytes);
    run(lanes_8{}, round_up(ceil_div(task.count(), few_rows::most), 32),
        gather_short<u8, rows_as_asked>{{task.numbers()}, task.source(), row_bytes, task.out()});
    task.check(report);
  }
  for (const u64 row_bytes : {516, 5001}) {
    const row_task task(memory, 50, row_bytes, 60, 8, seed + row_bytes);
    const u64 segments = ceil_div(row_bytes, u64{4096});
    run(lanes_32{}, task.count() * segments,
        gather_long<u8, rows_as_asked>{{task.numbers()}, task.source(), row_bytes, task.out(), segments, 4096});
    task.check(report);
  }
  const auto check_units = [&](auto unit) {
    using piece = decltype(unit);
    using body = gather_units<piece, rows_as_asked>;
    const row_task task(memory, 50, sizeof(piece), 400, 8, seed + sizeof(piece));
    run(lanes_32{}, ceil_div(task.count(), body::items_per_group),
        body{{task.numbers()}, task.source(), sizeof(piece), reinterpret_cast<piece*>(task.out())});
    task.check(report);
  };
  check_units(u8{});
  check_units(u32{});
  check_units(piece16{});
  gather_joined<u8> joined{};
  std::vector<row_task> tasks;
  u64 items = 0;
  for (const u64 row_bytes : {4, 513, 36, 1}) {
    tasks.emplace_back(memory, 20 + row_bytes, row_bytes, 40 + 3 * (row_bytes % 7), row_bytes == 36 ? 4 : 8, seed - row_bytes);
    row_task const& task = tasks.back();
    items += task.count();
    joined.parts[tasks.size() - 1] = {task.numbers(), task.source(), row_bytes, task.out(), items};
  }
  run(lanes_8{}, items, joined);
  for (row_task const& task : tasks) task.check(report);
}

/// Gathers `count` rows through a cache that is smaller than what they lie in, of rows that lie on one line or on two; once
/// they were asked for ahead, and once not.
template <class Run>
void check_cached_gathers(executor& on, check_report& report, u64 seed, u64 count, Run const& run) {
  using namespace rows;
  for (const u64 words : {5, 24, 32}) {
    for (const bool ahead : {false, true}) {
      const row_task task(on.memory(), 16384 / words, 8 * words, count, 8, seed + 2 * words + ahead);
      software_controller controller({.threads = 1});
      const u64 bytes = task.memory().size() / 8 * 8;
      const volume_spec volume{volume_layout::single, {{&controller, controller.add_namespace(task.memory())}}};
      line_cache cache(on, {{"rows", bytes, volume}}, {.bytes = 64 * 512, .line_bytes = 512, .queues = 2});
      const auto source = cache.array<u64>(0, task.margin, task.rows() * words);
      const u32 each = words == 5 ? 7 : 32;
      const u64 items = ceil_div(task.count(), u64{each});
      using whole_warp = std::integral_constant<u32, 32>;
      if (ahead) run(whole_warp{}, items, prefetch_rows<u64>{source, task.numbers(), words, each, true});
      const gather_cached<u64, rows_as_asked> body{source, {task.numbers()}, words, reinterpret_cast<u64*>(task.out())};
      run(whole_warp{}, items, gather_cached_short<u64, rows_as_asked>{body, each});
      run(whole_warp{}, items, gather_cached_short<u64, rows_as_asked>{body, each});  // of which some are hits
      task.check(report);
      cache.check_faults();
    }
  }
}

/// Gathers a run through a cache that is smaller, and stores one, which begin and end within lines; every byte around them
/// stays as it was.
template <class Run>
void check_cached_runs(executor& on, check_report& report, u64 seed, Run const& run) {
  using namespace rows;
  using whole_warp = std::integral_constant<u32, 32>;
  constexpr u64 line_units = 512 / 8, all = 30'000;
  for (const auto& [first, units] : {std::pair<u64, u64>{3, 29'000}, {64, 64}, {70, 11}, {2048, 20'480}}) {
    row_task const task(on.memory(), all, 8, 1, 8, seed + first);
    software_controller controller({.threads = 1});
    const volume_spec volume{volume_layout::single, {{&controller, controller.add_namespace(task.memory())}}};
    line_cache cache(on, {{"rows", task.memory().size() / 8 * 8, volume, true}},
                     {.bytes = 64 * 512, .line_bytes = 512, .queues = 2});
    buffer<u64> out(on.memory(), memory_kind::shared, all);
    buffer<row_report> failures(on.memory(), memory_kind::shared, 1);
    failures.data()[0] = {};
    const auto words = reinterpret_cast<u64 const*>(task.memory().data());
    const std::vector<u64> before(words, words + all);
    const unit_run<u64> asked{cache.array<u64>(0, first * 8, units), units, line_units, first % line_units};
    run(whole_warp{}, asked.blocks(), gather_run_cached<u64>{asked, out.data()});
    cache.check_faults();
    PENSTOCK_CHECK(report, std::memcmp(out.data(), before.data() + first, units * 8) == 0);
    for (u64 i = 0; i < units; ++i) out.data()[i] = before[first + i] * 3 + 1;
    run(whole_warp{}, asked.blocks(),
        scatter_run_cached<u64>{asked, cache.writable<u64>(0, first * 8, units), out.data(), failures.data()});
    cache.flush();
    PENSTOCK_CHECK_EQ(report, 0u, failures.data()[0].failure);
    for (u64 i = 0; i < all; ++i) {
      const bool stored = i >= first && i - first < units;
      PENSTOCK_CHECK_EQ(report, stored ? before[i] * 3 + 1 : before[i], words[i]);
    }
  }
}

}  // namespace penstock::test
