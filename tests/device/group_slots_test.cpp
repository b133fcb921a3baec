// Groups in a hash table by lone threads and emulated warps: keys and sums are those of a map, and come in order.
#include "libs/columns/group_bodies.hpp"
#include "support/run_everywhere.hpp"

#include <gtest/gtest.h>
#include <array>
#include <bit>
#include <map>
#include <numeric>

namespace penstock::columns {
namespace {

using test::check_report;
using test::random_word;
using test::run_shape;
using test::test_context;

constexpr u32 most_words = 3;
constexpr u64 row_count = 1500;
using group_key = std::array<u64, most_words>;

/// Rows whose keys are of few values in each word, so that keys share words, and of large ones.
struct keyed_rows {
  u32 words;
  std::vector<group_key> keys = std::vector<group_key>(row_count);
  std::vector<u64> values = std::vector<u64>(row_count);
  std::vector<u8> valid = std::vector<u8>(row_count);

  keyed_rows(u64 seed, u32 with_words, u64 spread) : words(with_words) {
    for (u64 row = 0; row < row_count; ++row) {
      for (u32 w = 0; w < words; ++w) {
        const u64 drawn = random_word(seed, w, row) % spread;
        keys[row][w] = drawn % 3 == 0 ? drawn * 0x9e3779b97f4a7c15ull : drawn - spread / 2 - 1;
        if (keys[row][w] == free_word) keys[row][w] = 0;
      }
      if (random_word(seed, 9, row) % 4 == 0) keys[row] = keys[0];  // many rows have this one
      values[row] = random_word(seed, 10, row) % 2 == 0 ? u64{1} << 62 : 0 - random_word(seed, 11, row) % 1000;
      valid[row] = random_word(seed, 12, row) % 5 != 0 ? 1 : 0;
    }
  }
};

/// A sum of integers, a minimum and the rows, of each key.
struct group_body {
  keyed_rows const* rows;
  u64 slots;
  u64 probes = slots;
  std::shared_ptr<std::vector<u64>> table = std::make_shared<std::vector<u64>>();
  std::shared_ptr<u32> full = std::make_shared<u32>(0), errors = std::make_shared<u32>(0);
  u32 stride = 0, sum = 0, least = 0, counted = 0;

  group_slots view() const {
    group_slots view;
    view.words = table->data();
    view.slots = slots;
    view.probes = probes;
    view.full = full.get();
    view.stride = stride;
    view.key_words = rows->words;
    for (u32 w = 0; w < rows->words; ++w) view.keys[w] = static_cast<u8>(w);
    view.count = 3;
    view.list[0] = {{aggregate_kind::integer_sum, 4}, sum, sum + 2};
    view.list[1] = {{aggregate_kind::integer_minimum, 4}, least, 0};
    view.list[2] = {{aggregate_kind::rows, 0}, 0, counted};
    return view;
  }

  void prepare(run_shape) {
    sum = rows->words;
    least = sum + 3;
    counted = least + 1;
    stride = counted + 1;
    table->assign(slots * stride, 0);
    clear_slots clear{table->data(), table->size(), stride, {}};
    std::fill_n(clear.slot, rows->words, free_word);
    clear.slot[least] = empty_accumulator(aggregate_kind::integer_minimum).low;
    clear(lone_thread{}, grid_range{0, ceil_div(table->size(), rows_of_join_item), 1});
    *full = *errors = 0;
  }

  template <thread_group G>
  void operator()(G const& g, test_context const& c) const {
    constexpr u32 batch = 2;
    const group_slots into = view();
    grouped_rows<G> groups(g, into, errors.get());
    const auto r = std::make_unique<registers<batch>>();
    row_batch<batch> some;
    some.count = batch;
    const u64 width = size(g), mine = index_in(g), all = c.run.groups;
    for (u64 first = c.group / width * batch * width; first < row_count; first += batch * all) {
      for (u32 k = 0; k < batch; ++k) {
        const u64 row = first + k * width + mine;
        some.active[k] = row < row_count ? 1 : 0;
        if (row >= row_count) continue;
        for (u32 w = 0; w < rows->words; ++w) r->value[w][k] = rows->keys[row][w];
        r->value[4][k] = rows->values[row];
        r->valid[4][k] = rows->valid[row];
      }
      groups.add(some, *r);
    }
    groups.finish();
  }

