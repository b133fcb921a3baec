#include "libs/bench/files_kernels.hpp"

namespace penstock::bench {

template <class Body>
void run_files_cuda(executor& on, u64 items, Body const& body) {
  launch<32>(on, items, body);
}

template void run_files_cuda(executor&, u64, read_file_pieces const&);
template void run_files_cuda(executor&, u64, read_array_pieces const&);
template void run_files_cuda(executor&, u64, open_and_close const&);
template void run_files_cuda(executor&, u64, open_all const&);
template void run_files_cuda(executor&, u64, ask_host const&);

}  // namespace penstock::bench
