#include "model_runner.hpp"

#include "idle_pause.hpp"
#include "served_queue_body.hpp"

#include "penstock/group/lone_thread.hpp"
#include "penstock/host/error.hpp"

#include <system_error>
#include <vector>

namespace penstock::controllers {
namespace {

class thread_runner final : public model_runner {
 public:
  explicit thread_runner(u32 threads) : units_(threads) {}
  ~thread_runner() override { join(); }

  u32 units() const override { return units_; }
  bool is_local(void const*) const override { return false; }

  void start(server_view const& view) override {
    view_ = view;
    try {
      for (u32 k = 0; k < units_; ++k) threads_.emplace_back([this, k] { serve(k); });
    } catch (std::system_error const& refused) {
      join();
      throw_os_error("start", std::to_string(units_) + " service threads", refused.code().value(),
                     "ask for fewer units or raise the limit of processes (ulimit -u)");
    }
  }

  bool stop(server_view const&) override {
    join();
    return true;
  }

 private:
  void serve(u32 self) {
    fine_clock clock(clock_step_ns(), 0);
    idle_pause idle;
    serve_until_told(lone_thread{}, view_, self, units_, 0, clock, idle);
  }

  void join() {
    if (!threads_.empty()) system_ref<u32>(view_.control->stop).store(1, relaxed);
    // Server 0 hands the word on; if it never came up, nobody else would hear of it.
    if (!threads_.empty()) device_ref<u32>(view_.shared->slots_and_stop).fetch_or(stop_bit, relaxed);
    for (std::thread& each : threads_) each.join();
    threads_.clear();
  }

  u32 units_;
  server_view view_;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<model_runner> make_thread_runner(model_server_options const& options) {
  return std::make_unique<thread_runner>(options.units);
}

#if !defined(PENSTOCK_HAS_CUDA)
std::unique_ptr<model_runner> make_kernel_runner(resident_place&, model_server_options const&) {
  throw_bad_input("open", "the cuda executor", "built without CUDA");
}
#endif

}  // namespace penstock::controllers
