// Without CUDA: the CPU executor's launches. With it row_launch.cu has both.
#if !defined(PENSTOCK_HAS_CUDA)
#include "row_launch_bodies.hpp"

namespace penstock::rows {

std::unique_ptr<row_device> make_row_device(executor&) { return nullptr; }

}  // namespace penstock::rows
#endif
