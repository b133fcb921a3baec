// The interpreter and the walks of zones by lone threads and emulated warps: sums, marks and results are those of a plain loop.
#include "libs/columns/zone_bodies.hpp"
#include "support/run_everywhere.hpp"

#include <cmath>

namespace penstock::columns {
namespace {

using test::check_report;
using test::random_word;
using test::run_shape;
using test::test_context;

constexpr u64 row_count = 2 * zone_rows + 777, pieces = 2;

u64 bits(double v) { return std::bit_cast<u64>(v); }

/// Two pieces of a table: doubles, packed integers with nulls, and what queries of them give.
struct sample {
  std::vector<double> amount = std::vector<double>(row_count);
  std::vector<u64> packed;
  std::vector<u8> valid = std::vector<u8>(row_count / 8 + 1);
  std::vector<column_view> columns;
  std::vector<zone_place> zones;
  static constexpr u32 width = 7;
  static constexpr std::int64_t base = -20;

  explicit sample(u64 seed) : packed(row_count * width / 64 + 2) {
    for (u64 k = 0; k < row_count; ++k) {
      const u64 drawn = random_word(seed, 1, k);
      amount[k] = drawn % 50 == 0 ? std::nan("") : static_cast<double>(drawn % 1000) / 8;
      const u64 value = drawn >> 20 & 127;
      packed[k * width / 64] |= value << k * width % 64;
      if (k * width % 64 + width > 64) packed[k * width / 64 + 1] |= value >> (64 - k * width % 64);
      if ((drawn >> 40 & 3) != 0) valid[k / 8] = static_cast<u8>(valid[k / 8] | 1 << k % 8);
    }
    // Piece 0: the first zone and a part of the second; its packed values begin anew, so piece 1 is cut at a whole word.
    const u64 cut = 64 * 41;
    for (u64 p = 0; p < pieces; ++p) {
      const u64 first = p == 0 ? 0 : cut;
      column_view amounts, numbers;
      amounts.how = encoding::float64;
      amounts.bytes = {reinterpret_cast<u8 const*>(amount.data() + first), (row_count - first) * sizeof(double)};
      numbers.how = encoding::packed;
      numbers.packed_bits = width;
      numbers.base = static_cast<u64>(base);
      numbers.bytes = {reinterpret_cast<u8 const*>(packed.data() + first * width / 64),
                       (packed.size() - first * width / 64) * 8};
      numbers.nullable = 1;
      numbers.validity = {valid.data() + first / 8, valid.size() - first / 8};
      columns.insert(columns.end(), {amounts, numbers});
    }
    for (u32 p = 0; p < pieces; ++p) {
      const u64 rows = p == 0 ? cut : row_count - cut;
      for (u64 first = 0; first < rows; first += zone_rows) {
        zones.push_back({p, static_cast<u32>(std::min<u64>(zone_rows, rows - first)), first});
      }
    }
  }

