// Reads of spans by warps, apart from cold_calls.cu for their register cap.
#include "libs/kernels/element_calls.hpp"

extern "C" __device__ void penstock_read_span(penstock::kernels::array_descriptor const* from, unsigned long long address,
                                              unsigned long long bytes, void* to) {
  penstock::kernels::read_span_by(penstock::warp::active(), *from, address, bytes, to);
}
