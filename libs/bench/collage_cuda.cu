#include "libs/bench/collage_kernels.hpp"

namespace penstock::bench {
namespace {

constexpr u32 collage_block_threads = 256;

__global__ void __launch_bounds__(collage_block_threads, 4)
    run_block_comparison(__grid_constant__ const lsh::file_records records, __grid_constant__ const lsh::comparison asked,
                         u32* failed) {
  __shared__ char const* bytes;
  __shared__ u64 count;
  __shared__ float sums[collage_block_threads / 32];
  const auto g = warp::part<32>();
  const u64 record_bytes = u64{asked.dimensions} * sizeof(float);
  for (u64 q = blockIdx.x; q < asked.count; q += gridDim.x) {
    auto const* const query = reinterpret_cast<lsh::four_floats const*>(asked.queries + q * asked.stride);
    for (u32 c = 0; c < asked.counts[q]; ++c) {
      const u64 begin = asked.lists[q * asked.room + c] * records.record_bytes;
      float sum = 0;
      for (u64 at = 0; at < record_bytes;) {
        mapped_bytes mapped;
        if (threadIdx.x < 32) {
          mapped = records.folder.map(g, records.file, begin + at, record_bytes - at, file_flag::read);
          if (is_leader(g)) {
            bytes = mapped.bytes;
            count = mapped.count;
          }
        }
        __syncthreads();
        const u64 here = count;
        auto const* const there = reinterpret_cast<lsh::four_floats const*>(bytes);
        for (u64 k = threadIdx.x; k < here / 16; k += collage_block_threads) {
          const lsh::four_floats a = query[at / 16 + k], b = there[k];
          for (u32 j = 0; j < 4; ++j) sum += (a.v[j] - b.v[j]) * (a.v[j] - b.v[j]);
        }
        __syncthreads();
        if (threadIdx.x < 32 && here != 0) records.folder.unmap(g, records.file, mapped);
        if (here == 0) {
          lsh::note_failure(failed, mapped.error != 0 ? mapped.error : EIO);
          break;
        }
        at += here;
      }
      const float of_warp = lsh::sum_over(g, sum);
      if (is_leader(g)) sums[threadIdx.x / 32] = of_warp;
      __syncthreads();
      if (threadIdx.x == 0) {
        float all = 0;
        for (const float each : sums) all += each;
        asked.distances[q * asked.room + c] = all;
      }
      __syncthreads();
    }
  }
}

}  // namespace

void compare_by_blocks(executor& on, lsh::file_records const& records, lsh::comparison const& asked, u32* failed) {
  const gpu_scope here(on.gpu());
  const u32 blocks = static_cast<u32>(asked.count < on.units() * 4 ? asked.count : on.units() * 4);
  run_block_comparison<<<blocks, collage_block_threads, 0, static_cast<cudaStream_t>(on.stream())>>>(records, asked, failed);
  check_launch();
  on.synchronize();
}

}  // namespace penstock::bench
