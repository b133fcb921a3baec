#include "device/rows_test_body.hpp"
#include "device/shared_gather_test_body.hpp"

#include "penstock/rows/row_array.hpp"
#include "support/cuda_main.cuh"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

namespace penstock::test {
namespace {

PENSTOCK_CUDA_TEST(rows_are_gathered_by_parts_of_warps) {
  const auto on = open_executor("cuda");
  check_gathers(on->memory(), report, cuda_test_seed(),
                [&](auto width, u64 items, auto const& body) { launch<decltype(width)::value>(*on, items, body); });
}

PENSTOCK_CUDA_TEST(rows_are_gathered_by_warps_and_threads_of_the_cpu) {
  const auto on = open_executor("cuda");
  check_shared_gathers(on->memory(), report, cuda_test_seed(), false,
                       [&](auto width, u64 items, auto const& body) { launch<decltype(width)::value>(*on, items, body); });
}

PENSTOCK_CUDA_TEST(rows_behind_a_cache_are_gathered_by_warps) {
  const auto on = open_executor("cuda");
  check_cached_gathers(*on, report, cuda_test_seed(), 5000,
                       [&](auto width, u64 items, auto const& body) { launch<decltype(width)::value>(*on, items, body); });
}

PENSTOCK_CUDA_TEST(rows_side_by_side_behind_a_cache_are_moved_by_warps) {
  const auto on = open_executor("cuda");
  check_cached_runs(*on, report, cuda_test_seed(),
                    [&](auto width, u64 items, auto const& body) { launch<decltype(width)::value>(*on, items, body); });
}

// Enough stores that lines are written back beside what comes next, and a row array that goes while that is under way.
PENSTOCK_CUDA_TEST(rows_that_are_stored_are_written_back_beside_other_work) {
  constexpr u64 rows = 1 << 14, words = 64;
  const auto on = open_executor("cuda");
  const std::string file = (std::filesystem::temp_directory_path() / ("penstock_rows_" + std::to_string(getpid()))).string();
  std::ofstream(file, std::ios::binary) << std::string(rows * words * 8, '\0');
  buffer<u64> values(on->memory(), memory_kind::shared, rows * words);
  buffer<long long> numbers(on->memory(), memory_kind::shared, rows);
  for (u64 turn = 1; turn < 4; ++turn) {
    row_array_options options{.where = placement::storage, .writable = true};
    options.cache = {.bytes = rows * 512 / 2, .line_bytes = 512};
    row_array array(*on, {rows, words * 8}, {.path = file}, options);
    for (u64 i = 0; i < rows * words; ++i) values.data()[i] = turn * i;
    for (u64 k = 0; k < rows; ++k) numbers.data()[k] = static_cast<long long>(k * 7919 % rows);
    // Two parts, each less than may be dirty, so that nobody but the cleaner has a reason to write.
    const u64 part = rows / 8;
    for (u64 first = 0; first < 2 * part; first += part) {
      array.scatter({numbers.data() + first, part, 8}, values.data() + first * words).wait();
    }
    if (turn == 1) {
      array.flush();
      PENSTOCK_CHECK(report, array.stats()->write_backs >= 2 * part);
    }
    if (turn == 3) {
      for (u64 first = 2 * part; first < rows; first += part) {
        array.scatter({numbers.data() + first, part, 8}, values.data() + first * words).wait();
      }
    }
  }
  std::vector<u64> stored(rows * words);
  std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(stored.data()), rows * words * 8);
  std::filesystem::remove(file);
  for (u64 k = 0; k < rows; ++k) {
    const u64 row = k * 7919 % rows;
    for (u64 w = 0; w < words; ++w) PENSTOCK_CHECK_EQ(report, 3 * (k * words + w), stored[row * words + w]);
  }
}

}  // namespace
}  // namespace penstock::test
