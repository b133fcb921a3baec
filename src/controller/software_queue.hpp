// One queue of the software controller: fetches commands, copies what is in memory, hands the rest to its engine.
#pragma once

#include "buffer_list.hpp"
#include "file_space.hpp"
#include "queue_table.hpp"
#include "ring_server.hpp"
#include "transfer.hpp"

#include <array>
#include <memory>
#include <vector>

namespace penstock::controllers {

/// What the queues of a controller share. Fixed once a queue is attached.
struct software_media {
  std::vector<std::unique_ptr<storage_namespace>> spaces;
  std::vector<namespace_shape> shapes;
  controller_limits limits;
  buffer_list buffers;
};

/// Written by the queue's server, read by anyone.
struct alignas(64) software_queue_counts {
  u64 commands = 0;
  u64 copied = 0;
  u64 handed_on = 0;
  u64 refused_doorbells = 0;
};

class software_queue final : public served_queue {
 public:
  /// `engine` may be nullptr where no namespace is a file.
  software_queue(queue_rings const& rings, std::shared_ptr<software_media const> media, std::unique_ptr<transfer_engine> engine,
                 software_queue_counts& counts);

  bool serve() override;
  bool quiesce(u64 deadline_ns) override;

 private:
  /// A Read or Write that needs no system call. It waits for a few others, at most until the end of the pass: a core looks up
  /// their pages side by side, if it is asked for one right after the other.
  struct waiting_copy {
    u16 command_id = 0;
    decoded_command request;
    storage_namespace const* space = nullptr;
    std::byte const* bytes = nullptr;
    pieces data;
  };
  static constexpr u32 most_waiting = 8;

  bool finish_ended();
  void serve_pass(u32& fetched);
  bool copies(storage_namespace const& space, decoded_command const& request) const;
  void copy_later(storage_namespace const& space, decoded_command const& request, u16 command_id);
  bool read_at_once(storage_namespace const& space, decoded_command const& request);
  void copy_waiting();
  bool copy_now(storage_namespace const& space, decoded_command const& request, pieces const& data, void const* next) const;
  void start(nvme::submission_entry const& command);
  void start_data(decoded_command const& request, nvme::submission_entry const& command);
  void hand_on(storage_namespace const& space, decoded_command const& request, u16 command_id, pieces& data);
  void start_call(transfer& work);
  static byte_run nonzero_run_of(transfer const& work);
  void advance(transfer& work);
  void retry_or_fail(transfer& work, int error);
  void finish(transfer& work, u16 status);
  void deliver(transfer const& work) const;

  ring_server ring_;
  std::shared_ptr<software_media const> media_;
  std::shared_ptr<pass_counter> pass_;  ///< where a namespace is a folder
  std::vector<std::unique_ptr<transfer>> transfers_;
  std::vector<transfer*> free_;
  std::unique_ptr<transfer_engine> engine_;  ///< after the transfers, so that it goes first
  software_queue_counts& counts_;
  u64 refused_before_;
  pieces scratch_;
  std::array<waiting_copy, most_waiting> waiting_;
  u32 waiting_count_ = 0;
  u32 now_ms_ = 0;
};

}  // namespace penstock::controllers
