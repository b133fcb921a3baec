// Kernels of `penstock bench own`: one body over any array, and what a program may replace in a cache.
#pragma once

#include "libs/bench/pattern.hpp"
#include "penstock/array/array_view.hpp"
#include "penstock/array/cached_array.hpp"
#include "penstock/coalesce/own_fill.hpp"
#include "penstock/executor/launch.hpp"
#include "penstock/file/file_name.hpp"

namespace penstock::bench {

/// First in, first out: a line gives up its frame whether it was used or not.
struct fifo_policy {
  clock_policy clock;  // its hand

  PENSTOCK_FN u32 candidate() const { return clock.candidate(); }
  PENSTOCK_FN u64 search_limit() const { return clock.search_limit(); }
  PENSTOCK_FN static bool spares(u64&, u64) { return false; }
};
static_assert(replacement_policy<fifo_policy>);

/// Lines of value_at, computed.
struct stamp_fills {
  template <thread_group G>
  PENSTOCK_FN status operator()(G const& g, byte_offset first, frame_writer const& to) const {
    for (u32 k = index_in(g); k < to.pieces(); k += size(g)) {
      const u64 i = value(first) / sizeof(u64) + 2 * u64{k};
      to.store(k, {value_at(i), value_at(i + 1)});
    }
    return {};
  }
};

using fifo_cache_view = std::remove_const_t<decltype(std::declval<line_cache_view const&>().with(fifo_policy{}))>;
using stamped_cache_view = filled_cache_view<stamp_fills>;

enum class own_pattern : u32 {
  uniform,
  zipf,  ///< line x in some order with a probability of about (x + 1)^-0.75
  sequential,
};

/// Reads one element for each item.
template <class Array>
struct read_own {
  Array array;
  own_pattern pattern = own_pattern::uniform;
  u64 first = 0;                     ///< of the draws, or of the elements
  u64 lines = 0, line_elements = 0;  ///< powers of two
  u64* wrong = nullptr;

  template <class Group>
  PENSTOCK_FN void operator()(Group const&, grid_range range) const {
    u64 bad = 0;
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u64 i = element(k);
      bad += array[i] != value_at(i) ? 1 : 0;
    }
    if (bad != 0) device_ref<u64>(*wrong).fetch_add(bad, relaxed);
  }

 private:
  PENSTOCK_FN u64 element(u64 k) const {
    if (pattern == own_pattern::sequential) return (first + k) & (lines * line_elements - 1);
    const u64 draw = mix_word(first + k);
    if (pattern == own_pattern::uniform) return draw & (lines * line_elements - 1);
    u64 x = draw >> 32;
    for (u32 power = 0; power < 2; ++power) x = x * x >> 32;  // the fourth power of a number below 1
    return permute(x * lines >> 32, lines) * line_elements + (draw & (line_elements - 1));
  }
};

using read_stock = read_own<array_view<u64>>;
using read_fifo = read_own<cached_array<u64, fifo_cache_view>>;
using read_stamped = read_own<cached_array<u64, stamped_cache_view>>;

/// One block to a multiprocessor where misses are compiled into the kernel: they need more registers than 64 a thread.
template <class Array>
inline constexpr u32 own_blocks = std::is_same_v<Array, array_view<u64>> ? cuda_blocks_per_unit : 1;

template <class Array>
kernel_facts run_reads(executor& on, u64 reads, read_own<Array> const& body) {
  launch<1, own_blocks<Array>>(on, reads, body);
  return describe_kernel<1, own_blocks<Array>>(on, body);
}

template <class Array>
kernel_facts run_reads_cuda(executor& on, u64 reads, read_own<Array> const& body);

}  // namespace penstock::bench
