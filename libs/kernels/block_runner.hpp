// Runs the threads of one block on one OS thread: one after the other, or as fibers where they wait for each other.
#pragma once

#include "penstock/kernels/host_entry.hpp"

#include <memory>
#include <string>

namespace penstock::kernels {

/// Keeps its fibers' stacks from one block to the next. Not thread-safe: one for each OS thread.
class block_runner {
 public:
  block_runner();
  ~block_runner();

  /// Every thread of the block, to its end. `first`: its thread 0. Throws penstock::error where threads wait for others that
  /// wait elsewhere.
  void run(std::string const& name, host_entry const& kernel, void** parameters, host_thread const& first);

  /// Called by a thread of the block that runs on this OS thread.
  static void wait(u32 kind, u32 lanes);

  struct fibers;

 private:
  std::unique_ptr<fibers> fibers_;
};

}  // namespace penstock::kernels
