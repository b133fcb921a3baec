// System calls through one io_uring per queue: batched, and reaped without entering the kernel. Only where liburing is built
// in; elsewhere create_uring_engine says so and the pread engine takes over.
#pragma once

#include "buffer_list.hpp"
#include "transfer.hpp"

#include <memory>
#include <vector>

namespace penstock::controllers {

struct uring_request {
  std::vector<int> files;
  u32 depth = 0;               ///< most transfers in flight
  bool one_submitter = false;  ///< a service thread makes all calls, and it enters the kernel often
  buffer_list const* buffers = nullptr;
};

/// nullptr and an errno where the kernel refuses (ENOSYS: Penstock was built without liburing).
std::unique_ptr<transfer_engine> create_uring_engine(uring_request const& request, int& error);

}  // namespace penstock::controllers
