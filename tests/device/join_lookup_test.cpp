// Rows put at the places of their keys by threads at once, lone and in warps, and what programs find of them: as a map says.
#include "libs/columns/evaluate.hpp"
#include "libs/columns/join_bodies.hpp"
#include "support/run_everywhere.hpp"

#include <gtest/gtest.h>
#include <bit>
#include <map>

namespace penstock::columns {
namespace {

using test::check_report;
using test::random_word;
using test::run_shape;
using test::test_context;

constexpr u64 join_rows = 3 * rows_of_join_item + 77, none = ~u64{0};

/// Rows with keys that are different, and some without.
struct joined_rows {
  std::vector<u64> keys = std::vector<u64>(join_rows);
  std::vector<u8> valid = std::vector<u8>(join_rows), there = std::vector<u8>(join_rows);
  std::map<u64, u64> row_of;

  joined_rows(u64 seed, u64 spread) {
    for (u64 row = 0, k = 0; row < join_rows; ++row) {
      u64 key = 0;
      do {
        key = spread == 0 ? random_word(seed, 1, k++) : random_word(seed, 1, k++) % spread - spread / 2;
      } while (row_of.contains(key));
      keys[row] = key;
      valid[row] = key % 9 != 0 ? 1 : 0;
      there[row] = key % 5 != 0 ? 1 : 0;
      row_of[key] = row;
    }
  }
  join_keys of() const { return {keys.data(), valid.data(), join_rows}; }
};

/// The rows' values are their numbers.
struct join_body {
  joined_rows const* data;
  bool by_value;
  u64 repeated = none;  ///< a row that has the key of the one before
  std::shared_ptr<std::vector<u64>> held = std::make_shared<std::vector<u64>>();
  std::shared_ptr<std::vector<u64>> place_of = std::make_shared<std::vector<u64>>();
  std::shared_ptr<std::vector<u64>> words = std::make_shared<std::vector<u64>>();
  u64 low = 0, places = 0;

  void prepare(run_shape) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), greatest = ~least;
    for (u64 row = 0; row < join_rows; ++row) {
      if (data->valid[row] == 0) continue;
      least = std::min(least, static_cast<std::int64_t>(data->keys[row]));
      greatest = std::max(greatest, static_cast<std::int64_t>(data->keys[row]));
    }
    low = by_value ? static_cast<u64>(least) : 0;
    places = by_value ? static_cast<u64>(greatest) - low + 1 : std::bit_ceil(2 * join_rows);
    held->assign(places, 0);
    place_of->assign(join_rows, 1);
    words->assign(3, none);
  }

  template <thread_group G>
  void operator()(G const& g, test_context const& c) const {
    constexpr u64 items = (join_rows + rows_of_join_item - 1) / rows_of_join_item;
    const u64 width = std::is_same_v<G, lone_thread> ? 1 : 32;
    const grid_range mine{c.group / width, items, c.run.groups / width};
    find_extremes{data->of(), words->data(), words->data() + 1}(g, mine);
    if (by_value) {
      place_by_value{data->of(), low, held->data(), place_of->data(), words->data() + 2}(g, mine);
    } else {
      place_in_slots{data->of(), places, held->data(), place_of->data(), words->data() + 2}(g, mine);
    }
  }

  void verify(check_report& report, run_shape) const {
    if (repeated != none) {
      const u64 again = (*words)[2];
      if (PENSTOCK_CHECK_EQ(report, true, again != none)) {
        PENSTOCK_CHECK_EQ(report, data->keys[repeated], data->keys[again]);
      }
      return;
    }
    PENSTOCK_CHECK_EQ(report, none, (*words)[2]);
    if (by_value) PENSTOCK_CHECK_EQ(report, low, ordered_key((*words)[0]));
    if (by_value) PENSTOCK_CHECK_EQ(report, places - 1, ~(*words)[1] - (*words)[0]);
    std::vector<u64> numbers(join_rows);
    for (u64 row = 0; row < join_rows; ++row) numbers[row] = row;
    const std::vector<u8> all(join_rows, 1);
    std::vector<u64> key_at(places), row_at(places);
    std::vector<u8> used(places), row_there(places);
    const grid_range whole{0, (join_rows + rows_of_join_item - 1) / rows_of_join_item, 1};
    const auto scatter = [&](std::vector<u64> const& values, std::vector<u8> const& valid, std::vector<u64>& to,
                             std::vector<u8>& there) {
      scatter_values{values.data(), valid.data(), place_of->data(), join_rows, to.data(), there.data()}(lone_thread{}, whole);
    };
    scatter(data->keys, all, key_at, used);
    scatter(numbers, data->there, row_at, row_there);
    check_lookups<2>(report, {{key_at.data(), used.data(), places}, {row_at.data(), row_there.data(), places}});
    check_lookups<256>(report, {{key_at.data(), used.data(), places}, {row_at.data(), row_there.data(), places}});
  }

