// The steps of a reset on a GPU. CUDA builds only: others throw.
#pragma once

#include "penstock/runtime/queue_reset.hpp"

namespace penstock {

void launch_step(executor& on, reset_body<line_sink> const& step);
void launch_step(executor& on, reset_body<result_sink> const& step);

}  // namespace penstock
