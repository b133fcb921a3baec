// Rows that are kept next to the kernels: gathers give what the file has.
#include "device/sampling_fixture.hpp"
#include "support/scratch_files.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>
#include <set>

namespace penstock::test {
namespace {

using test_support::noise;
using test_support::put_file;
using test_support::refusal_of;
using test_support::scratch_folder;

struct kept_place {
  char const* name;
  placement where;
  bool in_file;
};

/// Rows of which some are kept; what lies before row 0 in a file is none of them.
class sampling_kept_rows : public testing::TestWithParam<kept_place> {
 protected:
  static constexpr u64 rows = 300, header_bytes = 64, line_bytes = 512, frames = 64;

  std::unique_ptr<row_array> open(u64 row_bytes, bool writable = false) {
    row_bytes_ = row_bytes;
    content_ = noise(rows * row_bytes, row_bytes);
    memory_ = content_;
    row_array_options options;
    options.where = GetParam().where;
    options.writable = writable;
    options.cache.bytes = frames * line_bytes;
    options.cache.line_bytes = line_bytes;
    row_source source;
    if (GetParam().in_file) {
      source.path = scratch_ / "rows";
      source.offset = header_bytes;
      put_file(source.path, std::string(header_bytes, 'h') + content_);
    } else {
      source.memory = memory_.data();
    }
    return std::make_unique<row_array>(*on_, row_shape{rows, row_bytes}, source, options);
  }

