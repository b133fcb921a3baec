#include "penstock/executor/sm_share.hpp"

#include "cuda_calls.hpp"
#include "penstock/executor/gpu_scope.hpp"
#include "sm_partition.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace penstock {
namespace {

class cuda_sm_share final : public sm_share {
 public:
  cuda_sm_share(int gpu, u32 units) : gpu_(gpu), partition_(gpu, checked(gpu, units)) {
    if (partition_.rest() == 0) refuse(gpu, units);
  }

  u32 units() const override { return partition_.units(); }
  u32 rest() const override { return partition_.rest(); }
  void* open_stream(int priority) const override {
    const gpu_scope here(gpu_);
    return partition_.open_stream(priority);
  }
  void* open_stream_in_rest(int priority) const override {
    const gpu_scope here(gpu_);
    return partition_.open_stream_in_rest(priority);
  }

 private:
  static u32 checked(int gpu, u32 units) {
    if (units >= units_of(gpu)) refuse(gpu, units);
    return units;
  }
  [[noreturn]] static void refuse(int gpu, u32 units) {
    throw_bad_input("open", std::to_string(units) + " SMs of a GPU",
                    "it has " + std::to_string(units_of(gpu)) + ", and some must be left: ask for fewer, or for all");
  }
  static u32 units_of(int gpu) { return static_cast<u32>(device_attribute(cudaDevAttrMultiProcessorCount, gpu)); }

  int gpu_;
  sm_partition partition_;
};

struct all_shares {
  std::mutex mutex;
  std::map<std::pair<int, u32>, std::unique_ptr<sm_share>> by_size;
};

all_shares& shares() {
  static auto* const made = new all_shares;  // outlives what frees memory while the process ends
  return *made;
}

}  // namespace

sm_share& share_of_sms(int gpu, u32 units) {
  int there = 0;
  if (cudaGetDeviceCount(&there) != cudaSuccess || gpu < 0 || gpu >= there) {
    cudaGetLastError();  // not sticky for later calls
    throw_bad_input("open", "some SMs of GPU " + std::to_string(gpu),
                    "there are " + std::to_string(there) + " GPUs, counted from 0");
  }
  const gpu_scope here(gpu);
  const std::lock_guard lock(shares().mutex);
  std::unique_ptr<sm_share>& found = shares().by_size[{gpu, units}];
  if (found == nullptr) found = std::make_unique<cuda_sm_share>(gpu, units);
  return *found;
}

}  // namespace penstock
