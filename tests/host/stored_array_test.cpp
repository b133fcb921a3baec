#include "penstock/runtime/stored_array.hpp"

#include "penstock/executor/launch.hpp"
#include "penstock/host/error.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>

namespace penstock {
namespace {

class stored_array_test : public testing::Test {
 protected:
  stored_array_test() {
    std::string pattern = (std::filesystem::temp_directory_path() / "penstock-array-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    std::iota(values_.begin(), values_.end(), 7);
  }
  ~stored_array_test() override { std::filesystem::remove_all(folder_); }

  std::string write(std::string const& name, std::string const& header, u64 bytes_less = 0) {
    const std::string path = folder_ + "/" + name;
    std::ofstream file(path, std::ios::binary);
    file.write(header.data(), static_cast<std::streamsize>(header.size()));
    file.write(reinterpret_cast<char const*>(values_.data()), static_cast<std::streamsize>(values_.size() * 4 - bytes_less));
    return path;
  }

  std::string refusal(std::string const& path, stored_array_options const& options = {}) {
    try {
      stored_array array(*on_, path, options);
      array.view<std::int32_t>();
    } catch (error const& e) {
      return e.what();
    }
    return "accepted";
  }

  static stored_array_options small() { return {.cache = {.bytes = 16 << 10, .line_bytes = 512}}; }

  std::unique_ptr<executor> on_ = open_executor("cpu", 2);
  std::vector<std::int32_t> values_ = std::vector<std::int32_t>(5003);
  std::string folder_;
};

struct sum_all {
  array_view<std::int32_t> a;
  u64* sum;

  template <thread_group G>
  void operator()(G const&, grid_range range) const {
    u64 mine = 0;
    for (u64 i = range.first; i < range.last; i += range.step) mine += static_cast<u64>(a[i]);
    device_ref<u64>(*sum).fetch_add(mine, relaxed);
  }
};

u64 sum_of(executor& on, stored_array& array) {
  u64 sum = 0;
  launch<1>(on, array.size(), sum_all{array.view<std::int32_t>(), &sum});
  array.cache().check_faults();
  return sum;
}

TEST_F(stored_array_test, reads_npy_in_place_through_a_cache_smaller_than_it) {
  const std::string path = write("a.npy", make_npy_header('i', 4, {5003}));
  const u64 expected = std::accumulate(values_.begin(), values_.end(), u64{0});
  for (const bool aligned : {true, false}) {
    const std::string file = aligned ? path : write("b.npy", make_npy_header('i', 4, {5003}, 128));
    stored_array array(*on_, file, small());
    EXPECT_EQ(array.size(), 5003u);
    EXPECT_EQ(sum_of(*on_, array), expected);
    EXPECT_GT(array.cache().stats(0).evictions, 0u);
  }
}

TEST_F(stored_array_test, reads_raw_binary_with_a_layout) {
  stored_array_options options = small();
  options.raw = raw_layout{4, 12, 5000};
  stored_array array(*on_, write("a.bin", "twelve bytes"), options);
  EXPECT_EQ(sum_of(*on_, array), std::accumulate(values_.begin(), values_.begin() + 5000, u64{0}));
}

struct sum_span {
  array_view<std::int32_t> a;
  u64 begin;
  u64* sum;

  template <thread_group G>
  void operator()(G const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      a.read_span(g, begin + k, a.size() - begin - k, [&](u64, std::int32_t v) { *sum += static_cast<u64>(v); });
    }
  }
};

// Each line is brought by the read of one piece; what is left of it are hits, which ask for nothing.
TEST_F(stored_array_test, a_thread_brings_each_line_of_a_span_once) {
  for (const auto& [header_bytes, begin] : {std::pair{128u, 0u}, {192u, 0u}, {128u, 1u}, {192u, 3u}}) {
    stored_array_options options = small();
    options.cache.read_ahead_bytes = 0;
    stored_array array(*on_, write("a.npy", make_npy_header('i', 4, {5003}, header_bytes)), options);
    u64 sum = 0;
    launch<1>(*on_, 1, sum_span{array.view<std::int32_t>(), begin, &sum});
    EXPECT_EQ(sum, std::accumulate(values_.begin() + begin, values_.end(), u64{0}));
    const cache_stats stats = array.cache().stats(0);
    EXPECT_EQ(stats.fills, ceil_div(header_bytes + 5003 * 4, 512));
    EXPECT_EQ(stats.misses, stats.fills);
    EXPECT_EQ(stats.joins, 0u);
    EXPECT_EQ(stats.prefetches, 0u);
  }
}

struct double_all {
  writable_view<std::int32_t> a;

