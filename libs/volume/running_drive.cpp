#include "libs/volume/running_drive.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include <unistd.h>

namespace penstock::volumes {
namespace {

/// The drives that run, by address. One that begins or ends is in it, too, for it can be opened again only after that.
struct running_drives {
  struct entry {
    std::weak_ptr<running_drive> drive;
    pid_t process = 0;
  };

  std::mutex mutex;
  std::condition_variable ended;
  std::map<std::string, entry> all;
};

running_drives& drives() {
  static running_drives* const all = new running_drives;  // outlives whatever a module of the program still holds at its end
  return *all;
}

void forget(std::string const& address) {
  running_drives& running = drives();
  {
    const std::lock_guard lock(running.mutex);
    running.all.erase(address);
  }
  running.ended.notify_all();
}

/// Shuts a drive down. What a forked process drops of its parent's stays as it is.
struct ends_drive {
  std::string address;
  pid_t process;

  void operator()(running_drive* drive) const {
    if (process != getpid()) return;
    delete drive;
    forget(address);
  }
};

}  // namespace

std::shared_ptr<running_drive> share_drive(std::string const& address,
                                           std::function<std::shared_ptr<pci_function>()> const& open) {
  running_drives& running = drives();
  std::unique_lock lock(running.mutex);
  for (auto found = running.all.find(address); found != running.all.end(); found = running.all.find(address)) {
    if (found->second.process != getpid()) {
      throw_bad_input(
          "open", address,
          "the process that this one was forked from drives it: close what it has there first, or fork before it opens");
    }
    if (auto drive = found->second.drive.lock()) return drive;
    running.ended.wait(lock);
  }
  // Others wait for this entry until the drive is up, or cannot come up.
  running.all[address] = {{}, getpid()};
  lock.unlock();
  std::shared_ptr<running_drive> drive;
  try {
    auto made = std::make_unique<running_drive>(open());
    ends_drive ending{address, getpid()};
    drive = std::shared_ptr<running_drive>(made.release(), std::move(ending));
  } catch (...) {
    forget(address);
    throw;
  }
  {
    const std::lock_guard again(running.mutex);
    running.all[address].drive = drive;
  }
  running.ended.notify_all();
  return drive;
}

namespace_hold::namespace_hold(std::shared_ptr<running_drive> drive, u32 namespace_id, access how, std::string const& name)
    : drive_(std::move(drive)), namespace_id_(namespace_id), how_(how) {
  const std::lock_guard lock(drive_->mutex);
  const bool is_read = drive_->readers[namespace_id] != 0, is_written = drive_->written[namespace_id];
  if (is_written || (is_read && how == access::write)) {
    throw_bad_input("open", name,
                    std::string("this process ") + (is_written ? "writes" : "reads") + " it: close what is open of its volume");
  }
  if (how == access::write) drive_->written[namespace_id] = true;
  if (how == access::read) ++drive_->readers[namespace_id];
}

namespace_hold::~namespace_hold() {
  const std::lock_guard lock(drive_->mutex);
  if (how_ == access::write) drive_->written[namespace_id_] = false;
  if (how_ == access::read) --drive_->readers[namespace_id_];
}

drive_share::drive_share(std::shared_ptr<running_drive> drive, u32 wanted, bool leaves_half, std::string const& name)
    : drive_(std::move(drive)) {
  const u32 queues = drive_->controller.limits().queues;
  const std::lock_guard lock(drive_->mutex);
  std::vector<bool>& taken = drive_->taken;
  taken.resize(std::max<u64>(taken.size(), queues));
  const auto left = static_cast<u32>(std::count(taken.begin(), taken.begin() + queues, false));
  const u32 most = std::min(wanted, leaves_half && left > 1 ? left / 2 : left);
  if (most == 0) {
    throw_bad_input("open", name,
                    "the " + std::to_string(queues) + " queues of its drive are taken: close what is open there, or export it");
  }
  for (u32 k = 0; k < queues && ids_.size() < most; ++k) {
    if (taken[k]) continue;
    taken[k] = true;
    ids_.push_back(static_cast<u16>(k + 1));
  }
}

drive_share::~drive_share() {
  const std::lock_guard lock(drive_->mutex);
  for (const u16 id : ids_) drive_->taken[id - 1u] = false;
}

void drive_share::attach(queue_rings const& rings) {
  if (rings.id > ids_.size()) {
    throw_bad_input("attach", "queue " + std::to_string(rings.id),
                    "there are " + std::to_string(ids_.size()) + " of the drive for it: ask for fewer");
  }
  queue_rings own = rings;
  own.id = id_of(rings.id);
  drive_->controller.attach(own);
}

controller_limits drive_share::limits() const {
  controller_limits own = drive_->controller.limits();
  own.queues = static_cast<u32>(ids_.size());
  return own;
}

}  // namespace penstock::volumes
