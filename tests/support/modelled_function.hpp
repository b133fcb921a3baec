// A PCI function whose controller is ours, for what QEMU's never does: it refuses, forgets, answers twice or with an identifier
// that nobody asked for, fails, vanishes, is never ready or does not stop, at any step of the driver's. Its I/O queues are the
// modelled controller's, with all of that one's faults. And it is a referee: what a driver must not do, it notes.
#pragma once

#include "penstock/controller/model_controller.hpp"
#include "penstock/nvme/admin.hpp"
#include "penstock/nvme/registers.hpp"
#include "penstock/pcie/pci_function.hpp"

#include "src/controller/command_decoder.hpp"
#include "src/controller/ring_server.hpp"
#include "src/pcie/dma_arena.hpp"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock::test_support {

/// What the driver is about when it sends an admin command.
enum class driver_step {
  identify_controller,
  ask_for_queues,
  list_namespaces,
  report_events,
  request_event,
  create_completion_queue,
  create_submission_queue,
  delete_submission_queue,
  delete_completion_queue,
  read_log,
  abort,
  other,
};

enum class trouble { none, refuse, drop, fatal, vanish, wrong_identifier, duplicate };

struct modelled_function_options {
  u64 capabilities = 1ull << 37 | 1ull << 24 | 1ull << 16 | 255;  ///< NVM commands, CAP.TO 500 ms, contiguous, 256 entries
  u32 grants = 8;                                                 ///< I/O queue pairs
  u8 max_transfer = 5;
  u16 refusal = nvme::code::internal_error;          ///< status of trouble::refuse
  u16 optional_commands = 0;                         ///< ONCS
  u8 entry_sizes = 0x66;                             ///< SQES
  u16 admin_commands = 0;                            ///< OACS
  u32 optional_events = 0;                           ///< OAES
  std::vector<u32> namespaces{};                     ///< that are listed instead of the one that there is
  std::optional<nvme::command_set_limits> limits{};  ///< told (CNS 06h), or not
  u32 version = 0;                                   ///< VER; from 1.3 on it answers CNS 03h, from 2.0 on CNS 08h
  u8 command_set = 0;                                ///< CSI of its namespace
  u8 namespace_state = 1;                            ///< NSTAT
  nvme::controller_type type = nvme::controller_type::not_reported;
  std::function<void(nvme::identify_namespace&)> format{};  ///< what its namespace says of itself
  model_options engine{};
};

class modelled_function final : public pci_function {
 public:
  explicit modelled_function(std::span<std::byte> media, modelled_function_options const& options = {});
  ~modelled_function() override;

  std::string name() const override { return "model:00.0"; }
  u64 register_bytes() const override { return 0x4000; }
  u32 read(u64 offset) override;
  void write(u64 offset, u32 value) override;
  memory_resource& memory() override { return arena_; }
  bool reaches(void const* address, u64 bytes) const override { return arena_.holds(address, bytes); }
  void reset() override;
  bool removal_requested() override { return wanted_back; }

  /// Stops being ready, although it is enabled; until it is enabled anew.
  void drop_ready();

  /// From now on, this happens at that step, each time (`times` times).
  void plan(driver_step step, trouble what, u32 times = ~0u);
  void make_peace();

  std::atomic<bool> gone{false};         ///< all ones
  std::atomic<bool> never_ready{false};  ///< when it is enabled
  std::atomic<bool> never_stops{false};  ///< stays ready when it is disabled
  std::atomic<bool> fails_to_start{false};
  std::atomic<bool> never_shut_down{false};      ///< does not say that it is, when it is told to
  std::atomic<bool> reset_does_not_help{false};  ///< a function-level reset fails
  std::atomic<u32> function_resets{0};
  std::atomic<bool> wanted_back{false};    ///< the machine asks for it
  std::function<void()> on_disable;        ///< called once, before it is turned off
  std::atomic<bool> another_drive{false};  ///< somebody has changed it for one with another serial number

  pcie::dma_arena& arena() { return arena_; }
  std::vector<std::string> complaints() const;
  u32 queues_alive() const;
  /// What the driver asked to be told of (feature 0Bh).
  u32 events_asked() const { return events_asked_; }
  /// Log pages that were read, in order.
  std::vector<u8> logs_read() const;
  /// Tells of an event, if the driver has left a request for it.
  bool tell_event(u8 type, u8 information, u8 page);
  bool shut_down_in_order() const { return shut_down_; }

 private:
  struct plan_entry {
    trouble what = trouble::none;
    u32 times = 0;
  };
  struct completion_ring {
    u64 address;
    u32 entries;
  };

  void configure(u32 value);
  void start();
  void stop();
  void ring(u32 index, u32 value);
  void serve_admin();
  void answer(nvme::submission_entry const& command);
  std::pair<u16, u32> execute(nvme::submission_entry const& command, driver_step step);
  u16 create_queue(nvme::submission_entry const& command);
  u16 delete_queue(nvme::submission_entry const& command);
  u16 identify(nvme::submission_entry const& command);
  trouble take_trouble(driver_step step);
  void complain(std::string const& what) { complaints_.push_back(what); }

  modelled_function_options options_;
  std::vector<std::byte> memory_;
  pcie::dma_arena arena_;
  model_controller engine_;
  std::vector<controllers::namespace_shape> shapes_;

  mutable std::recursive_mutex mutex_;  ///< guards all below
  std::array<u32, 16> registers_{};     ///< 0x00 to 0x3c
  alignas(64) std::array<u32, 1024> doorbells_{};
  std::unique_ptr<controllers::ring_server> admin_;
  std::map<u16, completion_ring> completion_queues_;
  std::map<u16, u32> submission_queues_;  ///< entries
  std::vector<u16> event_requests_;
  std::map<driver_step, plan_entry> plans_;
  std::vector<std::string> complaints_;
  bool fatal_ = false;
  bool shut_down_ = false;
  std::atomic<u32> events_asked_{0};
  std::vector<u8> logs_read_;
};

}  // namespace penstock::test_support
