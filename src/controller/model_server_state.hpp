// The host's side of a model_server: which queue record belongs to which queue of which drive.
#pragma once

#include "../executor/resident_place.hpp"
#include "command_decoder.hpp"
#include "model_runner.hpp"

#include "penstock/executor/memory.hpp"

#include <atomic>
#include <mutex>
#include <vector>

namespace penstock {

struct model_server::state {
  state(executor& on_, model_server_options const& options_);

  bool on_gpu() const { return on.kind() == executor_kind::cuda; }
  bool served_by_polls() const { return runner->units() == 0; }

  /// A queue record for `fields`; the list of waiting commands is made here.
  u32 take_slot(controllers::queue_fields fields);
  /// Nothing touches the queue's memory afterwards. Its counts. Throws world (ETIMEDOUT).
  controllers::served_counts give_back_slot(u32 slot);
  controllers::served_counts counts_of(controllers::served_counts const* address) const;
  u64 word_of(u64 const* address) const;

  void start();
  void stop();

  executor& on;
  std::unique_ptr<resident_place> place;  ///< CUDA only
  memory_resource& memory;                ///< of who serves
  model_server_options options;
  std::mutex mutex;  ///< guards the slots
  struct slot {
    bool used = false;
    buffer<controllers::waiting_command> waiting;
  };
  std::vector<slot> slots;
  buffer<controllers::queue_record> queues;
  buffer<controllers::server_shared> shared;
  buffer<controllers::server_control> control;
  controllers::server_view view;
  std::vector<std::unique_ptr<model_drive>> drives;
  std::unique_ptr<controllers::model_runner> runner;  ///< last: gone before its memory
  std::atomic<bool> running{false};

 private:
  void set_active(u32 slot, controllers::queue_fields const* fields);
};

struct model_drive::state {
  state(model_server::state& server_, model_drive_options const& options_);

  controllers::served_counts sum() const;
  controllers::served_counts told();

  model_server::state& server;
  model_drive_options options;
  controller_limits limits;
  controllers::drive_record record;
  model_controller admin;
  std::mutex mutex;  ///< guards what follows
  bool published = false;
  controllers::served_counts retired;  ///< of queues that were given back
  controllers::served_counts last_told;
  u64 last_most_in_flight = 0;
  std::vector<std::atomic<u32>> slot_of;  ///< by queue identifier: record and one, or 0
  buffer<controllers::drive_record> served;
  buffer<controllers::unit_slot> units;
};

}  // namespace penstock
