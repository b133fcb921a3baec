#include "libs/regular/kernels.hpp"
#include "libs/regular/reduce_kernels.hpp"
#include "libs/regular/vectoradd_kernels.hpp"

namespace penstock::regular {

template <class Body>
void run_cuda(executor& on, u64 items, Body const& body) {
  launch<group_width>(on, items, body);
}

template <class Body>
void prepare_cuda(executor& on, Body const& body) {
  prepare_launch<group_width>(on, body);
}

template <class Body>
kernel_facts describe_cuda(executor& on, Body const& body) {
  return describe_kernel<group_width>(on, body);
}

// In the order of their namesakes in contest: what goes over an array, and what it hands the elements to.
#define PENSTOCK_REGULAR_BODY(...)                            \
  template void run_cuda(executor&, u64, __VA_ARGS__ const&); \
  template void prepare_cuda(executor&, __VA_ARGS__ const&);  \
  template kernel_facts describe_cuda(executor&, __VA_ARGS__ const&);
#define PENSTOCK_REGULAR_TAKE(...)                  \
  PENSTOCK_REGULAR_BODY(take_elements<__VA_ARGS__>) \
  PENSTOCK_REGULAR_BODY(take_lines<__VA_ARGS__>)    \
  PENSTOCK_REGULAR_BODY(take_tiles<__VA_ARGS__>)
#define PENSTOCK_REGULAR_TYPE(T)       \
  PENSTOCK_REGULAR_TAKE(take_total<T>) \
  PENSTOCK_REGULAR_TAKE(take_columns<T>)
#define PENSTOCK_REGULAR_ADD(T)          \
  PENSTOCK_REGULAR_BODY(add_elements<T>) \
  PENSTOCK_REGULAR_BODY(add_lines<T>)    \
  PENSTOCK_REGULAR_BODY(add_tiles<T>)

PENSTOCK_REGULAR_TYPE(std::int32_t)
PENSTOCK_REGULAR_TYPE(std::uint32_t)
PENSTOCK_REGULAR_TYPE(std::uint64_t)
PENSTOCK_REGULAR_TYPE(float)
PENSTOCK_REGULAR_TYPE(double)
PENSTOCK_REGULAR_BODY(take_tiles<take_nothing>)
PENSTOCK_REGULAR_BODY(fold_columns<u64>)
PENSTOCK_REGULAR_BODY(fold_columns<double>)
PENSTOCK_REGULAR_ADD(std::uint32_t)
PENSTOCK_REGULAR_ADD(std::uint64_t)
PENSTOCK_REGULAR_ADD(float)
PENSTOCK_REGULAR_ADD(double)
PENSTOCK_REGULAR_BODY(send_tiles)
PENSTOCK_REGULAR_BODY(flush_tiles)

}  // namespace penstock::regular
