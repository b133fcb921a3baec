// The other calls of kernels of the user's own, compiled with a register cap: a kernel takes the registers of the hungriest
// function that it calls (include/penstock/kernels/calls.hpp).
#include "libs/kernels/element_calls.hpp"

using namespace penstock;
using kernels::array_descriptor;

// Set by the host when it loads a module (libs/kernels/cuda_kernel.cu).
extern "C" __device__ unsigned int const* penstock_stop = nullptr;

extern "C" {

__device__ void penstock_store(array_descriptor const* to, unsigned long long address, unsigned int bytes,
                               unsigned long long low, unsigned long long high) {
  kernels::store_element(*to, address, bytes, {low, high});
}
__device__ unsigned long long penstock_change(array_descriptor const* in, unsigned long long address, unsigned int bytes,
                                              kernels::change_kind kind, unsigned long long value,
                                              unsigned long long expected) {
  return kernels::change_element(*in, address, bytes, kind, value, expected);
}
__device__ void penstock_prefetch(array_descriptor const* from, unsigned long long address) {
  kernels::prefetch_line_of(*from, address);
}
__device__ void penstock_out_of_range(array_descriptor const* from, unsigned long long index) {
  atomicMin_system(&from->report->first_bad, index);
}
__device__ unsigned int penstock_stopped() {
  return penstock_stop != nullptr ? system_ref<unsigned int>(*const_cast<unsigned int*>(penstock_stop)).load(relaxed) : 0;
}

}  // extern "C"
