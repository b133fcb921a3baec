// Groups by any keys: how large the table of slots is, and the groups in order.
#include "libs/columns/prepared_query.hpp"

#include <bit>
#include <numeric>

namespace penstock::columns {
namespace {

constexpr u64 first_slots = u64{1} << 19, growth = 4;
/// Of a table that is not the largest. With half of a hundred million slots in use, no key is further away from its own.
constexpr u64 probes_before_growth = 256;

class grouping {
 public:
  grouping(executor& on, prepared_query& query, u64 rows) : on_(on), query_(query), rows_(rows) {}

  /// The table of all groups. Throws bad_input where it does not fit the executor's memory.
  void run(group_slots slots, std::vector<u64> const& free_slot) {
    const u64 most = std::bit_ceil(2 * rows_ + 2);
    for (u64 wanted = std::min(most, first_slots);; wanted = std::min(most, growth * wanted)) {
      slots.slots = fitting(wanted, slots_.slots, slots.stride);
      slots_ = slots;
      if (try_with(free_slot, slots.slots == most)) return;
      words_ = {};
    }
  }

  u64 met() const { return met_; }
  u64 slots() const { return slots_.slots; }

  /// The groups that are in all ranges in the order of their keys, a word a row; the table is gone.
  buffer<u64> in_order(std::vector<slot_range> const& ranges) {
    buffer<u64> found = taken(ranges);
    words_ = {};
    buffer<u64> all(cpu_memory(), local, found.size());
    if (groups_ == 0) return all;
    const buffer<u32> order = sorted(found);
    const buffer<u64> column = room<u64>(groups_);
    for (u32 w = 0; w < slots_.stride; ++w) {
      each(groups_, take_in_order{found.data() + w * groups_, order.data(), groups_, column.data()});
      column.read({all.data() + w * groups_, groups_});
    }
    return all;
  }
  u64 groups() const { return groups_; }

 private:
  /// As many slots as there is memory for, at most those that are wanted and more than there were.
  u64 fitting(u64 wanted, u64 before, u32 stride) const {
    u64 slots = wanted;
    while (slots > before && !fits(slots * stride * sizeof(u64))) slots /= 2;
    if (slots > before) return slots;
    refuse(2 * std::max<u64>(before, 1) * stride * sizeof(u64));
  }
  bool fits(u64 bytes) const { return bytes <= on_.memory().free_bytes(); }
  [[noreturn]] void refuse(u64 bytes) const {
    throw_bad_input("group", "a table",
                    "its groups need " + std::to_string(bytes) + " bytes at least, and " +
                        std::to_string(on_.memory().free_bytes()) +
                        " are free: filter rows, group by fewer values, or sum up less of them");
  }
  template <class T>
  buffer<T> room(u64 count) const {
    if (!fits(count * sizeof(T))) refuse(count * sizeof(T));
    return {on_.memory(), local, count};
  }
  template <class Body>
  void each(u64 rows, Body const& body) const {
    if (rows != 0) columns::run(on_, ceil_div(rows, rows_of_join_item), body, {});
  }

  bool try_with(std::vector<u64> const& free_slot, bool largest) {
    words_ = room<u64>(slots_.slots * slots_.stride);
    clear_slots clear{words_.data(), words_.size(), slots_.stride, {}};
    std::copy(free_slot.begin(), free_slot.end(), clear.slot);
    each(words_.size(), clear);
    const buffer<u64> met = room<u64>(1);
    const buffer<u32> full = room<u32>(1);
    slots_.words = words_.data();
    slots_.probes = largest ? slots_.slots : std::min(slots_.slots, probes_before_growth);
    slots_.full = full.data();
    query_.run(query_.zones(), group_zones{query_.view(), slots_, met.data()});
    met_ = read_all(met)[0];
    return read_all(full)[0] == 0;
  }

  buffer<u64> taken(std::vector<slot_range> const& ranges) {
    std::vector<u64> counts(ceil_div(slots_.slots, rows_of_join_item));
    buffer<u64> before = room<u64>(counts.size());
    find_groups find{slots_, before.data()};
    std::copy(ranges.begin(), ranges.end(), find.ranges);
    find.range_count = static_cast<u32>(ranges.size());
    each(slots_.slots, find);
    before.read(counts);
    groups_ = std::accumulate(counts.begin(), counts.end(), u64{0});
    std::exclusive_scan(counts.begin(), counts.end(), counts.begin(), u64{0});
    before.write(counts);
    buffer<u64> found = room<u64>(groups_ * slots_.stride);
    find.to = found.data();
    find.groups = groups_;
    each(slots_.slots, find);
    return found;
  }

