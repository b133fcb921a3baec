#include "penstock/host/executor.hpp"

#include "cpu_executor.hpp"
#include "cuda_executor.hpp"
#include "penstock/host/error.hpp"
#include "resident_place.hpp"

#include <functional>

namespace penstock {

namespace {

std::unique_ptr<executor> open_named(std::string const& name, executor_limits const& limits, bool has_kernels,
                                     std::function<std::unique_ptr<executor>()> const& make_cpu) {
  std::string reason;
  if (name == "cpu") return make_cpu();
  if (name == "auto") return has_kernels && cuda_usable() ? make_cuda_executor(limits) : make_cpu();
  if (name == "cuda") {
    if (!cuda_usable(&reason)) throw_bad_input("open", "the cuda executor", reason + "; use the cpu executor");
    return make_cuda_executor(limits);
  }
  throw_bad_input("open", "executor " + name, "there is no such executor: choose auto, cpu or cuda");
}

}  // namespace

std::unique_ptr<executor> open_executor(std::string const& name, u32 threads, bool has_kernels) {
  return open_named(name, {}, has_kernels, [&] { return make_cpu_executor(threads); });
}

std::unique_ptr<executor> open_executor(std::string const& name, executor_limits const& limits, bool has_kernels) {
  return open_named(name, limits, has_kernels, [&] { return make_cpu_executor(limits); });
}

#if !defined(PENSTOCK_HAS_CUDA)
bool cuda_usable(std::string* reason) {
  if (reason != nullptr) *reason = "Penstock was built without CUDA: install nvcc and build it again";
  return false;
}

std::unique_ptr<executor> make_cuda_executor(executor_limits const&) {
  throw_bad_input("open", "the cuda executor", "built without CUDA");
}

std::unique_ptr<resident_place> make_resident_place(executor&, int, u32) {
  throw_bad_input("open", "the cuda executor", "built without CUDA");
}
#endif

}  // namespace penstock
