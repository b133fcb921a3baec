#include "libs/columns/column_launches.hpp"

namespace penstock::columns {

template <class Body>
void run_cuda(executor& on, u64 items, Body const& body, launch_limits limits) {
  launch<32>(on, items, body, limits);
}

template void run_cuda(executor&, u64, aggregate_zones const&, launch_limits);
template void run_cuda(executor&, u64, mark_zones const&, launch_limits);
template void run_cuda(executor&, u64, emit_zones const&, launch_limits);
template void run_cuda(executor&, u64, take_rows const&, launch_limits);

}  // namespace penstock::columns
