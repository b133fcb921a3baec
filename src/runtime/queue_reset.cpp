#include "penstock/runtime/queue_reset.hpp"

#include "reset_launch.hpp"

#include "penstock/host/error.hpp"

namespace penstock {

#if !defined(PENSTOCK_HAS_CUDA)
void launch_step(executor&, reset_body<line_sink> const&) {
  throw_bad_input("open", "the cuda executor", "built without CUDA");
}
void launch_step(executor&, reset_body<result_sink> const&) {
  throw_bad_input("open", "the cuda executor", "built without CUDA");
}
#endif

void step_runner::operator()(reset_body<line_sink> const& step) const {
  on_.kind() == executor_kind::cpu ? in_this_thread()(step) : launch_step(on_, step);
}

void step_runner::operator()(reset_body<result_sink> const& step) const {
  on_.kind() == executor_kind::cpu ? in_this_thread()(step) : launch_step(on_, step);
}

}  // namespace penstock
