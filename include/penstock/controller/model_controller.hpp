// Memory that answers like a drive: a service time, a parallelism, an IOPS limit, and a seeded plan of faults. It carries the
// fault tests, and measurement where no drive is at hand. This one runs on CPU threads (or inside the polling thread).
#pragma once

#include "penstock/controller/controller.hpp"

#include <atomic>
#include <memory>
#include <span>
#include <vector>

namespace penstock {

/// What goes wrong, and how often. Each command has a generator of its own, seeded with `seed`, its queue and its number there,
/// and draws for each fault from it: a run with the same commands in the same order fails the same way.
struct fault_plan {
  u64 seed = 0;
  double error = 0;  ///< share of commands that end with one of `error_codes`, data untouched
  std::vector<u16> error_codes = {nvme::code::unrecovered_read_error};  ///< status type << 8 | code, drawn evenly
  double delay = 0;                                                     ///< share of commands that take `delay_ns` longer
  u64 delay_ns = 0;
  double drop = 0;       ///< share of commands whose completion never comes
  bool reorder = false;  ///< completions that are due together are posted in random order
  double duplicate = 0;  ///< share of commands whose completion is posted twice in a row
  double late = 0;       ///< share of commands that are served, data written and completion posted, only after `late_ns`
  u64 late_ns = 0;
  double unknown_identifier = 0;  ///< share of commands before whose completion one with an identifier not in flight is posted
  bool poison_fetched = false;    ///< overwrites a submission entry as soon as it has been fetched
  bool torn_completion = false;   ///< writes dwords 0 and 2 of a completion as garbage first, then right, then dword 3
};

struct model_options {
  u64 service_time_ns = 0;  ///< of one command on one unit
  u32 parallelism = 64;     ///< units that serve at once
  double iops_limit = 0;    ///< commands/s over all queues; 0: none
  u32 threads = 0;          ///< 0: polled in place
  u32 max_queues = 1024;
  u32 max_queue_entries = 4096;
  u64 transfer_bytes = 1u << 20;
  fault_plan faults;
};

/// What the model did, for the tests: every injected fault is counted.
struct model_counts {
  u64 fetched = 0;
  u64 completed = 0;
  u64 errors = 0;
  u64 delays = 0;
  u64 drops = 0;
  u64 duplicates = 0;
  u64 lates = 0;
  u64 unknown_identifiers = 0;
  u64 refused_doorbells = 0;  ///< values that no correct host writes
  u64 aborted = 0;            ///< commands that were aborted
};

class model_controller final : public controller {
 public:
  explicit model_controller(model_options const& options);
  ~model_controller() override;

  /// A namespace over memory that the caller keeps alive; identifiers count from 1. REQUIRES: before the first attach.
  u32 add_namespace(std::span<std::byte> memory, u32 block_bytes = 512);

  void attach(queue_rings const& rings) override;
  void detach(u16 queue) override;
  /// Aborts what it has fetched and not served yet; not what it dropped.
  bool abort(u16 queue, u16 command_id, u64 patience_ns) override;
  void poll(u16 queue) override;
  void add_buffer(void* memory, u64 bytes) override;
  controller_limits limits() const override;
  std::string engine() const override;

  model_counts counts() const;

  /// Stops answering (true) as a dead drive does, or goes on (false).
  void set_dead(bool dead);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace penstock
