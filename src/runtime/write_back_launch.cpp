// Without CUDA: the CPU executor's launches. With it src/device/write_back.cu has both.
#if !defined(PENSTOCK_HAS_CUDA)
#include "write_back_bodies.hpp"
#endif
