// The calls of kernels of the user's own to mounted folders, compiled with a register cap as those calls themselves are
// (src/device/files.cu). A read comes here when its hit, which is inlined (file_calls.cu), has failed.
#include "libs/kernels/folder_calls.hpp"

using namespace penstock;

extern "C" {

__device__ void penstock_call_folder(void const* folder, kernels::folder_request const* asked, kernels::folder_answer* given) {
  *given = kernels::call_folder<true>(lone_thread{}, folder, *asked);
}
__device__ void penstock_call_folder_by_warp(void const* folder, kernels::folder_request const* asked,
                                             kernels::folder_answer* given) {
  *given = kernels::call_folder<true>(warp::active(), folder, *asked);
}

}  // extern "C"