  void verify(check_report& report, run_shape) const {
    struct expected_group {
      __int128 sum = 0;
      std::int64_t least = std::numeric_limits<std::int64_t>::max();
      u64 count = 0, rows = 0;
    };
    std::map<group_key, expected_group> expected;
    for (u64 row = 0; row < row_count; ++row) {
      expected_group& group = expected[rows->keys[row]];
      ++group.rows;
      if (rows->valid[row] == 0) continue;
      ++group.count;
      group.sum += static_cast<std::int64_t>(rows->values[row]);
      group.least = std::min(group.least, static_cast<std::int64_t>(rows->values[row]));
    }
    PENSTOCK_CHECK_EQ(report, 0u, *errors);
    PENSTOCK_CHECK_EQ(report, 0u, *full);
    std::vector<u64> counts(ceil_div(slots, rows_of_join_item)), found;
    const grid_range items{0, counts.size(), 1};
    find_groups{view(), counts.data()}(lone_thread{}, items);
    const u64 groups = std::accumulate(counts.begin(), counts.end(), u64{0});
    if (!PENSTOCK_CHECK_EQ(report, expected.size(), groups)) return;
    std::exclusive_scan(counts.begin(), counts.end(), counts.begin(), u64{0});
    found.assign(groups * stride, 0);
    find_groups{view(), counts.data(), found.data(), groups}(lone_thread{}, items);
    for (u64 k = 0; k < groups; ++k) {
      const auto word = [&](u32 w) { return found[w * groups + k]; };
      group_key key{};
      for (u32 w = 0; w < rows->words; ++w) key[w] = word(w);
      const auto at = expected.find(key);
      if (!PENSTOCK_CHECK_EQ(report, true, at != expected.end())) continue;
      PENSTOCK_CHECK_EQ(report, static_cast<u64>(at->second.sum), word(sum));
      PENSTOCK_CHECK_EQ(report, static_cast<u64>(at->second.sum >> 64), word(sum + 1));
      PENSTOCK_CHECK_EQ(report, at->second.count, word(sum + 2));
      PENSTOCK_CHECK_EQ(report, static_cast<u64>(at->second.least), word(least));
      PENSTOCK_CHECK_EQ(report, at->second.rows, word(counted));
    }
  }
};

template <class Body>
void run_as_executors_do(Body body) {
  for (u32 threads : {1u, 4u}) test::run_lone(body, threads, test::test_seed());
  test::run_warps(body, "two whole warps", {{0xffffffffu}, {0xffffffffu}}, test::test_seed());
}

class group_slots_test : public testing::TestWithParam<u32> {};

TEST_P(group_slots_test, sums_are_those_of_a_map) {
  for (u64 spread : {u64{2}, u64{15}, u64{1} << 40}) {
    const keyed_rows rows(test::test_seed(), GetParam(), spread);
    run_as_executors_do(group_body{&rows, std::bit_ceil(row_count + row_count / 8)});
  }
}

INSTANTIATE_TEST_SUITE_P(words, group_slots_test, testing::Values(1u, 2u, 3u));

// Of a sum of integers one beyond 64 bits is kept, whatever its lower word is.
TEST(group_slots, ranges_keep_what_they_say) {
  const auto bits = [](double v) { return std::bit_cast<u64>(v); };
  const u64 slot[] = {7, 0 - u64{5}, ~u64{0}, bits(-0.0), 5, 1};
  EXPECT_TRUE((slot_range{0, 0, 0, 7, 7}).keeps(slot));
  EXPECT_FALSE((slot_range{0, 0, 0, 8, 100}).keeps(slot));
  EXPECT_TRUE((slot_range{1, 2, 0, -5, -5}).keeps(slot));
  EXPECT_FALSE((slot_range{1, 2, 0, -4, 9}).keeps(slot));
  EXPECT_TRUE((slot_range{3, 0, 1, sortable(0.0), sortable(1.0)}).keeps(slot));
  EXPECT_FALSE((slot_range{3, 0, 1, sortable(0.5), sortable(1.0)}).keeps(slot));
  EXPECT_TRUE((slot_range{4, 5, 0, 6, 9}).keeps(slot));
}

struct full_body : group_body {
  void verify(check_report& report, run_shape) const { PENSTOCK_CHECK_EQ(report, 1u, *full); }
};

TEST(group_slots, a_table_that_is_full_says_so) {
  const keyed_rows rows(test::test_seed(), 2, u64{1} << 40);
  run_as_executors_do(full_body{{&rows, 1024}});
  run_as_executors_do(full_body{{&rows, 2048, 3}});
}

// A key of the word that marks what is free: rows that a file had not when its extremes were read.
TEST(group_slots, a_key_that_cannot_be_is_an_error) {
  keyed_rows rows(test::test_seed(), 1, 10);
  rows.keys[77][0] = free_word;
  group_body body{&rows, 2048};
  body.prepare({});
  test_context c{};
  c.run.groups = 1;
  body(lone_thread{}, c);
  EXPECT_EQ(u32{bad_group}, *body.errors);
}

/// A pass of the sort, by several groups of threads; its counts are made by one.
struct digit_body {
  u64 rows;
  u32 shift = 8;
  std::shared_ptr<std::vector<u64>> keys = std::make_shared<std::vector<u64>>(), sorted = std::make_shared<std::vector<u64>>();
  std::shared_ptr<std::vector<u32>> numbers = std::make_shared<std::vector<u32>>(),
                                    order = std::make_shared<std::vector<u32>>(), at = std::make_shared<std::vector<u32>>();
  u64 items = 0;