  /// Numbers of groups by their keys, whose first word weighs most.
  buffer<u32> sorted(buffer<u64> const& found) {
    const buffer<u64> keys[2] = {room<u64>(groups_), room<u64>(groups_)};
    buffer<u32> numbers[2] = {room<u32>(groups_), room<u32>(groups_)};
    each(groups_, number_rows{numbers[0].data(), groups_});
    u32 now = 0;
    for (u32 w = slots_.key_words; w-- > 0;) {
      const auto [least, bits] = span_of(found.data() + w * groups_);
      const auto rows_in = [&](u32 side) { return sort_rows{keys[side].data(), numbers[side].data()}; };
      if (bits != 0) each(groups_, take_sort_keys{found.data() + w * groups_, groups_, least, rows_in(now)});
      for (u32 shift = 0; shift < bits; shift += 8, now ^= 1) sort_once(rows_in(now), rows_in(now ^ 1), shift);
    }
    return std::move(numbers[now]);
  }

  /// The least of some words, ordered, and the bits of what the others are beyond it.
  std::pair<u64, u32> span_of(u64 const* words) const {
    const buffer<u64> extremes = room<u64>(2);
    extremes_of_nothing(extremes);
    each(groups_, find_extremes{{words, nullptr, groups_}, extremes.data(), extremes.data() + 1});
    const std::vector<u64> found = read_all(extremes);
    return {found[0], static_cast<u32>(std::bit_width(~found[1] - found[0]))};
  }
  void extremes_of_nothing(buffer<u64> const& extremes) const { each(2, fill_words{extremes.data(), 2, ~u64{0}}); }

  void sort_once(sort_rows from, sort_rows to, u32 shift) {
    const u64 items = ceil_div(groups_, sort_by_digit::rows_per_item);
    if (counts_.size() == 0) counts_ = room<u32>(sort_by_digit::digits * items);
    std::vector<u32> counts(counts_.size());
    counts_.write(counts);
    columns::run(on_, items, sort_by_digit{from, {}, groups_, items, shift, counts_.data()}, {});
    counts_.read(counts);
    std::exclusive_scan(counts.begin(), counts.end(), counts.begin(), u32{0});
    counts_.write(counts);
    columns::run(on_, items, sort_by_digit{from, to, groups_, items, shift, counts_.data()}, {});
  }

  executor& on_;
  prepared_query& query_;
  u64 rows_, met_ = 0, groups_ = 0;
  group_slots slots_;
  buffer<u64> words_;
  buffer<u32> counts_;  ///< of digits
};

}  // namespace

key_groups column_table::group_rows(query_program const& program, std::vector<counted_aggregate> const& wanted,
                                    std::vector<u8> const& keys, std::vector<slot_range> const& ranges, bool line_aware) {
  if (keys.empty() || keys.size() > max_key_words || wanted.size() > max_aggregates || ranges.size() > max_slot_ranges) {
    throw_bad_input("group", "a table",
                    std::to_string(keys.size()) + " words of keys, " + std::to_string(wanted.size()) + " sums and " +
                        std::to_string(ranges.size()) + " ranges: give 1 to " + std::to_string(max_key_words) + ", " +
                        std::to_string(max_aggregates) + " and " + std::to_string(max_slot_ranges) + " at most");
  }
  group_slots slots;
  slots.key_words = slots.stride = static_cast<u32>(keys.size());
  slots.count = static_cast<u32>(wanted.size());
  std::copy(keys.begin(), keys.end(), slots.keys);
  std::vector<u64> free_slot(keys.size(), free_word);
  for (u64 a = 0; a < wanted.size(); ++a) {
    const aggregate_kind what = wanted[a].of.what;
    slots.list[a] = {wanted[a].of, slots.stride, 0};
    free_slot.resize(free_slot.size() + words_of(what), 0);
    if (words_of(what) == 1) free_slot.back() = empty_accumulator(what).low;
    if (wanted[a].counted) {
      slots.list[a].counts = static_cast<u32>(free_slot.size());
      free_slot.push_back(0);
    }
    slots.stride = static_cast<u32>(free_slot.size());
  }
  const std::scoped_lock lock(state_->mutex);
  prepared_query query(*state_, program, line_aware);
  u64 rows = 0;
  for (u64 z = 0; z < query.zones(); ++z) rows += state_->places[query.zone(z)].rows;
  grouping groups(*state_->on, query, rows);
  groups.run(slots, free_slot);
  key_groups found;
  found.words = groups.in_order(ranges);
  found.groups = groups.groups();
  found.stride = slots.stride;
  found.slots = groups.slots();
  found.account = query.end(groups.met());
  return found;
}

}  // namespace penstock::columns
