#include "libs/media/managed_array.hpp"

#include "libs/graph/file.hpp"
#include "penstock/executor/gpu_scope.hpp"
#include "penstock/host/error.hpp"

#include <cuda_runtime.h>

#include <span>

namespace penstock::media {
namespace {

void check(cudaError_t failed, char const* what) {
  if (failed != cudaSuccess) throw error(error_kind::world, std::string(what) + ": " + cudaGetErrorString(failed));
}

}  // namespace

managed_array::managed_array(executor& on, graph::array_place const& place) : on_(on), bytes_(place.count * place.item_bytes) {
  if (on.kind() != executor_kind::cuda) {
    throw_bad_input("open", place.path, "there is no GPU for placement managed: choose host or storage");
  }
  const u64 room = on.memory().free_bytes();
  if (bytes_ > room / 10 * 9) {
    throw_bad_input("open", place.path,
                    std::to_string(bytes_) + " bytes in managed memory, and " + std::to_string(room) +
                        " are free on the GPU: choose placement host, which needs none of it");
  }
  const gpu_scope here(on.gpu());
  check(cudaMallocManaged(&data_, bytes_ == 0 ? 1 : bytes_), "allocate managed memory");
  graph::file::open(place.path).read(place.data_offset, {static_cast<std::byte*>(data_), bytes_});
  move_to_host();
}

managed_array::~managed_array() {
  const gpu_scope here(on_.gpu());
  cudaFree(data_);
}

void managed_array::move_to_host() {
  if (bytes_ == 0) return;
  const gpu_scope here(on_.gpu());
  const auto stream = static_cast<cudaStream_t>(on_.stream());
  const cudaMemLocation gpu{cudaMemLocationTypeDevice, on_.gpu()}, host{cudaMemLocationTypeHost, 0};
  // Pages that are only read have a copy on each side; those go first.
  check(cudaMemAdvise(data_, bytes_, cudaMemAdviseUnsetReadMostly, gpu), "advise on managed memory");
  check(cudaMemPrefetchAsync(data_, bytes_, host, 0, stream), "move managed memory");
  on_.synchronize();
  check(cudaMemAdvise(data_, bytes_, cudaMemAdviseSetReadMostly, gpu), "advise on managed memory");
}

}  // namespace penstock::media
