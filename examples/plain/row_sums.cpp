// Sums the rows of a matrix that is copied to memory whole, a warp to a row: ../row_sums.cpp before Penstock.
//
//   row_sums MATRIX.npy COLUMNS        float32, in C order; prints a sum for each row
#include "penstock/core/atomic.hpp"
#include "penstock/executor/launch.hpp"
#include "plain/npy.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

using penstock::u64;

struct sum_rows {
  float const* matrix;
  u64 columns;
  double* sums;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, penstock::grid_range range) const {
    for (u64 row = range.first; row < range.last; row += range.step) {
      double mine = 0;  // of this lane's elements
      for (u64 k = penstock::index_in(g); k < columns; k += penstock::size(g)) mine += matrix[row * columns + k];
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
    const std::vector<float> values = load_npy<float>(words[1]);
    penstock::buffer<float> matrix(on->memory(), penstock::memory_kind::local, values.size());
    matrix.write(values);
    std::vector<double> found(values.size() / columns, 0);
    penstock::buffer<double> sums(on->memory(), penstock::memory_kind::local, found.size());
    sums.write(found);
    penstock::launch<32>(*on, found.size(), sum_rows{matrix.data(), columns, sums.data()});
    sums.read(found);
    for (const double sum : found) std::printf("%.17g\n", sum);
    return 0;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "row_sums: %s\n", problem.what());
    return 2;
  }
}
