// Rows of an array by number: the same for every placement that the CPU executor has. Python's tests go on from here.
#include "penstock/rows/row_array.hpp"

#include "penstock/host/error.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <thread>

namespace penstock {
namespace {

constexpr u64 header_bytes = 128;

struct place_kind {
  char const* name;
  placement where;
  bool in_file;
};

class row_arrays : public ::testing::TestWithParam<place_kind> {
 protected:
  void SetUp() override { on_ = open_executor("cpu", 3); }
  void TearDown() override { std::filesystem::remove(path()); }

  static std::string path() { return testing::TempDir() + "penstock_rows_" + std::to_string(::getpid()); }

  /// An array of known bytes; what lies before row 0 in its file is none of them.
  std::unique_ptr<row_array> open(u64 rows, u64 row_bytes, bool writable = false) {
    content_.resize(rows * row_bytes);
    std::mt19937_64 random(rows * 1000 + row_bytes);
    for (auto& byte : content_) byte = static_cast<u8>(random());
    memory_ = content_;
    row_array_options options;
    options.where = GetParam().where;
    options.writable = writable;
    options.cache.bytes = 64 * 512;
    options.cache.line_bytes = 512;
    row_source source;
    if (GetParam().in_file) {
      std::ofstream file(path(), std::ios::binary | std::ios::trunc);
      file << std::string(header_bytes, 'h');
      file.write(reinterpret_cast<char const*>(content_.data()), static_cast<std::streamsize>(content_.size()));
      file.close();
      source.path = path();
      source.offset = header_bytes;
    } else {
      source.memory = memory_.data();
    }
    return std::make_unique<row_array>(*on_, row_shape{rows, row_bytes}, source, options);
  }

  template <class Index>
  static row_list list_of(std::vector<Index> const& rows) {
    return {rows.data(), rows.size(), sizeof(Index)};
  }

  bool holds(std::vector<u8> const& out, u64 k, u64 row, u64 row_bytes) const {
    return std::memcmp(out.data() + k * row_bytes, content_.data() + row * row_bytes, row_bytes) == 0;
  }

