#include "sm_partition.hpp"

#include "driver_function.hpp"

#include "penstock/host/error.hpp"

#include <cuda.h>

#include <cerrno>
#include <string>

namespace penstock {

#if CUDA_VERSION < 12050
sm_partition::sm_partition(int, u32) {
  throw_bad_input("open", "some SMs of a GPU", "built with a CUDA before 12.5: ask for all");
}
sm_partition::~sm_partition() = default;
cudaStream_t sm_partition::open_stream(int) const { return nullptr; }
cudaStream_t sm_partition::open_stream_in_rest(int) const { return nullptr; }
#else

namespace {

#define PENSTOCK_DRIVER(name, version)                                      \
  driver_function<decltype(name)>(#name, version, "open some SMs of a GPU", \
                                  "update it to one for CUDA 12.5 or newer, or ask for all SMs")

void check(CUresult result, char const* what) {
  if (result == CUDA_SUCCESS) return;
  throw error(error_kind::world,
              std::string("open some SMs of a GPU: ") + what + " fails with CUDA error " +
                  std::to_string(static_cast<int>(result)) + ": ask for all SMs",
              EIO);
}

/// SMs are given away in whole groups, and no fewer than `least` at once.
struct granularity {
  u32 least, group;
};

granularity granularity_of(int device) {
  int major = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  return major >= 9 ? granularity{8, 8} : granularity{4, 2};
}

CUgreenCtx make_context(CUdevResource& resource, CUdevice device) {
  CUdevResourceDesc description{};
  check(PENSTOCK_DRIVER(cuDevResourceGenerateDesc, 12040)(&description, &resource, 1), "cuDevResourceGenerateDesc");
  CUgreenCtx made = nullptr;
  check(PENSTOCK_DRIVER(cuGreenCtxCreate, 12040)(&made, description, device, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate");
  return made;
}

void destroy(void* context) {
  if (context != nullptr) PENSTOCK_DRIVER(cuGreenCtxDestroy, 12040)(static_cast<CUgreenCtx>(context));
}

cudaStream_t stream_of(void* context, int priority) {
  CUstream made = nullptr;
  check(
      PENSTOCK_DRIVER(cuGreenCtxStreamCreate, 12050)(&made, static_cast<CUgreenCtx>(context), CU_STREAM_NON_BLOCKING, priority),
      "cuGreenCtxStreamCreate");
  return made;
}

}  // namespace

sm_partition::sm_partition(int device, u32 units) {
  const granularity steps = granularity_of(device);
  if (units < steps.least) {
    throw_bad_input("open", std::to_string(units) + " SMs of a GPU",
                    "it gives away " + std::to_string(steps.least) + " at least: ask for as many, or for all");
  }
  CUdevice handle{};
  check(PENSTOCK_DRIVER(cuDeviceGet, 2000)(&handle, device), "cuDeviceGet");
  cudaFree(nullptr);  // the runtime's context is there: green contexts share it
  CUdevResource all{}, share{}, rest{};
  check(PENSTOCK_DRIVER(cuDeviceGetDevResource, 12040)(handle, &all, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource");
  unsigned groups = 1;
  check(PENSTOCK_DRIVER(cuDevSmResourceSplitByCount, 12040)(&share, &groups, &all, &rest, 0, units / steps.group * steps.group),
        "cuDevSmResourceSplitByCount");
  if (groups != 1 || share.sm.smCount > units) {
    throw_bad_input("open", std::to_string(units) + " SMs of a GPU",
                    "the next that it gives away are " + std::to_string(share.sm.smCount) + ": ask for as many, or for all");
  }
  units_ = share.sm.smCount;
  rest_ = rest.type == CU_DEV_RESOURCE_TYPE_SM ? rest.sm.smCount : 0;
  context_ = make_context(share, handle);
  try {
    if (rest_ >= steps.least) rest_context_ = make_context(rest, handle);
  } catch (error const&) {}
  if (rest_context_ == nullptr) rest_ = 0;  // nobody can run there; the share itself stands
}

sm_partition::~sm_partition() {
  destroy(rest_context_);
  destroy(context_);
}

cudaStream_t sm_partition::open_stream(int priority) const { return stream_of(context_, priority); }

cudaStream_t sm_partition::open_stream_in_rest(int priority) const {
  if (rest_context_ == nullptr) {
    throw_bad_input("run beside", "an executor of " + std::to_string(units_) + " SMs",
                    "it leaves too few: ask for fewer there");
  }
  return stream_of(rest_context_, priority);
}

#undef PENSTOCK_DRIVER
#endif

}  // namespace penstock
