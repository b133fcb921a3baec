#include "libs/columns/column_launches.hpp"

namespace penstock::columns {

template <class Body>
void run_cpu(executor& on, u64 items, Body const& body) {
  run_lone_threads(on, items, body);
}

template void run_cpu(executor&, u64, aggregate_zones const&);
template void run_cpu(executor&, u64, mark_zones const&);
template void run_cpu(executor&, u64, emit_zones const&);
template void run_cpu(executor&, u64, take_rows const&);
template void run_cpu(executor&, u64, fill_words const&);
template void run_cpu(executor&, u64, find_extremes const&);
template void run_cpu(executor&, u64, place_by_value const&);
template void run_cpu(executor&, u64, place_in_slots const&);
template void run_cpu(executor&, u64, scatter_values const&);
template void run_cpu(executor&, u64, group_zones const&);
template void run_cpu(executor&, u64, clear_slots const&);
template void run_cpu(executor&, u64, find_groups const&);
template void run_cpu(executor&, u64, number_rows const&);
template void run_cpu(executor&, u64, take_sort_keys const&);
template void run_cpu(executor&, u64, take_in_order const&);
template void run_cpu(executor&, u64, sort_by_digit const&);

}  // namespace penstock::columns
