#include "libs/columns/column_launches.hpp"

namespace penstock::columns {

template <class Body>
void run_cuda(executor& on, u64 items, Body const& body, launch_limits limits) {
  launch<32>(on, items, body, limits);
}

template <class Body>
void prepare_cuda(executor& on, Body const& body) {
  prepare_launch<32>(on, body);
}

template void run_cuda(executor&, u64, aggregate_zones const&, launch_limits);
template void run_cuda(executor&, u64, mark_zones const&, launch_limits);
template void run_cuda(executor&, u64, emit_zones const&, launch_limits);
template void run_cuda(executor&, u64, take_rows const&, launch_limits);
template void run_cuda(executor&, u64, fill_words const&, launch_limits);
template void run_cuda(executor&, u64, find_extremes const&, launch_limits);
template void run_cuda(executor&, u64, place_by_value const&, launch_limits);
template void run_cuda(executor&, u64, place_in_slots const&, launch_limits);
template void run_cuda(executor&, u64, scatter_values const&, launch_limits);
template void run_cuda(executor&, u64, group_zones const&, launch_limits);
template void run_cuda(executor&, u64, clear_slots const&, launch_limits);
template void run_cuda(executor&, u64, find_groups const&, launch_limits);
template void run_cuda(executor&, u64, number_rows const&, launch_limits);
template void run_cuda(executor&, u64, take_sort_keys const&, launch_limits);
template void run_cuda(executor&, u64, take_in_order const&, launch_limits);
template void run_cuda(executor&, u64, sort_by_digit const&, launch_limits);
template void prepare_cuda(executor&, aggregate_zones const&);
template void prepare_cuda(executor&, mark_zones const&);
template void prepare_cuda(executor&, emit_zones const&);
template void prepare_cuda(executor&, take_rows const&);
template void prepare_cuda(executor&, group_zones const&);

}  // namespace penstock::columns
