// Memory that is got in slabs and given out in pieces.
#include "src/executor/slab_pool.hpp"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <vector>

namespace penstock {
namespace {

constexpr u64 page = slab_pool::page, slab = 16 * page;

TEST(address_ranges, join_what_touches_and_give_what_is_there_once) {
  address_ranges free;
  free.add(0x1000, 0x1000);
  free.add(0x3000, 0x1000);
  EXPECT_FALSE(free.take(0x2000).has_value());
  EXPECT_FALSE(free.holds(0x1000, 0x2000));
  free.add(0x2000, 0x1000);
  EXPECT_TRUE(free.holds(0x1000, 0x3000));
  EXPECT_FALSE(free.holds(0x1fff, 0x3000));
  EXPECT_FALSE(free.holds(0xfff, 1));
  EXPECT_FALSE(free.holds(0x1000, ~u64{0}));
  EXPECT_TRUE(free.take_at(0x2000, 0x800));
  EXPECT_FALSE(free.take_at(0x2400, 0x800));
  EXPECT_EQ(free.bytes(), 0x2800u);
  EXPECT_EQ(free.take(0x1800), 0x2800u);
  EXPECT_EQ(free.take(0x1000), 0x1000u);
  EXPECT_EQ(free.bytes(), 0u);
}

/// Slabs at addresses of its own, and what became of them.
class slabs_test : public testing::Test {
 protected:
  slab_pool::source source() {
    return {[this](u64 bytes) {
              if (refuses) throw std::runtime_error("no memory");
              const u64 at = next;
              next += bytes;  // they touch
              taken[at] = bytes;
              return reinterpret_cast<void*>(at);
            },
            [this](void* at) { EXPECT_EQ(taken.erase(reinterpret_cast<u64>(at)), 1u); }};
  }

  bool in_one_slab(void* piece, u64 bytes) const {
    const u64 at = reinterpret_cast<u64>(piece);
    const auto of = std::prev(taken.upper_bound(at));
    return at + bytes <= of->first + of->second;
  }

  std::map<u64, u64> taken;
  u64 next = 0x100000;
  bool refuses = false;
};

TEST_F(slabs_test, pieces_are_whole_pages_of_one_slab_and_nobody_elses) {
  slab_pool pool(slab, source());
  std::mt19937_64 random(3);
  std::map<u64, u64> mine;
  for (u32 k = 0; k < 4000; ++k) {
    if (random() % 2 == 0 && !mine.empty()) {
      const auto at = std::next(mine.begin(), static_cast<std::ptrdiff_t>(random() % mine.size()));
      ASSERT_TRUE(pool.deallocate(reinterpret_cast<void*>(at->first), at->second));
      mine.erase(at);
      continue;
    }
    const u64 bytes = 1 + random() % (random() % 16 == 0 ? 3 * slab : 5 * page);
    void* const piece = pool.allocate(bytes);
    const u64 at = reinterpret_cast<u64>(piece);
    ASSERT_EQ(at % page, 0u);
    ASSERT_TRUE(in_one_slab(piece, bytes));
    const auto after = mine.lower_bound(at);
    ASSERT_TRUE(after == mine.end() || at + bytes <= after->first);
    ASSERT_TRUE(after == mine.begin() || std::prev(after)->first + std::prev(after)->second <= at);
    mine[at] = bytes;
  }
}

TEST_F(slabs_test, are_given_back_when_nothing_is_in_use_and_stay_where_something_is) {
  {
    slab_pool pool(slab, source());
    void* const small = pool.allocate(1);
    void* const large = pool.allocate(slab + 1);
    EXPECT_EQ(taken.size(), 2u);
    EXPECT_TRUE(pool.deallocate(large, slab + 1));
    EXPECT_EQ(taken.size(), 1u) << "of one piece: at once";
    EXPECT_TRUE(pool.deallocate(small, 1));
    EXPECT_EQ(taken.size(), 1u) << "others wait for the next piece";
    EXPECT_EQ(pool.allocate(slab), small);
    pool.allocate(page);
    EXPECT_TRUE(pool.deallocate(small, slab));
    EXPECT_FALSE(pool.deallocate(reinterpret_cast<void*>(0x1000), page)) << "is somebody else's";
    EXPECT_FALSE(pool.deallocate(reinterpret_cast<void*>(next), page));
  }
  EXPECT_EQ(taken.size(), 1u) << "the piece that was never given back keeps its slab";
}

TEST_F(slabs_test, are_as_before_when_there_is_no_more_memory) {
  slab_pool pool(slab, source());
  void* const piece = pool.allocate(slab);
  refuses = true;
  EXPECT_THROW(pool.allocate(1), std::runtime_error);
  EXPECT_TRUE(pool.deallocate(piece, slab));
  EXPECT_EQ(pool.allocate(slab), piece);
  pool.deallocate(piece, slab);
}

}  // namespace
}  // namespace penstock
