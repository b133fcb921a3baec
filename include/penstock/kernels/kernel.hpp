// What a kernel of the user's own includes: penstock::array<T>, penstock::files, and on the CPU the words of CUDA C++. Needs no
// other header of Penstock, nor of the C++ library on a GPU, so that NVRTC compiles it in a few milliseconds.
#pragma once

#include "penstock/kernels/parameters.hpp"
