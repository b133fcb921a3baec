// One queue of the modelled controller: a list of what is due when, and what goes wrong with it.
#pragma once

#include "command_decoder.hpp"
#include "fault_draw.hpp"
#include "model_schedule.hpp"
#include "queue_table.hpp"
#include "ring_server.hpp"

#include <atomic>
#include <memory>
#include <vector>

namespace penstock::controllers {

/// What the queues of a modelled controller share. Fixed once a queue is attached, but for the atomics and the schedule.
struct model_media {
  explicit model_media(model_options const& wanted) : options(wanted), schedule(wanted) {}

  model_options options;
  std::vector<std::byte*> memory;
  std::vector<namespace_shape> shapes;
  controller_limits limits;
  model_schedule schedule;
  std::atomic<bool> dead{false};

  struct atomic_counts {
    std::atomic<u64> fetched{0}, completed{0}, errors{0}, delays{0}, drops{0}, duplicates{0}, lates{0}, unknown_identifiers{0},
        refused_doorbells{0}, aborted{0};
  } counts;
};

class model_queue final : public served_queue {
 public:
  model_queue(queue_rings const& rings, std::shared_ptr<model_media> media);

  bool serve() override;
  bool quiesce(u64 deadline_ns) override;
  bool abort(u16 command_id) override;

 private:
  struct event {
    u64 due_ns;
    u64 number;  ///< of the command on this queue; ties in order
    nvme::submission_entry command;
    fault_draw faults;

    bool after(event const& other) const { return due_ns != other.due_ns ? due_ns > other.due_ns : number > other.number; }
  };

  bool fetch_commands();
  void schedule(nvme::submission_entry const& command);
  bool finish_due();
  void finish(event const& done);
  u16 execute(nvme::submission_entry const& command);
  u16 move_data(decoded_command const& request, nvme::submission_entry const& command);
  u16 unknown_identifier(u64 random) const;

  ring_server ring_;
  std::shared_ptr<model_media> media_;
  std::vector<event> events_;  ///< a heap, the first due on top
  std::vector<event> due_;     ///< taken off the heap, not finished yet
  u64 fetched_ = 0;
  u64 refused_told_ = 0;
  random_draws shuffle_;
  pieces scratch_;
};

}  // namespace penstock::controllers