  sort_by_digit pass(bool places) const {
    return {{keys->data(), numbers->data()},
            places ? sort_rows{sorted->data(), order->data()} : sort_rows{},
            rows,
            items,
            shift,
            at->data()};
  }
  void prepare(run_shape shape) {
    items = ceil_div(rows, sort_by_digit::rows_per_item);
    keys->resize(rows);
    numbers->resize(rows);
    sorted->assign(rows, 0);
    order->assign(rows, 0);
    for (u64 k = 0; k < rows; ++k) (*keys)[k] = random_word(shape.seed, 3, k) % (1 << 11);
    std::iota(numbers->begin(), numbers->end(), 0u);
    at->assign(sort_by_digit::digits * items, 0);
    pass(false)(lone_thread{}, grid_range{0, items, 1});
    std::exclusive_scan(at->begin(), at->end(), at->begin(), 0u);
  }
  template <thread_group G>
  void operator()(G const& g, test_context const& c) const {
    const u64 width = size(g);
    pass(true)(g, grid_range{c.group / width, items, c.run.groups / width});
  }
  void verify(check_report& report, run_shape) const {
    std::vector<u32> expected(rows);
    std::iota(expected.begin(), expected.end(), 0u);
    std::stable_sort(expected.begin(), expected.end(),
                     [&](u32 a, u32 b) { return ((*keys)[a] >> shift & 255) < ((*keys)[b] >> shift & 255); });
    for (u64 k = 0; k < rows; ++k) {
      PENSTOCK_CHECK_EQ(report, expected[k], (*order)[k]);
      PENSTOCK_CHECK_EQ(report, (*keys)[expected[k]], (*sorted)[k]);
    }
  }
};

TEST(sort_by_digit, keeps_the_order_of_equal_digits) { run_as_executors_do(digit_body{sort_by_digit::rows_per_item + 77}); }

}  // namespace
}  // namespace penstock::columns
