// Plain loops on the host that every result is compared with. They share nothing with what they check but the file.
#pragma once

#include "libs/bench/stamped_store.hpp"
#include "libs/media/array_file.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace penstock::regular {

/// A sum in both ways: integers wrapped, and everything as long double beside the sum of the magnitudes.
struct reference_sum {
  u64 word = 0;
  long double number = 0;
  long double magnitude = 0;
};

/// Sums of the columns of an array of so many; of one column: of all elements.
std::vector<reference_sum> reference_sums(media::array_file const& file, u64 columns, progress_fn const& progress);

/// Empty, or how a sum differs from the reference; `tolerance`: of the sum of the magnitudes.
std::string compare_sum(reference_sum const& expected, u64 found);
std::string compare_sum(reference_sum const& expected, double found, double tolerance);

/// Compares c, as `read` gives it (byte of its data, where to), with a + b. Empty, or which element differs.
std::string compare_added(media::array_file const& a, media::array_file const& b,
                          std::function<void(u64, std::span<std::byte>)> const& read, progress_fn const& progress);

}  // namespace penstock::regular
