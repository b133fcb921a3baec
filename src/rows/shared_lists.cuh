// What a GPU's gathers that threads of the CPU share need on the host: memory of both, and the words to the threads.
#pragma once

#include "penstock/executor/memory.hpp"
#include "row_helpers.hpp"

#include <atomic>

#include <cuda_runtime.h>

namespace penstock::rows {

/// Memory that kernels and threads of the CPU share, for one list after the other.
class shared_memory {
 public:
  explicit shared_memory(memory_resource& memory)
      : words_(memory, memory_kind::shared, 1), staged_(memory, memory_kind::shared, most_listed_rows / chunk_rows),
        keys_(memory, memory_kind::shared, most_listed_rows),
        staging_(memory, memory_kind::shared, staging_bytes + 2 * margin) {}

  u32* keys() const { return keys_.data(); }
  shared_list next(u64 count) {
    if (++number_ == 0) number_ = 1;
    return {words_.data(), staged_.data(), reinterpret_cast<u64>(staging_.data()) + margin, number_,
            static_cast<u32>(ceil_div(count, chunk_rows))};
  }

 private:
  static constexpr u64 margin = 16;  // aligned pieces around a row are loaded

  buffer<shared_words> words_;
  buffer<u32> staged_, keys_;
  buffer<u8> staging_;
  u32 number_ = 0;
};

/// What the CPU has to do with a list, from the host functions of a stream.
struct help {
  helped_list what;
  u32 threads = 0;
  std::atomic<bool> ended{false};

  static void CUDART_CB begin(void* own) {
    auto& help = *static_cast<struct help*>(own);
    if (needs_help(help.what)) row_helpers::of_process().begin(help.what, help.threads);
  }
  static void CUDART_CB end(void* own) {
    auto& help = *static_cast<struct help*>(own);
    row_helpers::of_process().end(help.what);
    help.ended.store(true, std::memory_order_release);
  }
};

}  // namespace penstock::rows
