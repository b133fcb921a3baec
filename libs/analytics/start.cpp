#include "libs/analytics/start.hpp"

#include <algorithm>

namespace penstock::analytics {

template <class Id>
Id* sort_numbers([[maybe_unused]] executor& on, Id* from, [[maybe_unused]] Id* other, u64 count, [[maybe_unused]] u64 limit,
                 [[maybe_unused]] buffer<u8>& scratch) {
#if defined(PENSTOCK_HAS_CUDA)
  if (on.kind() == executor_kind::cuda) {
    sort_on_gpu(on, from, other, count, limit, scratch);
    return other;
  }
#endif
  std::sort(from, from + count);
  return from;
}

template <class Id>
u64 sort_unique(executor& on, Id* from, Id* other, u64 count, u64 limit, buffer<u8>& scratch, [[maybe_unused]] u64* left) {
  Id* const sorted = sort_numbers(on, from, other, count, limit, scratch);
#if defined(PENSTOCK_HAS_CUDA)
  if (on.kind() == executor_kind::cuda) return unique_on_gpu(on, sorted, from, count, scratch, left);
#endif
  return static_cast<u64>(std::unique(sorted, sorted + count) - from);
}

#define PENSTOCK_OF_ID(Id)                                               \
  template Id* sort_numbers(executor&, Id*, Id*, u64, u64, buffer<u8>&); \
  template u64 sort_unique(executor&, Id*, Id*, u64, u64, buffer<u8>&, u64*);
PENSTOCK_OF_ID(std::int32_t)
PENSTOCK_OF_ID(std::int64_t)

}  // namespace penstock::analytics
