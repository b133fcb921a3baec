// Sums the rows of a matrix in a file: a warp to a row, by runs of elements instead of one at a time.
//
//   row_sums MATRIX.npy COLUMNS        float32, in C order; prints a sum for each row
//
// read_span looks up many lines at once, requests all that are missing before it waits, and loads 16 bytes at a time.
#include "penstock/executor/launch.hpp"
#include "penstock/runtime/stored_array.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

using penstock::u64;

struct sum_rows {
  penstock::array_view<float> matrix;
  u64 columns;
  double* sums;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, penstock::grid_range range) const {
    for (u64 row = range.first; row < range.last; row += range.step) {
      double mine = 0;  // of this lane's elements
      matrix.read_span(g, row * columns, columns, [&](u64, float value) { mine += value; });
      penstock::device_ref<double>(sums[row]).fetch_add(mine, penstock::relaxed);
    }
  }
};

int main(int count, char** words) {
  const u64 columns = count == 3 ? std::strtoull(words[2], nullptr, 10) : 0;
  if (columns == 0) {
    std::fprintf(stderr, "usage: row_sums MATRIX.npy COLUMNS\n");
    return 2;
  }
  try {
    auto on = penstock::open_executor("auto");
    penstock::stored_array file(*on, words[1], {.cache = {.bytes = 64 << 20}});
    std::vector<double> found(file.size() / columns, 0);
    penstock::buffer<double> sums(on->memory(), penstock::memory_kind::local, found.size());
    sums.write(found);
    penstock::launch<32>(*on, found.size(), sum_rows{file.view<float>(), columns, sums.data()});
    file.cache().check_faults();
    sums.read(found);
    for (const double sum : found) std::printf("%.17g\n", sum);
    return 0;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "row_sums: %s\n", problem.what());
    return 2;
  }
}