  bool has_number(u64 k) const { return (valid[k / 8] >> k % 8 & 1) != 0; }
  std::int64_t number(u64 k) const {
    const u64 bit = k * width;
    u64 word = packed[bit / 64] >> bit % 64;
    if (bit % 64 + width > 64) word |= packed[bit / 64 + 1] << (64 - bit % 64);
    return base + static_cast<std::int64_t>(word & 127);
  }
  table_view view() const { return {columns.data(), 2, static_cast<u32>(zones.size()), zones.data()}; }
};

constexpr instruction load_amount{op::load, value_kind::number, 0, 2, 0, 0, 0, 0, 0, 0, 0},
    compare{op::less_equal, value_kind::number, 0, 3, 0, 2, 2, 0, 0, 0, 0},
    load_number{op::load, value_kind::integer, 1, 4, 0, 0, 0, 0, 1, 0, 0},
    twice{op::multiply, value_kind::integer, 1, 5, 4, 1, 1, 0, 0, 0, 0};

/// The program of aggregate_body as compiled_source.cpp writes it.
struct compiled {
  static constexpr bool is_compiled = true, is_resident = true;
  static constexpr instruction dense_code[] = {{op::constant, value_kind::number, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                                               {op::constant, value_kind::integer, 0, 1, 0, 0, 0, 0, 0, 0, 1},
                                               load_amount,
                                               compare,
                                               load_number,
                                               twice};
  static constexpr program_view dense{dense_code, 2, 4, 6, 3};
  static constexpr instruction sparse_code[] = {load_amount, load_number, twice};
  static constexpr program_view sparse{sparse_code, 0, 0, 3, 0};
  static constexpr program_view residual{};
  static constexpr zone_notes notes{1, {2}, {1}, {}};
  static constexpr u32 ranges_count = 0;
  static constexpr column_range ranges[1] = {};
  static constexpr column_facts columns[] = {{encoding::float64, 0, false, false, true},
                                             {encoding::packed, sample::width, false, true, true}};
  static constexpr aggregation_view aggregation{{{aggregate_kind::integer_sum, 5},
                                                 {aggregate_kind::number_maximum, 2},
                                                 {aggregate_kind::count, 4},
                                                 {aggregate_kind::rows, 0}},
                                                4,
                                                1,
                                                0,
                                                0,
                                                nullptr};
  static constexpr output_view output{1, {5}};
};

/// sum(number * 2), max(amount), count(number), rows, where amount >= least: registers 0: least, 1: two, 2: amount,
/// 3: condition, 4: number, 5: number * 2.
template <class Code>
struct aggregate_body {
  sample const* data;
  double least;
  std::shared_ptr<std::vector<instruction>> code = std::make_shared<std::vector<instruction>>();
  std::shared_ptr<std::vector<instruction>> alone = std::make_shared<std::vector<instruction>>();
  std::shared_ptr<std::vector<accumulator>> slots = std::make_shared<std::vector<accumulator>>();
  std::shared_ptr<std::vector<zone_range>> notes = std::make_shared<std::vector<zone_range>>();
  std::shared_ptr<u32> errors = std::make_shared<u32>(0);
  aggregate_zones zones{};
  static constexpr u32 aggregates = 4;

  aggregate_body(sample const& from, double limit) : data(&from), least(limit) {
    *code = {{op::constant, value_kind::number, 0, 0, 0, 0, 0, 0, 0, 0, bits(least)},
             {op::constant, value_kind::integer, 0, 1, 0, 0, 0, 0, 0, 0, 2},
             load_amount,
             compare,
             load_number,
             twice};
    *alone = {load_amount, load_number, twice};
  }

  void prepare(run_shape) {
    slots->assign(aggregates, {});
    notes->assign(data->zones.size(), {});
    zones.query.table = data->view();
    zones.query.with = {nullptr, errors.get(), {bits(least), 2}};
    zones.query.dense = {code->data(), 2, 4, static_cast<u32>(code->size()), 3};
    zones.query.sparse = {alone->data(), 0, 0, static_cast<u32>(alone->size()), 0};
    zones.query.notes.count = 1;
    zones.query.notes.registers[0] = 2;
    zones.query.notes.numbers[0] = 1;
    zones.query.notes.ranges[0] = notes->data();
    zones.into.list[0] = {aggregate_kind::integer_sum, 5};
    zones.into.list[1] = {aggregate_kind::number_maximum, 2};
    zones.into.list[2] = {aggregate_kind::count, 4};
    zones.into.list[3] = {aggregate_kind::rows, 0};
    zones.into.count = aggregates;
    zones.into.slots = slots->data();
    zones.zones = data->zones.size();
    for (u64 k = 0; k < slots->size(); ++k) (*slots)[k] = empty_accumulator(zones.into.list[k % aggregates].what);
  }

  template <thread_group G>
  void operator()(G const& g, test_context const&) const {
    zones.template operator()<G, Code>(g, grid_range{0, zones.zones, 1});
  }