  /// Others have changed all rows where they lie.
  void change_all() {
    std::string changed = content_;
    for (char& byte : changed) byte = static_cast<char>(~byte);
    if (GetParam().in_file) {
      std::fstream file(scratch_ / "rows", std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(header_bytes);
      file.write(changed.data(), static_cast<std::streamsize>(changed.size()));
    } else {
      std::copy(changed.begin(), changed.end(), memory_.begin());
    }
  }

  template <class Index>
  static row_list list_of(std::vector<Index> const& numbers) {
    return {numbers.data(), numbers.size(), sizeof(Index)};
  }

  /// Gathers, and compares with the file. Returns how many of the list are kept.
  template <class Index>
  u64 check_gather(row_array& array, std::vector<Index> const& numbers, std::set<u64> const& kept) const {
    std::string out(numbers.size() * row_bytes_, 'e');
    std::optional<u64> bad;
    u64 wrong = 0, of_kept = 0;
    const std::optional<u64> reported = array.gather_now(list_of(numbers), out.data());
    for (u64 k = 0; k < numbers.size(); ++k) {
      const auto row = static_cast<u64>(numbers[k] < 0 ? numbers[k] + static_cast<std::int64_t>(rows) : numbers[k]);
      std::string expected(row_bytes_, 'e');
      if (row < rows) {
        expected = content_.substr(row * row_bytes_, row_bytes_);
        of_kept += kept.count(row);
      } else if (!bad) {
        bad = k;
      }
      wrong += out.compare(k * row_bytes_, row_bytes_, expected) != 0 ? 1 : 0;
    }
    EXPECT_EQ(0u, wrong) << "rows of " << row_bytes_ << " bytes";
    EXPECT_EQ(bad, reported) << "rows of " << row_bytes_ << " bytes";
    return of_kept;
  }

  /// Row 0, the last one, and others in no order.
  static std::vector<std::int64_t> some_rows() {
    std::vector<std::int64_t> all(rows);
    std::iota(all.begin(), all.end(), std::int64_t{0});
    std::mt19937_64 random(3);
    std::shuffle(all.begin(), all.end(), random);
    all.resize(37);
    for (const std::int64_t row : {std::int64_t{0}, static_cast<std::int64_t>(rows) - 1}) {
      if (std::find(all.begin(), all.end(), row) == all.end()) all.push_back(row);
    }
    return all;
  }
  static std::set<u64> as_set(std::vector<std::int64_t> const& numbers) { return {numbers.begin(), numbers.end()}; }

  std::unique_ptr<executor> on_ = open_executor("cpu", 3);
  scratch_folder scratch_;
  std::string content_, memory_;
  u64 row_bytes_ = 0;
};
INSTANTIATE_TEST_SUITE_P(, sampling_kept_rows,
                         testing::Values(kept_place{"memory", placement::host, false},
                                         kept_place{"file", placement::host, true},
                                         kept_place{"cached_memory", placement::host_cached, false},
                                         kept_place{"storage", placement::storage, true}),
                         [](auto const& test) { return std::string(test.param.name); });

TEST_P(sampling_kept_rows, and_others_are_gathered_as_the_list_says) {
  for (const u64 row_bytes : {4, 100, 512, 5000}) {
    const auto array = open(row_bytes);
    const std::vector<std::int64_t> kept = some_rows();
    EXPECT_EQ(0u, array->kept_rows_taken().own);
    array->keep_rows(kept);
    EXPECT_EQ(0u, array->kept_rows_taken().own);
    EXPECT_EQ(0u, array->bytes_requested());
    std::vector<std::int64_t> numbers(1000);
    for (u64 k = 0; k < numbers.size(); ++k) {
      const u64 drawn = random_word(row_bytes, 4, k);
      const auto any_row = static_cast<std::int64_t>(drawn % (2 * rows)) - static_cast<std::int64_t>(rows);
      numbers[k] = k % 3 == 0 ? kept[drawn % kept.size()] : any_row;
    }
    u64 taken = check_gather(*array, numbers, as_set(kept));
    EXPECT_GT(taken, 333u);
    EXPECT_EQ(taken, array->kept_rows_taken().own);
    numbers[411] = static_cast<std::int64_t>(rows);
    numbers[207] = -static_cast<std::int64_t>(rows) - 1;
    numbers[990] = std::numeric_limits<std::int64_t>::max();
    taken += check_gather(*array, numbers, as_set(kept));
    EXPECT_EQ(taken, array->kept_rows_taken().own);
    const std::vector<std::int32_t> few{static_cast<std::int32_t>(kept[2]), -1, 0, 0, 250, static_cast<std::int32_t>(rows)};
    taken += check_gather(*array, few, as_set(kept));
    EXPECT_EQ(taken, array->kept_rows_taken().own);
    EXPECT_EQ((2 * numbers.size() + few.size()) * row_bytes, array->bytes_requested());
    std::string out(few.size() * row_bytes, 'e');
    for (row_call& call : gather_all(std::vector<row_gather>{{array.get(), list_of(few), out.data()}})) {
      EXPECT_EQ(std::optional<u64>(5), call.wait());
    }
    EXPECT_EQ(content_.substr((rows - 1) * row_bytes), out.substr(row_bytes, row_bytes));
    EXPECT_EQ(taken + 4, array->kept_rows_taken().own);
  }
}

TEST_P(sampling_kept_rows, all_of_them_or_none) {
  const auto array = open(100);
  array->keep_rows({});
  std::vector<std::int64_t> all(rows);
  std::iota(all.rbegin(), all.rend(), std::int64_t{0});
  check_gather(*array, all, {});
  EXPECT_EQ(0u, array->kept_rows_taken().own);
  array->keep_rows(all);
  EXPECT_EQ(rows, check_gather(*array, all, as_set(all)));
  EXPECT_EQ(rows, array->kept_rows_taken().own);
}

TEST_P(sampling_kept_rows, are_not_read_where_the_others_lie) {
  for (const u64 row_bytes : {4, 512, 5000}) {
    const auto array = open(row_bytes);
    const std::vector<std::int64_t> kept = some_rows();
    array->keep_rows(kept);
    if (const auto before = array->stats()) {
      check_gather(*array, kept, as_set(kept));
      const auto after = array->stats();
      EXPECT_EQ(before->hits + before->misses, after->hits + after->misses);
      EXPECT_EQ(before->bytes_moved, after->bytes_moved);
    }
    change_all();
    check_gather(*array, kept, as_set(kept));  // copies
    if (GetParam().where == placement::host) {
      const std::set<u64> names = as_set(kept);
      for (char& byte : content_) byte = static_cast<char>(~byte);
      std::vector<std::int64_t> others;
      for (u64 row = 0; row < rows; ++row) {
        if (names.count(row) == 0) others.push_back(static_cast<std::int64_t>(row));
      }
      EXPECT_EQ(0u, check_gather(*array, others, names));  // read in place
    }
  }
}

TEST_P(sampling_kept_rows, are_not_taken_by_grids_and_parts) {
  const auto array = open(512);
  const std::vector<std::int64_t> kept = some_rows();
  array->keep_rows(kept);
  std::string out(rows * 512, 'e');
  EXPECT_EQ(std::nullopt, array->gather_now(row_list::range(0, 1, rows), out.data()));
  EXPECT_EQ(content_, out);
  row_list parts = list_of(kept);
  parts.part = {512, 100, 36};
  EXPECT_EQ(std::nullopt, array->gather_now(parts, out.data()));
  for (u64 k = 0; k < kept.size(); ++k) {
    EXPECT_EQ(content_.substr(static_cast<u64>(kept[k]) * 512 + 100, 36), out.substr(k * 36, 36)) << "row " << kept[k];
  }
  EXPECT_EQ(0u, array->kept_rows_taken().own);
}

TEST_P(sampling_kept_rows, are_refused_in_one_sentence_and_none_is_kept) {
  const auto array = open(100);
  const auto refusal = [](row_array& of, std::vector<std::int64_t> const& numbers) {
    return refusal_of(error_kind::bad_input, [&] { of.keep_rows(numbers); });
  };
  EXPECT_NE(std::string::npos, refusal(*array, {5, 9, 5}).find("row 5 is named twice"));
  EXPECT_NE(std::string::npos, refusal(*array, {5, -1}).find("no row -1"));
  EXPECT_NE(std::string::npos, refusal(*array, {5, rows}).find("no row 300"));
  struct stopped : std::exception {};
  u64 calls = 0;
  const auto stop = [&](u64 done, u64 total) {
    ++calls;
    EXPECT_EQ(200u, done);
    EXPECT_EQ(200u, total);
    throw stopped();
  };
  EXPECT_THROW(array->keep_rows(std::vector<std::int64_t>{5, 9}, stop), stopped);
  EXPECT_EQ(1u, calls);
  check_gather(*array, std::vector<std::int64_t>{5, 9, 5}, {});
  EXPECT_EQ(0u, array->kept_rows_taken().own);
  array->keep_rows(std::vector<std::int64_t>{5, 9});
  EXPECT_NE(std::string::npos, refusal(*array, {7}).find("some are kept already"));
  EXPECT_EQ(3u, check_gather(*array, std::vector<std::int64_t>{5, 9, 5, 7}, {5, 9}));
  EXPECT_EQ(3u, array->kept_rows_taken().own);
  const auto writable = open(100, true);
  EXPECT_NE(std::string::npos, refusal(*writable, {5}).find("it is written to"));
}

}  // namespace
}  // namespace penstock::test
