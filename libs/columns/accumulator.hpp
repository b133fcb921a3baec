// Sums, extremes and counts by key, in any order of the rows. A thread has few of them by itself, a group of threads some, and
// these are put together with the others' in the end, in one order, so that results do not depend on who was first; many are
// shared by all and changed by atomics.
#pragma once

#include "libs/columns/evaluate.hpp"
#include "penstock/core/memory_access.hpp"
#include "penstock/group/lone_thread.hpp"

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

inline constexpr u32 max_aggregates = 32;
inline constexpr u32 max_of_thread = 32, max_of_group = 256;  ///< accumulators

struct aggregation_view {
  aggregate list[max_aggregates];
  u32 count = 0;
  u32 groups = 1;
  u32 key = 0;  ///< register with the group's number; nothing where there is one group
  u32 by_key = 0;
  accumulator* slots = nullptr;  ///< [those that run or 1][groups][count]

  PENSTOCK_FN constexpr bool by_thread() const { return count * groups <= max_of_thread; }
  PENSTOCK_FN bool by_group() const { return !by_thread() && u64{count} * groups <= max_of_group; }
  /// Whether each that runs has slots of its own.
  PENSTOCK_FN bool owns() const { return by_thread() || by_group(); }
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

/// Takes a value into an extreme that others change, too.
PENSTOCK_FN inline void add_extreme(u64& shared, aggregate_kind what, accumulator const& more) {
  device_ref<u64> word(shared);
  u64 seen = word.load(relaxed);
  for (;;) {
    accumulator next{seen, 0, 0};
    combine(what, next, more);
    if (next.low == seen || word.compare_exchange_weak(seen, next.low, relaxed, relaxed)) return;
  }
}

/// Of one member of a group.
template <thread_group G, class Code = interpreted>
class accumulators {
 public:
  /// `slot`: of this group.
  PENSTOCK_FN accumulators(G const& g, aggregation_view const& into, u32* errors, u64 slot)
      : g_(g), into_(into), errors_(errors), groups_own_(into.slots) {
    if (shape().owns()) groups_own_ += slot * shape().count * shape().groups;
    if (!shape().by_thread()) return;
    each_own([&](u32 k, aggregate_kind what) { own_[k] = empty_accumulator(what); });
  }

  template <class Rows, class Registers>
  PENSTOCK_FN void add(Rows const& rows, Registers const& r) {
    if constexpr (!std::is_same_v<G, lone_thread>) {
      if (shape().by_group()) return add_together(rows, r);
    }
    each_below<Code::is_compiled>(rows.size(), [&](u32 k) {
      if (rows.active[k] == 0) return;
      const u64 group = shape().by_key != 0 ? r.value[shape().key][k] : 0;
      if (group >= shape().groups) {
        device_ref<u32>(*errors_).fetch_or(bad_group, relaxed);
        return;
      }
      each_aggregate([&](u32 a, aggregate const& each) {
        const bool counts = each.what == aggregate_kind::rows || r.valid[each.from][k] != 0;
        if (counts) add_one(static_cast<u32>(group) * shape().count + a, each.what, r.value[each.from][k]);
      });
    });
  }

  /// All members' together, to a slot of the group's own. Collective.
  PENSTOCK_FN void store() {
    if (!shape().by_thread()) return;
    each_own([&](u32 k, aggregate_kind what) {
      accumulator mine = own_[k];
      for (u32 apart = size(g_) / 2; apart != 0; apart /= 2) {
        const u32 from = g_.rank() ^ apart;
        const accumulator other{g_.shfl(mine.low, from), g_.shfl(mine.high, from), g_.shfl(mine.count, from)};
        combine(what, mine, other);
      }
      if (is_leader(g_)) groups_own_[k] = mine;
    });
  }

 private:
  /// What is summed up, of a compiled program constants.
  PENSTOCK_FN decltype(auto) shape() const {
    if constexpr (Code::is_compiled) {
      return (Code::aggregation);
    } else {
      return (into_);
    }
  }
  static constexpr u32 max_own() {
    if constexpr (Code::is_compiled) {
      return Code::aggregation.by_thread() ? Code::aggregation.count * Code::aggregation.groups : 1;
    } else {
      return max_of_thread;
    }
  }
  template <class Use>
  PENSTOCK_FORCE_INLINE void each_aggregate(Use const& use) const {
    each_below<Code::is_compiled>(shape().count, [&](u32 a) { use(a, shape().list[a]); });
  }
  template <class Use>
  PENSTOCK_FORCE_INLINE void each_own(Use const& use) const {
    each_below<Code::is_compiled>(shape().count * shape().groups, [&](u32 k) { use(k, shape().list[k % shape().count].what); });
  }

  /// One row of each member at once: those of one key are combined before the leader takes them in. Collective.
  template <class Rows, class Registers>
  PENSTOCK_FN void add_together(Rows const& rows, Registers const& r) {
    each_below<Code::is_compiled>(rows.size(), [&](u32 k) {
      const u64 group = shape().by_key != 0 ? r.value[shape().key][k] : 0;
      const bool known = rows.active[k] != 0 && group < shape().groups;
      if (rows.active[k] != 0 && !known) device_ref<u32>(*errors_).fetch_or(bad_group, relaxed);
      auto left = g_.ballot(known);
      while (any(left)) {
        const u64 chosen = g_.shfl(group, lowest(left));
        const bool mine = known && group == chosen;
        left = without(left, g_.ballot(mine));
        each_aggregate([&](u32 a, aggregate const& each) {
          const bool counts = mine && (each.what == aggregate_kind::rows || r.valid[each.from][k] != 0);
          const accumulator more = combined_of(each.what, counts, r.value[each.from][k]);
          if (is_leader(g_) && more.count != 0) combine(each.what, groups_own_[chosen * shape().count + a], more);
        });
      }
    });
  }

  /// Of the members that count. Collective.
  PENSTOCK_FN accumulator combined_of(aggregate_kind what, bool counts, u64 value) const {
    const u64 counted = count(g_.ballot(counts));
    accumulator mine = counts ? accumulator_of(what, value) : empty_accumulator(what);
    mine.count = 0;
    const bool sums = what == aggregate_kind::integer_sum;
    const bool small = sums && !any(g_.ballot(counts && value + (u64{1} << 58) >= u64{1} << 59));
    if (what != aggregate_kind::rows && what != aggregate_kind::count && counted != 0) {
      for (u32 apart = size(g_) / 2; apart != 0; apart /= 2) {
        const u32 from = g_.rank() ^ apart;
        const u64 low = g_.shfl(mine.low, from);
        if (small) {
          mine.low += low;  // no more than 32 of them: they fit
        } else {
          combine(what, mine, {low, g_.shfl(mine.high, from), 0});
        }
      }
      if (small) mine.high = sign_of(mine.low);
    }
    mine.count = counted;
    return mine;
  }

  PENSTOCK_FN void add_one(u32 k, aggregate_kind what, u64 value) {
    if (shape().owns()) {
      accumulator& mine = shape().by_thread() ? own_[k] : groups_own_[k];
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
      default: add_extreme(shared.low, what, more);
    }
  }

  G g_;
  aggregation_view const& into_;
  u32* errors_;
  accumulator* groups_own_;
  accumulator own_[max_own()];
};

}  // namespace penstock::columns
