// Sums a random sample of a NumPy file that is copied to memory whole: ../sum.cpp before Penstock.
//
//   sum FILE.npy        an array of float64, in C order
#include "penstock/core/atomic.hpp"
#include "penstock/executor/launch.hpp"
#include "plain/npy.hpp"

#include <cstdio>
#include <exception>
#include <vector>

struct sum_sample {
  double const* a;
  penstock::u64 size;
  double* sum;

  template <class Group>
  PENSTOCK_FN void operator()(Group const&, penstock::grid_range range) const {
    double mine = 0;
    for (penstock::u64 i = range.first; i < range.last; i += range.step) mine += a[i * 2654435761 % size];
    penstock::device_ref<double>(*sum).fetch_add(mine, penstock::relaxed);
  }
};

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: sum FILE.npy\n");
    return 2;
  }
  try {
    auto on = penstock::open_executor("auto");
    const std::vector<double> values = load_npy<double>(words[1]);
    penstock::buffer<double> a(on->memory(), penstock::memory_kind::local, values.size());
    a.write(values);
    penstock::buffer<double> sum(on->memory(), penstock::memory_kind::local, 1);
    penstock::launch<1>(*on, values.empty() ? 0 : 1 << 16, sum_sample{a.data(), values.size(), sum.data()});
    double total = 0;
    sum.read({&total, 1});
    std::printf("%.17g\n", total);
    return 0;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "sum: %s\n", problem.what());
    return 2;
  }
}
