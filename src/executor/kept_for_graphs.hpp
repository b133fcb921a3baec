// Between the thread on which CUDA destroys graphs and drop_kept().
#pragma once

namespace penstock {

/// What CUDA calls with a std::shared_ptr<void>* when a graph that kept it is destroyed.
void hand_to_drop(void* owned);

}  // namespace penstock
