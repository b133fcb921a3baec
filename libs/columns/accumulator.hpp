// Sums, extremes and counts by group, in any order of the rows. A thread has few of them by itself and puts them together with
// the others' in the end, in one order, so that results do not depend on who was first; many are shared and changed by atomics.
#pragma once

#include "libs/columns/evaluate.hpp"
#include "penstock/core/memory_access.hpp"

namespace penstock::columns {

enum class aggregate_kind : u8 {
  rows,
  count,
  integer_sum,
  number_sum,
  integer_minimum,
  integer_maximum,
  number_minimum,
  number_maximum
};

struct aggregate {
  aggregate_kind what = aggregate_kind::rows;
  u8 from = 0;  ///< register; of `rows` none
};

/// Of numbers a sum and what was lost of it (Neumaier 1974), or the sortable extreme; of integers 128 bits.
struct accumulator {
  u64 low = 0, high = 0;
  u64 count = 0;  ///< values that are not null
};

inline constexpr u32 max_aggregates = 32, max_own = 32;

struct aggregation_view {
  aggregate list[max_aggregates];
  u32 count = 0;
  u32 groups = 1;
  u32 key = 0;  ///< register with the group's number; nothing where there is one group
  u32 by_key = 0;
  accumulator* slots = nullptr;  ///< [items or 1][groups][count]

  PENSTOCK_FN bool owns() const { return count * groups <= max_own; }
};

/// What an accumulator begins with.
PENSTOCK_FN inline accumulator empty_accumulator(aggregate_kind what) {
  using limits = std::numeric_limits<std::int64_t>;
  if (what == aggregate_kind::integer_minimum || what == aggregate_kind::number_minimum)
    return {static_cast<u64>(limits::max()), 0, 0};
  if (what == aggregate_kind::integer_maximum || what == aggregate_kind::number_maximum)
    return {static_cast<u64>(limits::min()), 0, 0};
  return {};
}

/// Takes more of a sum in.
PENSTOCK_FN inline void add_number(accumulator& to, double more) {
  const double sum = std::bit_cast<double>(to.low), next = sum + more;
  // An infinite sum has lost nothing: what is kept of it would be NaN.
  const double lost = fabs(sum) >= fabs(more) ? (sum - next) + more : (more - next) + sum;
  to.low = std::bit_cast<u64>(next);
  if (lost == lost) to.high = std::bit_cast<u64>(std::bit_cast<double>(to.high) + lost);
}
PENSTOCK_FN inline void add_integer(accumulator& to, u64 low, u64 high) {
  to.low += low;
  to.high += high + (to.low < low ? 1 : 0);
}

PENSTOCK_FN inline u64 sign_of(u64 value) { return 0 - (value >> 63); }

/// Combines what two have seen.
PENSTOCK_FN inline void combine(aggregate_kind what, accumulator& to, accumulator const& from) {
  const auto a = static_cast<std::int64_t>(to.low), b = static_cast<std::int64_t>(from.low);
  switch (what) {
    case aggregate_kind::number_sum:
      add_number(to, std::bit_cast<double>(from.low));
      add_number(to, std::bit_cast<double>(from.high));
      break;
    case aggregate_kind::integer_sum: add_integer(to, from.low, from.high); break;
    case aggregate_kind::integer_minimum:
    case aggregate_kind::number_minimum: to.low = static_cast<u64>(b < a ? b : a); break;
    case aggregate_kind::integer_maximum:
    case aggregate_kind::number_maximum: to.low = static_cast<u64>(b > a ? b : a); break;
    default: break;
  }
  to.count += from.count;
}

/// A value as an accumulator that has seen nothing else.
PENSTOCK_FN inline accumulator accumulator_of(aggregate_kind what, u64 value) {
  switch (what) {
    case aggregate_kind::number_sum: return {value, 0, 1};
    case aggregate_kind::integer_sum: return {value, sign_of(value), 1};
    case aggregate_kind::number_minimum:
    case aggregate_kind::number_maximum: return {static_cast<u64>(sortable(std::bit_cast<double>(value))), 0, 1};
    default: return {value, 0, 1};
  }
}

/// Of one member of a group.
template <thread_group G>
class accumulators {
 public:
  PENSTOCK_FN accumulators(G const& g, aggregation_view const& into, u32* errors) : g_(g), into_(into), errors_(errors) {
    if (!into_.owns()) return;
    for (u32 k = 0; k < into_.count * into_.groups; ++k) own_[k] = empty_accumulator(into_.list[k % into_.count].what);
  }

  template <class Rows, class Registers>
  PENSTOCK_FN void add(Rows const& rows, Registers const& r) {
    for (u32 k = 0; k < rows.count; ++k) {
      if (rows.active[k] == 0) continue;
      const u64 group = into_.by_key != 0 ? r.value[into_.key][k] : 0;
      if (group >= into_.groups) {
        device_ref<u32>(*errors_).fetch_or(bad_group, relaxed);
        continue;
      }
      for (u32 a = 0; a < into_.count; ++a) {
        aggregate const& each = into_.list[a];
        const bool counts = each.what == aggregate_kind::rows || r.valid[each.from][k] != 0;
        if (counts) add_one(static_cast<u32>(group) * into_.count + a, each.what, r.value[each.from][k]);
      }
    }
  }

  /// All members' together, to a slot of the group's own. Collective.
  PENSTOCK_FN void store(u64 slot) {
    if (!into_.owns()) return;
    const u32 all = into_.count * into_.groups;
    for (u32 k = 0; k < all; ++k) {
      const aggregate_kind what = into_.list[k % into_.count].what;
      accumulator mine = own_[k];
      for (u32 apart = size(g_) / 2; apart != 0; apart /= 2) {
        const u32 from = g_.rank() ^ apart;
        const accumulator other{g_.shfl(mine.low, from), g_.shfl(mine.high, from), g_.shfl(mine.count, from)};
        combine(what, mine, other);
      }
      if (is_leader(g_)) into_.slots[slot * all + k] = mine;
    }
  }

 private:
  PENSTOCK_FN void add_one(u32 k, aggregate_kind what, u64 value) {
    if (into_.owns()) {
      accumulator& mine = own_[k];
      if (what == aggregate_kind::number_sum) {
        add_number(mine, std::bit_cast<double>(value));
        ++mine.count;
      } else {
        combine(what, mine, accumulator_of(what, value));
      }
      return;
    }
    accumulator& shared = into_.slots[k];
    device_ref<u64>(shared.count).fetch_add(1, relaxed);
    const accumulator more = accumulator_of(what, value);
    switch (what) {
      case aggregate_kind::number_sum:
        fetch_add_number(reinterpret_cast<u64>(&shared.low), std::bit_cast<double>(value));
        break;
      case aggregate_kind::integer_sum: {
        const u64 before = device_ref<u64>(shared.low).fetch_add(more.low, relaxed);
        const u64 carry = before + more.low < before ? 1 : 0;
        if (more.high + carry != 0) device_ref<u64>(shared.high).fetch_add(more.high + carry, relaxed);
        break;
      }
      case aggregate_kind::rows:
      case aggregate_kind::count: break;
      default: {
        device_ref<u64> word(shared.low);
        u64 seen = word.load(relaxed);
        for (;;) {
          accumulator next{seen, 0, 0};
          combine(what, next, more);
          if (next.low == seen || word.compare_exchange_weak(seen, next.low, relaxed, relaxed)) break;
        }
      }
    }
  }

  G g_;
  aggregation_view const& into_;
  u32* errors_;
  accumulator own_[max_own];
};

}  // namespace penstock::columns
