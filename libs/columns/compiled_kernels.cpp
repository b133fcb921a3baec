#include "libs/columns/compiled_kernels.hpp"

#include "libs/columns/column_launches.hpp"
#include "penstock/host/error.hpp"

namespace penstock::columns {
namespace {

/// Of one table. More programs than that are no repetition.
constexpr u64 max_loaded = 64;

std::unique_ptr<kernels::user_kernel> load([[maybe_unused]] executor& on, [[maybe_unused]] std::span<std::byte const> cubin) {
  if constexpr (has_kernels) {
    return kernels::load_cuda_kernel(on, "penstock_query", cubin);
  } else {
    return nullptr;
  }
}

}  // namespace

kernels::user_kernel* compiled_kernels::find(query_compiler& compiler, compiled_source const& source) {
  const auto known = loaded_.find(source.text);
  if (known != loaded_.end()) return known->second.get();
  const std::vector<std::byte> cubin = compiler.compiled(source.text, source.is_resident);
  if (cubin.empty()) return nullptr;
  if (loaded_.size() == max_loaded) loaded_.clear();
  std::unique_ptr<kernels::user_kernel>& kernel = loaded_[source.text];
  try {
    kernel = load(on_, cubin);
  } catch (error const& problem) {
    compiler.refused(source.text, problem.what());
  }
  return kernel.get();
}

void compiled_kernels::run(kernels::user_kernel& kernel, void const* body, u64 items, launch_limits limits) {
  if (items == 0) return;
  start(kernel, body, items, grid_of(on_, items, limits, 32, cuda_blocks_per_unit));
  on_.synchronize();
}

void compiled_kernels::prepare(kernels::user_kernel& kernel, void const* body) {
  start(kernel, body, 0, {0, 1, 32});
  on_.synchronize();
}

void compiled_kernels::start(kernels::user_kernel& kernel, void const* body, u64 items, launch_grid const& grid) {
  u64 groups = grid.groups;
  void* parameters[] = {const_cast<void*>(body), &items, &groups};
  kernels::launch_shape shape;
  shape.grid.x = grid.blocks;
  shape.block.x = grid.threads;
  shape.stream = on_.stream();
  kernel.start(parameters, {}, shape);
}

}  // namespace penstock::columns
