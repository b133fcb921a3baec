#include "model_queue.hpp"

#include "prp_reader.hpp"

#include "penstock/core/clock.hpp"

#include <algorithm>

namespace penstock::controllers {
namespace {

constexpr u32 most_per_pass = 64;
constexpr u64 most_in_flight = 0x8000;  // the other half of the identifiers is for those that are not in flight
constexpr u64 shuffle_number = ~u64{0};

void count(std::atomic<u64>& counter, bool happened = true) {
  if (happened) counter.fetch_add(1, relaxed);
}

}  // namespace

model_queue::model_queue(queue_rings const& rings, std::shared_ptr<model_media> media)
    : ring_(rings, {media->options.faults.poison_fetched, media->options.faults.torn_completion}), media_(std::move(media)),
      shuffle_(media_->options.faults.seed, rings.id, shuffle_number) {}

bool model_queue::serve() {
  if (media_->dead.load(relaxed)) return false;
  bool moved = ring_.drain();
  moved |= fetch_commands();
  moved |= finish_due();
  if (ring_.refused_doorbells() != refused_told_) {
    media_->counts.refused_doorbells.fetch_add(ring_.refused_doorbells() - refused_told_, relaxed);
    refused_told_ = ring_.refused_doorbells();
  }
  return moved;
}

bool model_queue::quiesce(u64) {
  events_.clear();
  due_.clear();
  return true;
}

/// What has not been served yet is not served any more. Of two commands with one identifier, which no correct host submits, the
/// first goes.
bool model_queue::abort(u16 command_id) {
  const auto named = [command_id](event const& e) { return e.command.command_id == command_id; };
  if (ring_.congested()) return false;
  if (const auto at = std::find_if(due_.begin(), due_.end(), named); at != due_.end()) {
    due_.erase(at);
  } else if (const auto in = std::find_if(events_.begin(), events_.end(), named); in != events_.end()) {
    events_.erase(in);
    std::make_heap(events_.begin(), events_.end(), [](event const& a, event const& b) { return a.after(b); });
  } else {
    return false;
  }
  count(media_->counts.aborted);
  count(media_->counts.completed);
  ring_.complete(command_id, nvme::code::abort_requested);
  return true;
}

bool model_queue::fetch_commands() {
  nvme::submission_entry command;
  u32 fetched = 0;
  while (fetched < most_per_pass && events_.size() + due_.size() < most_in_flight && !ring_.congested() &&
         ring_.fetch(command)) {
    schedule(command);
    ++fetched;
  }
  return fetched != 0;
}

void model_queue::schedule(nvme::submission_entry const& command) {
  fault_plan const& plan = media_->options.faults;
  auto& counts = media_->counts;
  const u64 number = fetched_++;
  event next{media_->schedule.admit(now_ns()), number, command, draw_faults(shares_of(plan), ring_.id(), number)};
  if (next.faults.delay) next.due_ns += plan.delay_ns;
  if (next.faults.late) next.due_ns += plan.late_ns;
  count(counts.fetched);
  count(counts.errors, next.faults.error_code != 0);
  count(counts.delays, next.faults.delay);
  count(counts.lates, next.faults.late);
  events_.push_back(next);
  std::push_heap(events_.begin(), events_.end(), [](event const& a, event const& b) { return a.after(b); });
}

bool model_queue::finish_due() {
  const u64 now = now_ns();
  const u64 before = due_.size();
  while (!events_.empty() && events_.front().due_ns <= now) {
    std::pop_heap(events_.begin(), events_.end(), [](event const& a, event const& b) { return a.after(b); });
    due_.push_back(events_.back());
    events_.pop_back();
  }
  if (media_->options.faults.reorder && due_.size() != before) {
    for (u64 k = due_.size(); k > 1; --k) std::swap(due_[k - 1], due_[shuffle_.below(k)]);
  }
  u64 finished = 0;
  while (finished < due_.size() && !ring_.congested()) finish(due_[finished++]);
  due_.erase(due_.begin(), due_.begin() + static_cast<std::ptrdiff_t>(finished));
  return finished != 0;
}

// A dropped command is served all the same: its data moves, and only its completion is lost.
void model_queue::finish(event const& done) {
  auto& counts = media_->counts;
  const u16 status = done.faults.error_code != 0 ? done.faults.error_code : execute(done.command);
  count(counts.drops, done.faults.drop);
  if (done.faults.drop) return;
  if (done.faults.unknown_identifier) {
    count(counts.unknown_identifiers);
    ring_.complete(unknown_identifier(done.faults.random), nvme::code::success);
  }
  count(counts.completed);
  ring_.complete(done.command.command_id, status);
  if (done.faults.duplicate) {
    count(counts.duplicates);
    ring_.complete(done.command.command_id, status);
  }
}

// Hosts number their commands from 0 (slot + depth x generation), so the upper half is free; asked, not assumed.
u16 model_queue::unknown_identifier(u64 random) const {
  const auto in_flight = [this](u16 id) {
    const auto has_it = [id](event const& e) { return e.command.command_id == id; };
    return std::any_of(events_.begin(), events_.end(), has_it) || std::any_of(due_.begin(), due_.end(), has_it);
  };
  auto id = static_cast<u16>(0x8000u | (random & 0x7fffu));
  while (in_flight(id)) id = static_cast<u16>(0x8000u | (id + 1u));
  return id;
}

u16 model_queue::execute(nvme::submission_entry const& command) {
  const decoded_command request = decode(command, ring_.id(), media_->shapes, media_->limits.transfer_bytes);
  if (request.status != nvme::code::success) return request.status;
  switch (request.what) {
    case action::identify: return answer_identify(command, media_->shapes, media_->limits, "Penstock modelled controller");
    case action::flush: return nvme::code::success;
    case action::read:
    case action::write: return move_data(request, command);
  }
  return nvme::code::internal_error;
}

u16 model_queue::move_data(decoded_command const& request, nvme::submission_entry const& command) {
  if (const u16 status = read_prps(command, request.bytes, scratch_); status != nvme::code::success) return status;
  std::byte* memory = media_->memory[request.index] + request.offset;
  move_memory(request, media_->shapes[request.index], memory, scratch_);
  return nvme::code::success;
}

}  // namespace penstock::controllers
