#include "queue_table.hpp"

#include "idle_pause.hpp"
#include "kept.hpp"

#include "penstock/core/backoff.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include <sys/prctl.h>

namespace penstock::controllers {
namespace {

// Longer than any drive takes to answer or to give up; a system call that is older is stuck for good.
constexpr u64 detach_timeout_ns = 30 * one_second_ns;

}  // namespace

queue_table::queue_table(u32 most_queues, u32 threads) : slots_(u64{most_queues} + 1) {
  for (u32 k = 0; k < threads; ++k) workers_.push_back(std::make_unique<worker>());
  try {
    for (auto& each : workers_) each->thread = std::thread([this, self = each.get()] { run(*self); });
  } catch (std::system_error const& refused) {
    close();
    throw_os_error("start", std::to_string(threads) + " service threads", refused.code().value(),
                   "ask for fewer threads or raise the limit of processes (ulimit -u)");
  }
}

queue_table::~queue_table() { close(); }

void queue_table::run(worker& self) {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // else a sleep of 50 us takes 100
  std::vector<std::shared_ptr<served_queue>> mine;
  u64 seen = 0;
  idle_pause idle;
  while (!stop_.load(acquire)) {
    if (self.version.load(acquire) != seen) {
      const std::lock_guard lock(self.mutex);
      seen = self.version.load(relaxed);
      mine = self.queues;
    }
    bool moved = false;
    for (auto const& queue : mine) {
      if (!queue->try_take_turn()) continue;
      moved |= queue->serve();
      queue->give_turn();
    }
    moved ? idle.reset() : idle.wait();
  }
}

void queue_table::hand_over(u16 id, std::shared_ptr<served_queue> const& queue) {
  worker& owner = *workers_[id % workers_.size()];
  const std::lock_guard lock(owner.mutex);
  owner.queues.push_back(queue);
  owner.version.fetch_add(1, release);
}

void queue_table::take_back(u16 id, std::shared_ptr<served_queue> const& queue) {
  worker& owner = *workers_[id % workers_.size()];
  const std::lock_guard lock(owner.mutex);
  std::erase(owner.queues, queue);
  owner.version.fetch_add(1, release);
}

bool queue_table::in_use(u16 id) {
  const std::lock_guard lock(mutex_);
  return id < slots_.size() && slots_[id].queue != nullptr;
}

void queue_table::attach(u16 id, std::shared_ptr<served_queue> const& queue) {
  {
    const std::lock_guard lock(mutex_);
    if (slots_[id].queue != nullptr) {
      throw_bad_input("attach", "queue " + std::to_string(id), "the identifier is in use: detach that queue first");
    }
    slots_[id].queue = queue;
    slots_[id].polled.store(queue.get(), release);
  }
  if (!workers_.empty()) hand_over(id, queue);
}

void queue_table::detach(u16 id) {
  const std::string object = "queue " + std::to_string(id);
  std::shared_ptr<served_queue> queue;
  {
    const std::lock_guard lock(mutex_);
    if (id < slots_.size()) {
      queue = std::move(slots_[id].queue);
      slots_[id].queue = nullptr;
      slots_[id].polled.store(nullptr, release);
    }
  }
  if (queue == nullptr) throw_bad_input("detach", object, "no such queue is attached: attach it first");
  if (!workers_.empty()) take_back(id, queue);

  // A service thread may be inside serve() still, or hold a list that is out of date; the turn is never given back to it.
  backoff wait(detach_timeout_ns);
  bool mine = queue->try_take_turn();
  while (!mine && wait.pause()) mine = queue->try_take_turn();
  if (mine && queue->quiesce(wait.deadline_ns())) return;
  keep_for_ever(std::move(queue));  // the kernel, or a device, may still write where it points
  throw_os_error("detach", object, ETIMEDOUT,
                 "a system call has not come back; keep the queue's memory until the process ends");
}

bool queue_table::abort(u16 id, u16 command_id, u64 patience_ns) {
  std::shared_ptr<served_queue> queue;
  {
    const std::lock_guard lock(mutex_);
    if (id < slots_.size()) queue = slots_[id].queue;
  }
  if (queue == nullptr) return false;
  backoff wait(patience_ns);
  bool mine = queue->try_take_turn();
  while (!mine && wait.pause()) mine = queue->try_take_turn();
  if (!mine) return false;
  const bool ended = queue->abort(command_id);
  queue->give_turn();
  return ended;
}

void queue_table::close() noexcept {
  for (u64 id = 0; id < slots_.size(); ++id) {
    try {
      if (in_use(static_cast<u16>(id))) detach(static_cast<u16>(id));
    } catch (error const&) {
      // Told by detach to whoever calls it; at the end of the controller nobody is left to tell.
    }
  }
  stop_.store(true, release);
  for (auto& each : workers_) {
    if (each->thread.joinable()) each->thread.join();
  }
}

}  // namespace penstock::controllers
