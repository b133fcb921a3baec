// A replacement policy of one's own: lines that are used again and again stay through a scan that CLOCK lets push them out.
//
//   own_policy FILE.npy     float64, at least 4096 lines of 512; prints sum and misses of the same reads by CLOCK, then by ours
#include "penstock/executor/launch.hpp"
#include "penstock/runtime/stored_array.hpp"

#include <cstdio>
#include <exception>

using namespace penstock;

/// Generalized CLOCK (Smith 1978): a line is worth more for each turn of the hand in which it was used, and gives up its frame
/// when it is worth nothing. Of a line that was used in one turn alone that is as soon as CLOCK would take it.
struct worth_policy {
  static constexpr u32 most = 7;

  clock_policy clock;    // its hand
  entry_layout layout;   // how an entry names its frame
  u32* worth = nullptr;  // [frames]

  PENSTOCK_FN u32 candidate() const { return clock.candidate(); }
  PENSTOCK_FN u64 search_limit() const { return u64{most + 2} * clock.frames; }

  /// Called for a line that nobody holds, before its frame is taken: true leaves it alone.
  PENSTOCK_FN bool spares(u64& word, u64 seen) const {
    const device_ref<u32> mine(worth[layout.place(seen)]);
    const u32 now = mine.load(relaxed);  // of two threads that come at once, one may be lost
    if (clock_policy::spares(word, seen)) {
      mine.store(2 * now + 1 < most ? 2 * now + 1 : most, relaxed);
      return true;
    }
    // The last one is for the turn in which the line was read first.
    if (now > 1) mine.store(now - 1, relaxed);
    if (now <= 1) mine.store(0, relaxed);
    return now > 1;
  }
};
static_assert(replacement_policy<worth_policy>);

constexpr u64 reads = 1 << 18, line_values = 512, hot_lines = 200;

/// Every other read is of a few hot lines, the rest goes once through all others, again and again.
template <class Array>
struct sum_mixed {
  Array a;
  double* sum;

  template <class Group>
  PENSTOCK_FN void operator()(Group const&, grid_range range) const {
    double mine = 0;
    for (u64 i = range.first; i < range.last; i += range.step) {
      const u64 drawn = i * 0x9e3779b97f4a7c15u >> 24;
      const u64 line = i % 2 == 0 ? drawn % hot_lines : hot_lines + i / 2 % (a.size() / line_values - hot_lines);
      mine += a[line * line_values + drawn % line_values];
    }
    device_ref<double>(*sum).fetch_add(mine, relaxed);
  }
};

/// `read(array)`: launches with an array that reads the file through a fresh cache, by the policy that it asked for.
template <class Read>
void print_run(executor& on, char const* path, Read const& read) {
  // 256 frames, a direct directory: its frames have numbers, which a policy names.
  stored_array file(on, path, {.cache = {.bytes = 1 << 20, .directory = directory_kind::direct, .read_ahead_bytes = 0}});
  if (file.size() < 4096 * line_values) throw_bad_input("open", path, "it is too short: give it 2097152 elements or more");
  const buffer<double> sum(on.memory(), memory_kind::local, 1);
  double total = 0;
  read(file, sum.data());
  file.cache().check_faults();
  sum.read({&total, 1});
  std::printf("%.17g\n%llu\n", total, static_cast<unsigned long long>(file.cache().stats(0).misses));
}

int main(int count, char** words) {
  if (count != 2) return std::fprintf(stderr, "usage: own_policy FILE.npy\n"), 2;
  try {
    auto on = open_executor("auto");
    print_run(*on, words[1], [&](stored_array& file, double* sum) {
      launch<1>(*on, reads, sum_mixed<array_view<double>>{file.view<double>(), sum});
    });
    print_run(*on, words[1], [&](stored_array& file, double* sum) {
      line_cache_view const& plain = file.cache().view();
      const buffer<u32> worth(on->memory(), memory_kind::local, plain.frames);
      const auto ours = plain.with(worth_policy{plain.policy, plain.directory.layout, worth.data()});
      using view = std::remove_const_t<decltype(ours)>;
      buffer<view> place(on->memory(), memory_kind::local, 1);
      place.write({&ours, 1});
      // One block to a multiprocessor: a kernel with misses of its own needs more registers than 64 a thread.
      launch<1, 1>(*on, reads, sum_mixed<cached_array<double, view>>{file.view_through<double>(place.data()), sum});
    });
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "own_policy: %s\n", problem.what());
    return 2;
  }
}
