// The emulator's own tests: right values whatever the masks, only `sync` orders memory (under ThreadSanitizer), and each misuse
// is told by name and never hangs.
#include "support/emulated_warp.hpp"
#include "support/emulated_block.hpp"
#include "support/test_context.hpp"

#include <gtest/gtest.h>

#include <random>

namespace penstock::test {
namespace {

/// The message of the failure that `run` ends with; empty if it does not.
template <class Run>
std::string failure_of(Run const& run) {
  try {
    run();
  } catch (emulation_error const& error) {
    return error.what();
  }
  return {};
}

/// For misuses that nothing but the deadline reveals.
constexpr u64 short_timeout_ns = 200 * one_millisecond_ns;

/// The group of `lane` in round `round`, worked out by every lane alone: lanes with the same random colour.
lane_mask group_in_round(lane_mask all, u32 lane, u64 round) {
  const u64 colours = 1 + random_word(1, round, 99) % 4;
  auto colour = [&](u32 l) { return random_word(2, round, l) % colours; };
  lane_mask group = 0;
  for (lane_mask rest = all; rest != 0; rest &= rest - 1) {
    if (colour(lowest(rest)) == colour(lane)) group |= 1u << lowest(rest);
  }
  return group;
}

/// One random collective; the number of wrong results.
u32 random_collective(emulated_warp const& g, u64 round) {
  auto value = [&](u32 lane) { return random_word(3, round, lane); };
  const u64 mine = value(g.rank());
  lane_mask expected = 0;
  switch (random_word(4, round, g.members()) % 4) {
    case 0:
      for (u32 l = 0; l < 32; ++l) expected |= static_cast<u32>(value(l) & 1) << l;
      return g.ballot((mine & 1) != 0) == (expected & g.members()) ? 0 : 1;
    case 1:
      for (u32 l = 0; l < 32; ++l) expected |= (value(l) % 3 == mine % 3 ? 1u : 0u) << l;
      return g.match_any(mine % 3) == (expected & g.members()) ? 0 : 1;
    case 2: return from_leader(g, mine) == value(lowest(g.members())) ? 0 : 1;
    default: g.sync(); return 0;
  }
}

u32 wrong_results(lane_mask all, u64 rounds) {
  std::atomic<u32> wrong{0};
  run_emulated_warp(all, [&](emulated_warp const& g) {
    for (u64 round = 0; round < rounds; ++round) {
      wrong += random_collective(g.subgroup(group_in_round(all, g.rank(), round)), round);
    }
  });
  return wrong;
}

TEST(emulated_warp, ten_thousand_random_collectives_of_changing_groups) { EXPECT_EQ(0u, wrong_results(0x000000ffu, 10'000)); }

TEST(emulated_warp, random_collectives_of_all_lanes) { EXPECT_EQ(0u, wrong_results(0xffffffffu, 2000)); }

TEST(emulated_warp, masks_with_holes) { EXPECT_EQ(0u, wrong_results(0x90010204u, 10'000)); }

TEST(emulated_warp, sync_orders_plain_memory) {
  u64 slots[32] = {};
  std::atomic<u32> wrong{0};
  run_emulated_warp(0xf00fu, [&](emulated_warp const& g) {
    for (u64 round = 1; round <= 200; ++round) {
      slots[g.rank()] = round;
      g.sync();
      for (lane_mask rest = g.members(); rest != 0; rest &= rest - 1) wrong += slots[lowest(rest)] == round ? 0 : 1;
      g.sync();
    }
  });
  EXPECT_EQ(0u, wrong);
}

TEST(emulated_warp, groups_of_one_warp_do_not_wait_for_each_other) {
  std::atomic<bool> other_group_done{false};
  run_emulated_warp(0xfu, [&](emulated_warp const& g) {
    const bool upper = g.rank() >= 2;
    const emulated_warp half = g.subgroup(upper ? 0xcu : 0x3u);
    if (upper) {
      while (!other_group_done) std::this_thread::yield();
    }
    for (u32 i = 0; i < 100; ++i) half.sync();
    if (!upper) other_group_done = true;
    g.sync();
  });
}

TEST(emulated_warp, partitions_are_disjoint_and_complete) {
  std::mt19937_64 rng(7);
  for (u32 i = 0; i < 1000; ++i) {
    const auto all = static_cast<lane_mask>(rng() | 1);
    lane_mask seen = 0;
    for (lane_mask part : random_partition(rng, all)) {
      EXPECT_NE(0u, part);
      EXPECT_EQ(0u, part & seen);
      seen |= part;
    }
    EXPECT_EQ(all, seen);
  }
}

TEST(emulated_warp, lanes_of_a_partition_meet_their_own_group) {
  std::mt19937_64 rng(11);
  for (u32 i = 0; i < 5; ++i) {
    std::atomic<u32> lanes{0}, wrong{0};
    run_partition(rng, 0xffff00ffu, [&](emulated_warp const& g) {
      wrong += g.ballot(true) == g.members() ? 0 : 1;
      lanes += is_leader(g) ? size(g) : 0;
    });
    EXPECT_EQ(0u, wrong);
    EXPECT_EQ(24u, lanes);
  }
}

TEST(emulated_warp_misuse, a_lane_that_left_is_named) {
  const std::string message = failure_of([] {
    run_emulated_warp(7, [](emulated_warp const& g) {
      if (g.rank() != 2) g.match_any(5);
    });
  });
  EXPECT_EQ("match_any on mask 7 has only lanes 3; lane 2 has left", message);
}

TEST(emulated_warp_misuse, a_lane_that_does_not_come_is_named_at_the_deadline) {
  std::atomic<u32> unwound{0};
  const std::string message = failure_of([&] {
    run_emulated_warp(
        7,
        [&](emulated_warp const& g) {
          struct counter {
            std::atomic<u32>& n;
            ~counter() { ++n; }
          } at_exit{unwound};
          while (g.rank() == 2 && unwound < 2) std::this_thread::yield();
          if (g.rank() != 2) g.ballot(true);
        },
        short_timeout_ns);
  });
  EXPECT_EQ("ballot on mask 7 has only lanes 3; lane 2 did not come within 200 ms", message);
}

TEST(emulated_warp_misuse, another_collective) {
  const std::string message = failure_of([] {
    run_emulated_warp(3, [](emulated_warp const& g) {
      if (g.rank() == 0) {
        g.sync();
      } else {
        g.shfl(1, 0);
      }
    });
  });
  EXPECT_TRUE(message == "sync on mask 3 has only lanes 1; lane 1 is in shfl on mask 3" ||
              message == "shfl on mask 3 has only lanes 2; lane 0 is in sync on mask 3")
      << message;
}

TEST(emulated_warp_misuse, another_mask) {
  const std::string message = failure_of([] {
    run_emulated_warp(
        0xf, [](emulated_warp const& g) { g.subgroup(g.rank() == 0 ? 0x3u : 0xfu).ballot(true); }, short_timeout_ns);
  });
  EXPECT_TRUE(message == "ballot on mask 3 has only lanes 1; lane 1 is in ballot on mask f" ||
              message == "ballot on mask f has only lanes e; lane 0 is in ballot on mask 3")
      << message;
}

TEST(emulated_warp_misuse, shfl_from_outside) {
  const auto read_from = [](u32 rank) {
    return failure_of([=] { run_emulated_warp(7, [=](emulated_warp const& g) { g.shfl(1, rank); }); });
  };
  EXPECT_EQ("shfl on mask 7 reads rank 5", read_from(5));
  EXPECT_EQ("shfl on mask 7 reads rank 32", read_from(32));
}

TEST(emulated_warp_misuse, subgroup_without_its_lane_or_beyond_its_group) {
  const auto narrow_to = [](lane_mask mask) {
    return failure_of([=] { run_emulated_warp(2, [=](emulated_warp const& g) { g.subgroup(mask); }); });
  };
  EXPECT_EQ("subgroup 1 of mask 2 is not for lane 1", narrow_to(1));
  EXPECT_EQ("subgroup 6 of mask 2 is not for lane 1", narrow_to(6));
}

TEST(emulated_warp_misuse, a_failing_body_ends_all_lanes_and_is_what_the_caller_sees) {
  try {
    run_emulated_warp(0xffff, [](emulated_warp const& g) {
      if (g.rank() == 3) throw std::runtime_error("lane 3 failed");
      g.sync();
    });
    FAIL();
  } catch (std::runtime_error const& error) {
    EXPECT_STREQ("lane 3 failed", error.what());
  }
}

TEST(emulated_warp_misuse, a_destructor_may_use_its_group_while_the_lane_is_unwound) {
  struct on_exit {
    emulated_warp const& g;
    ~on_exit() { g.ballot(true); }
  };
  const std::string message = failure_of([] {
    run_emulated_warp(7, [](emulated_warp const& g) {
      if (g.rank() == 2) return;
      const on_exit last{g};
      g.shfl(1, g.rank() == 0 ? 9 : 0);
    });
  });
  EXPECT_NE(std::string::npos, message.find("shfl on mask 7")) << message;
}

TEST(emulated_block, misuses_are_told) {
  EXPECT_EQ("shfl on mask ffffffffff reads rank 40",
            failure_of([] { run_emulated_block(40, [](emulated_block const& g) { g.shfl(1, 40); }); }));
  EXPECT_EQ("ballot on mask 1ffffffff has only lanes ffffffff; lane 32 has left", failure_of([] {
              run_emulated_block(33, [](emulated_block const& g) {
                if (g.rank() < 32) g.ballot(true);
              });
            }));
}

}  // namespace
}  // namespace penstock::test
