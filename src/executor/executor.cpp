#include "penstock/executor/executor.hpp"

#include "cpu_executor.hpp"
#include "cuda_executor.hpp"
#include "penstock/executor/sm_share.hpp"
#include "penstock/host/error.hpp"
#include "resident_place.hpp"

#include <charconv>
#include <functional>
#include <optional>
#include <string_view>

namespace penstock {

namespace {

/// Of "cuda" -1, of "cuda:1" 1; nothing for other names.
std::optional<int> gpu_named(std::string const& name) {
  constexpr std::string_view prefix = "cuda:";
  if (name == "cuda") return -1;
  if (name.size() > prefix.size() + 3 || !name.starts_with(prefix)) return std::nullopt;
  int number = 0;
  char const *first = name.data() + prefix.size(), *last = name.data() + name.size();
  const auto [end, problem] = std::from_chars(first, last, number);
  if (problem != std::errc{} || end != last || number < 0) return std::nullopt;
  return number;
}

std::unique_ptr<executor> open_named(std::string const& name, executor_limits const& limits, bool has_kernels,
                                     std::function<std::unique_ptr<executor>()> const& make_cpu,
                                     memory_resource* shared = nullptr) {
  std::string reason;
  if (name == "cpu") return make_cpu();
  if (name == "auto") return has_kernels && cuda_usable() ? make_cuda_executor(limits, -1, shared) : make_cpu();
  if (const std::optional<int> gpu = gpu_named(name)) {
    if (!cuda_usable(&reason)) throw_bad_input("open", "the cuda executor", reason + "; use the cpu executor");
    return make_cuda_executor(limits, *gpu, shared);
  }
  throw_bad_input("open", "executor " + name, "there is no such executor: choose auto, cpu, cuda or cuda:0, cuda:1, ...");
}

}  // namespace

std::unique_ptr<executor> open_executor(std::string const& name, u32 threads, bool has_kernels) {
  return open_named(name, {}, has_kernels, [&] { return make_cpu_executor(threads); });
}

std::unique_ptr<executor> open_executor(std::string const& name, executor_limits const& limits, bool has_kernels) {
  return open_named(name, limits, has_kernels, [&] { return make_cpu_executor(limits); });
}

std::unique_ptr<executor> open_executor_over(memory_resource& memory, std::string const& name, u32 threads, bool has_kernels) {
  return open_named(name, {}, has_kernels, [&] { return open_cpu_executor(memory, threads); }, &memory);
}

#if !defined(PENSTOCK_HAS_CUDA)
bool cuda_usable(std::string* reason) {
  if (reason != nullptr) *reason = "Penstock was built without CUDA: install nvcc and build it again";
  return false;
}

std::unique_ptr<executor> make_cuda_executor(executor_limits const&, int, memory_resource*) {
  throw_bad_input("open", "the cuda executor", "built without CUDA");
}

std::unique_ptr<resident_place> make_resident_place(executor&, int, u32) {
  throw_bad_input("open", "the cuda executor", "built without CUDA");
}

sm_share& share_of_sms(int, u32 units) {
  throw_bad_input("open", std::to_string(units) + " SMs of a GPU", "built without CUDA");
}
#endif

}  // namespace penstock
