#include "penstock/runtime/queue_service.hpp"

#include "../controller/idle_pause.hpp"
#include "../executor/resident_place.hpp"
#include "service_runner.hpp"

#include "penstock/core/backoff.hpp"
#include "penstock/group/lone_thread.hpp"
#include "penstock/host/error.hpp"

#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>
#include <vector>

namespace penstock {
namespace {

class service_threads final : public service_runner {
 public:
  explicit service_threads(queue_service_options const& options) : options_(options) {}
  ~service_threads() override { join(); }

  u32 units() const override { return options_.units; }

  void start(service_view const& view) override {
    view_ = view;
    try {
      for (u32 k = 0; k < options_.units; ++k) {
        running_.fetch_add(1);
        threads_.emplace_back([this, k] { serve(k); });
      }
    } catch (std::system_error const& refused) {
      running_.fetch_sub(1);
      device_ref<u32>(view_.shared->leaving).store(1, relaxed);
      join();
      throw_os_error("start", std::to_string(options_.units) + " service threads", refused.code().value(),
                     "ask for fewer units or raise the limit of processes (ulimit -u)");
    }
  }

  bool runs() override { return running_.load() != 0; }

  void join() override {
    for (std::thread& each : threads_) each.join();
    threads_.clear();
  }

 private:
  void serve(u32 self) {
    controllers::idle_pause idle;
    serve_cache_queues(lone_thread{}, *view_.cache, *view_.control, *view_.shared, self, options_.units,
                       options_.idle_timeout_ns, idle);
    running_.fetch_sub(1);
  }

  queue_service_options options_;
  service_view view_;
  std::atomic<u32> running_{0};
  std::vector<std::thread> threads_;
};

std::unique_ptr<resident_place> make_place(executor& on, queue_service_options const& options) {
  if (options.units == 0) throw_bad_input("start", "a queue service", "no units: ask for one or more");
  return on.kind() == executor_kind::cuda ? make_resident_place(on, -1, options.units) : nullptr;
}

}  // namespace

std::unique_ptr<service_runner> make_service_threads(queue_service_options const& options) {
  return std::make_unique<service_threads>(options);
}

#if !defined(PENSTOCK_HAS_CUDA)
std::unique_ptr<service_runner> make_service_kernel(resident_place&, queue_service_options const&) {
  throw_bad_input("open", "the cuda executor", "built without CUDA");
}
#endif

struct queue_service::state {
  state(executor& on, line_cache& cache, queue_service_options const& options_)
      : options(options_), place(make_place(on, options_)), control(on.memory(), memory_kind::shared, 1),
        shared(on.memory(), memory_kind::local, 1),
        runner(place ? make_service_kernel(*place, options_) : make_service_threads(options_)),
        view{cache.kernel_view(), control.data(), shared.data()} {}

  /// False if it still runs when the time is over.
  bool stop() {
    system_ref<u32>(control.data()->stop).store(1, release);
    backoff wait(options.stop_timeout_ns);
    for (bool in_time = true; runner->runs(); in_time = wait.pause()) {
      if (!in_time) return false;
    }
    runner->join();
    started = false;
    return true;
  }

  queue_service_options options;
  std::unique_ptr<resident_place> place;  ///< CUDA only
  buffer<service_control> control;
  buffer<service_shared> shared;
  std::unique_ptr<service_runner> runner;
  service_view view;
  bool started = false;
};

queue_service::queue_service(executor& on, line_cache& cache, queue_service_options const& options)
    : state_(std::make_unique<state>(on, cache, options)) {}

queue_service::~queue_service() {
  if (!state_->started) return;
  try {
    if (state_->stop()) return;
  } catch (error const&) {}
  // What still runs holds on to it all; it leaves when it has had nothing to do for long enough.
  (void)state_.release();
}

void queue_service::start() {
  state& s = *state_;
  const service_shared fresh;
  s.shared.write({&fresh, 1});
  *s.control.data() = {};
  s.started = true;
  s.runner->start(s.view);
  backoff wait(s.options.start_timeout_ns);
  for (bool in_time = true; system_ref<u32>(s.control.data()->running).load(acquire) == 0; in_time = wait.pause()) {
    s.runner->runs();
    if (in_time) continue;
    s.stop();
    throw error(error_kind::world,
                "start a queue service on " + std::to_string(s.runner->units()) +
                    " SMs: they did not become free in time: wait for other kernels, or ask for fewer",
                EBUSY);
  }
}

void queue_service::stop() {
  if (!state_->started || state_->stop()) return;
  throw_os_error("stop", "a queue service", ETIMEDOUT, "it does not come back; keep the cache until the process ends");
}

bool queue_service::running() const { return state_->started && !gave_up(); }

bool queue_service::gave_up() const {
  service_control& control = *state_->control.data();
  return system_ref<u32>(control.left).load(acquire) != 0 && system_ref<u32>(control.stop).load(relaxed) == 0;
}

u32 queue_service::units() const { return state_->runner->units(); }

u32 queue_service::units_taken() const { return state_->place ? state_->place->units_taken() : 0; }

}  // namespace penstock
