// What the cache benchmarks read: host memory full of known values behind the software controller, a cache over it, and the
// same values in the executor's memory for the baseline.
#pragma once

#include "libs/bench/pattern.hpp"
#include "penstock/controller/model_server.hpp"
#include "penstock/controller/software_controller.hpp"
#include "penstock/host/progress.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace penstock::bench {

#if defined(PENSTOCK_HAS_CUDA)
inline constexpr bool built_with_kernels = true;
#else
inline constexpr bool built_with_kernels = false;
#endif

/// "random", "linear", "strided" or "coarsened". Throws penstock::error (bad_input) for another word.
line_order order_of(std::string const& name);
/// What tells an order in an id: nothing for the usual one.
std::string order_suffix(line_order order);

struct store_options {
  u64 bytes = 0;        ///< of the data; a power of two
  u64 cache_bytes = 0;  ///< of frames
  u64 line_bytes = 4096;
  directory_kind directory = directory_kind::automatic;
  u32 threads = 0;                          ///< of the software controller; 0: one per core, two left over. CPU executor: none
  bool modelled = false;                    ///< behind a modelled drive instead
  memory_kind media = memory_kind::shared;  ///< of that drive
  std::string preset = "none";              ///< likewise
  u32 server_units = 0;                     ///< likewise: SMs; 0: a third
  int server_device = -1;                   ///< likewise: GPU that serves; -1: the executor's
  bool directory_in_l2 = false;             ///< see cache_options
  u32 queues = 0;
  u32 queue_depth = 256;
  u64 read_ahead_bytes = cache_options{}.read_ahead_bytes;  ///< see there
  ablations without{};
};

/// Adds what a cache did without to the parameters of a measurement; nothing for a whole one.
void note_ablations(ablations const& without, std::map<std::string, std::string>& params);

class stamped_store {
 public:
  /// Throws penstock::error (bad_input) for sizes that cannot be.
  stamped_store(executor& on, store_options const& options, progress_fn const& progress);

  executor& on() const { return on_; }
  store_options const& options() const { return options_; }
  line_cache& cache() const { return *cache_; }
  u64 elements() const { return options_.bytes / sizeof(u64); }
  u64 line_elements() const { return options_.line_bytes / sizeof(u64); }
  array_view<u64> array() const { return cache_->array<u64>(0, 0, elements()); }
  /// The same elements in memory that kernels reach directly.
  u64 const* plain() const { return plain_.data(); }
  std::string engine() const { return controller_ != nullptr ? controller_->engine() : "model server"; }
  /// The bytes that a modelled drive serves, where kernels may read them in place; else null.
  u64 const* media_in_place() const { return media_.data(); }
  /// The modelled drive's server: to be started when all else is allocated and loaded. Null: there is none.
  model_server* server() const { return server_.get(); }

 private:
  executor& on_;
  store_options options_;
  std::vector<u64> values_;  ///< what the software controller serves
  std::unique_ptr<model_server> server_;
  buffer<u64> media_;  ///< what a modelled drive serves
  buffer<u64> plain_;
  std::unique_ptr<software_controller> controller_;
  std::unique_ptr<line_cache> cache_;
};

}  // namespace penstock::bench
