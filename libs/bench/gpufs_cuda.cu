#include "libs/bench/gpufs_kernels.hpp"
#include "libs/bench/gpufs_server.hpp"
#include "penstock/group/block.hpp"

namespace penstock::bench {
namespace {

void check_gpufs_call(cudaError_t outcome, char const* what) {
  if (outcome == cudaSuccess) return;
  throw error(error_kind::world, std::string("measure gpufs: ") + what + ": " + cudaGetErrorString(outcome));
}

/// On a stream that waits for no other, and that the running kernel does not wait for.
class gpufs_cuda_mover : public gpufs_mover {
 public:
  explicit gpufs_cuda_mover(executor& on) : gpu_(on.gpu()) {
    const gpu_scope here(gpu_);
    check_gpufs_call(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create a stream");
  }
  ~gpufs_cuda_mover() override {
    const gpu_scope here(gpu_);
    cudaStreamDestroy(stream_);
  }

  void move(void* to, void const* from, u64 bytes) override {
    const gpu_scope here(gpu_);
    check_gpufs_call(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "copy to the GPU");
    check_gpufs_call(cudaStreamSynchronize(stream_), "copy to the GPU");
  }

 private:
  int gpu_;
  cudaStream_t stream_ = nullptr;
};

template <class Body>
__global__ void __launch_bounds__(cuda_block_threads, 2) run_gpufs_blocks(__grid_constant__ const Body body, u64 items) {
  __shared__ block_scratch scratch;
  const block g(scratch);
  body(g, grid_range{blockIdx.x, items, gridDim.x});
}

}  // namespace

std::unique_ptr<gpufs_mover> open_gpufs_cuda_mover(executor& on) { return std::make_unique<gpufs_cuda_mover>(on); }

template <class Body>
void run_gpufs_cuda(executor& on, u64 items, Body const& body, u64 groups) {
  launch<32>(on, items, body, {.groups = groups});
}

template <class Body>
void run_gpufs_blocks_cuda(executor& on, u64 items, Body const& body, u64 blocks) {
  const gpu_scope here(on.gpu());
  const u32 grid = static_cast<u32>(std::min(items, blocks));
  run_gpufs_blocks<<<grid, cuda_block_threads, 0, static_cast<cudaStream_t>(on.stream())>>>(body, items);
  check_launch();
  on.synchronize();
}

template void run_gpufs_cuda(executor&, u64, gpufs_read_pieces const&, u64);
template void run_gpufs_cuda(executor&, u64, gpufs_touch_pages const&, u64);
template void run_gpufs_cuda(executor&, u64, gpufs_read_folder const&, u64);
template void run_gpufs_cuda(executor&, u64, gpufs_touch_folder const&, u64);
template void run_gpufs_blocks_cuda(executor&, u64, gpufs_read_pieces const&, u64);
template void run_gpufs_blocks_cuda(executor&, u64, gpufs_touch_pages const&, u64);

}  // namespace penstock::bench
