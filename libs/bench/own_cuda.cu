#include "libs/bench/own_kernels.hpp"

namespace penstock::bench {

template <class Array>
kernel_facts run_reads_cuda(executor& on, u64 reads, read_own<Array> const& body) {
  return run_reads(on, reads, body);
}

template kernel_facts run_reads_cuda(executor&, u64, read_stock const&);
template kernel_facts run_reads_cuda(executor&, u64, read_fifo const&);
template kernel_facts run_reads_cuda(executor&, u64, read_stamped const&);

}  // namespace penstock::bench
