// From a job to its kernel; included by the one translation unit of each executor.
#pragma once

#include "libs/bench/hit_kernels.hpp"

namespace penstock::bench {

template <u32 Width, u32 Blocks, class Body>
kernel_facts run_body_of(executor& on, hit_job const& job, u64 items, Body const& body, u64 groups) {
  if (job.only_prepares) {
    prepare_launch<Width, Blocks>(on, body);
  } else {
    launch<Width, Blocks>(on, items, body, {.groups = groups, .units = job.units});
  }
  return describe_kernel<Width, Blocks>(on, body);
}

template <access_kind Access, pattern_kind Pattern>
kernel_facts run_elements(executor& on, hit_job const& job, hit_data const& data) {
  const read_elements<Access, Pattern> body{data};
  return run_body_of<1, element_blocks>(on, job, data.order.elements, body, job.threads);
}

template <access_kind Access>
kernel_facts run_pattern(executor& on, hit_job const& job, hit_data const& data) {
  using enum pattern_kind;
  switch (job.order) {
    case linear: return run_elements<Access, linear>(on, job, data);
    case random: return run_elements<Access, random>(on, job, data);
    case hot: return run_elements<Access, hot>(on, job, data);
    case strided: return run_elements<Access, strided>(on, job, data);
    case lines: return run_elements<Access, lines>(on, job, data);
    case coarsened: return run_elements<Access, coarsened>(on, job, data);
  }
  return {};
}

template <line_kind Access, u32 Width>
kernel_facts run_lines(executor& on, hit_job const& job, hit_data const& data) {
  const u64 items = data.order.elements / data.order.line_elements / job.lines_at_once;
  const read_lines<Access> body{data, job.lines_at_once, data.order.sequence(items)};
  return run_body_of<Width, line_blocks>(on, job, items, body, 0);
}

template <line_kind Access>
kernel_facts run_width(executor& on, hit_job const& job, hit_data const& data) {
  if (job.width == 8) return run_lines<Access, 8>(on, job, data);
  if (job.width == 16) return run_lines<Access, 16>(on, job, data);
  return run_lines<Access, 32>(on, job, data);
}

template <access_kind Access>
kernel_facts run_walk(executor& on, hit_job const& job, hit_data const& data) {
  const u64 lines = data.order.elements / data.order.line_elements, groups = job.threads / job.width;
  const walk_lines<Access> body{data, data.order.sequence(lines)};
  if constexpr (Access == access_kind::reference_runs) {
    return run_body_of<32, line_blocks>(on, job, lines, body, 0);
  } else {
    if (job.width == 8) return run_body_of<8, element_blocks>(on, job, lines, body, groups);
    if (job.width == 16) return run_body_of<16, element_blocks>(on, job, lines, body, groups);
    return run_body_of<32, element_blocks>(on, job, lines, body, groups);
  }
}

template <access_kind Access>
kernel_facts run_touch(executor& on, hit_job const& job, hit_data const& data) {
  const u64 lines = data.order.elements / data.order.line_elements;
  const touch_lines<Access> body{data, data.order.sequence(lines)};
  return run_body_of<1, element_blocks>(on, job, lines, body, job.threads);
}

inline kernel_facts run_hit(executor& on, hit_job const& job, hit_data const& data) {
  if (job.shape == hit_shape::walk) {
    if (job.access == access_kind::view) return run_walk<access_kind::view>(on, job, data);
    if (job.access == access_kind::reference) return run_walk<access_kind::reference>(on, job, data);
    if (job.access == access_kind::reference_runs) return run_walk<access_kind::reference_runs>(on, job, data);
    return run_walk<access_kind::plain>(on, job, data);
  }
  if (job.shape == hit_shape::touch) {
    return job.access == access_kind::plain ? run_touch<access_kind::plain>(on, job, data)
                                            : run_touch<access_kind::view>(on, job, data);
  }
  if (job.shape == hit_shape::lines) {
    using enum line_kind;
    switch (job.lines) {
      case plain: return run_width<plain>(on, job, data);
      case validated: return run_width<validated>(on, job, data);
      case validated_data: return run_lines<validated_data, 32>(on, job, data);
      case pinned: return run_width<pinned>(on, job, data);
      case pinned_data: return run_lines<pinned_data, 32>(on, job, data);
      case plain_in_frames: return run_width<plain_in_frames>(on, job, data);
    }
  }
  using enum access_kind;
  switch (job.access) {
    case plain: return run_pattern<plain>(on, job, data);
    case view: return run_pattern<view>(on, job, data);
    case view_address: return run_pattern<view_address>(on, job, data);
    case view_data: return run_pattern<view_data>(on, job, data);
    case reference:
    case reference_runs: return run_pattern<reference>(on, job, data);
    case pinned: return run_pattern<pinned>(on, job, data);
  }
  return {};
}

}  // namespace penstock::bench
