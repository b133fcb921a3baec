// Keys in slots, and what programs find by them: as a map says, for batches of both executors.
#include "libs/columns/evaluate.hpp"
#include "support/run_everywhere.hpp"

#include <gtest/gtest.h>
#include <map>

namespace penstock::columns {
namespace {

using test::random_word;

/// Keys that are few, or one behind the other, or anywhere.
std::vector<u64> drawn_keys(u64 seed, u64 count, u64 spread) {
  std::map<u64, bool> seen;
  std::vector<u64> keys;
  for (u64 k = 0; keys.size() < count; ++k) {
    const u64 key = spread == 0 ? random_word(seed, 1, k) : random_word(seed, 1, k) % spread - spread / 2;
    if (!seen[key]) keys.push_back(key);
    seen[key] = true;
  }
  return keys;
}

template <u32 V>
void check_batches(u64 seed, std::vector<u64> const& keys, u64 spread) {
  const placed_keys placed = place_keys(keys);
  ASSERT_FALSE(placed.again.has_value());
  if (spread == 0 && keys.size() > 1) { ASSERT_FALSE(placed.by_value); }
  if (spread == 64) { ASSERT_TRUE(placed.by_value); }
  std::vector<u64> held(placed.places), numbers(placed.places);
  std::vector<u8> used(placed.places), there(placed.places);
  std::map<u64, u64> expected;
  for (u64 k = 0; k < keys.size(); ++k) {
    held[placed.place_of[k]] = keys[k];
    used[placed.place_of[k]] = 1;
    numbers[placed.place_of[k]] = k;
    there[placed.place_of[k]] = k % 3 != 0 ? 1 : 0;
    expected[keys[k]] = k;
  }
  const std::vector<lookup_table> tables{{held.data(), used.data(), placed.places},
                                         {numbers.data(), there.data(), placed.places}};
  // By value there is nothing to find: the key's own column says whether it is there.
  const instruction present = placed.by_value ? instruction{op::lookup, value_kind::integer, 1, 1, 0, 0, 0, 0, 0, 0, placed.low}
                                              : instruction{op::find, value_kind::integer, 1, 1, 0, 0, 0, 0, 0, 0, 0};
  const u8 from = placed.by_value ? 0 : 1;
  const std::vector<instruction> code{present, {op::lookup, value_kind::integer, 1, 2, from, from, 0, 0, 1, 0, placed.low}};
  u32 errors = 0;
  const evaluation with{code.data(), tables.data(), &errors};
  const auto r = std::make_unique<registers<V>>();
  const auto rows = std::make_unique<row_batch<V>>();
  for (u64 round = 0; round < 4096 / V + 1; ++round) {
    rows->count = V;
    for (u32 k = 0; k < V; ++k) {
      const u64 drawn = random_word(seed, 2, round * V + k);
      r->value[0][k] = drawn % 2 == 0 ? keys[drawn / 2 % keys.size()] : spread == 0 ? drawn : drawn % (2 * spread) - spread;
      r->valid[0][k] = drawn % 7 != 0 ? 1 : 0;
      rows->active[k] = drawn % 11 != 0 ? 1 : 0;
    }
    evaluator<V>(with, *r, *rows).run(0, 2);
    for (u32 k = 0; k < V; ++k) {
      const auto at = expected.find(r->value[0][k]);
      const bool asks = r->valid[0][k] != 0 && rows->active[k] != 0;
      EXPECT_EQ(asks && at != expected.end(), r->valid[1][k] != 0);
      EXPECT_EQ(asks && at != expected.end() && at->second % 3 != 0, r->valid[2][k] != 0);
      if (r->valid[2][k] != 0) {
        EXPECT_EQ(at->second, r->value[2][k]);
      }
    }
  }
  EXPECT_EQ(0u, errors);
}

TEST(join_lookup, finds_what_a_map_does) {
  const u64 seed = test::test_seed();
  for (u64 spread : {u64{0}, u64{64}, u64{5000}}) {
    for (u64 count : {u64{1}, u64{31}, u64{40}}) {
      const std::vector<u64> keys = drawn_keys(seed, count, spread);
      check_batches<2>(seed, keys, spread);
      check_batches<256>(seed, keys, spread);
    }
  }
}

TEST(join_lookup, a_key_that_stands_twice_is_told) {
  const std::vector<u64> keys{5, 9, 7, 9, 5};
  EXPECT_EQ(3u, place_keys(keys).again.value());
  EXPECT_EQ(place_keys(keys).place_of[1], place_keys(keys).place_of[3]);
  EXPECT_FALSE(place_keys(std::vector<u64>{}).again.has_value());
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
    evaluator<2>({code.data(), tables.data(), &errors}, r, rows).run(0, 1);
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
