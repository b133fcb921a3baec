#include "device/array_bed.cuh"

namespace penstock::test {
namespace {

template <class T>
void compare_elements(check_report& report) {
  for (const directory_kind directory : both_directories) {
    array_bed b(with_directory({.frames = 512, .media_bytes = array_bytes, .queues = 4}, directory));
    run_warps_on_device(same_elements_body<T>{b.resident<T>(), b.stored<T>(), 2}, report, array_warps);
    b.fixture->cache().check_faults();
  }
}

template <class T>
void tell_elements(check_report& report) {
  for (const directory_kind directory : both_directories) {
    array_bed b(with_directory({.frames = 512, .media_bytes = array_bytes, .queues = 4}, directory));
    run_warps_on_device(told_elements_body<T>{b.resident<T>(), b.stored<T>(), 2}, report, array_warps);
    b.fixture->cache().check_faults();
  }
}

PENSTOCK_CUDA_TEST(array_elements_with_their_status) {
  tell_elements<u64>(report);
  tell_elements<element12>(report);
}

PENSTOCK_CUDA_TEST(array_of_bytes) { compare_elements<u8>(report); }
PENSTOCK_CUDA_TEST(array_of_16_bits) { compare_elements<u16>(report); }
PENSTOCK_CUDA_TEST(array_of_32_bits) { compare_elements<u32>(report); }
PENSTOCK_CUDA_TEST(array_of_16_bytes) { compare_elements<wide_element>(report); }
PENSTOCK_CUDA_TEST(array_of_structs_that_straddle_lines) { compare_elements<element12>(report); }

}  // namespace
}  // namespace penstock::test
