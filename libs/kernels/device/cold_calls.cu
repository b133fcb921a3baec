// The other calls of kernels of the user's own, compiled with a register cap: a kernel takes the registers of the hungriest
// function that it calls (include/penstock/kernels/calls.hpp).
#include "libs/kernels/element_calls.hpp"

#include <cstdint>

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

// By element, for front ends that are no C++.
#define PENSTOCK_STORE(name, T)                                                                      \
  __device__ void penstock_store_##name(array_descriptor const* to, unsigned long long i, T value) { \
    if (to->memory != nullptr) {                                                                     \
      static_cast<T*>(to->memory)[i] = value;                                                        \
    } else {                                                                                         \
      const auto bits = static_cast<unsigned long long>(std::bit_cast<piece_of<sizeof(T)>>(value));  \
      kernels::store_element(*to, to->origin + i * sizeof(T), sizeof(T), {bits, 0});                 \
    }                                                                                                \
  }
#define PENSTOCK_ADD(name, T, kind)                                                                         \
  __device__ T penstock_add_##name(array_descriptor const* in, unsigned long long i, T value) {             \
    const unsigned long long address = (in->memory != nullptr ? 0 : in->origin) + i * sizeof(T);            \
    const auto bits = static_cast<unsigned long long>(std::bit_cast<piece_of<sizeof(T)>>(value));           \
    const auto old = kernels::change_element(*in, address, sizeof(T), kernels::change_kind::kind, bits, 0); \
    return std::bit_cast<T>(static_cast<piece_of<sizeof(T)>>(old));                                         \
  }
PENSTOCK_STORE(u8, std::uint8_t)
PENSTOCK_STORE(i32, std::int32_t)
PENSTOCK_STORE(u32, std::uint32_t)
PENSTOCK_STORE(i64, std::int64_t)
PENSTOCK_STORE(u64, std::uint64_t)
PENSTOCK_STORE(f32, float)
PENSTOCK_STORE(f64, double)
PENSTOCK_ADD(i32, std::int32_t, add)
PENSTOCK_ADD(i64, std::int64_t, add)
PENSTOCK_ADD(f32, float, add_float)
PENSTOCK_ADD(f64, double, add_float)
#undef PENSTOCK_STORE
#undef PENSTOCK_ADD

}  // extern "C"
