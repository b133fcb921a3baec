// The steps of a reset, each a launch of one warp.
#include "../runtime/reset_launch.hpp"

#include "penstock/executor/launch.hpp"

namespace penstock {
namespace {

template <class Sink>
struct step_kernel {
  reset_body<Sink> step;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range) const {
    step(g);
  }
};

}  // namespace

void launch_step(executor& on, reset_body<line_sink> const& step) { launch<32>(on, 1, step_kernel<line_sink>{step}); }
void launch_step(executor& on, reset_body<result_sink> const& step) { launch<32>(on, 1, step_kernel<result_sink>{step}); }

}  // namespace penstock
