// Rows that are kept next to the kernels by several executors together, as processes keep them.
#include "penstock/host/error.hpp"
#include "penstock/rows/row_array.hpp"
#include "src/host/owned_file.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

namespace penstock {
namespace {

constexpr u64 rows = 700;

struct shape_case {
  u64 row_bytes, kept, everywhere;
  u32 processes;
};

class kept_together_test : public ::testing::TestWithParam<shape_case> {
 protected:
  void SetUp() override {
    on_ = open_executor("cpu", 2);
    content_.resize(rows * GetParam().row_bytes);
    std::mt19937_64 random(GetParam().row_bytes);
    for (auto& byte : content_) byte = static_cast<u8>(random());
    kept_.resize(rows);
    std::iota(kept_.begin(), kept_.end(), std::int64_t{0});
    std::shuffle(kept_.begin(), kept_.end(), random);
    kept_.resize(GetParam().kept);
    below_ = content_;
    for (u32 p = 0; p < GetParam().processes; ++p) open();
  }

  void open() {
    row_array_options options;
    options.where = placement::host;
    row_source source;
    source.memory = below_.data();
    arrays_.push_back(std::make_unique<row_array>(*on_, row_shape{rows, GetParam().row_bytes}, source, options));
  }

  void keep() {
    std::vector<owned_file> parts;
    std::vector<int> files;
    for (auto const& array : arrays_) {
      parts.emplace_back(array->share_kept_rows(kept_.size(), GetParam().processes, GetParam().everywhere));
      files.push_back(parts.back().get());
    }
    for (u32 p = 0; p < GetParam().processes; ++p) {
      arrays_[p]->keep_rows_together(kept_, {files, p, GetParam().everywhere});
    }
    // What gathers find now comes from copies, or it is wrong.
    for (const std::int64_t row : kept_)
      std::memset(&below_[static_cast<u64>(row) * GetParam().row_bytes], 0, GetParam().row_bytes);
  }

  void expect_all_rows(row_array& array) const {
    std::vector<std::int64_t> list(2 * rows);
    for (u64 k = 0; k < list.size(); ++k) list[k] = static_cast<std::int64_t>(k * 13 % rows);
    std::vector<u8> out(list.size() * GetParam().row_bytes);
    EXPECT_EQ(array.gather({list.data(), list.size()}, out.data()).wait(), std::nullopt);
    for (u64 k = 0; k < list.size(); ++k) {
      const u64 at = static_cast<u64>(list[k]) * GetParam().row_bytes;
      ASSERT_EQ(std::memcmp(&out[k * GetParam().row_bytes], &content_[at], GetParam().row_bytes), 0) << "position " << k;
    }
  }

  std::unique_ptr<executor> on_;
  std::vector<u8> content_, below_;
  std::vector<std::int64_t> kept_;
  std::vector<std::unique_ptr<row_array>> arrays_;
};

INSTANTIATE_TEST_SUITE_P(every, kept_together_test,
                         ::testing::Values(shape_case{512, 300, 0, 2}, shape_case{512, 301, 20, 3}, shape_case{1000, 299, 7, 4},
                                           shape_case{4, 700, 1, 2}, shape_case{9000, 640, 64, 3}, shape_case{16, 5, 5, 4},
                                           shape_case{16, 2, 0, 4}, shape_case{512, 300, 11, 1}));

TEST_P(kept_together_test, every_process_reads_all_of_them) {
  keep();
  for (auto const& array : arrays_) expect_all_rows(*array);
}

TEST_P(kept_together_test, reads_are_counted_by_whose_memory_they_come_from) {
  keep();
  const u64 shared = GetParam().kept - GetParam().everywhere;
  u64 own = 0;
  for (auto const& array : arrays_) {
    expect_all_rows(*array);  // each row twice
    const kept_reads taken = array->kept_rows_taken();
    EXPECT_EQ(taken.own + taken.peers, 2 * GetParam().kept);
    own += taken.own - 2 * GetParam().everywhere;
  }
  EXPECT_EQ(own, 2 * shared);
}

TEST_P(kept_together_test, what_one_kept_stays_when_it_is_gone) {
  keep();
  std::unique_ptr<row_array> const last = std::move(arrays_.back());
  arrays_.clear();
  expect_all_rows(*last);
}

TEST_P(kept_together_test, threads_fill_their_parts_at_once) {
  std::vector<owned_file> parts;
  std::vector<int> files;
  for (auto const& array : arrays_) {
    parts.emplace_back(array->share_kept_rows(kept_.size(), GetParam().processes, GetParam().everywhere));
    files.push_back(parts.back().get());
  }
  std::vector<std::thread> processes;
  for (u32 p = 0; p < GetParam().processes; ++p) {
    processes.emplace_back([&, p] { arrays_[p]->keep_rows_together(kept_, {files, p, GetParam().everywhere}); });
  }
  for (std::thread& each : processes) each.join();
  for (auto const& array : arrays_) expect_all_rows(*array);
}

TEST(kept_together, parts_of_another_size_are_refused) {
  const auto on = open_executor("cpu", 1);
  constexpr u64 row_bytes = 16384;
  std::vector<u8> memory(rows * row_bytes);
  row_source source;
  source.memory = memory.data();
  row_array array(*on, {rows, row_bytes}, source, {});
  const owned_file part(array.share_kept_rows(600, 2, 0)), small(array.share_kept_rows(20, 2, 0));
  std::vector<std::int64_t> kept(600);
  std::iota(kept.begin(), kept.end(), std::int64_t{0});
  const int files[] = {part.get(), small.get()};
  EXPECT_THROW(array.keep_rows_together(kept, {files, 0, 0}), error);
  EXPECT_THROW(array.keep_rows_together(kept, {files, 2, 0}), error);
  EXPECT_THROW(array.keep_rows_together(kept, {{}, 0, 0}), error);
  EXPECT_THROW(array.share_kept_rows(600, 2, 601), error);
  const owned_file other(array.share_kept_rows(600, 2, 0));
  const int fits[] = {part.get(), other.get()};
  array.keep_rows_together(kept, {fits, 0, 0});
  EXPECT_THROW(array.keep_rows_together(kept, {fits, 0, 0}), error);
}

}  // namespace
}  // namespace penstock
