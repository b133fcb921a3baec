#include "libs/columns/column_table.hpp"

#include "libs/columns/prepared_query.hpp"

#include <algorithm>
#include <numeric>

namespace penstock::columns {
namespace {

constexpr u64 items_of_cpu = 4096;

output_view output_of(buffer<u64> const& values, buffer<u8> const& valid, std::vector<u8> const& registers, u64 rows) {
  output_view out;
  out.columns = static_cast<u32>(registers.size());
  std::copy(registers.begin(), registers.end(), out.registers);
  out.values = values.data();
  out.valid = valid.data();
  out.rows = rows;
  return out;
}

/// The rows that meet a condition, and how many are in the zones before each.
struct marked_rows {
  marked_rows(prepared_query& query, column_table::state& table, query_program const& program)
      : all(program.filter == program.constants), begins(table.places.size()) {
    if (all) {
      begins = table.rows_before;
      rows = std::accumulate(table.plan.pieces.begin(), table.plan.pieces.end(), u64{0});
      return;
    }
    executor& on = *table.on;
    words = {on.memory(), local, table.places.size() * zone_words};
    const buffer<u32> counts(on.memory(), local, table.places.size());
    query.run(query.zones(), mark_zones{query.view(), words.data(), counts.data()});
    const std::vector<u32> met = read_all(counts);
    for (u64 z = 0; z < query.zones(); ++z) {
      begins[query.zone(z)] = rows;
      rows += met[query.zone(z)];
    }
  }

  bool all;                 ///< there is no condition, and no words
  std::vector<u64> begins;  ///< of each zone that is looked at
  buffer<u32> words;        ///< [zones of the table][zone_words]
  u64 rows = 0;
};

/// Counts parts of a file that ranges of bytes lie in, each once. The ranges come in order.
class distinct_parts {
 public:
  explicit distinct_parts(u64 bytes) : bytes_(bytes) {}
  void add(u64 begin, u64 end) {
    const u64 first = std::max(begin / bytes_, next_), last = (end - 1) / bytes_;
    if (last >= first) count_ += last - first + 1;
    next_ = std::max(next_, last + 1);
  }
  void start_anew() { next_ = 0; }
  u64 count() const { return count_; }

 private:
  u64 bytes_, next_ = 0, count_ = 0;
};

column_touch touch_of(column_table::state const& table, prepared_query const& query, std::vector<u32> const& words, u32 number,
                      u64 line_bytes) {
  column_layout const& column = table.plan.columns[number];
  const u64 bits = bits_of(column.how, column.packed_bits);
  distinct_parts sectors(sector_bytes), lines(line_bytes);
  u64 met = 0;
  u32 piece = 0;
  for (u64 k = 0; k < query.zones(); ++k) {
    zone_place const& zone = table.places[query.zone(k)];
    if (zone.piece != piece) {
      sectors.start_anew();
      lines.start_anew();
      piece = zone.piece;
    }
    piece_place const& at = column.pieces[piece];
    const u64 first_bit = 8 * (table.media.begin_of(at.extent) + at.offset) + at.first_bit + zone.first * bits;
    for (u32 row = 0; row < zone.rows; ++row) {
      const bool meets = words.empty() || (words[query.zone(k) * zone_words + row / 32] >> row % 32 & 1) != 0;
      if (!meets || bits == 0) continue;
      ++met;
      const u64 begin = (first_bit + row * bits) / 8, end = (first_bit + (row + 1) * bits + 7) / 8;
      sectors.add(begin, end);
      lines.add(begin, end);
    }
  }
  return {ceil_div(met * bits, 8), sectors.count(), lines.count()};
}

/// Values of registers for each row that meets a condition, where kernels reach them.
struct selected_rows {
  selected_rows(column_table::state& table, query_program const& program, std::vector<u8> const& registers) {
    executor& on = *table.on;
    prepared_query query(table, program, true);
    const marked_rows marked(query, table, program);
    rows = marked.rows;
    const buffer<u64> starts = copied(on, marked.begins);
    values = {on.memory(), local, rows * registers.size()};
    valid = {on.memory(), local, rows * registers.size()};
    emit_zones body{query.view(), marked.all ? nullptr : marked.words.data(), starts.data(),
                    output_of(values, valid, registers, rows)};
    body.query.notes.count = 0;
    body.query.scanned_count = marked.all ? body.query.scanned_count : 0;
    if (rows != 0) query.run(query.zones(), body);
    account = query.end(rows);
  }