  template <u32 V>
  void check_lookups(check_report& report, std::vector<lookup_table> const& tables) const {
    // By value there is nothing to find: the key's own column says whether it is there.
    const u8 from = by_value ? 0 : 1;
    const std::vector<instruction> code{{by_value ? op::lookup : op::find, value_kind::integer, 1, 1, 0, 0, 0, 0, 0, 0, low},
                                        {op::lookup, value_kind::integer, 1, 2, from, from, 0, 0, 1, 0, low}};
    u32 errors = 0;
    const evaluation with{tables.data(), &errors};
    const auto r = std::make_unique<registers<V>>();
    const auto rows = std::make_unique<row_batch<V>>();
    rows->count = V;
    for (u64 round = 0; round < 4096 / V; ++round) {
      for (u32 k = 0; k < V; ++k) {
        const u64 drawn = random_word(7, 2, round * V + k);
        r->value[0][k] = drawn % 2 == 0 ? data->keys[drawn / 2 % join_rows] : drawn % 4 == 1 ? drawn : drawn % 65536;
        r->valid[0][k] = drawn % 7 != 0 ? 1 : 0;
        rows->active[k] = drawn % 11 != 0 ? 1 : 0;
      }
      evaluator<V>(with, *r, *rows).run(code.data(), code.data() + 2);
      for (u32 k = 0; k < V; ++k) {
        const auto at = data->row_of.find(r->value[0][k]);
        const bool found =
            r->valid[0][k] != 0 && rows->active[k] != 0 && at != data->row_of.end() && data->valid[at->second] != 0;
        PENSTOCK_CHECK_EQ(report, found, r->valid[1][k] != 0);
        const bool has = found && data->there[at->second] != 0;
        PENSTOCK_CHECK_EQ(report, has, r->valid[2][k] != 0);
        if (has) PENSTOCK_CHECK_EQ(report, at->second, r->value[2][k]);
      }
    }
    PENSTOCK_CHECK_EQ(report, 0u, errors);
  }
};

void run_as_executors_do(join_body body) {
  test::run_lone(body, 4, test::test_seed());
  test::run_warps(body, "two whole warps", {{0xffffffffu}, {0xffffffffu}}, test::test_seed());
}

TEST(join_lookup, finds_what_a_map_does) {
  for (u64 spread : {u64{0}, u64{50000}}) {
    const joined_rows data(test::test_seed(), spread);
    run_as_executors_do(join_body{&data, false});
    if (spread != 0) run_as_executors_do(join_body{&data, true});
  }
}

TEST(join_lookup, a_key_that_stands_twice_is_found_out) {
  joined_rows data(test::test_seed(), 50000);
  const u64 row = 2 * rows_of_join_item;
  data.keys[row] = data.keys[row - 1];
  data.valid[row] = data.valid[row - 1] = 1;
  for (bool by_value : {true, false}) run_as_executors_do(join_body{&data, by_value, row});
}

// A row far below the first: the difference wraps, and is no row.
TEST(join_lookup, rows_begin_at_a_base) {
  const std::vector<u64> values{10, 11, 12};
  const std::vector<u8> valid{1, 0, 1};
  const std::vector<lookup_table> tables{{values.data(), valid.data(), values.size()}};
  const std::vector<instruction> code{{op::lookup, value_kind::integer, 1, 1, 0, 0, 0, 0, 0, 0, u64{0} - 4}};
  u32 errors = 0;
  registers<2> r{};
  row_batch<2> rows{};
  rows.active[0] = rows.active[1] = r.valid[0][0] = r.valid[0][1] = 1;
  const auto row_of = [&](std::int64_t key) {
    r.value[0][0] = static_cast<u64>(key);
    evaluator<2>({tables.data(), &errors}, r, rows).run(code.data(), code.data() + 1);
    return r.valid[1][0] != 0 ? r.value[1][0] : ~u64{0};
  };
  EXPECT_EQ(10u, row_of(-4));
  EXPECT_EQ(~u64{0}, row_of(-3));
  EXPECT_EQ(12u, row_of(-2));
  for (std::int64_t key : {std::int64_t{-1}, std::int64_t{-5}, std::int64_t{0}, std::numeric_limits<std::int64_t>::min(),
                           std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(~u64{0}, row_of(key));
  }
}

}  // namespace
}  // namespace penstock::columns
