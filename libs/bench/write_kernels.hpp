// Kernels of `penstock bench write`: lines that are stored whole, and single elements.
#pragma once

#include "libs/bench/pattern.hpp"
#include "penstock/array/writable_view.hpp"
#include "penstock/executor/launch.hpp"

namespace penstock::bench {

/// What element i holds after turn `turn`; the turns count from 1, and turn 0 is what it holds before.
PENSTOCK_FN inline u64 written_at(u64 i, u64 turn) { return value_at(i) ^ turn << 40; }

/// One turn.
struct write_turn {
  writable_view<u64> array;
  u64 elements = 0;  ///< a power of two, up to 2^32
  u64 number = 0;
  u64 first = 0;           ///< of the numbers that elements are known by: written_at(first + i, number) goes to element i
  u32* problem = nullptr;  ///< packed status of a write that failed

  PENSTOCK_FN u64 value(u64 i) const { return written_at(first + i, number); }
  PENSTOCK_FN void note(status s) const {
    if (!s.ok()) device_ref<u32>(*problem).store(pack(s), relaxed);
  }
};

/// Every line once, a group for each.
struct write_lines {
  write_turn turn;
  line_sequence order;
  u32 line_elements = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 item = range.first; item < range.last; item += range.step) {
      const u64 begin = order.at(item) * line_elements;
      turn.note(turn.array.write_span(g, begin, line_elements, [&](u64 i) { return turn.value(i); }));
    }
  }
};

/// `count` elements, each once: one for each lane, the first ones of the array or of a permutation.
struct write_elements {
  write_turn turn;
  u64 count = 0;
  bool random = false;

  PENSTOCK_FN u64 place(u64 k) const { return random ? permute(k, turn.elements) : k; }

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 item = range.first; item < range.last; item += range.step) {
      const u64 k = item * size(g) + index_in(g);
      const u64 i = place(k);
      turn.note(turn.array.try_write(g, k < count, i, turn.value(i)));
    }
  }
};

/// How many groups run at once on CUDA, and on how many SMs.
struct write_job {
  u64 groups = 0;
  u32 units = 0;
  bool only_prepares = false;
};

// One per executor, in the translation unit that can compile it.
kernel_facts run_writes_cpu(executor& on, write_job const& job, u64 lines, write_lines const& body);
kernel_facts run_writes_cpu(executor& on, write_job const& job, write_elements const& body);
kernel_facts run_writes_cuda(executor& on, write_job const& job, u64 lines, write_lines const& body);
kernel_facts run_writes_cuda(executor& on, write_job const& job, write_elements const& body);

}  // namespace penstock::bench
