// What of a GPU an executor's kernels take: SMs, and what L2 is asked to keep.
#include "penstock/controller/model_server.hpp"
#include "penstock/executor/launch.hpp"
#include "penstock/executor/sm_share.hpp"
#include "penstock/host/error.hpp"
#include "support/run_on_device.cuh"

#include <bit>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>

#include <unistd.h>

namespace penstock::test {
namespace {

constexpr u32 most_units = 1024;

__device__ u32 unit_of_this_thread() {
  u32 unit = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(unit));
  return unit;
}

// Each block stays a while, so that the blocks of a grid spread over all SMs that they may have.
__device__ void mark_unit(u32* seen) {
  const u64 end = now_ns() + 50'000;
  while (now_ns() < end) {}
  if (threadIdx.x == 0) device_ref<u32>(seen[unit_of_this_thread() / 32]).fetch_or(1u << unit_of_this_thread() % 32, relaxed);
}

__global__ void mark_units(u32* seen) { mark_unit(seen); }

struct mark_body {
  u32* seen;
  template <class G>
  PENSTOCK_FN void operator()(G const&, grid_range) const {
#if defined(__CUDA_ARCH__)
    mark_unit(seen);
#endif
  }
};

class unit_marks {
 public:
  explicit unit_marks(executor& on) : words_(on.memory(), memory_kind::local, most_units / 32) {}
  u32* data() const { return words_.data(); }
  u32 count() const {
    std::vector<u32> words(words_.size());
    words_.read(words);
    u32 sum = 0;
    for (const u32 word : words) sum += static_cast<u32>(std::popcount(word));
    return sum;
  }

 private:
  buffer<u32> words_;
};

/// Null where the driver has no green contexts, which is told.
std::unique_ptr<executor> open_share(check_report& report, u32 units) {
  try {
    return open_executor("cuda", executor_limits{.units = units});
  } catch (error const& problem) {
    std::printf("  skipped: %s\n", problem.what());
    PENSTOCK_CHECK(report, problem.kind() == error_kind::world);
    return nullptr;
  }
}

/// A grid that wants all of the GPU, on a stream but past `launch`.
u32 units_of_a_large_grid(executor& on, void* stream) {
  const unit_marks seen(on);
  on.synchronize();  // the marks are cleared
  mark_units<<<4096, 64, 0, static_cast<cudaStream_t>(stream)>>>(seen.data());
  require_cuda(cudaGetLastError(), "launch");
  require_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "run");
  return seen.count();
}

u32 units_of_a_large_grid(executor& on) { return units_of_a_large_grid(on, on.stream()); }

template <class Make>
bool refused(Make make) {
  try {
    make();
  } catch (error const& problem) {
    return problem.kind() == error_kind::bad_input;
  }
  return false;
}

PENSTOCK_CUDA_TEST(executor_share_bounds_every_launch_whatever_its_grid) {
  for (const u32 asked : {8u, 16u, 21u}) {
    const auto on = open_share(report, asked);
    if (!on) return;
    PENSTOCK_CHECK(report, on->units() <= asked && on->units() >= 8);
    const unit_marks seen(*on);
    penstock::launch<32>(*on, 1 << 14, mark_body{seen.data()});
    PENSTOCK_CHECK(report, seen.count() >= 1 && seen.count() <= on->units());
    PENSTOCK_CHECK_EQ(report, on->units(), units_of_a_large_grid(*on));
  }
}

PENSTOCK_CUDA_TEST(executor_without_limits_takes_all) {
  const auto on = open_executor("cuda");
  PENSTOCK_CHECK_EQ(report, on->units(), units_of_a_large_grid(*on));
}

PENSTOCK_CUDA_TEST(executor_share_refuses_less_than_a_gpu_gives_away) {
  if (!open_share(report, 8)) return;
  PENSTOCK_CHECK(report, refused([] { open_executor("cuda", executor_limits{.units = 1}); }));
}

// What others bring to an executor that has all SMs. Events of the GPU order work of both parts.
PENSTOCK_CUDA_TEST(executor_streams_of_a_share_and_of_its_rest_stay_apart) {
  if (!open_share(report, 8)) return;
  const auto on = open_executor("cuda");
  sm_share& share = share_of_sms(on->gpu(), 21);
  PENSTOCK_CHECK(report, &share == &share_of_sms(on->gpu(), 21));
  PENSTOCK_CHECK(report, share.units() >= 8 && share.units() <= 21 && share.units() + share.rest() <= on->units());
  void *const stream = share.open_stream(-1), *const beside = share.open_stream_in_rest(0);
  PENSTOCK_CHECK_EQ(report, share.units(), units_of_a_large_grid(*on, stream));
  PENSTOCK_CHECK_EQ(report, share.rest(), units_of_a_large_grid(*on, beside));
  cudaEvent_t mark = nullptr;
  require_cuda(cudaEventCreateWithFlags(&mark, cudaEventDisableTiming), "create an event");
  require_cuda(cudaEventRecord(mark, static_cast<cudaStream_t>(stream)), "record an event");
  require_cuda(cudaStreamWaitEvent(static_cast<cudaStream_t>(beside), mark), "wait for an event");
  require_cuda(cudaEventDestroy(mark), "destroy an event");
  PENSTOCK_CHECK(report, refused([&] { share_of_sms(on->gpu(), 1); }));
  PENSTOCK_CHECK(report, refused([&] { share_of_sms(on->gpu(), on->units()); }));
  PENSTOCK_CHECK(report, refused([] { share_of_sms(1024, 8); }));
}