  template <thread_group G>
  void operator()(G const&, grid_range range) const {
    for (u64 i = range.first; i < range.last; i += range.step) {
      if (i % 3 == 0) {
        a.fetch_add(i, a[i]);
      } else {
        a.write(i, 2 * a[i]);
      }
    }
  }
};

TEST_F(stored_array_test, writes_in_place_through_a_cache_smaller_than_it) {
  std::string about = "{'descr': '<i4', 'fortran_order': False, 'shape': (5003,), }";
  about.resize(117, ' ');
  const std::string header = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + about + "\n";  // 128 bytes
  for (const bool direct : {false, true}) {
    const std::string path = write("w.npy", header);
    stored_array_options options = small();
    options.direct = direct;
    options.writable = true;
    std::unique_ptr<stored_array> array;
    try {
      array = std::make_unique<stored_array>(*on_, path, options);
    } catch (error const& e) {
      if (direct) continue;  // a file system without direct I/O
      FAIL() << e.what();
    }
    EXPECT_NE(std::string::npos, refusal(path, options).find("this process has it open to be written already")) << "one writer";
    launch<1>(*on_, values_.size(), double_all{array->writable<std::int32_t>()});
    array->cache().check_faults();
    array->flush();
    EXPECT_LT(0u, array->cache().stats(0).evictions);
    const auto again = stored_array(*on_, path, small());
    for (u64 i = 0; i < values_.size(); ++i) ASSERT_EQ(2 * values_[i], again.view<std::int32_t>()[i]) << i;
    EXPECT_EQ(header.size() + 4 * values_.size(), std::filesystem::file_size(path));
  }
}

TEST_F(stored_array_test, what_was_opened_to_be_read_is_not_written) {
  const std::string path = write("r.raw", "");
  stored_array_options options = small();
  options.raw = raw_layout{4, 0, values_.size()};
  const stored_array array(*on_, path, options);
  try {
    array.writable<std::int32_t>();
    FAIL();
  } catch (error const& e) {
    EXPECT_EQ("write " + path + ": it was opened read-only: open it as writable", std::string(e.what()));
  }
}

TEST_F(stored_array_test, says_in_one_sentence_what_cannot_be) {
  const std::string good = write("good.npy", make_npy_header('i', 4, {5003}));
  EXPECT_EQ(refusal(folder_ + "/none.npy"),
            "open " + folder_ + "/none.npy: No such file or directory: check the path and its permissions");
  EXPECT_NE(refusal(write("cut.npy", make_npy_header('i', 4, {5003}), 3)).find("bytes"), std::string::npos);
  EXPECT_NE(refusal(write("u.npy", make_npy_header('u', 4, {5003}))).find("not 4 bytes of kind 'i'"), std::string::npos);
  EXPECT_NE(refusal(write("magic.npy", "nonsense")).find("magic"), std::string::npos);
  stored_array_options raw = small();
  raw.raw = raw_layout{4, 0, 1u << 20};
  EXPECT_NE(refusal(good, raw).find("the file has only"), std::string::npos);
  raw.raw = raw_layout{0, 0, 1};
  EXPECT_NE(refusal(good, raw).find("0 bytes"), std::string::npos);
  raw.raw = raw_layout{4, 2, 8};
  EXPECT_NE(refusal(good, raw).find("no multiple of 4"), std::string::npos);
  EXPECT_NE(refusal(good, {.cache = {.line_bytes = 3000}}).find("power of two"), std::string::npos);
  EXPECT_NE(refusal(good, {.cache = {.bytes = 100}}).find("hold no line"), std::string::npos);
  EXPECT_NE(refusal(good, {.cache = {.queue_depth = 1}}).find("1 entries"), std::string::npos);
  EXPECT_THROW(open_executor("gpu"), error);
}

}  // namespace
}  // namespace penstock