  u64 rows = 0;
  buffer<u64> values;
  buffer<u8> valid;
  query_account account;
};

void check_outputs(std::vector<u8> const& registers) {
  if (registers.size() <= max_registers) return;
  throw_bad_input("query", "a table",
                  std::to_string(registers.size()) + " results at once: ask for " + std::to_string(max_registers) + " at most");
}

}  // namespace

column_table::column_table(table_layout layout, media::media_options const& options)
    : state_(std::make_shared<state>(std::move(layout), options)),
      rows_(std::accumulate(state_->plan.pieces.begin(), state_->plan.pieces.end(), u64{0})) {}

column_table::~column_table() = default;

std::string column_table::device() const { return state_->on->device(); }
std::string column_table::executor_name() const { return state_->on->kind() == executor_kind::cuda ? "cuda" : "cpu"; }
u32 column_table::architecture() const {
  if constexpr (has_kernels) {
    if (state_->on->kind() == executor_kind::cuda) return kernels::gpu_architecture(*state_->on);
  }
  return 0;
}
void column_table::compile_with(std::shared_ptr<query_compiler> compiler, double least_seconds) {
  const std::scoped_lock lock(state_->mutex);
  state_->compiler = std::move(compiler);
  state_->least_seconds = least_seconds;
}
bool column_table::has_zone_map(u32 column) const {
  const std::scoped_lock lock(state_->mutex);
  return !state_->maps.at(column).empty();
}

aggregates column_table::aggregate_rows(query_program const& program, std::vector<aggregate> const& wanted, u32 groups,
                                        std::optional<u32> key, bool line_aware) {
  const std::scoped_lock lock(state_->mutex);
  executor& on = *state_->on;
  prepared_query query(*state_, program, line_aware);
  aggregate_zones body{query.view(), {}, 1, query.zones()};
  std::copy(wanted.begin(), wanted.end(), body.into.list);
  body.into.count = static_cast<u32>(wanted.size());
  body.into.groups = groups;
  body.into.key = key.value_or(0);
  body.into.by_key = key ? 1 : 0;
  const u64 all = u64{groups} * wanted.size();
  const bool cuda = on.kind() == executor_kind::cuda;
  if (!cuda) body.zones_per_item = std::max<u64>(1, ceil_div(query.zones(), items_of_cpu));
  const u64 items = ceil_div(query.zones(), body.zones_per_item);
  const u64 running = u64{on.units()} * cuda_blocks_per_unit * (cuda_block_threads / 32);
  const u64 slots = body.into.owns() ? (cuda ? std::min(items, running) : items) : 1;
  std::vector<accumulator> first(std::max<u64>(slots, 1) * all);
  for (u64 k = 0; k < first.size(); ++k) first[k] = empty_accumulator(wanted[k % wanted.size()].what);
  buffer<accumulator>& kept = state_->accumulators;
  if (kept.size() < first.size()) kept = {on.memory(), local, first.size()};
  kept.write(first);
  body.into.slots = kept.data();
  query.run(items, body);
  kept.read(first);
  aggregates result;
  result.values.assign(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(all));
  for (u64 slot = 1; slot < slots; ++slot) {
    for (u64 k = 0; k < all; ++k) combine(wanted[k % wanted.size()].what, result.values[k], first[slot * all + k]);
  }
  u64 met = 0;
  for (u64 k = 0; k < all; ++k) {
    if (wanted[k % wanted.size()].what == aggregate_kind::rows) met += result.values[k].count;
  }
  result.account = query.end(met);
  return result;
}

std::vector<column_touch> column_table::touched(query_program const& program, std::vector<u32> const& columns, u64 line_bytes) {
  const std::scoped_lock lock(state_->mutex);
  prepared_query query(*state_, program, true);
  marked_rows const marked(query, *state_, program);
  const std::vector<u32> words = read_all(marked.words);
  std::vector<column_touch> found;
  found.reserve(columns.size());
  for (u32 c : columns) found.push_back(touch_of(*state_, query, words, c, line_bytes));
  query.end(marked.rows);
  return found;
}

results column_table::select_rows(query_program const& program, std::vector<u8> const& registers) {
  check_outputs(registers);
  const std::scoped_lock lock(state_->mutex);
  const u64 begun = now_ns();
  selected_rows const found(*state_, program, registers);
  results read{read_all(found.values), read_all(found.valid), found.rows, found.account};
  read.account.seconds = seconds_since(begun);
  return read;
}

std::vector<std::shared_ptr<kept_rows>> column_table::select_kept(query_program const& program,
                                                                  std::vector<u8> const& registers) {
  check_outputs(registers);
  const std::scoped_lock lock(state_->mutex);
  selected_rows found(*state_, program, registers);
  if (found.account.errors != 0) return {};
  const auto in = std::make_shared<kept_columns const>(kept_columns{std::move(found.values), std::move(found.valid)});
  std::vector<std::shared_ptr<kept_rows>> kept;
  kept.reserve(registers.size());
  for (u64 k = 0; k < registers.size(); ++k) {
    kept.push_back(std::make_shared<kept_rows>(kept_rows{state_, in, k, found.rows}));
  }
  return kept;
}

results column_table::take_numbered(query_program const& program, std::vector<u8> const& registers,
                                    std::vector<u64> const& numbers) {
  check_outputs(registers);
  const std::scoped_lock lock(state_->mutex);
  executor& on = *state_->on;
  std::vector<u32> codes;
  for (u64 number : numbers) {
    if (number >= rows_) {
      throw_bad_input("take", "row " + std::to_string(number), "the table has " + std::to_string(rows_) + " rows");
    }
    const auto after = std::upper_bound(state_->rows_before.begin(), state_->rows_before.end(), number);
    const auto zone = static_cast<u64>(after - state_->rows_before.begin()) - 1;
    codes.push_back(static_cast<u32>(zone * zone_rows + (number - state_->rows_before[zone])));
  }
  prepared_query query(*state_, program, true);
  const buffer<u32> list = copied(on, codes);
  const u64 rows = codes.size();
  const buffer<u64> values(on.memory(), local, rows * registers.size());
  const buffer<u8> valid(on.memory(), local, rows * registers.size());
  const take_rows body{query.view(), list.data(), rows, output_of(values, valid, registers, rows)};
  if (rows != 0) query.run(ceil_div(rows, take_rows::rows_per_item), body);
  results found{read_all(values), read_all(valid), rows, {}};
  found.account = query.end(rows);
  return found;
}

}  // namespace penstock::columns
