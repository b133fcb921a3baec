// Owns the queue pairs through which kernels reach a namespace block by block (queue/block_io.hpp).
#pragma once

#include "penstock/controller/controller.hpp"
#include "penstock/executor/executor.hpp"
#include "penstock/queue/block_io.hpp"
#include "penstock/runtime/queue_reset.hpp"

#include <memory>
#include <vector>

namespace penstock {

struct block_device_options {
  u32 queues = 0;  ///< 0: one per CPU thread, 32 on CUDA, or as many as the controller has
  u32 queue_depth = 1024;
  u32 first_queue_id = 1;
  u64 first_ticket = 0;  ///< for tests: see queue_options
  u64 timeout_ns = 30 * one_second_ns;
  u64 transfer_bytes = 65536;  ///< most that one command moves; at most 64 KiB
  /// Where the rings lie: `local` (HBM) for a controller that reaches it there, which also writes straight to where commands
  /// say. `shared` on CUDA: data goes through bounce buffers of transfer_bytes, one per slot.
  memory_kind rings = memory_kind::shared;
  bool poll_in_place = true;  ///< CPU executor: waiting threads let the controller work
  /// Before its data are looked at, each read waits for one more command that its device has fetched since
  /// (queue/read_barrier.hpp): for devices whose data a GPU may see later than the completion that follows them. Takes
  /// submission rings in the memory that data go to: not in host memory on CUDA, nor in the controller's own.
  bool read_barrier = false;
};

/// Not copyable. REQUIRES: the controller outlives it; no kernel uses it when it goes.
class block_device {
 public:
  /// Throws penstock::error (bad_input) for options or a namespace that cannot be.
  block_device(executor& on, controller& owner, u32 namespace_id, block_device_options const& options);
  ~block_device();

  block_device_view const& view() const { return view_; }
  /// Commands that read barriers sent. REQUIRES: no kernel runs.
  u64 barriers() const;
  std::vector<queue_counts> queues() const;

  /// Resets queue pairs (see queue_pair::reset for what that takes). Commands in flight there end with failure::resetting;
  /// those that expired or failed before are over for the controller, too, so their requests may be used again. Throws
  /// penstock::error (world) when one of them cannot be; those before it are back.
  recovery recover(recover_scope which = recover_scope::broken);

 private:
  void make_barrier(controller const& owner, u32 block_bytes, bool rings_on_host);

  executor& on_;
  // Before the queues, and so after them at the end: their commands name it until the controller has let go of them.
  buffer<read_barrier> barrier_;  ///< local
  buffer<u8> barrier_data_;       ///< where its commands write
  std::vector<std::unique_ptr<queue_pair<result_sink>>> queues_;
  buffer<queue_pair_view<result_sink>> table_;
  block_device_view view_;
};

}  // namespace penstock
