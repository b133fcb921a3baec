// The accesses of a configuration, as a user's kernel has them: each thread goes through a list of elements.
#pragma once

#include "libs/bench/cliff_config.hpp"
#include "penstock/array/array_ref.hpp"
#include "penstock/array/pending_read.hpp"
#include "penstock/array/pinned_line.hpp"
#include "penstock/array/writable_view.hpp"
#include "penstock/executor/launch.hpp"

namespace penstock::bench {

/// What the kernels share.
struct cliff_job {
  array_view<u64> a;
  writable_view<u64> changed;     ///< of the accesses that change elements
  u32 const* elements = nullptr;  ///< [per_stream][streams]
  u64* sum = nullptr;             ///< of all that was read
  u64 streams = 0, per_stream = 0;
  u32 line_elements = 0;
};

template <cliff_access Access>
struct cliff_body {
  cliff_job job;

  static constexpr bool takes_lines = Access == cliff_access::span || Access == cliff_access::pinned;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    u64 mine = 0;
    for (u64 item = range.first; item < range.last; item += range.step) {
      if constexpr (takes_lines) {
        for (u64 k = 0; k < job.per_stream; ++k) mine += take_line(g, job.elements[k * job.streams + item]);
      } else {
        const u64 stream = item * size(g) + index_in(g);
        if (stream < job.streams) mine += take(stream);
      }
    }
    if (mine != 0) device_ref<u64>(*job.sum).fetch_add(mine, relaxed);
  }

 private:
  PENSTOCK_FN u64 element(u64 stream, u64 k) const { return job.elements[k * job.streams + stream]; }

  PENSTOCK_FN u64 take(u64 stream) const {
    u64 sum = 0;
    if constexpr (Access == cliff_access::index) {
      for (u64 k = 0; k < job.per_stream; ++k) sum += job.a[element(stream, k)];
    } else if constexpr (Access == cliff_access::reference) {
      array_ref<u64> follow(job.a);
      for (u64 k = 0; k < job.per_stream; ++k) sum += follow[element(stream, k)];
    } else if constexpr (Access == cliff_access::async) {
      u64 k = 0;
      for (; k + asked_together <= job.per_stream; k += asked_together) {
        auto first = job.a.read_async(element(stream, k)), second = job.a.read_async(element(stream, k + 1));
        auto third = job.a.read_async(element(stream, k + 2)), fourth = job.a.read_async(element(stream, k + 3));
        sum += first.wait() + second.wait() + third.wait() + fourth.wait();
      }
      for (; k < job.per_stream; ++k) sum += job.a[element(stream, k)];
    } else {
      for (u64 k = 0; k < job.per_stream; ++k) job.changed.fetch_add(element(stream, k), 1);
    }
    return sum;
  }

  template <thread_group G>
  PENSTOCK_FN u64 take_line(G const& g, u64 first) const {
    u64 sum = 0;
    if constexpr (Access == cliff_access::span) {
      job.a.read_span(g, first, job.line_elements, [&](u64, u64 value) { sum += value; });
    } else {
      const auto line = pin(g, job.a, first);
      if (!line.error().ok()) return 0;  // then the sum is wrong
      line.read_pieces(0, job.line_elements / 2, [&](u32, piece16 piece) {
        const auto pair = std::bit_cast<two>(piece);
        sum += pair.low + pair.high;
      });
    }
    return sum;
  }
  struct two {
    u64 low, high;
  };
};

/// Runs one kernel; compiled by the translation unit of each executor.
inline void run_cliff(executor& on, cliff_access access, cliff_job const& job, u32 lanes) {
  const auto go = [&]<cliff_access Access>() {
    const cliff_body<Access> body{job};
    launch<32>(on, body.takes_lines ? job.streams : ceil_div(job.streams, lanes), body);
  };
  switch (access) {
    case cliff_access::index: return go.template operator()<cliff_access::index>();
    case cliff_access::reference: return go.template operator()<cliff_access::reference>();
    case cliff_access::async: return go.template operator()<cliff_access::async>();
    case cliff_access::span: return go.template operator()<cliff_access::span>();
    case cliff_access::pinned: return go.template operator()<cliff_access::pinned>();
    case cliff_access::add: return go.template operator()<cliff_access::add>();
  }
}

void run_cliff_cpu(executor& on, cliff_access access, cliff_job const& job);
void run_cliff_cuda(executor& on, cliff_access access, cliff_job const& job);

}  // namespace penstock::bench
