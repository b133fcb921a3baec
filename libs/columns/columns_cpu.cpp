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

}  // namespace penstock::columns