  void verify(check_report& report, run_shape) const {
    std::vector<accumulator> const& all = *slots;
    std::int64_t sum = 0, most = std::numeric_limits<std::int64_t>::min();
    u64 numbers = 0, rows = 0;
    for (u64 k = 0; k < row_count; ++k) {
      const double v = data->amount[k];
      if (!(v >= least || std::isnan(v))) continue;  // NaN is greater than all
      ++rows;
      most = std::max(most, sortable(v));
      if (!data->has_number(k)) continue;
      ++numbers;
      sum += 2 * data->number(k);
    }
    PENSTOCK_CHECK_EQ(report, static_cast<u64>(sum), all[0].low);
    PENSTOCK_CHECK_EQ(report, numbers, all[0].count);
    if (rows != 0) PENSTOCK_CHECK_EQ(report, static_cast<u64>(most), all[1].low);
    PENSTOCK_CHECK_EQ(report, numbers, all[2].count);
    PENSTOCK_CHECK_EQ(report, rows, all[3].count);
    PENSTOCK_CHECK_EQ(report, 0u, *errors);
    u64 row = 0;
    for (u64 z = 0; z < data->zones.size(); row += data->zones[z++].rows) {
      zone_range expected;
      for (u64 k = row; k < row + data->zones[z].rows; ++k) {
        expected.low = std::min(expected.low, sortable(data->amount[k]));
        expected.high = std::max(expected.high, sortable(data->amount[k]));
      }
      PENSTOCK_CHECK_EQ(report, static_cast<u64>(expected.low), static_cast<u64>((*notes)[z].low));
      PENSTOCK_CHECK_EQ(report, static_cast<u64>(expected.high), static_cast<u64>((*notes)[z].high));
    }
  }
};

/// The rows that meet the condition, as words; then their numbers, in order.
template <class Code>
struct emit_body {
  sample const* data;
  double least;
  aggregate_body<Code> program;
  std::shared_ptr<std::vector<u32>> words = std::make_shared<std::vector<u32>>();
  std::shared_ptr<std::vector<u32>> counts = std::make_shared<std::vector<u32>>();
  std::shared_ptr<std::vector<u64>> begins = std::make_shared<std::vector<u64>>();
  std::shared_ptr<std::vector<u64>> values = std::make_shared<std::vector<u64>>();
  std::shared_ptr<std::vector<u8>> valid = std::make_shared<std::vector<u8>>();

  emit_body(sample const& from, double limit) : data(&from), least(limit), program(from, limit) {}

  void prepare(run_shape shape) {
    program.prepare(shape);
    const u64 zones = data->zones.size();
    words->assign(zones * zone_words, ~0u);
    counts->assign(zones, 0);
    begins->assign(zones, 0);
    u64 rows = 0, row = 0;
    for (u64 z = 0; z < zones; row += data->zones[z++].rows) {
      (*begins)[z] = rows;
      for (u64 k = row; k < row + data->zones[z].rows; ++k) rows += meets(k) ? 1 : 0;
    }
    values->assign(rows, 0);
    valid->assign(rows, 9);
  }
  bool meets(u64 k) const { return data->amount[k] >= least || std::isnan(data->amount[k]); }

  template <thread_group G>
  void operator()(G const& g, test_context const&) const {
    const grid_range all{0, data->zones.size(), 1};
    const mark_zones mark{program.zones.query, words->data(), counts->data()};
    mark.template operator()<G, Code>(g, all);
    g.sync();
    emit_zones emit{program.zones.query, words->data(), begins->data(), {}};
    emit.out.columns = 1;
    emit.out.registers[0] = 5;
    emit.out.values = values->data();
    emit.out.valid = valid->data();
    emit.out.rows = values->size();
    emit.template operator()<G, Code>(g, all);
  }

  void verify(check_report& report, run_shape) const {
    u64 at = 0;
    for (u64 k = 0; k < row_count; ++k) {
      if (!meets(k)) continue;
      PENSTOCK_CHECK_EQ(report, data->has_number(k), (*valid)[at] != 0);
      if (data->has_number(k)) PENSTOCK_CHECK_EQ(report, static_cast<u64>(2 * data->number(k)), (*values)[at]);
      ++at;
    }
    PENSTOCK_CHECK_EQ(report, at, values->size());
  }
};

/// Which rows are in a range of each column, by the loops for ranges; what is noted of both columns.
struct range_body {
  sample const* data;
  double least;
  std::int64_t low, high;
  std::shared_ptr<std::vector<column_range>> ranges = std::make_shared<std::vector<column_range>>();
  std::shared_ptr<std::vector<u32>> words = std::make_shared<std::vector<u32>>();
  std::shared_ptr<std::vector<u32>> counts = std::make_shared<std::vector<u32>>();
  std::shared_ptr<std::vector<zone_range>> amounts = std::make_shared<std::vector<zone_range>>();
  std::shared_ptr<std::vector<zone_range>> numbers = std::make_shared<std::vector<zone_range>>();
  bool notes = true;
  query_view query{};

