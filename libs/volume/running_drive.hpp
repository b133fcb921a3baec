// An NVMe drive that this process drives itself, for all that uses it at once: volumes on its namespaces, and the caches over
// them.
#pragma once

#include "libs/volume/member.hpp"
#include "penstock/pcie/pcie_controller.hpp"

#include <functional>
#include <map>
#include <mutex>

namespace penstock::volumes {

/// A drive that is brought up, for all of its namespaces that are members.
struct running_drive {
  /// Throws penstock::error where the controller does not come up.
  explicit running_drive(std::shared_ptr<pci_function> own) : function(std::move(own)), controller(*function) {}

  std::shared_ptr<pci_function> function;
  pcie_controller controller;

  /// Held while a queue that looks at a namespace is opened: there is one queue 0, which Identify takes.
  std::mutex opening;

  std::mutex mutex;             ///< of what follows
  std::vector<bool> taken;      ///< queue 1 + k of the controller
  std::map<u32, u32> readers;   ///< of namespaces
  std::map<u32, bool> written;  ///< likewise
};

/// The drive at `address`, which `open` opens unless something of this process uses it already; it is shut down after the last
/// of its users. Throws penstock::error, for a drive of the process that this one was forked from, too.
std::shared_ptr<running_drive> share_drive(std::string const& address,
                                           std::function<std::shared_ptr<pci_function>()> const& open);

/// A namespace of a drive that is a member, for one writer or several readers.
class namespace_hold {
 public:
  /// Throws bad_input, naming `name`, where others of this process use it.
  namespace_hold(std::shared_ptr<running_drive> drive, u32 namespace_id, access how, std::string const& name);
  namespace_hold(namespace_hold const&) = delete;
  namespace_hold& operator=(namespace_hold const&) = delete;
  ~namespace_hold();

 private:
  std::shared_ptr<running_drive> drive_;
  u32 namespace_id_;
  access how_;
};

/// Some queues of a drive, numbered from 1, as a controller whose only ones they are. Outlives its queues.
class drive_share final : public controller {
 public:
  /// Takes at most `wanted` of the queues that are free, half of them where others may want some too. Throws bad_input, naming
  /// `name`, where none is.
  drive_share(std::shared_ptr<running_drive> drive, u32 wanted, bool leaves_half, std::string const& name);
  drive_share(drive_share const&) = delete;
  drive_share& operator=(drive_share const&) = delete;
  ~drive_share() override;

  void attach(queue_rings const& rings) override;
  void detach(u16 queue) override { drive_->controller.detach(id_of(queue)); }
  void detach_soon(u16 queue, u64 patience_ns) override { drive_->controller.detach_soon(id_of(queue), patience_ns); }
  bool abort(u16 queue, u16 command_id, u64 patience_ns) override {
    return drive_->controller.abort(id_of(queue), command_id, patience_ns);
  }
  bool failed() override { return drive_->controller.failed(); }
  void poll(u16 queue) override { drive_->controller.poll(id_of(queue)); }
  void add_buffer(void* memory, u64 bytes) override { drive_->controller.add_buffer(memory, bytes); }
  controller_limits limits() const override;
  queue_registers registers_of(u16 queue) const override { return drive_->controller.registers_of(id_of(queue)); }
  std::string engine() const override { return drive_->controller.engine(); }
  std::string name() const override { return drive_->controller.name(); }

  std::mutex& opening() { return drive_->opening; }

 private:
  u16 id_of(u16 queue) const { return queue == 0 ? u16{0} : ids_.at(queue - 1u); }

  std::shared_ptr<running_drive> drive_;
  std::vector<u16> ids_;
};

}  // namespace penstock::volumes
