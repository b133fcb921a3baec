// Copies to a GPU that tell how far they are, and can be stopped.
#include "src/rows/watched_copy.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace penstock {
namespace {

/// Remembers how much of what it was asked for; copies nothing.
class counting_memory final : public memory_resource {
 public:
  void* allocate(memory_kind, u64) override { return nullptr; }
  void deallocate(memory_kind, void*, u64) noexcept override {}
  void write(void* to, void const*, u64 bytes) override { parts.push_back({static_cast<std::byte*>(to), bytes}); }
  void read(void*, void const*, u64) override {}

  struct part {
    std::byte* to;
    u64 bytes;
  };
  std::vector<part> parts;
};

constexpr u64 three_parts_and_a_bit = 3 * rows::copied_at_once + 5;

TEST(watched_copies, tell_after_each_part_and_at_the_end) {
  counting_memory memory;
  std::vector<std::byte> here(1);
  std::vector<u64> told;
  rows::watched_copy(memory, here.data(), here.data(), three_parts_and_a_bit, [&](u64 done, u64 total) {
    EXPECT_EQ(total, three_parts_and_a_bit);
    told.push_back(done);
  });
  EXPECT_EQ(told, (std::vector<u64>{rows::copied_at_once, 2 * rows::copied_at_once, 3 * rows::copied_at_once,
                                    three_parts_and_a_bit}));
  ASSERT_EQ(memory.parts.size(), 4u);
  for (u64 k = 0; k < 4; ++k) EXPECT_EQ(memory.parts[k].to, here.data() + k * rows::copied_at_once);
  EXPECT_EQ(memory.parts[3].bytes, 5u);
}

TEST(watched_copies, end_where_the_watcher_throws) {
  counting_memory memory;
  std::vector<std::byte> here(1);
  const auto stop = [](u64 done, u64) {
    if (done == 2 * rows::copied_at_once) throw std::runtime_error("enough");
  };
  EXPECT_THROW(rows::watched_copy(memory, here.data(), here.data(), three_parts_and_a_bit, stop), std::runtime_error);
  EXPECT_EQ(memory.parts.size(), 2u);
}

TEST(watched_copies, need_no_watcher_and_no_bytes) {
  std::vector<std::byte> from(3000, std::byte{7}), to(3000);
  rows::watched_copy(cpu_memory(), to.data(), from.data(), to.size(), {});
  EXPECT_EQ(to, from);
  rows::watched_copy(cpu_memory(), nullptr, nullptr, 0, [](u64, u64) { FAIL() << "nothing was copied"; });
}

}  // namespace
}  // namespace penstock
