#include "libs/files/folder_calls.hpp"

namespace penstock::files {

template <class Body>
void run_cuda(executor& on, u64 items, Body const& body) {
  launch<group_width>(on, items, body);
}

template void run_cuda(executor&, u64, list_folders const&);
template void run_cuda(executor&, u64, search_parts const&);
template void run_cuda(executor&, u64, make_call const&);
template void run_cuda(executor&, u64, stage_files const&);

}  // namespace penstock::files