// A kernel that stays must leave the executor its share, wherever the GPU would put its blocks.
PENSTOCK_CUDA_TEST_BESIDE(executor_share_is_free_beside_a_resident_kernel) {
  const u32 all = open_executor("cuda")->units();
  const auto on = open_share(report, 16);
  if (!on) return;
  model_server_options options;
  options.units = all - 16;
  options.idle_timeout_ns = 3 * one_second_ns;
  model_server server(*on, options);
  PENSTOCK_CHECK_EQ(report, 0, server.units_taken());
  const unit_marks seen(*on);
  const mark_body body{seen.data()};
  prepare_launch<32>(*on, body);
  server.start();
  penstock::launch<32>(*on, 1 << 12, body);
  PENSTOCK_CHECK(report, !server.gave_up());
  server.stop();
  PENSTOCK_CHECK(report, seen.count() >= 1 && seen.count() <= on->units());
  options.units = all - 15;
  PENSTOCK_CHECK(report, refused([&] { model_server(*on, options); }));
}

PENSTOCK_CUDA_TEST(executor_refuses_resident_kernels_that_leave_it_nothing) {
  const auto on = open_executor("cuda");
  model_server_options options;
  options.units = on->units() / 2;
  const model_server first(*on, options);
  PENSTOCK_CHECK_EQ(report, options.units, first.units_taken());
  options.units = on->units() - options.units;
  PENSTOCK_CHECK(report, refused([&] { model_server(*on, options); }));
  --options.units;
  PENSTOCK_CHECK(report, !refused([&] { model_server(*on, options); }));
}

PENSTOCK_CUDA_TEST(executor_l2_window_gives_back_what_it_set_aside) {
  std::size_t before = 0, after = 0;
  require_cuda(cudaDeviceGetLimit(&before, cudaLimitPersistingL2CacheSize), "limit");
  {
    const auto on = open_executor("cuda");
    const buffer<u64> words(on->memory(), memory_kind::local, 1 << 20), others(on->memory(), memory_kind::local, 1 << 10);
    const u64 kept = on->keep_in_l2(words.data(), words.bytes());
    PENSTOCK_CHECK(report, kept <= words.bytes());
    PENSTOCK_CHECK(report, on->keep_in_l2(others.data(), others.bytes()) <= others.bytes());
    on->forget_in_l2(words.data());  // is kept no more
    const unit_marks seen(*on);
    penstock::launch<32>(*on, 1 << 10, mark_body{seen.data()});
    PENSTOCK_CHECK(report, seen.count() != 0);
    on->forget_in_l2(others.data());
    require_cuda(cudaDeviceGetLimit(&after, cudaLimitPersistingL2CacheSize), "limit");
    PENSTOCK_CHECK_EQ(report, before, after);
    on->keep_in_l2(words.data(), words.bytes());
  }
  require_cuda(cudaDeviceGetLimit(&after, cudaLimitPersistingL2CacheSize), "limit");
  PENSTOCK_CHECK_EQ(report, before, after);
}

/// Takes what it is given, and looks at it: a dma-buf tells its size.
class noting_mapper final : public peer_mapper {
 public:
  void map_peer(void* address, u64 bytes, int dma_buf) override {
    sizes_right &= lseek(dma_buf, 0, SEEK_END) == static_cast<off_t>(bytes) && bytes % (u64{2} << 20) == 0;
    mapped[reinterpret_cast<u64>(address)] = bytes;
  }
  void unmap_peer(void* address) noexcept override { unknown += mapped.erase(reinterpret_cast<u64>(address)) == 0; }

  bool holds(void const* address, u64 bytes) const {
    const u64 at = reinterpret_cast<u64>(address);
    const auto after = mapped.upper_bound(at);
    if (after == mapped.begin()) return false;
    const auto [first, length] = *std::prev(after);
    return at - first <= length && bytes <= length - (at - first);
  }

  std::map<u64, u64> mapped;
  bool sizes_right = true;
  u32 unknown = 0;
};

/// What a drive is to reach is exported as a dma-buf when it is allocated, and no more when it goes. Where CUDA exports
/// nothing, the reason is printed.
PENSTOCK_CUDA_TEST(memory_opened_to_a_device) {
  noting_mapper device;
  {
    const auto on = open_executor("cuda");
    const std::string reason = on->memory().open_to(device);
    if (!reason.empty()) {
      std::printf("SKIPPED: %s\n", reason.c_str());
      PENSTOCK_CHECK_EQ(report, 0, device.mapped.size());
      return;
    }
    std::vector<buffer<u64>> pieces;
    for (const u64 words : {u64{1}, u64{512}, u64{100'000}, u64{20} << 20}) {
      pieces.emplace_back(on->memory(), memory_kind::local, words);
      PENSTOCK_CHECK_EQ(report, true, device.holds(pieces.back().data(), pieces.back().bytes()));
    }
    for (buffer<u64>& piece : pieces) {
      std::vector<u64> words(piece.size()), back(piece.size(), 1);
      piece.read(back);
      PENSTOCK_CHECK_EQ(report, true, words == back);
      std::iota(words.begin(), words.end(), u64{7});
      piece.write(words);
      piece.read(back);
      PENSTOCK_CHECK_EQ(report, true, words == back);
    }
    PENSTOCK_CHECK_EQ(report, true, device.sizes_right);
    PENSTOCK_CHECK_EQ(report, 2, device.mapped.size());
  }
  PENSTOCK_CHECK_EQ(report, 0, device.mapped.size() + device.unknown);
}

}  // namespace
}  // namespace penstock::test
