#include "penstock/controller/model_server.hpp"

#include "model_server_state.hpp"
#include "served_queue_body.hpp"

#include "penstock/core/backoff.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>

namespace penstock {

using namespace controllers;

namespace {

constexpr u64 detach_timeout_ns = 30 * one_second_ns;

void check_options(model_server_options const& options) {
  if (options.max_queues != 0 && options.servers_per_queue != 0 && options.link_bytes_per_s >= 0) return;
  throw_bad_input("start", "a model server", "no queues, no servers or a link of less than nothing: ask for one or more");
}

std::unique_ptr<resident_place> make_place(executor& on, model_server_options const& options) {
  return on.kind() == executor_kind::cuda ? make_resident_place(on, options.device, options.units) : nullptr;
}

std::unique_ptr<model_runner> make_runner(resident_place* place, model_server_options const& options) {
  return place != nullptr ? make_kernel_runner(*place, options) : make_thread_runner(options);
}

[[noreturn]] void throw_stuck(char const* operation, std::string const& object) {
  throw_os_error(operation, object, ETIMEDOUT, "who serves it does not come back; keep its memory until the process ends");
}

/// Waits until `done()`; false at the deadline.
template <class Done>
bool wait_until(Done done) {
  backoff wait(detach_timeout_ns);
  while (!done()) {
    if (!wait.pause()) return done();
  }
  return true;
}

}  // namespace

model_server::state::state(executor& on_, model_server_options const& options_)
    : on(on_), place(make_place(on_, options_)), memory(place ? place->memory() : on_.memory()), options(options_),
      slots(options_.max_queues), queues(memory, memory_kind::local, options_.max_queues),
      shared(memory, memory_kind::local, 1), control(memory, memory_kind::shared, 1),
      runner(make_runner(place.get(), options_)) {
  view.queues = queues.data();
  view.shared = shared.data();
  view.control = control.data();
  if (options.link_bytes_per_s > 0) {
    view.link_ticks_per_mib =
        static_cast<u64>(std::max(1ll, std::llround(0x1p20 * 1e9 * ticks_per_ns / options.link_bytes_per_s)));
  }
  view.servers_per_queue = options.servers_per_queue;
  view.queues_come_and_go = !on_gpu();
}

u32 model_server::state::take_slot(queue_fields fields) {
  const std::lock_guard guard(mutex);
  const auto free = std::find_if(slots.begin(), slots.end(), [](slot const& each) { return !each.used; });
  if (free == slots.end()) {
    throw_bad_input("attach", "queue " + std::to_string(fields.facts.rings.id),
                    "the server has its " + std::to_string(slots.size()) + " queues: ask for more with max_queues");
  }
  const auto index = static_cast<u32>(free - slots.begin());
  free->waiting = buffer<waiting_command>(memory, memory_kind::local, fields.facts.waiting_capacity);
  fields.facts.waiting = free->waiting.data();
  set_active(index, &fields);
  free->used = true;
  if (!on_gpu()) {
    const device_ref<u32> word(shared.data()->slots_and_stop);
    const u32 known = word.load(relaxed) & ~stop_bit;
    if (index >= known) word.fetch_add(index + 1 - known, release);
  }
  return index;
}

served_counts model_server::state::give_back_slot(u32 index) {
  const std::lock_guard guard(mutex);
  set_active(index, nullptr);
  slots[index].used = false;
  slots[index].waiting = {};
  return counts_of(&queues.data()[index].counts);
}

// Threads may look at the record at any time: they do so under its lock, and leave it alone while it is not active. A resident
// kernel does not run now.
void model_server::state::set_active(u32 index, queue_fields const* fields) {
  queue_record& record = queues.data()[index];
  const u32 active = fields != nullptr ? 1 : 0;
  if (on_gpu()) {
    if (fields != nullptr) memory.write(&record, fields, sizeof *fields);
    return memory.write(&record.active, &active, sizeof active);
  }
  const device_ref<u32> lock(record.lock);
  if (!wait_until([&] { return lock.exchange(1, acquire) == 0; })) throw_stuck("attach", "a queue");
  if (fields != nullptr) static_cast<queue_fields&>(record) = *fields;
  device_ref<u32>(record.active).store(active, release);
  lock.store(0, release);
  if (wait_until([&] { return device_ref<u32>(record.inside).load(acquire) == 0; })) return;
  throw_stuck("detach", "a queue");
}

u64 model_server::state::word_of(u64 const* address) const {
  u64 result = 0;
  if (!on_gpu()) return device_ref<u64>(*const_cast<u64*>(address)).load(relaxed);
  memory.read(&result, address, sizeof result);
  return result;
}

served_counts model_server::state::counts_of(served_counts const* address) const {
  served_counts result;
  if (on_gpu()) {
    memory.read(&result, address, sizeof result);
    return result;
  }
  static_assert(sizeof(served_counts) % sizeof(u64) == 0);
  auto const* from = reinterpret_cast<u64 const*>(address);
  auto* to = reinterpret_cast<u64*>(&result);
  for (u64 k = 0; k < sizeof result / sizeof(u64); ++k) to[k] = word_of(from + k);
  return result;
}

void model_server::state::start() {
  if (running || served_by_polls()) return;
  server_shared fresh;
  {
    const std::lock_guard guard(mutex);
    for (u32 k = 0; k < slots.size(); ++k) {
      if (slots[k].used) fresh.slots_and_stop = k + 1;
    }
    if (on_gpu()) {
      memory.write(shared.data(), &fresh, sizeof fresh);
    } else {
      *shared.data() = fresh;
    }
    *control.data() = server_control{};
  }
  runner->start(view);
  running = true;
}

void model_server::state::stop() {
  if (!running) return;
  if (!runner->stop(view)) throw_stuck("stop", "a model server");
  running = false;
}

model_server::model_server(executor& on, model_server_options const& options) {
  check_options(options);
  state_ = std::make_unique<state>(on, options);
}

model_server::~model_server() {
  try {
    state_->stop();
  } catch (error const&) {
    // The kernel holds on to it all; it leaves when it has had nothing to do for long enough.
    for (auto& each : state_->drives) (void)each.release();
    (void)state_.release();
  }
}

void model_server::start() { state_->start(); }
void model_server::stop() { state_->stop(); }
bool model_server::running() const { return state_->running; }
u32 model_server::units() const { return state_->runner->units(); }
u32 model_server::units_taken() const { return state_->place ? state_->place->units_taken() : 0; }
memory_resource& model_server::memory() { return state_->memory; }

bool model_server::gave_up() const {
  const u32 reason = system_ref<u32>(state_->control.data()->left).load(acquire);
  return reason == static_cast<u32>(leave_reason::idle);
}

}  // namespace penstock