  std::vector<u8> in_storage() const {
    if (!GetParam().in_file) return memory_;
    std::ifstream file(path(), std::ios::binary);
    file.seekg(header_bytes);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::unique_ptr<executor> on_;
  std::vector<u8> content_, memory_;
};

INSTANTIATE_TEST_SUITE_P(every, row_arrays,
                         ::testing::Values(place_kind{"memory", placement::host, false},
                                           place_kind{"file", placement::host, true},
                                           place_kind{"cached_memory", placement::host_cached, false},
                                           place_kind{"storage", placement::storage, true}),
                         [](auto const& test) { return std::string(test.param.name); });

TEST_P(row_arrays, give_rows_of_any_width_in_the_order_of_the_list) {
  for (const u64 row_bytes : {1, 2, 6, 16, 36, 100, 512, 1044, 5000}) {
    const auto array = open(37, row_bytes);
    const std::vector<std::int64_t> rows{36, 0, 5, 5, -1, 17, -37, 5};
    std::vector<u8> out(rows.size() * row_bytes, 0xee);
    EXPECT_EQ(array->gather(list_of(rows), out.data()).wait(), std::nullopt);
    for (u64 k = 0; k < rows.size(); ++k) {
      EXPECT_TRUE(holds(out, k, static_cast<u64>((rows[k] + 37) % 37), row_bytes)) << row_bytes << " bytes, position " << k;
    }
  }
}

TEST_P(row_arrays, take_indices_of_four_bytes_too) {
  const auto array = open(200, 24);
  std::vector<std::int32_t> rows(1000);
  std::mt19937 random(1);
  for (auto& row : rows) row = static_cast<std::int32_t>(random() % 400) - 200;
  std::vector<u8> out(rows.size() * 24);
  EXPECT_EQ(array->gather(list_of(rows), out.data()).wait(), std::nullopt);
  for (u64 k = 0; k < rows.size(); ++k) EXPECT_TRUE(holds(out, k, static_cast<u64>((rows[k] + 200) % 200), 24)) << k;
}

TEST_P(row_arrays, are_gathered_from_together_each_with_its_own_answer) {
  const auto array = open(50, 36);
  const std::vector<std::int64_t> some{3, -1, 3}, bad{4, 50, 60}, none;
  std::vector<u8> first(3 * 36), second(3 * 36), third;
  const std::vector<row_gather> gathers{{array.get(), list_of(some), first.data()},
                                        {array.get(), list_of(bad), second.data()},
                                        {array.get(), list_of(none), third.data()}};
  auto calls = gather_all(gathers);
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].wait(), std::nullopt);
  EXPECT_EQ(calls[1].wait(), std::optional<u64>(1));
  EXPECT_EQ(calls[2].wait(), std::nullopt);
  EXPECT_TRUE(holds(first, 0, 3, 36) && holds(first, 1, 49, 36) && holds(first, 2, 3, 36) && holds(second, 0, 4, 36));
}

TEST_P(row_arrays, refuse_negative_indices_of_a_list_that_does_not_count_from_the_end) {
  const auto array = open(10, 8);
  const std::vector<std::int64_t> rows{3, -1, 9, -10, 10};
  const std::vector<std::int32_t> short_rows{3, 9, -1};
  std::vector<u8> out(rows.size() * 8, 0xee);
  row_list list = list_of(rows), short_list = list_of(short_rows);
  list.negative_indices = short_list.negative_indices = false;
  EXPECT_EQ(array->gather_now(list, out.data()), std::optional<u64>(1));
  EXPECT_TRUE(holds(out, 0, 3, 8) && holds(out, 2, 9, 8));
  EXPECT_EQ(out[1 * 8], 0xee) << "a row that is not there was stored";
  EXPECT_EQ(array->gather_now(short_list, out.data()), std::optional<u64>(2));
}

TEST_P(row_arrays, tell_the_first_position_that_is_out_of_range_and_give_the_others) {
  const auto array = open(10, 8);
  const std::vector<std::int64_t> rows{3, 9, 10, 1, -11, std::int64_t{1} << 62};
  std::vector<u8> out(rows.size() * 8, 0xee);
  EXPECT_EQ(array->gather(list_of(rows), out.data()).wait(), std::optional<u64>(2));
  EXPECT_TRUE(holds(out, 0, 3, 8) && holds(out, 1, 9, 8) && holds(out, 3, 1, 8));
  EXPECT_EQ(out[2 * 8], 0xee) << "a row that is not there was stored";
}

TEST_P(row_arrays, keep_rows_that_are_stored) {
  for (const u64 row_bytes : {3, 16, 700}) {
    const auto array = open(50, row_bytes, true);
    const std::vector<std::int64_t> rows{7, -1, 20};
    std::vector<u8> values(rows.size() * row_bytes);
    for (u64 k = 0; k < values.size(); ++k) values[k] = static_cast<u8>(k * 3 + 1);
    EXPECT_EQ(array->scatter(list_of(rows), values.data()).wait(), std::nullopt);
    array->flush();
    for (u64 k = 0; k < rows.size(); ++k) {
      std::memcpy(content_.data() + static_cast<u64>((rows[k] + 50) % 50) * row_bytes, values.data() + k * row_bytes,
                  row_bytes);
    }
    EXPECT_EQ(in_storage(), content_) << row_bytes;
  }
}

TEST_P(row_arrays, add_up_repeats) {
  const auto array = open(20, 12, true);
  std::vector<u32> before(content_.size() / 4);
  std::memcpy(before.data(), content_.data(), content_.size());
  const std::vector<std::int64_t> rows(1000, 4);
  const std::vector<u32> values(3000, 5);
  EXPECT_EQ(array->add(list_of(rows), number_kind::uint32, values.data()).wait(), std::nullopt);
  array->flush();
  for (u64 k = 12; k < 15; ++k) before[k] += 5000;
  std::memcpy(content_.data(), before.data(), content_.size());
  EXPECT_EQ(in_storage(), content_);
}

TEST_P(row_arrays, refuse_in_one_sentence_what_cannot_be) {
  const auto sentence = [](auto const& call) -> std::string {
    try {
      call();
    } catch (error const& e) {
      return e.what();
    }
    return "";
  };
  const auto array = open(10, 6);
  const std::vector<std::int64_t> rows{1};
  std::vector<u8> values(6);
  EXPECT_NE(sentence([&] { array->scatter(list_of(rows), values.data()); }).find("opened read-only"), std::string::npos);
  EXPECT_NE(sentence([&] { array->gather({rows.data(), 1, 2}, values.data()); }).find("int32 or int64"), std::string::npos);
  const auto writable = open(10, 6, true);
  EXPECT_NE(sentence([&] { writable->add(list_of(rows), number_kind::uint64, values.data()); }).find("no whole number"),
            std::string::npos);
  EXPECT_NE(sentence([&] { row_array(*on_, {1, 1}, {}, {.where = placement::hbm}); }).find("no GPU"), std::string::npos);
  EXPECT_NE(sentence([&] { row_array(*on_, {1, 0}, {}, {}); }).find("rows of 0 bytes"), std::string::npos);
  EXPECT_NE(sentence([&] { row_array(*on_, {1, 1}, {"/no/such/file"}, {}); }).find("No such file"), std::string::npos);
}

TEST_P(row_arrays, notice_a_file_that_shrinks) {
  if (!GetParam().in_file || GetParam().where != placement::host) GTEST_SKIP() << "only a mapped file can";
  const auto array = open(4096, 64);
  const std::vector<std::int64_t> rows{4000};
  std::vector<u8> out(64);
  std::filesystem::resize_file(path(), 4096);
  try {
    array->gather(list_of(rows), out.data()).wait();
    FAIL() << "a row was read that is not there";
  } catch (error const& e) {
    EXPECT_NE(std::string(e.what()).find("it has 4096 bytes"), std::string::npos) << e.what();
  }
}

TEST_P(row_arrays, read_zeros_where_a_file_was_cut_short_and_say_so) {
  if (!GetParam().in_file || GetParam().where != placement::host) GTEST_SKIP() << "only a mapped file can";
  const auto array = open(4096, 64);
  auto const* const bytes = static_cast<u8 const*>(array->host_address());
  const auto whole = std::filesystem::file_size(path());
  array->check_file();
  std::filesystem::resize_file(path(), 4096);
  // By several threads, that meet on pages; the first row's page is still there.
  std::vector<std::thread> readers;
  std::atomic<u64> zeros = 0;
  for (u32 t = 0; t < 4; ++t) {
    readers.emplace_back([&] {
      for (u64 row = 100; row < 4096; ++row) zeros += bytes[row * 64] == 0 ? 1 : 0;
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(zeros, 4 * 3996u);
  EXPECT_EQ(bytes[0], content_[0]);
  const auto said = [&] {
    try {
      array->check_file();
      return std::string();
    } catch (error const& e) {
      EXPECT_EQ(e.kind(), error_kind::world);
      return std::string(e.what());
    }
  };
  EXPECT_NE(said().find("it has 4096 bytes"), std::string::npos) << said();
  std::filesystem::resize_file(path(), whole);
  EXPECT_NE(said().find("was cut short while it was read"), std::string::npos) << said();
  const std::vector<std::int64_t> rows{1};
  std::vector<u8> out(64);
  EXPECT_THROW(array->gather(list_of(rows), out.data()).wait(), error);
}

TEST_P(row_arrays, write_back_to_where_the_memory_of_the_caller_has_moved) {
  if (GetParam().in_file || GetParam().where != placement::host_cached) GTEST_SKIP() << "only a cache over memory can";
  std::vector<u8> before(4096 * 64, u8{1}), after = before;
  row_source source;
  source.memory = before.data();
  row_array_options options;
  options.where = placement::host_cached;
  options.writable = true;
  options.cache.bytes = 1 << 20;
  options.cache.line_bytes = 512;
  row_array array(*on_, {4096, 64}, source, options);
  const std::vector<std::int64_t> rows{7};
  const std::vector<u8> values(64, u8{9});
  array.scatter(list_of(rows), values.data()).wait();
  array.move_memory(after.data());
  array.flush();
  EXPECT_EQ(after[7 * 64], 9);
  EXPECT_EQ(before[7 * 64], 1);
  after[4000 * 64] = 5;  // read from there, too
  const std::vector<std::int64_t> last{4000};
  std::vector<u8> out(64);
  array.gather(list_of(last), out.data()).wait();
  EXPECT_EQ(out[0], 5);
}

/// A grid of any steps, and what it takes of each row: byte for byte what loops over the bytes take.
struct grid_case {
  u64 first;
  std::vector<row_grid::loop> loops;
  row_part part;
};

TEST_P(row_arrays, give_grids_and_parts_of_rows) {
  constexpr u64 rows = 3000, width = 36;
  const auto array = open(rows, width);
  const std::vector<grid_case> cases{
      {5, {{1, 2000}}, {}},                       // a run
      {2999, {{1, 1}}, {}},                       // a row
      {2999, {{-1, 3000}}, {}},                   // backwards
      {7, {{3, 900}}, {}},                        // every third
      {9 * 5 + 2, {{9, 2000}}, {4, 0, 4}},        // a column of words
      {9 * 5 + 2, {{9, 2000}}, {4, 0, 12}},       // three of them
      {36 * 10, {{-36, 5}, {2, 10}}, {1, 0, 1}},  // every second byte of rows that go back
      {3, {{900, 3}, {90, 4}, {9, 5}, {2, 2}}, {1, 0, 3}},
      {0, {{1, 27'000}}, {4, 0, 4}},   // all, word by word
      {1, {{1, 107'000}}, {1, 0, 1}},  // nearly all, at an odd address
  };
  for (u64 c = 0; c < cases.size(); ++c) {
    const auto& [first, loops, part] = cases[c];
    const row_list list = row_list::over(first, loops, part);
    const u64 pitch = part.pitch != 0 ? part.pitch : width, bytes = part.pitch != 0 ? part.bytes : width;
    std::vector<u8> out(list.count * bytes + 1, 0xee), wanted;
    for (u64 k = 0; k < list.count; ++k) {
      u64 left = k, number = first;
      for (u64 l = loops.size(); l-- > 0; left /= loops[l].count) {
        number += left % loops[l].count * static_cast<u64>(loops[l].step);
      }
      wanted.insert(wanted.end(), content_.begin() + static_cast<long>(number * pitch),
                    content_.begin() + static_cast<long>(number * pitch + bytes));
    }
    wanted.push_back(0xee);
    EXPECT_EQ(array->gather_now(list, out.data()), std::nullopt);
    EXPECT_TRUE(out == wanted) << "case " << c;
    EXPECT_EQ(array->prefetch(list).wait(), std::nullopt) << "case " << c;
  }
}

TEST_P(row_arrays, give_parts_of_the_rows_of_a_list) {
  const auto array = open(37, 100);
  const std::vector<std::int32_t> rows{36, 0, -1, 37, 5};
  std::vector<u8> out(rows.size() * 7, 0xee);
  row_list list = list_of(rows);
  list.part = {100, 91, 7};
  EXPECT_EQ(array->gather_now(list, out.data()), std::optional<u64>(3));
  for (const u64 k : {0, 1, 2, 4}) {
    const u64 row = static_cast<u64>((rows[k] + 37) % 37);
    EXPECT_EQ(0, std::memcmp(&out[k * 7], &content_[row * 100 + 91], 7)) << k;
  }
  EXPECT_EQ(out[3 * 7], 0xee) << "a row that is not there was stored";
}

TEST_P(row_arrays, keep_grids_that_are_stored) {
  constexpr u64 rows = 3000, width = 36;
  const auto array = open(rows, width, true);
  std::vector<u8> expected = content_, values(rows * width);
  for (u64 k = 0; k < values.size(); ++k) values[k] = static_cast<u8>(k * 7 + 1);
  const auto store = [&](u64 first, row_grid::loop const& loop, row_part const& part) {
    const u64 pitch = part.pitch != 0 ? part.pitch : width, bytes = part.pitch != 0 ? part.bytes : width;
    EXPECT_EQ(array->scatter(row_list::over(first, {&loop, 1}, part), values.data()).wait(), std::nullopt);
    for (u64 k = 0; k < loop.count; ++k) {
      std::memcpy(&expected[(first + k * static_cast<u64>(loop.step)) * pitch], &values[k * bytes], bytes);
    }
  };
  store(3, {1, 2990}, {});            // a run
  store(2999, {-2, 1200}, {});        // rows that go back
  store(4, {9, 2999}, {4, 0, 4});     // a column
  store(5, {1, 100'001}, {1, 0, 1});  // a run of bytes at odd addresses
  std::vector<u8> out(expected.size());
  EXPECT_EQ(array->gather_now(row_list::range(0, 1, rows), out.data()), std::nullopt);
  EXPECT_TRUE(out == expected);
  array->flush();
  EXPECT_TRUE(in_storage() == expected);
}

TEST_P(row_arrays, add_to_elements) {
  const auto array = open(50, 36, true);
  const row_list zeros = row_list::range(0, 1, 50);
  EXPECT_EQ(array->scatter(zeros, std::vector<u8>(50 * 36).data()).wait(), std::nullopt);
  const std::vector<std::int64_t> words{9 * 49 + 8, 3, 3};
  row_list list = list_of(words);
  list.part = {4, 0, 4};
  const std::vector<u32> more{5, 6, 7};
  EXPECT_EQ(array->add(list, number_kind::uint32, more.data()).wait(), std::nullopt);
  std::vector<u32> out(50 * 9), expected(50 * 9);
  expected[9 * 49 + 8] = 5;
  expected[3] = 13;
  EXPECT_EQ(array->gather_now(zeros, out.data()), std::nullopt);
  EXPECT_EQ(out, expected);
}

TEST_P(row_arrays, refuse_grids_and_parts_that_reach_beyond_them) {
  const auto array = open(10, 8, true);
  std::vector<u8> memory(1000);
  const std::vector<std::int64_t> row{0};
  const auto refuses = [&](row_list const& list) {
    EXPECT_THROW(array->gather_now(list, memory.data()), error);
    EXPECT_THROW(array->scatter(list, memory.data()), error);
    EXPECT_THROW(array->prefetch(list), error);
  };
  const auto over = [](u64 first, std::vector<row_grid::loop> const& loops, row_part const& part = {}) {
    return row_list::over(first, loops, part);
  };
  refuses(over(0, {{1, 11}}));
  refuses(over(10, {{1, 1}}));
  refuses(over(9, {{-1, 11}}));
  refuses(over(0, {{5, 2}, {2, 4}}));
  refuses(over(0, {{std::int64_t{1} << 62, 3}}));
  refuses(over(1, {{std::numeric_limits<std::int64_t>::min(), 2}}));
  refuses(over(73, {{1, 1}}, {1, 0, 8}));
  refuses(over(0, {{1, 1}}, {8, 0, 81}));
  row_list part = list_of(row);
  part.part = {8, 76, 5};
  refuses(part);
  EXPECT_THROW(row_list::over(0, std::vector<row_grid::loop>(5, {1, 1})), error);
  EXPECT_THROW(over(0, {{1, u64{1} << 40}, {1, u64{1} << 40}}), error);
  EXPECT_EQ(array->gather_now(over(100, {{1, 0}}), memory.data()), std::nullopt) << "of nothing, nothing";
}

TEST_P(row_arrays, give_all_threads_that_wait_for_a_call_its_one_outcome) {
  const auto array = open(8, 8);
  for (u64 turn = 0; turn < 300; ++turn) {
    kernels::array_descriptor lent{}, one{}, other{};
    row_call call = array->lend(lent, 8, false, nullptr, [&] { lent.report->first_bad = turn; });
    std::atomic<u32> ready = 0;
    std::optional<u64> found[2];
    const auto wait = [&](std::optional<u64>& to) {
      ++ready;
      while (ready != 2) {}
      to = call.wait();
    };
    std::thread beside(wait, std::ref(found[0]));
    wait(found[1]);
    beside.join();
    EXPECT_EQ(found[0], turn);
    EXPECT_EQ(found[1], turn);
    const row_call first = array->lend(one, 8, false, nullptr, [] {}), second = array->lend(other, 8, false, nullptr, [] {});
    ASSERT_NE(one.report, other.report) << "two calls that write to one report";
  }
}

TEST_P(row_arrays, give_each_wait_for_a_call_what_went_wrong) {
  const auto array = open(8, 8);
  kernels::array_descriptor lent{};
  row_call call =
      array->lend(lent, 8, false, nullptr, [&] { lent.report->failure = pack(make_status(failure::out_of_range)); });
  EXPECT_THROW(call.wait(), error);
  EXPECT_THROW(call.wait(), error);
}

TEST_P(row_arrays, say_what_they_will_take) {
  row_array_options options;
  options.where = GetParam().where;
  options.cache.bytes = 1 << 20;
  const row_array_plan plan = plan_rows(*on_, {1000, 100}, {.path = path()}, options);
  const bool cached = options.where == placement::storage || options.where == placement::host_cached;
  EXPECT_EQ(plan.storage_bytes, options.where == placement::storage ? 100'000u : 0u);
  EXPECT_EQ(plan.host_bytes, (options.where == placement::storage ? 0u : 100'000u) + (cached ? 1u << 20 : 0u));
  EXPECT_EQ(plan.metadata_bytes != 0, cached);
  EXPECT_EQ(plan.transit_bytes != 0, options.where == placement::storage) << "lines of host memory are copied by who misses";
}

}  // namespace
}  // namespace penstock
