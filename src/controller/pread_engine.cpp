#include "pread_engine.hpp"

#include "penstock/core/backoff.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <unistd.h>

namespace penstock::controllers {
namespace {

constexpr int most_pieces = 1024;  // IOV_MAX of Linux
constexpr u64 end_timeout_ns = 30 * one_second_ns;

long make_call(transfer const& work, int file) {
  const auto position = static_cast<off_t>(work.space->first_byte() + work.offset + work.done);
  const int count = static_cast<int>(std::min<u64>(work.rest.size(), most_pieces));
  long result = 0;
  switch (work.what) {
    case action::read: result = preadv(file, work.rest.data(), count, position); break;
    case action::write: result = pwritev(file, work.rest.data(), count, position); break;
    default: result = fdatasync(file); break;
  }
  return result < 0 ? -errno : result;
}

}  // namespace

pread_pool::pread_pool(u32 threads) : state_(std::make_shared<shared_state>()) {
  state_->running = std::max(1u, threads);
  for (u32 k = 0; k < std::max(1u, threads); ++k) std::thread(run, state_).detach();
}

pread_pool::~pread_pool() {
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  state_->work_came.notify_all();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(end_timeout_ns);
  state_->work_came.wait_until(lock, deadline, [this] { return state_->running == 0; });
}

void pread_pool::add(std::vector<job> const& jobs) {
  const std::lock_guard lock(state_->mutex);
  if (state_->first > state_->jobs.size() / 2) {  // under load the list is never empty, and must not grow for ever
    state_->jobs.erase(state_->jobs.begin(), state_->jobs.begin() + static_cast<std::ptrdiff_t>(state_->first));
    state_->first = 0;
  }
  state_->jobs.insert(state_->jobs.end(), jobs.begin(), jobs.end());
  jobs.size() == 1 ? state_->work_came.notify_one() : state_->work_came.notify_all();
}

void pread_pool::run(std::shared_ptr<shared_state> state) {
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->work_came.wait_for(lock, std::chrono::seconds(1), [&] { return state->stop || state->first != state->jobs.size(); });
    if (state->first == state->jobs.size()) {
      if (state->stop) break;
      continue;
    }
    const job next = state->jobs[state->first++];
    if (state->first == state->jobs.size()) {
      state->jobs.clear();
      state->first = 0;
    }
    lock.unlock();
    next.work->result = next.owner->given_up() ? -ECANCELED : make_call(*next.work, next.file);
    next.owner->hand_back(*next.work);
    lock.lock();
  }
  --state->running;
  state->work_came.notify_all();
}

pread_engine::pread_engine(std::shared_ptr<pread_pool> pool, std::vector<int> files)
    : pool_(std::move(pool)), files_(std::move(files)) {}

void pread_engine::start(transfer& work) {
  started_.push_back({&work, this, work.descriptor >= 0 ? work.descriptor : files_[work.file]});
  ++in_flight_;
}

void pread_engine::submit() {
  if (started_.empty()) return;
  pool_->add(started_);
  started_.clear();
}

void pread_engine::hand_back(transfer& work) {
  work.next = ended_.load(relaxed);
  while (!ended_.compare_exchange_weak(work.next, &work, release, relaxed)) {}
}

transfer* pread_engine::reap() {
  if (ended_.load(relaxed) == nullptr) return nullptr;
  transfer* newest_first = ended_.exchange(nullptr, acquire);
  transfer* oldest_first = nullptr;
  while (newest_first != nullptr) {
    transfer* next = newest_first->next;
    newest_first->next = oldest_first;
    oldest_first = newest_first;
    newest_first = next;
    --in_flight_;
  }
  return oldest_first;
}

bool pread_engine::quiesce(u64 deadline_ns) {
  given_up_.store(true, release);
  in_flight_ -= started_.size();
  started_.clear();
  const u64 now = now_ns();
  backoff wait(deadline_ns > now ? deadline_ns - now : 0);
  do {
    reap();
  } while (in_flight_ != 0 && wait.pause());
  return in_flight_ == 0;
}

}  // namespace penstock::controllers