  void prepare(run_shape) {
    const u64 zones = data->zones.size();
    words->assign(zones * zone_words, ~0u);
    counts->assign(zones, 0);
    amounts->assign(zones, {});
    numbers->assign(zones, {});
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    *ranges = {as_keys(data->columns[0], {0, notes ? 0 : column_range::no_note, sortable(least), most}),
               as_keys(data->columns[1], {1, notes ? 1 : column_range::no_note, low, high})};
    query.table = data->view();
    query.ranges = ranges->data();
    query.ranges_count = 2;
    query.notes.count = notes ? 2 : 0;
    query.notes.ranges[0] = amounts->data();
    query.notes.ranges[1] = numbers->data();
  }
  bool meets(u64 k) const {
    const bool far = data->amount[k] >= least || std::isnan(data->amount[k]);
    return far && data->has_number(k) && data->number(k) >= low && data->number(k) <= high;
  }

  template <thread_group G>
  void operator()(G const& g, test_context const&) const {
    const mark_zones mark{query, words->data(), counts->data()};
    mark(g, grid_range{0, data->zones.size(), 1});
  }

  void verify(check_report& report, run_shape) const {
    u64 row = 0;
    for (u64 z = 0; z < data->zones.size(); row += data->zones[z++].rows) {
      u32 met = 0;
      zone_range amount, number;
      for (u64 k = 0; k < zone_rows; ++k) {
        const bool there = k < data->zones[z].rows;
        const bool marked = ((*words)[z * zone_words + k / 32] >> k % 32 & 1) != 0;
        PENSTOCK_CHECK_EQ(report, there && meets(row + k), marked);
        met += marked ? 1 : 0;
        if (!there) continue;
        amount = {std::min(amount.low, sortable(data->amount[row + k])),
                  std::max(amount.high, sortable(data->amount[row + k]))};
        if (!data->has_number(row + k)) continue;
        number = {std::min(number.low, data->number(row + k)), std::max(number.high, data->number(row + k))};
      }
      PENSTOCK_CHECK_EQ(report, met, (*counts)[z]);
      if (!notes) continue;
      PENSTOCK_CHECK_EQ(report, static_cast<u64>(amount.low), static_cast<u64>((*amounts)[z].low));
      PENSTOCK_CHECK_EQ(report, static_cast<u64>(amount.high), static_cast<u64>((*amounts)[z].high));
      PENSTOCK_CHECK_EQ(report, static_cast<u64>(number.low), static_cast<u64>((*numbers)[z].low));
      PENSTOCK_CHECK_EQ(report, static_cast<u64>(number.high), static_cast<u64>((*numbers)[z].high));
    }
  }
};

/// Sums by a key of `modulus` values and the null, of which a thread, a group or all have accumulators.
struct keyed_body {
  sample const* data;
  std::int64_t modulus;
  std::shared_ptr<std::vector<instruction>> code = std::make_shared<std::vector<instruction>>();
  std::shared_ptr<std::vector<accumulator>> slots = std::make_shared<std::vector<accumulator>>();
  std::shared_ptr<u32> errors = std::make_shared<u32>(0);
  aggregate_zones zones{};
  static constexpr u32 aggregates = 5;

  u32 groups() const { return static_cast<u32>(modulus) + 1; }

