// What a test body is told about the run that it is part of, and the random numbers that it draws from the run's seed.
#pragma once

#include "support/check.hpp"

namespace penstock::test {

/// Size of a run, known before it starts: a body's `prepare(run_shape)` allocates by it.
struct run_shape {
  u32 groups = 1;   ///< every test_context::group is less
  u32 threads = 1;  ///< every test_context::thread is less
  u64 seed = 0;
};

/// A thread's place in its run. What a body looks like: run_everywhere.hpp.
struct test_context {
  check_report* report;
  run_shape run;
  u32 group;   ///< unique among the groups of the run, with gaps where groups are parts of a warp
  u32 thread;  ///< unique among the threads of the run, with gaps where lanes are absent

  PENSTOCK_FN u64 seed() const { return run.seed; }
};

/// A bijection that scatters (the finalizer of splitmix64): equal arguments, equal result, on every executor.
PENSTOCK_FN inline u64 scatter(u64 x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// The random word number `i` of stream `stream` of a seed.
PENSTOCK_FN inline u64 random_word(u64 seed, u64 stream, u64 i) { return scatter(scatter(scatter(seed) ^ stream) ^ i); }

}  // namespace penstock::test
