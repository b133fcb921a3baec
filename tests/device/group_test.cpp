// The models of thread_group that exist on a CPU, and the functions of the wide mask.
#include "device/group_test_body.hpp"

#include "support/run_everywhere.hpp"

namespace penstock::test {
namespace {

struct properties_on_cpu : group_properties {
  std::vector<u64> memory;

  void prepare(run_shape shape) {
    memory.assign(shape.threads, 0);
    slots = memory.data();
  }
};

TEST(group, six_operations_agree_in_every_model) { run_everywhere(properties_on_cpu{}, {.warps = 2, .partitions = 4}); }

TEST(group, masks_with_holes_and_single_lanes) {
  properties_on_cpu body;
  run_warps(body, "holes", {{0x55555555u, 0xaaaa0000u, 0x00000002u, 0x0000aaa8u}}, test_seed());
  run_warps(body, "highest lane alone", {{0x80000000u}}, test_seed());
  run_warps(body, "absent lanes", {{0x00f00f00u, 0x80000001u}}, test_seed());
}

TEST(group, six_operations_agree_under_a_wide_mask) {
  properties_on_cpu body;
  body.rounds = 1;
  for (u32 lanes : {1u, 33u, 40u, 64u}) run_block(body, lanes, test_seed());
}

TEST(block_mask, counts_and_finds_ranks_in_any_word) {
  for (u32 n : {0u, 1u, 31u, 32u, 33u, 64u, 1023u, 1024u}) {
    const block_mask m = first_ranks(n);
    EXPECT_EQ(n, count(m));
    EXPECT_EQ(n != 0, any(m));
    for (u32 rank : {0u, 31u, 32u, 700u, 1023u}) {
      EXPECT_EQ(rank < n, contains(m, rank));
      EXPECT_EQ(std::min(rank, n), count_below(m, rank));
    }
  }
}

TEST(block_mask, without_leaves_the_rest) {
  block_mask low = first_ranks(40);
  const block_mask rest = without(first_ranks(1000), low);
  EXPECT_EQ(960u, count(rest));
  EXPECT_EQ(40u, lowest(rest));
  EXPECT_FALSE(any(without(low, first_ranks(1000))));
  EXPECT_TRUE(without(first_ranks(1000), rest) == low);
  low.insert(900);
  EXPECT_EQ(41u, count(low));
  EXPECT_EQ(40u, count_below(low, 900));
  EXPECT_FALSE(low == first_ranks(40));
}

}  // namespace
}  // namespace penstock::test