  void prepare(run_shape) {
    const auto constant = [](u8 to, u64 value) {
      return instruction{op::constant, value_kind::integer, 0, to, 0, 0, 0, 0, 0, 0, value};
    };
    *code = {constant(0, static_cast<u64>(sample::base)),
             constant(1, static_cast<u64>(modulus)),
             constant(2, u64{1} << 60),
             {op::load, value_kind::number, 0, 3, 0, 0, 0, 0, 0, 0, 0},
             {op::load, value_kind::integer, 1, 4, 0, 0, 0, 0, 1, 0, 0},
             {op::subtract, value_kind::integer, 1, 5, 4, 0, 0, 0, 0, 0, 0},
             {op::modulo, value_kind::integer, 1, 6, 5, 1, 1, 0, 0, 0, 0},
             {op::fill_null, value_kind::integer, 1, 7, 6, 1, 1, 0, 0, 0, 0}};
    zones.query.table = data->view();
    zones.query.with = {nullptr, errors.get()};
    zones.query.dense = {code->data(), 3, 3, static_cast<u32>(code->size()), 0};
    zones.into.list[0] = {aggregate_kind::integer_sum, 4};
    zones.into.list[1] = {aggregate_kind::integer_sum, 2};  // beyond 64 bits
    zones.into.list[2] = {aggregate_kind::number_maximum, 3};
    zones.into.list[3] = {aggregate_kind::count, 4};
    zones.into.list[4] = {aggregate_kind::rows, 0};
    zones.into.count = aggregates;
    zones.into.groups = groups();
    zones.into.key = 7;
    zones.into.by_key = 1;
    slots->assign(u64{groups()} * aggregates, {});
    for (u64 k = 0; k < slots->size(); ++k) (*slots)[k] = empty_accumulator(zones.into.list[k % aggregates].what);
    zones.into.slots = slots->data();
    zones.zones = data->zones.size();
  }

  template <thread_group G>
  void operator()(G const& g, test_context const&) const {
    zones(g, grid_range{0, zones.zones, 1});
  }

  void verify(check_report& report, run_shape) const {
    std::vector<accumulator> expected(slots->size());
    for (u64 k = 0; k < expected.size(); ++k) expected[k] = empty_accumulator(zones.into.list[k % aggregates].what);
    for (u64 k = 0; k < row_count; ++k) {
      const bool there = data->has_number(k);
      const u64 key = there ? static_cast<u64>((data->number(k) - sample::base) % modulus) : static_cast<u64>(modulus);
      accumulator* const to = &expected[key * aggregates];
      if (there)
        combine(aggregate_kind::integer_sum, to[0],
                accumulator_of(aggregate_kind::integer_sum, static_cast<u64>(data->number(k))));
      combine(aggregate_kind::integer_sum, to[1], accumulator_of(aggregate_kind::integer_sum, u64{1} << 60));
      combine(aggregate_kind::number_maximum, to[2], accumulator_of(aggregate_kind::number_maximum, bits(data->amount[k])));
      if (there) ++to[3].count;
      ++to[4].count;
    }
    for (u64 k = 0; k < expected.size(); ++k) {
      PENSTOCK_CHECK_EQ(report, expected[k].count, (*slots)[k].count);
      if (zones.into.list[k % aggregates].what == aggregate_kind::rows ||
          zones.into.list[k % aggregates].what == aggregate_kind::count)
        continue;
      PENSTOCK_CHECK_EQ(report, expected[k].low, (*slots)[k].low);
      if (k % aggregates < 2) PENSTOCK_CHECK_EQ(report, expected[k].high, (*slots)[k].high);
    }
    PENSTOCK_CHECK_EQ(report, 0u, *errors);
  }
};

/// amount >= least, a range, and number <= 17, instructions: the rest is looked at where the range holds, or all at once.
struct residual_body {
  sample const* data;
  double least;
  std::shared_ptr<std::vector<instruction>> dense = std::make_shared<std::vector<instruction>>();
  std::shared_ptr<std::vector<instruction>> residual = std::make_shared<std::vector<instruction>>();
  std::shared_ptr<column_range> range = std::make_shared<column_range>();
  std::shared_ptr<std::vector<u32>> words = std::make_shared<std::vector<u32>>();
  std::shared_ptr<std::vector<u32>> counts = std::make_shared<std::vector<u32>>();
  std::shared_ptr<u32> errors = std::make_shared<u32>(0);
  query_view query{};

