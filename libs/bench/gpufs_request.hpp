// Requests of GPUfs to the host (SYSTOR 2016, section 4.3): a slot in memory that both reach, which workers of the host look
// at in turn. Each word has one writer, and a sequence number says whose turn it is.
#pragma once

#include "penstock/core/atomic.hpp"

#include <cstddef>

namespace penstock::bench {

/// In shared memory. Workers poll the first cache line, the requester the second.
struct alignas(128) gpufs_request {
  // Of the requester.
  u64 asked = 0;   ///< number of its last request; the words below are that one's
  u64 copied = 0;  ///< number of the last one whose staged bytes it has copied
  u64 key = 0;
  u64 frame = 0;
  u64 unused[4] = {};
  // Of a worker.
  u64 answered = 0;  ///< number of the last request that is done; the words below are that one's
  u64 staged = 0;    ///< address of the bytes, as the requester has it; 0: they are in the frame
  u64 error = 0;     ///< a gpufs_error

  PENSTOCK_FN void send(u64 number, u64 of_key, u64 to_frame) {
    system_ref<u64>(key).store(of_key, relaxed);
    system_ref<u64>(frame).store(to_frame, relaxed);
    system_ref<u64>(asked).store(number, release);
  }
};
static_assert(sizeof(gpufs_request) == 128 && offsetof(gpufs_request, answered) == 64);

/// What the requester keeps in local memory. A slot whose answer did not come in time stays taken: the host may still write.
struct gpufs_slot {
  u32 taken = 0;
  u32 number = 0;  ///< of its last request
};

}  // namespace penstock::bench
