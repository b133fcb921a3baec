// What every model of thread_group promises, checked from inside: each lane sees the six operations agree with each other and
// with what it can work out by itself.
#pragma once

#include "penstock/group/thread_group.hpp"
#include "support/test_context.hpp"

namespace penstock::test {

/// The value that the member of rank r brings to round `round`; each lane can work out everyone's.
PENSTOCK_FN inline u64 value_of(test_context const& c, u32 rank, u64 round) {
  return random_word(c.seed() ^ c.group, round, rank);
}

/// Calls visit(k, r) for the k-th member r, in order of rank; a collective loop, all members together.
template <thread_group G, class Visit>
PENSTOCK_FN void for_each_member(G const& g, Visit const& visit) {
  auto rest = g.members();
  for (u32 k = 0; any(rest); ++k) {
    const u32 r = lowest(rest);
    visit(k, r);
    rest = without(rest, g.ballot(g.rank() == r));
  }
}

template <thread_group G>
PENSTOCK_FN void check_membership(G const& g, test_context const& c) {
  check_report& report = *c.report;
  const auto all = g.members();
  PENSTOCK_CHECK(report, any(all));
  PENSTOCK_CHECK(report, contains(all, g.rank()));
  PENSTOCK_CHECK_EQ(report, count(all), size(g));
  PENSTOCK_CHECK_EQ(report, count_below(all, g.rank()), index_in(g));
  PENSTOCK_CHECK_EQ(report, index_in(g) == 0, is_leader(g));
  PENSTOCK_CHECK(report, !any(without(all, all)));
  const auto leaders = g.ballot(is_leader(g));
  PENSTOCK_CHECK_EQ(report, 1u, count(leaders));
  PENSTOCK_CHECK_EQ(report, lowest(all), lowest(leaders));
  PENSTOCK_CHECK_EQ(report, size(g) - 1, count(without(all, leaders)));
  u32 members = 0;
  for_each_member(g, [&](u32 k, u32 r) {
    PENSTOCK_CHECK(report, contains(all, r));
    PENSTOCK_CHECK_EQ(report, k, count_below(all, r));
    PENSTOCK_CHECK_EQ(report, r, nth(all, k));
    PENSTOCK_CHECK_EQ(report, k, g.shfl(index_in(g), r));
    PENSTOCK_CHECK_EQ(report, r, g.shfl(g.rank(), r));
    ++members;
  });
  PENSTOCK_CHECK_EQ(report, size(g), members);
}

template <thread_group G>
PENSTOCK_FN void check_ballot(G const& g, test_context const& c, u64 round) {
  check_report& report = *c.report;
  PENSTOCK_CHECK(report, g.ballot(true) == g.members());
  PENSTOCK_CHECK(report, !any(g.ballot(false)));
  const auto odd = g.ballot((value_of(c, g.rank(), round) & 1) != 0);
  PENSTOCK_CHECK(report, !any(without(odd, g.members())));
  u32 expected = 0;
  for_each_member(g, [&](u32, u32 r) {
    const bool is_odd = (value_of(c, r, round) & 1) != 0;
    PENSTOCK_CHECK_EQ(report, is_odd, contains(odd, r));
    if (is_odd) PENSTOCK_CHECK_EQ(report, r, nth(odd, count_below(odd, r)));
    expected += is_odd ? 1 : 0;
  });
  PENSTOCK_CHECK_EQ(report, expected, count(odd));
}

/// `classes`: how many different values there are at most; they differ in their upper half alone.
template <thread_group G>
PENSTOCK_FN void check_match_any(G const& g, test_context const& c, u64 round, u64 classes) {
  check_report& report = *c.report;
  auto value = [&](u32 r) { return (value_of(c, r, round) % classes) << 32 | 5; };
  const auto alike = g.match_any(value(g.rank()));
  PENSTOCK_CHECK(report, contains(alike, g.rank()));
  PENSTOCK_CHECK(report, !any(without(alike, g.members())));
  u32 expected = 0;
  for_each_member(g, [&](u32, u32 r) {
    const bool equal = value(r) == value(g.rank());
    PENSTOCK_CHECK_EQ(report, equal, contains(alike, r));
    expected += equal ? 1 : 0;
  });
  PENSTOCK_CHECK_EQ(report, expected, count(alike));
  PENSTOCK_CHECK(report, g.match_any(c.seed()) == g.members());
  PENSTOCK_CHECK_EQ(report, 1u, count(g.match_any(g.rank())));
}

/// Every lane reads from another rank; all 64 bits arrive.
template <thread_group G>
PENSTOCK_FN void check_shfl(G const& g, test_context const& c, u64 round) {
  check_report& report = *c.report;
  const u32 wanted = static_cast<u32>((index_in(g) + value_of(c, 0, round)) % size(g));
  u32 source = g.rank();
  for_each_member(g, [&](u32 k, u32 r) {
    if (k == wanted) source = r;
  });
  PENSTOCK_CHECK_EQ(report, value_of(c, source, round), g.shfl(value_of(c, g.rank(), round), source));
  PENSTOCK_CHECK_EQ(report, value_of(c, lowest(g.members()), round), from_leader(g, value_of(c, g.rank(), round)));
}

/// Plain writes before a sync are seen by all members after it. slots: one per thread of the run.
template <thread_group G>
PENSTOCK_FN void check_sync(G const& g, test_context const& c, u64 round, u64* slots) {
  const u32 next = static_cast<u32>((index_in(g) + 1) % size(g));
  u32 source = g.rank();
  for_each_member(g, [&](u32 k, u32 r) {
    if (k == next) source = r;
  });
  const u64 neighbour = g.shfl(c.thread, source);
  slots[c.thread] = value_of(c, g.rank(), round);
  g.sync();
  PENSTOCK_CHECK_EQ(*c.report, value_of(c, source, round), slots[neighbour]);
  g.sync();
}

struct group_properties {
  u64* slots = nullptr;  ///< run_shape::threads of them
  u32 rounds = 2;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    check_membership(g, c);
    for (u32 round = 0; round < rounds; ++round) {
      check_ballot(g, c, round);
      check_match_any(g, c, round, 1 + 3 * round);
      check_shfl(g, c, round);
      check_sync(g, c, round, slots);
    }
  }
};

}  // namespace penstock::test
