// The validated read as a CPU executes it.
#include "penstock/array/array_view.hpp"

using namespace penstock;

extern "C" u64 read_view(array_view<u64> const& a, u64 i) { return a[i]; }

extern "C" u64 planted_atomic(array_view<u64> const& a, u64 i, u64& hits) {
  device_ref<u64>(hits).fetch_add(1, relaxed);
  return a[i];
}
