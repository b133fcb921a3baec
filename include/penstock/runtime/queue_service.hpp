// What completes a cache's commands, chosen at run time: the waiter (inline, the default), or a queue_service: on the CUDA
// executor a resident kernel with some SMs to itself, on the CPU executor threads.
//
//   queue_service service(*on, cache, {.units = 2});
//   prepare_launch<32>(*on, body);   // kernels loaded, memory allocated: all of it before start, and freed after stop
//   service.start();
//   launch<32>(*on, items, body);
//   service.stop();
//
// CUDA: what model_server.hpp says of its resident kernel holds for this one.
#pragma once

#include "penstock/core/clock.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <memory>

namespace penstock {

struct queue_service_options {
  u32 units = 1;  ///< CUDA: SMs, eight warps each; CPU: threads
  u64 start_timeout_ns = 5 * one_second_ns;
  u64 stop_timeout_ns = 5 * one_second_ns;
  u64 idle_timeout_ns = 20 * one_second_ns;  ///< it leaves after so long without work, and all wait inline again; 0: never
};

/// Not copyable. The executor and the cache outlive it.
class queue_service {
 public:
  /// Throws penstock::error (bad_input) for no units, or when the GPU has not that many SMs and one more for the threads that
  /// submit.
  queue_service(executor& on, line_cache& cache, queue_service_options const& options = {});
  ~queue_service();
  queue_service(queue_service const&) = delete;
  queue_service& operator=(queue_service const&) = delete;

  /// Returns when it serves. REQUIRES: it does not run yet. Throws world (EBUSY) when it did not come up in time.
  void start();
  /// All wait inline again. Throws world (ETIMEDOUT) when it does not end.
  void stop();
  bool running() const;
  /// It has left by itself, after idle_timeout_ns without work.
  bool gave_up() const;
  u32 units() const;
  /// CUDA: SMs that it takes of those that the executor counts as its own.
  u32 units_taken() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace penstock
