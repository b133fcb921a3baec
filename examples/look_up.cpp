// Looks up elements by their positions, four of a thread in flight: read_async requests an element, wait takes it.
//
//   look_up VALUES.npy POSITIONS.npy        float64 and uint64; prints the sum of VALUES[POSITIONS % size]
//
// Where a thread knows several of its next reads, their misses overlap; with a[i] each waits for the one before it.
#include "penstock/executor/launch.hpp"
#include "penstock/runtime/stored_array.hpp"

#include <cstdio>
#include <exception>

using penstock::u64;

struct sum_of {
  penstock::array_view<double> values;
  penstock::array_view<u64> positions;
  double* sum;

  PENSTOCK_FN u64 position(u64 i) const { return positions[i] % values.size(); }

  template <class Group>
  PENSTOCK_FN void operator()(Group const&, penstock::grid_range range) const {
    constexpr u64 ahead = 4;
    double mine = 0;
    u64 i = range.first;
    for (; i + (ahead - 1) * range.step < range.last; i += ahead * range.step) {
      auto first = values.read_async(position(i));
      auto second = values.read_async(position(i + range.step));
      auto third = values.read_async(position(i + 2 * range.step));
      auto fourth = values.read_async(position(i + 3 * range.step));
      mine += first.wait() + second.wait() + third.wait() + fourth.wait();
    }
    for (; i < range.last; i += range.step) mine += values[position(i)];
    penstock::device_ref<double>(*sum).fetch_add(mine, penstock::relaxed);
  }
};

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: look_up VALUES.npy POSITIONS.npy\n");
    return 2;
  }
  try {
    auto on = penstock::open_executor("auto");
    penstock::stored_array values(*on, words[1], {.cache = {.bytes = 64 << 20}});
    penstock::stored_array positions(*on, words[2], {.cache = {.bytes = 16 << 20}});
    penstock::buffer<double> sum(on->memory(), penstock::memory_kind::local, 1);
    double total = 0;
    sum.write({&total, 1});
    penstock::launch<1>(*on, values.size() == 0 ? 0 : positions.size(),
                        sum_of{values.view<double>(), positions.view<u64>(), sum.data()});
    positions.cache().check_faults();
    values.cache().check_faults();
    sum.read({&total, 1});
    std::printf("%.17g\n", total);
    return 0;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "look_up: %s\n", problem.what());
    return 2;
  }
}
