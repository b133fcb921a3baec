// Kernels of `penstock bench latency`: one warp, one line or one command at a time, timed where it waits.
#pragma once

#include "libs/bench/block_word.hpp"
#include "libs/bench/timing.hpp"
#include "penstock/array/array_view.hpp"
#include "penstock/executor/launch.hpp"
#include "penstock/queue/block_io.hpp"

namespace penstock::bench {

/// Reads of lines that no one has read before, by `a[i]`: the time to the group's first elements, and to the whole line.
struct time_misses {
  array_view<u64> stored;
  u64 line_elements = 0;
  u64 lines = 0;   ///< a power of two
  u64 first = 0;   ///< so that no two runs read a line twice
  u32 lanes = 32;  ///< that take part in the first access
  timed_run first_element, whole_line;
  u64* wrong = nullptr;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range) const {
    const run_clock run;
    const u32 me = index_in(g);
    u64 wrong_lines = 0, whole_ns = 0;
    for (u64 k = 0; k < first_element.samples; ++k) {
      const u64 begin = permute(first + k, lines) * line_elements;
      g.sync();
      const u64 start_ns = now_ns(), start = now_cycles();
      const u64 bad_first = me < lanes ? stored[begin + me] ^ value_at(begin + me) : 0;
      const bool any_first = any(g.ballot(bad_first != 0));  // everyone's elements are there
      const u64 half = now_cycles();                         // and no look at the other clock, which would be part of the whole
      u64 bad = 0;
      for (u64 i = begin + me; i < begin + line_elements; i += size(g)) bad |= stored[i] ^ value_at(i);
      const bool any_bad = any(g.ballot(bad != 0));
      const u64 end = now_cycles(), end_ns = now_ns();
      if (!is_leader(g)) continue;
      wrong_lines += any_first || any_bad ? 1 : 0;
      first_element.cycles[k] = half - start;
      whole_line.cycles[k] = end - start;
      whole_ns += end_ns - start_ns;
    }
    if (!is_leader(g)) return;
    run.write(first_element, 0);
    run.write(whole_line, whole_ns);
    if (wrong_lines != 0) device_ref<u64>(*wrong).fetch_add(wrong_lines, relaxed);
  }
};

/// The same lines as blocks of a namespace, without a cache: one lane's command.
struct time_blocks {
  block_device_view device;
  block_request* request = nullptr;
  u64* data = nullptr;  ///< a block
  u32 block_words = 0;
  u64 first = 0;
  timed_run times;
  u64* wrong = nullptr;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range) const {
    const run_clock run;
    const bool asks = is_leader(g);
    u64 wrong_words = 0, sum_ns = 0;
    for (u64 k = 0; k < times.samples; ++k) {
      const u64 block = permute(first + k, device.blocks);
      const u64 start_ns = now_ns(), start = now_cycles();
      const status s = read_blocks(g, device, asks, *request, lba{block}, 1, reinterpret_cast<u64>(data));
      const u64 end = now_cycles(), end_ns = now_ns();
      if (asks) {
        times.cycles[k] = end - start;
        sum_ns += end_ns - start_ns;
        if (!s.ok()) ++wrong_words;
      }
      g.sync();
      for (u32 w = index_in(g); w < block_words; w += size(g)) {
        wrong_words += load_piece(data + w) != block_word(0, block, w, block_words) ? 1 : 0;
      }
      g.sync();  // all have looked before the next block comes
    }
    if (asks) run.write(times, sum_ns);
    if (wrong_words != 0) device_ref<u64>(*wrong).fetch_add(wrong_words, relaxed);
  }
};

// One per executor, in the translation unit that can compile it. `prepare_...` loads the kernels: before a resident one starts.
kernel_facts time_misses_cpu(executor& on, time_misses const& body);
kernel_facts time_misses_cuda(executor& on, time_misses const& body);
kernel_facts time_blocks_cpu(executor& on, time_blocks const& body);
kernel_facts time_blocks_cuda(executor& on, time_blocks const& body);
void prepare_latency_cuda(executor& on, time_misses const& misses, time_blocks const& blocks);

}  // namespace penstock::bench
