// Threads of a block on one OS thread: what they exchange, in what order they wait, and what is refused.
#include "libs/kernels/block_runner.hpp"
#include "penstock/executor/executor.hpp"
#include "penstock/host/error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <stdexcept>
#include <string>
#include <vector>

#include "penstock/kernels/kernel.hpp"  // last: it has words of CUDA's for macros

namespace penstock::kernels {
namespace {

constexpr host_calls only_waits{.read = nullptr,
                                .store = nullptr,
                                .change = nullptr,
                                .read_span = nullptr,
                                .prefetch = nullptr,
                                .out_of_range = nullptr,
                                .call_folder = nullptr,
                                .wait = block_runner::wait};

template <void (*Kernel)(void**), bool Waits = true, bool Spins = false>
host_entry entry_of() {
  return {entry_version,
          Spins,
          [] { return Waits; },
          [](host_calls const* calls) { the_calls = calls; },
          [](host_thread const* place) { the_thread = place; },
          Kernel,
          {}};
}

host_thread first_of(extent block, u32 number = 0) {
  host_thread place;
  place.thread = {0, 0, 0};
  place.block = {number, 0, 0};
  place.block_size = block;
  return place;
}

// Each thread's sum over its warp, over its block by shared memory, and the lanes with odd numbers.
__global__ void sums(void** parameters) {
  auto* const out = static_cast<u32*>(parameters[blockIdx.x]);
  __shared__ u32 of_warp[32];
  const u32 self = thread_in_block(), lanes = lanes_of_warp();
  u32 sum = self;
  for (u32 d = 16; d != 0; d /= 2) {
    const u32 other = __shfl_down_sync(0xffffffffu, sum, d);
    if (self % 32 + d < lanes) sum += other;
  }
  if (self % 32 == 0) of_warp[self / 32] = sum;
  __syncthreads();
  u32 all = 0;
  for (u32 w = 0; w <= (blockDim.x * blockDim.y * blockDim.z - 1) / 32; ++w) all += of_warp[w];
  __syncthreads();
  const u32 odd = __ballot_sync(0xffffffffu, self % 2), here = lanes == 32 ? ~0u : (1u << lanes) - 1;
  const bool voted = odd == (0xaaaaaaaau & here) && __all_sync(0xffffffffu, true) && !__any_sync(0xffffffffu, false);
  out[self] = voted ? all : ~0u;
}

// Warps take different numbers of turns, and halves of a warp wait each for itself.
__global__ void turns(void** parameters) {
  auto* const out = static_cast<u32*>(parameters[blockIdx.x]);
  const u32 lane = threadIdx.x % 32, half = lane / 16, mask = half == 0 ? 0xffffu : 0xffff0000u;
  u32 value = threadIdx.x;
  for (u32 turn = 0; turn < threadIdx.x / 32 + half + 1; ++turn)
    value = __shfl_sync(mask, value, static_cast<int>((lane + 1) % 16 + half * 16));
  __syncthreads();
  out[threadIdx.x] = value;
}

__global__ void parted(void** parameters) {
  if (threadIdx.x < *static_cast<u32*>(parameters[0])) {
    __syncthreads();
  } else {
    __syncwarp(1);  // of a thread that waits elsewhere
  }
}

TEST(block_runner, threads_exchange_what_they_have) {
  the_calls = &only_waits;
  auto on = open_executor("cpu", 4);
  const host_entry kernel = entry_of<sums>();
  for (const extent block :
       {extent{1, 1, 1}, {7, 1, 1}, {32, 1, 1}, {33, 1, 1}, {8, 4, 3}, {1024, 1, 1}, {7, 1, 1}, {33, 1, 1}}) {
    const u32 threads = block.x * block.y * block.z, blocks = 24;
    std::vector<std::vector<u32>> out(blocks, std::vector<u32>(threads));
    std::vector<void*> parameters;
    parameters.reserve(blocks);
    for (auto& each : out) parameters.push_back(each.data());
    on->run(blocks, 1, [&](u64 first, u64) {
      thread_local block_runner runner;
      runner.run({"sums", kernel, parameters.data(), 4}, first_of(block, static_cast<u32>(first)));
    });
    for (auto const& each : out) EXPECT_EQ(each, std::vector<u32>(threads, threads * (threads - 1) / 2)) << threads;
  }
}

TEST(block_runner, parts_of_warps_wait_for_themselves) {
  the_calls = &only_waits;
  const host_entry kernel = entry_of<turns>();
  std::vector<u32> out(128);
  void* parameters[] = {out.data()};
  block_runner runner;
  runner.run({"turns", kernel, parameters}, first_of({128, 1, 1}));
  for (u32 k = 0; k < 128; ++k) {
    const u32 half = k % 32 / 16, turn = k / 32 + half + 1;
    EXPECT_EQ(out[k], k / 16 * 16 + (k % 16 + turn) % 16);
  }
}

TEST(block_runner, threads_that_wait_in_vain_are_refused) {
  the_calls = &only_waits;
  const host_entry kernel = entry_of<parted>();
  block_runner runner;
  u32 waiting = 3;
  void* parameters[] = {&waiting};
  try {
    runner.run({"parted", kernel, parameters}, first_of({8, 1, 1}, 5));
    FAIL() << "it ended";
  } catch (error const& refused) {
    EXPECT_NE(std::string(refused.what()).find("the kernel parted: thread 0 of block 5 waits"), std::string::npos);
  }
  waiting = 8;  // all of them: and the runner is as good as new
  runner.run({"parted", kernel, parameters}, first_of({8, 1, 1}));
}

/// Threads that go through lines of a cache that is not there, from `part` lines behind where the one before begins.
struct readers {
  readers(u32 frames, u32 threads, u64 part_) : part(part_), at(threads) {
    view.frames = frames;
    reader.line_shift = 12;
    reader.cache = &view;
  }

