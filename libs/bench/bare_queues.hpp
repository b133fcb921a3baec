// Owns the rings and the buffers of bare clients, and tells a controller of them.
#pragma once

#include "libs/bench/bare_client.hpp"
#include "penstock/controller/controller.hpp"
#include "penstock/executor/executor.hpp"

#include <vector>

namespace penstock::bench {

struct bare_options {
  u32 namespace_id = 1;
  u32 block_bytes = 512;  ///< of a command, which is one block of the namespace
  u32 queues = 1;
  u32 first_queue_id = 1;
  u32 entries = 1024;  ///< of each ring; a power of two
  u32 commands = 128;  ///< most in flight on a queue
  memory_kind rings = memory_kind::shared;
  memory_kind data = memory_kind::shared;
  bool poll_in_place = false;  ///< whoever waits lets the controller work (CPU executor)
};

/// Not copyable. REQUIRES: the controller outlives it; no kernel uses it when it goes.
class bare_queues {
 public:
  /// Throws penstock::error (bad_input) for options that cannot be; what the controller's attach throws.
  bare_queues(executor& on, controller& owner, bare_options const& options);
  ~bare_queues();
  bare_queues(bare_queues const&) = delete;
  bare_queues& operator=(bare_queues const&) = delete;

  bare_queue_view const* view() const { return table_.data(); }
  u32 size() const { return static_cast<u32>(table_.size()); }
  /// Bytes of memory that such queues take, beside the lists.
  static u64 bytes(bare_options const& options);

 private:
  void detach() noexcept;
  void write_lists(memory_resource& memory, bare_options const& options, u64 count);

  controller& controller_;
  std::vector<u16> attached_;
  buffer<nvme::submission_entry> sq_;
  buffer<nvme::completion_entry> cq_;
  buffer<u32> doorbells_;
  buffer<u64> positions_, data_, lists_;
  u64 base_ = 0;  ///< address of the first block, a multiple of a page
  buffer<bare_queue_view> table_;
};

}  // namespace penstock::bench
