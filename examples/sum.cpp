// Sums a random sample of a NumPy file that may be far larger than memory: the example of the README, whole.
//
//   sum FILE.npy        an array of float64, in C order
#include "penstock/executor/launch.hpp"
#include "penstock/runtime/stored_array.hpp"

#include <cstdio>
#include <exception>

struct sum_sample {
  penstock::array_view<double> a;
  double* sum;

  template <class Group>
  PENSTOCK_FN void operator()(Group const&, penstock::grid_range range) const {
    double mine = 0;
    for (penstock::u64 i = range.first; i < range.last; i += range.step) mine += a[i * 2654435761 % a.size()];
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
    penstock::stored_array file(*on, words[1], {.cache = {.bytes = 64 << 20}});
    penstock::buffer<double> sum(on->memory(), penstock::memory_kind::local, 1);
    penstock::launch<1>(*on, file.size() == 0 ? 0 : 1 << 16, sum_sample{file.view<double>(), sum.data()});
    file.cache().check_faults();
    double total = 0;
    sum.read({&total, 1});
    std::printf("%.17g\n", total);
    return 0;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "sum: %s\n", problem.what());
    return 2;
  }
}