  void come_to(u32 thread, u64 step) {
    for (u64 k = 0; k < 3; ++k) {
      block_runner::come_to(runner.number(), reader, ((thread * part + step) << 12) + k);
      block_runner::come_to(runner.number(), reader, (u64{1} << 40) + ((thread * part + step) << 12) + k);  // of another array
    }
    at[thread] = step;
    switches += thread != last ? 1 : 0;
    last = thread;
    u64 least = ~u64{0};
    for (u64 each : at) least = std::min(least, each);
    spread = std::max(spread, step - least);
  }

  static constexpr u64 lines = 200;
  block_runner runner;
  line_cache_view view{};
  line_reader reader;
  u64 part;
  std::vector<u64> at;
  u64 spread = 0;
  u32 switches = 0, last = 0;
};

__global__ void go_through(void** parameters) {
  auto& mine = *static_cast<readers*>(parameters[0]);
  for (u64 step = 1; step <= readers::lines; ++step) mine.come_to(threadIdx.x, step);
}
__global__ void go_through_and_meet(void** parameters) {
  go_through(parameters);
  __syncthreads();
}

TEST(block_runner, threads_that_share_lines_stay_within_a_part_of_the_cache) {
  the_calls = &only_waits;
  for (const host_entry& kernel : {entry_of<go_through, false>(), entry_of<go_through_and_meet>()}) {
    for (const u32 frames : {1u, 16u, 256u}) {
      for (const u32 threads : {2u, 65u, 130u}) {
        readers all(frames, threads, 0);
        void* parameters[] = {&all};
        all.runner.run({"go_through", kernel, parameters, 1, 7}, first_of({threads, 1, 1}));
        EXPECT_EQ(all.at, std::vector<u64>(threads, readers::lines));
        // One that begins comes up to the others, and each round begins as many as there are.
        const u32 turn_lines = std::max(frames / 4, 1u), rounds = threads <= 8 ? 1 : std::bit_width((threads - 1) / 8) + 1;
        EXPECT_LE(all.spread, turn_lines * rounds + 1) << frames << " " << threads;
        EXPECT_LE(all.switches, threads * (2 * readers::lines / turn_lines + 3)) << frames << " " << threads;
      }
    }
  }
}

TEST(block_runner, threads_with_parts_of_their_own_run_on) {
  the_calls = &only_waits;
  const host_entry kernel = entry_of<go_through, false>();
  readers all(64, 512, readers::lines);
  void* parameters[] = {&all};
  all.runner.run({"go_through", kernel, parameters, 1, 7}, first_of({512, 1, 1}));
  EXPECT_EQ(all.at, std::vector<u64>(512, readers::lines));
  EXPECT_LE(all.switches, 512u + 7 * 4 * 8);  // looked at seven times; with turns always 512 * 200 / 16
}

// The first thread to come holds the lock while the others want it.
__global__ void take_the_lock(void** parameters) {
  auto& mine = *static_cast<readers*>(parameters[0]);
  auto* const words = static_cast<u32*>(parameters[1]);
  while (atomicCAS(&words[0], 0u, 1u) != 0) {}
  for (u64 step = 1; step <= readers::lines; ++step) mine.come_to(threadIdx.x, step);
  words[1] += 1;
  atomicExch(&words[0], 0u);
}
__global__ void wait_in_a_line(void** parameters) {
  auto& mine = *static_cast<readers*>(parameters[0]);
  auto* const words = static_cast<u32*>(parameters[1]);
  if (threadIdx.x == blockDim.x - 1) words[0] = 1;
  while (*static_cast<u32 volatile*>(words) == 0) block_runner::come_to(mine.runner.number(), mine.reader, 0);
  words[1] += 1;
}
// Those that wait do not say so.
__global__ void take_tickets(void** parameters) {
  auto& mine = *static_cast<readers*>(parameters[0]);
  auto* const words = static_cast<u32*>(parameters[1]);
  const u32 ticket = atomicAdd(&words[0], 1u);
  while (*static_cast<u32 volatile*>(&words[1]) != ticket) {}
  for (u64 step = 1; step <= readers::lines; ++step) mine.come_to(threadIdx.x, step);
  for (u32 k = 0; k < (1 << 17); ++k) block_runner::come_to(mine.runner.number(), mine.reader, 0);
  for (u32 k = 0; k < 1000; ++k) atomicMax(&words[0], 0u);
  block_runner::try_again(mine.runner.number());
  words[1] += 1;
}
__global__ void wait_for_the_last(void** parameters) {
  auto* const words = static_cast<u32*>(parameters[0]);
  if (threadIdx.x == blockDim.x - 1) atomicAdd(&words[0], 1u);
  while (atomicAdd(&words[0], 0u) == 0) __nanosleep(100);
  words[1] += 1;
}

TEST(block_runner, a_thread_that_waits_for_a_word_lets_the_others_go_on) {
  the_calls = &only_waits;
  readers all(16, 100, 0);
  u32 words[] = {0, 0};
  void* parameters[] = {&all, words};
  block_runner& runner = all.runner;
  runner.run({"take_the_lock", entry_of<take_the_lock, false>(), parameters}, first_of({100, 1, 1}));
  EXPECT_EQ(words[1], 100u);
  words[1] = 0;
  runner.run({"wait_in_a_line", entry_of<wait_in_a_line, false>(), parameters}, first_of({100, 1, 1}));
  EXPECT_EQ(words[1], 100u);
  words[0] = words[1] = 0;
  runner.run({"take_tickets", entry_of<take_tickets, false, true>(), parameters, 1, 9}, first_of({10, 1, 1}));
  EXPECT_EQ(words[1], 10u);
  words[0] = words[1] = 0;
  void* only_words[] = {words};
  runner.run({"wait_for_the_last", entry_of<wait_for_the_last, false>(), only_words, 1, 10}, first_of({100, 1, 1}));
  EXPECT_EQ(words[1], 100u);
}

__global__ void give_up(void** parameters) {
  auto& mine = *static_cast<readers*>(parameters[0]);
  for (u64 step = 1; step <= readers::lines; ++step) {
    mine.come_to(threadIdx.x, step);
    if (threadIdx.x == 70 && step == mine.part) throw std::runtime_error("gave up");
  }
}

TEST(block_runner, what_a_thread_throws_ends_the_block) {
  the_calls = &only_waits;
  const host_entry kernel = entry_of<give_up, false>();
  readers all(16, 100, 150);
  void* parameters[] = {&all};
  EXPECT_THROW(all.runner.run({"give_up", kernel, parameters, 1, 1}, first_of({100, 1, 1})), std::runtime_error);
  all.part = readers::lines + 1;  // and the runner is as good as new
  all.runner.run({"give_up", kernel, parameters, 1, 2}, first_of({100, 1, 1}));
  EXPECT_EQ(all.at, std::vector<u64>(100, readers::lines));
}

TEST(block_runner, an_index_has_one_thread) {
  for (const u64 count : {u64{0}, u64{1}, u64{99}, u64{1000}, u64{1001}}) {
    std::vector<u32> seen(count);
    for (u64 self = 0; self < 100; ++self) {
      const index_range mine = share_of(count, self, 100);
      for (u64 i = mine.first; i < mine.last; i += mine.step) ++seen[i];
    }
    EXPECT_EQ(seen, std::vector<u32>(count, 1));
  }
}

}  // namespace
}  // namespace penstock::kernels
