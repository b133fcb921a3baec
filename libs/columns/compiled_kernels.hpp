// Kernels of passes of queries that were compiled when the program runs, loaded and launched as the library's own.
#pragma once

#include "libs/columns/compiled_source.hpp"
#include "libs/kernels/user_kernel.hpp"
#include "penstock/executor/launch.hpp"

#include <memory>
#include <string>
#include <unordered_map>

namespace penstock::columns {

/// Not thread-safe: a table's queries take turns.
class compiled_kernels {
 public:
  /// `on` outlives it.
  explicit compiled_kernels(executor& on) : on_(on) {}

  /// nullptr: interpret. Throws what the compiler does.
  kernels::user_kernel* find(query_compiler& compiler, compiled_source const& source);

  /// As `launch` does with a body: `body` lies where its type does.
  void run(kernels::user_kernel& kernel, void const* body, u64 items, launch_limits limits);
  /// As `prepare_launch`.
  void prepare(kernels::user_kernel& kernel, void const* body);

 private:
  void start(kernels::user_kernel& kernel, void const* body, u64 items, launch_grid const& grid);

  executor& on_;
  std::unordered_map<std::string, std::unique_ptr<kernels::user_kernel>> loaded_;  ///< nullptr: it could not be
};

}  // namespace penstock::columns
