// What a table is joined with, in the memory of its executor.
#include "libs/columns/join_bodies.hpp"
#include "libs/columns/table_state.hpp"

#include <bit>

namespace penstock::columns {
namespace {

/// Keys lie by their values where these span at most so many times the slots that they would need.
constexpr u64 span_for_a_slot = 2;

class joiner {
 public:
  explicit joiner(column_table::state& table) : on_(*table.on) {}

  buffer<u64> words(u64 count, u64 value) const {
    buffer<u64> made(on_.memory(), local, count);
    fill(made.data(), count, value);
    return made;
  }
  void fill(u64* to, u64 count, u64 value) const { run(count, fill_words{to, count, value}); }
  template <class Body>
  void run(u64 rows, Body const& body) const {
    if (rows != 0) columns::run(on_, ceil_div(rows, rows_of_join_item), body, {});
  }
  std::vector<u64> read(buffer<u64> const& from) const { return read_all(from); }

 private:
  executor& on_;
};

}  // namespace

std::shared_ptr<kept_rows> column_table::upload(std::span<u64 const> values, std::span<u8 const> valid) {
  const std::scoped_lock lock(state_->mutex);
  executor& on = *state_->on;
  const auto in = std::make_shared<kept_columns const>(kept_columns{copied(on, std::vector<u64>(values.begin(), values.end())),
                                                                    copied(on, std::vector<u8>(valid.begin(), valid.end()))});
  return std::make_shared<kept_rows>(kept_rows{state_, in, 0, values.size()});
}

std::shared_ptr<kept_keys> column_table::place(std::shared_ptr<kept_rows> const& rows) {
  const std::scoped_lock lock(state_->mutex);
  const joiner with(*state_);
  auto keys = std::make_shared<kept_keys>();
  keys->of = state_;
  const join_keys of{rows->values(), rows->valid(), rows->rows};
  const buffer<u64> found = with.words(3, ~u64{0});
  with.run(of.rows, find_extremes{of, found.data(), found.data() + 1});
  const std::vector<u64> extremes = with.read(found);
  const u64 low = ordered_key(extremes[0]), span = ~extremes[1] - extremes[0];
  keys->places = std::bit_ceil(2 * of.rows + 2);
  keys->place_of = {state_->on->memory(), local, of.rows};
  if (extremes[0] == ~u64{0} && extremes[1] == ~u64{0}) {  // there is none
    with.fill(keys->place_of.data(), of.rows, no_place);
    return keys;
  }
  keys->by_value = span < span_for_a_slot * keys->places;
  if (keys->by_value) {
    keys->low = low;
    keys->places = span + 1;
    const buffer<u64> held = with.words(ceil_div(keys->places, 64), 0);
    with.run(of.rows, place_by_value{of, low, held.data(), keys->place_of.data(), found.data() + 2});
  } else {
    const buffer<u64> owners = with.words(keys->places, 0);
    with.run(of.rows, place_in_slots{of, keys->places, owners.data(), keys->place_of.data(), found.data() + 2});
  }
  const u64 again = with.read(found)[2];
  if (again != ~u64{0}) {
    u64 key = 0;
    state_->on->memory().read(&key, rows->values() + again, sizeof key);
    keys->again = key;
  }
  return keys;
}

std::shared_ptr<kept_keys> column_table::place_at(std::span<u64 const> places, u64 count) {
  const std::scoped_lock lock(state_->mutex);
  if (std::any_of(places.begin(), places.end(), [&](u64 place) { return place >= count && place != no_place; })) {
    throw_bad_input("join", "a table", "a row's place is beyond the last");
  }
  auto keys = std::make_shared<kept_keys>();
  keys->of = state_;
  keys->by_value = true;
  keys->places = count;
  keys->place_of = copied(*state_->on, std::vector<u64>(places.begin(), places.end()));
  return keys;
}

std::shared_ptr<kept_lookup> column_table::lookup(std::shared_ptr<kept_keys> const& keys,
                                                  std::shared_ptr<kept_rows> const& rows) {
  if (keys->place_of.size() != rows->rows) {
    throw_bad_input("join", "a table",
                    "it had " + std::to_string(keys->place_of.size()) + " rows, and then " + std::to_string(rows->rows) +
                        ": keep it as it is while it is joined");
  }
  const std::scoped_lock lock(state_->mutex);
  const joiner with(*state_);
  auto made = std::make_shared<kept_lookup>();
  made->of = state_;
  made->values = with.words(keys->places, 0);
  made->valid = {state_->on->memory(), local, round_up(keys->places, 8)};
  with.fill(reinterpret_cast<u64*>(made->valid.data()), made->valid.size() / 8, 0);
  with.run(rows->rows, scatter_values{rows->values(), rows->valid(), keys->place_of.data(), rows->rows, made->values.data(),
                                      made->valid.data()});
  return made;
}

std::optional<std::pair<std::int64_t, std::int64_t>> column_table::extremes(std::shared_ptr<kept_lookup> const& lookup) {
  const std::scoped_lock lock(state_->mutex);
  const joiner with(*state_);
  const buffer<u64> found = with.words(2, ~u64{0});
  const u64 rows = lookup->values.size();
  with.run(rows, find_extremes{{lookup->values.data(), lookup->valid.data(), rows}, found.data(), found.data() + 1});
  const std::vector<u64> extremes = with.read(found);
  if (extremes[0] == ~u64{0} && extremes[1] == ~u64{0}) return {};
  return std::pair{static_cast<std::int64_t>(ordered_key(extremes[0])), static_cast<std::int64_t>(ordered_key(~extremes[1]))};
}

}  // namespace penstock::columns
