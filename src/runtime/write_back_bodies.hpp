// The bodies of those launches. Included by the one file that instantiates them.
#pragma once

#include "write_back_launch.hpp"

#include "penstock/executor/launch.hpp"

namespace penstock {
namespace {

/// Items of a launch that one of a group's is worth: a warp has a line for each lane.
constexpr u64 items_per_group = 32;

/// The part of `items` that belongs to number `group` of the launch.
PENSTOCK_FN inline u64 part_end(u64 group, u64 items) {
  const u64 end = (group + 1) * items_per_group;
  return end < items ? end : items;
}

struct flush_lines_body {
  write_back_job job;
  u64 items = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range groups) const {
    for (u64 k = groups.first; k < groups.last; k += groups.step) {
      flush_lines(g, *job.cache, job.range, *job.report, k * items_per_group, part_end(k, items));
    }
  }
};

struct flush_device_body {
  write_back_job job;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range) const {
    flush_device(g, *job.cache, job.range.dataset, *job.report, *job.device_flush);
  }
};

struct discard_lines_body {
  write_back_job job;
  u64 items = 0;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range groups) const {
    for (u64 k = groups.first; k < groups.last; k += groups.step) {
      discard_lines(g, *job.cache, job.range, *job.report, k * items_per_group, part_end(k, items));
    }
  }
};

struct clean_beside_body {
  line_cache_view const* cache;
  u64 groups, longest_ns;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range) const {
    clean_beside(g, *cache, groups, longest_ns);
  }
};

}  // namespace

void launch_flush_lines(executor& on, write_back_job const& job, u64 items) {
  launch<32>(on, ceil_div(items, items_per_group), flush_lines_body{job, items});
}

void launch_flush_device(executor& on, write_back_job const& job) { launch<32>(on, 1, flush_device_body{job}); }

void launch_discard_lines(executor& on, write_back_job const& job, u64 items) {
  launch<32>(on, ceil_div(items, items_per_group), discard_lines_body{job, items});
}

void launch_clean_beside(executor& on, void* stream, line_cache_view const* cache, u64 groups, u64 longest_ns) {
  launch_on<32>(stream, on, groups, clean_beside_body{cache, groups, longest_ns});
}

void prepare_write_back(executor& on) {
  prepare_launch<32>(on, flush_lines_body{});
  prepare_launch<32>(on, flush_device_body{});
  prepare_launch<32>(on, discard_lines_body{});
  prepare_launch<32>(on, clean_beside_body{});
}

}  // namespace penstock
