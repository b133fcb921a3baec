// The other end of the queues. Device code speaks NVMe and cannot distinguish which controller answers: host threads that serve
// files (software_controller.hpp), or memory that behaves like a drive (model_controller.hpp).
//
// All addresses that a controller sees (rings, doorbells, PRPs) are virtual addresses of this process.
#pragma once

#include "penstock/core/clock.hpp"
#include "penstock/nvme/identify.hpp"
#include "penstock/nvme/wire.hpp"

#include <string>

namespace penstock {

/// One queue pair's memory that both sides reach. The host allocates and zeroes it; device code fills sq and rings the
/// doorbells, the controller fills cq.
struct queue_rings {
  u16 id = 0;  ///< NVMe queue identifier; 0 is the admin queue
  u32 sq_entries = 0;
  u32 cq_entries = 0;
  nvme::submission_entry* sq = nullptr;
  nvme::completion_entry* cq = nullptr;
  u32* sq_doorbell = nullptr;  ///< tail, written with release; the controller loads it with acquire
  u32* cq_doorbell = nullptr;  ///< head, likewise
};

/// Registers of the device that kernels store to directly; none: the words of the rings.
struct queue_registers {
  u32* submission = nullptr;
  u32* completion = nullptr;
};

/// With less time than this no Abort is begun: one that is not answered costs a reset of the controller.
inline constexpr u64 least_abort_ns = 50 * one_millisecond_ns;

struct controller_limits {
  u32 queues = 0;                    ///< most I/O queue pairs
  u32 queue_entries = 0;             ///< most entries of one ring
  u64 transfer_bytes = 0;            ///< most bytes of one command
  bool reaches_local = false;        ///< rings and data may lie in the executor's local memory (HBM)
  bool rings_in_controller = false;  ///< submission rings may lie in its own memory, and nothing is fetched from the host's
  bool is_polled = false;            ///< it has no threads: nothing is served but where `poll` is called
  bool ready_without_media = false;  ///< it may be ready before its media are (CAP.CRMS), and NSTAT.NRDY says which are
};

/// Thread-safe, except that attach and detach of one queue and its poll must not overlap.
class controller {
 public:
  virtual ~controller() = default;

  /// Starts to serve a queue pair. Throws penstock::error (bad_input) beyond the limits or for an identifier in use.
  virtual void attach(queue_rings const& rings) = 0;

  /// Stops serving it. When this returns, the controller writes neither to its rings nor to any buffer that its commands named.
  virtual void detach(u16 queue) = 0;

  /// The same for a queue that is in trouble: a controller that asks its hardware to let go asks it no longer than
  /// `patience_ns` before it takes harder means.
  virtual void detach_soon(u16 queue, u64 /*patience_ns*/) { detach(queue); }

  /// Asks that one command be ended before its time, and waits for the answer, at most `patience_ns`. True if the controller
  /// says that it was: its completion (code::abort_requested) is posted before the answer. Whatever this says, only that
  /// completion proves that the controller has done with the command. From any thread, beside polls.
  virtual bool abort(u16 /*queue*/, u16 /*command_id*/, u64 /*patience_ns*/) { return false; }

  /// Whether it broke the protocol or left a command of its driver's (an Abort, too) without an answer: only a reset brings it
  /// back, as the next attach makes it.
  virtual bool failed() { return false; }

  /// Serves what has been submitted to a queue and completes what is done, inside the calling thread; never blocks. From any
  /// thread; if another one polls the same queue already, or the controller has threads of its own, it returns at once.
  virtual void poll(u16 queue) = 0;

  /// Announces memory that commands will point into, so that an engine may register it. `memory` outlives the queues that use
  /// it.
  virtual void add_buffer(void* memory, u64 bytes) = 0;

  virtual controller_limits limits() const = 0;

  /// The doorbells of a queue, where kernels reach those; the words of its rings then stay as they are. The same at all times.
  virtual queue_registers registers_of(u16 /*queue*/) const { return {}; }

  /// Whether none but threads of the GPU that has this memory will look at rings that lie there.
  virtual bool looks_within(void const* /*rings*/) const { return false; }

  /// How commands are served, for people: "io_uring", "pread", "mapping", "model".
  virtual std::string engine() const = 0;

  /// What messages call it: a drive's address, as the user gave it.
  virtual std::string name() const { return "the " + engine() + " controller"; }
};

}  // namespace penstock
