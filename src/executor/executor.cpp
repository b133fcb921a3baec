#include "penstock/host/executor.hpp"

#include "cpu_executor.hpp"
#include "cuda_executor.hpp"
#include "penstock/host/error.hpp"

namespace penstock {

std::unique_ptr<executor> open_executor(std::string const& name, u32 threads, bool has_kernels) {
  std::string reason;
  if (name == "cpu") return make_cpu_executor(threads);
  if (name == "auto") return has_kernels && cuda_usable() ? make_cuda_executor() : make_cpu_executor(threads);
  if (name == "cuda") {
    if (!cuda_usable(&reason)) throw_bad_input("open", "the cuda executor", reason + "; use the cpu executor");
    return make_cuda_executor();
  }
  throw_bad_input("open", "executor " + name, "there is no such executor: choose auto, cpu or cuda");
}

#if !defined(PENSTOCK_HAS_CUDA)
bool cuda_usable(std::string* reason) {
  if (reason != nullptr) *reason = "Penstock was built without CUDA: install nvcc and build it again";
  return false;
}

std::unique_ptr<executor> make_cuda_executor() { throw_bad_input("open", "the cuda executor", "built without CUDA"); }
#endif

}  // namespace penstock
