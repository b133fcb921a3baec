// A cache over memory that kernels reach: whoever misses a line copies it, and no queue is there.
#include "device/array_test_body.hpp"

#include "penstock/host/error.hpp"
#include "penstock/runtime/line_cache.hpp"
#include "support/cache_fixture.hpp"
#include "support/run_everywhere.hpp"

namespace penstock::test {
namespace {

#ifdef PENSTOCK_TSAN
constexpr u32 rounds = 3;
#else
constexpr u32 rounds = 12;
#endif
constexpr everywhere few{.lone_threads = 3, .warps = 2, .partitions = 1};
constexpr u64 bytes = 19992;  // the last line is cut short, and so are its last 16 bytes

struct copied_bytes {
  explicit copied_bytes(directory_kind directory) : memory(bytes / sizeof(u64)), cache(*on, {spec()}, options_of(directory)) {
    for (u64 w = 0; w < memory.size(); ++w) memory[w] = stamp(w);
  }
  dataset_spec spec() const { return {"memory", bytes, {}, false, memory.data()}; }
  static cache_options options_of(directory_kind directory) {
    cache_options options;
    options.line_bytes = 512;
    options.bytes = 14 * options.line_bytes;
    options.directory = directory;
    return options;
  }
  template <class T>
  array_view<T> resident() const {
    return {reinterpret_cast<T const*>(memory.data()), bytes / sizeof(T)};
  }
  template <class T>
  array_view<T> stored() const {
    return cache.array<T>(0, 0, bytes / sizeof(T));
  }

  std::unique_ptr<executor> on = open_executor("cpu", 1);
  std::vector<u64> memory;  // as long as it is, so that a sanitizer sees who looks behind it
  line_cache cache;
};

void expect_copied(copied_bytes& from) {
  from.cache.check_faults();
  const cache_stats stats = from.cache.stats(0);
  EXPECT_GT(stats.evictions, 0u);
  EXPECT_EQ(stats.errors, 0u);
  EXPECT_EQ(stats.prefetches, 0u);
  EXPECT_EQ(stats.bytes_moved, 512 * stats.fills);
  EXPECT_TRUE(from.cache.queues().empty());
}

template <class T>
class copied_lines_test : public testing::Test {};
using element_types = testing::Types<u8, u32, u64, wide_element, element24>;
TYPED_TEST_SUITE(copied_lines_test, element_types);

TYPED_TEST(copied_lines_test, are_what_memory_has) {
  for (const directory_kind directory : both_directories) {
    copied_bytes from(directory);
    run_everywhere(same_elements_body<TypeParam>{from.resident<TypeParam>(), from.stored<TypeParam>(), rounds}, few);
    run_everywhere(told_elements_body<TypeParam>{from.resident<TypeParam>(), from.stored<TypeParam>(), rounds}, few);
    expect_copied(from);
  }
}

TEST(copied_lines, are_read_in_spans_and_held) {
  for (const directory_kind directory : both_directories) {
    copied_bytes from(directory);
    run_everywhere(spans_body<u32>{from.resident<u32>(), from.stored<u32>(), rounds / 3}, few);
    run_everywhere(held_lines_body{from.resident<u64>(), from.stored<u64>()}, few);
    expect_copied(from);
  }
}

void expect_refused(dataset_spec const& spec, std::string const& why) {
  const auto on = open_executor("cpu", 1);
  try {
    const line_cache cache(*on, {spec}, {});
    ADD_FAILURE() << "accepted";
  } catch (error const& told) {
    EXPECT_NE(std::string(told.what()).find(why), std::string::npos) << told.what();
  }
}

TEST(copied_lines, come_from_aligned_memory_that_is_only_read) {
  alignas(16) static const u64 memory[4]{};
  expect_refused({"a", 8, {}, false, reinterpret_cast<char const*>(memory) + 8}, "not aligned to 16 bytes");
  expect_refused({"b", 8, {}, true, memory}, "which a cache only reads");
  model_controller model{{}};
  expect_refused({"c", 8, {volume_layout::single, {{&model, 1}}}, false, memory}, "in memory and on a volume");
}

}  // namespace
}  // namespace penstock::test
