// Modelled drives that are served where kernels run: on the CUDA executor by a resident kernel that has some SMs to itself, on
// the CPU executor by threads, or by the polling thread. Each drive is a controller; all drives of a server share its SMs and,
// if it is limited, one link.
//
//   model_server server(*on, {.units = 40});
//   model_drive& drive = server.add_drive({.timing = drive_preset("p5800x")});
//   drive.add_namespace(media.data(), media.bytes());
//   queue_pair<Sink> queue(on->memory(), drive, 1, {.rings = memory_kind::local, .poll_in_place = false});
//   prepare_launch<32>(*on, body);   // kernels loaded, memory allocated: all of it before start, and freed after stop
//   server.start();
//   launch<32>(*on, items, body);
//   server.stop();
//
// CUDA: between start and stop no kernel may be loaded and no memory be allocated, registered or freed, by any thread of the
// process: such calls wait for the resident kernel (PROTOCOLS.md §4). attach is refused meanwhile; detach stops the server.
#pragma once

#include "penstock/controller/controller.hpp"
#include "penstock/controller/drive_model.hpp"
#include "penstock/controller/model_controller.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/executor/executor.hpp"

#include <memory>

namespace penstock {

struct model_server_options {
  u32 units = 0;                ///< CUDA: SMs (0: a third of them); CPU: threads (0: polled in place)
  int device = -1;              ///< CUDA: the GPU that serves; -1: the executor's. Another one reaches queues and data there
                                ///< over NVLink or PCIe, and is refused where the two do not reach each other
  double link_bytes_per_s = 0;  ///< over all drives, with the headers of packets: see link_bytes; 0: no cap
  u32 max_queues = 1024;        ///< over all drives
  u32 servers_per_queue = 4;    ///< warps (threads) that may look after one queue, if there are that many
  u64 start_timeout_ns = 5 * one_second_ns;
  u64 stop_timeout_ns = 5 * one_second_ns;
  u64 idle_timeout_ns = 20 * one_second_ns;  ///< CUDA: the kernel leaves after so long without a command; 0: never
};

struct model_drive_options {
  drive_timing timing;
  fault_plan faults;
  u32 max_queues = 1024;
  u32 max_queue_entries = 4096;
  u64 transfer_bytes = 1u << 20;
};

/// What a drive did. Of drives with a timing or a fault plan only: the last four.
struct model_traffic {
  u64 reads = 0, writes = 0;
  u64 bytes_read = 0, bytes_written = 0;
  u64 most_in_flight = 0;
  u64 residence_ns = 0;  ///< sum over commands of the time from fetch to completion
  u64 busy_ns = 0;       ///< during which any command was in flight; exact while none is
  double mean_in_flight() const { return busy_ns == 0 ? 0 : static_cast<double>(residence_ns) / static_cast<double>(busy_ns); }
};

class model_server;

/// One modelled drive. Thread-safe as `controller` says.
class model_drive final : public controller {
 public:
  ~model_drive() override;

  /// A namespace over memory that the server's executor reaches and the caller keeps alive (HBM, pinned or plain memory);
  /// identifiers count from 1. REQUIRES: before the first attach. Throws bad_input unless it is a whole number of blocks.
  u32 add_namespace(void* memory, u64 bytes, u32 block_bytes = 512);

  void attach(queue_rings const& rings) override;
  void detach(u16 queue) override;
  void poll(u16 queue) override;
  void add_buffer(void*, u64) override {}
  controller_limits limits() const override;
  bool looks_within(void const* rings) const override;
  std::string engine() const override { return "model server"; }

  /// CUDA: as of the last stop.
  model_counts counts() const;
  model_traffic traffic() const;

 private:
  friend class model_server;
  struct state;
  explicit model_drive(std::unique_ptr<state> made);
  std::unique_ptr<state> state_;
};

class model_server {
 public:
  /// Throws penstock::error (bad_input) when the GPU has not that many SMs and one more for the threads that submit: an
  /// executor with limits keeps its share, and other servers theirs, whether they run or not.
  model_server(executor& on, model_server_options const& options);
  ~model_server();
  model_server(model_server const&) = delete;
  model_server& operator=(model_server const&) = delete;

  /// The drive lives as long as the server. REQUIRES: not started.
  model_drive& add_drive(model_drive_options const& options);

  /// Returns when all of it runs. Throws world (EBUSY) when it did not come up in time: something else fills the GPU.
  void start();

  /// Queues stay attached and keep their state: start() goes on with them. Throws world (ETIMEDOUT) when the kernel does not
  /// end.
  void stop();

  bool running() const;
  /// The kernel has left by itself, after idle_timeout_ns without a command.
  bool gave_up() const;
  u32 units() const;
  /// CUDA: SMs that it takes of those that the executor counts as its own: none on another GPU, or beside an executor with
  /// limits.
  u32 units_taken() const;
  /// Beside the serving threads: for media.
  memory_resource& memory();

 private:
  friend class model_drive;
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace penstock