  void prepare(run_shape) {
    const instruction few{op::less_equal, value_kind::integer, 1, 5, 4, 0, 0, 0, 0, 0, 0};
    *dense = {{op::constant, value_kind::integer, 0, 0, 0, 0, 0, 0, 0, 0, 17},
              {op::constant, value_kind::number, 0, 1, 0, 0, 0, 0, 0, 0, bits(least)},
              {op::load, value_kind::number, 0, 2, 0, 0, 0, 0, 0, 0, 0},
              {op::less_equal, value_kind::number, 0, 3, 1, 2, 2, 0, 0, 0, 0},
              load_number,
              few,
              {op::logic_and, value_kind::integer, 1, 6, 3, 5, 0, 0, 0, 0, 0}};
    *residual = {load_number, few};
    *range = {0, column_range::no_note, sortable(least), std::numeric_limits<std::int64_t>::max()};
    words->assign(data->zones.size() * zone_words, ~0u);
    counts->assign(data->zones.size(), 0);
    query.table = data->view();
    query.with = {nullptr, errors.get()};
    query.dense = {dense->data(), 2, 7, 7, 6};
    query.ranges = range.get();
    query.ranges_count = 1;
    query.residual = {residual->data(), 0, 0, 2, 5};
  }

  template <thread_group G>
  void operator()(G const& g, test_context const&) const {
    const mark_zones mark{query, words->data(), counts->data()};
    mark(g, grid_range{0, data->zones.size(), 1});
  }

  void verify(check_report& report, run_shape) const {
    u64 row = 0;
    for (u64 z = 0; z < data->zones.size(); row += data->zones[z++].rows) {
      u32 met = 0;
      for (u64 k = 0; k < data->zones[z].rows; ++k) {
        const double v = data->amount[row + k];
        const bool meets = (v >= least || std::isnan(v)) && data->has_number(row + k) && data->number(row + k) <= 17;
        PENSTOCK_CHECK_EQ(report, meets, ((*words)[z * zone_words + k / 32] >> k % 32 & 1) != 0);
        met += meets ? 1 : 0;
      }
      PENSTOCK_CHECK_EQ(report, met, (*counts)[z]);
    }
  }
};

template <class Body>
void run_as_executors_do(Body body) {
  const u64 seed = test::test_seed();
  test::run_lone(body, 1, seed);
  test::run_warps(body, "one whole warp", {{0xffffffffu}}, seed);
}

class columns_test : public testing::TestWithParam<double> {};

// All rows, a half, few, the NaNs alone.
TEST_P(columns_test, sums_are_those_of_a_loop) {
  const sample data(test::test_seed());
  run_as_executors_do(aggregate_body<interpreted>(data, GetParam()));
  run_as_executors_do(aggregate_body<compiled>(data, GetParam()));
}

TEST_P(columns_test, rows_come_in_order) {
  const sample data(test::test_seed());
  run_as_executors_do(emit_body<interpreted>(data, GetParam()));
  run_as_executors_do(emit_body<compiled>(data, GetParam()));
}

TEST_P(columns_test, ranges_mark_the_rows_of_a_loop) {
  const sample data(test::test_seed());
  for (bool notes : {true, false}) {
    for (std::int64_t low : {-100, 0, 90, 200}) {
      range_body body{&data, GetParam(), low, low + 30};
      body.notes = notes;
      run_as_executors_do(body);
    }
  }
}

TEST_P(columns_test, the_rest_of_a_condition_is_looked_at_where_its_ranges_hold) {
  const sample data(test::test_seed());
  run_as_executors_do(residual_body{&data, GetParam()});
}

TEST(columns_by_key, sums_are_those_of_a_loop) {
  const sample data(test::test_seed());
  for (std::int64_t modulus : {3, 20, 100}) run_as_executors_do(keyed_body{&data, modulus});
}

// Of packed floating-point numbers: the least and the greatest that are stored for a range.
TEST(range_keys, are_those_that_stand_for_values_of_the_range) {
  column_view column;
  column.how = encoding::packed;
  column.packed_bits = 9;
  column.base = u64{0} - 100;
  column.divisor = 10;
  for (double low : {-20.0, -10.0, -9.95, 0.0, 0.05, 13.3, 41.1, 50.0}) {
    for (double width : {0.0, 0.1, 3.0, 1000.0}) {
      const column_range keys = as_keys(column, {0, 0, sortable(low), sortable(low + width)});
      for (std::int64_t stored = 0; stored < 512; ++stored) {
        const double value = static_cast<double>(stored - 100) / 10;
        EXPECT_EQ(value >= low && value <= low + width, stored >= keys.low && stored <= keys.high);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(limits, columns_test, testing::Values(-1.0, 60.0, 124.5, 1e9));

}  // namespace
}  // namespace penstock::columns
