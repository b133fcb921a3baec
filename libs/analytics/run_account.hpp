// The account of a run: its trials and rounds, what they took, and what the arrays moved meanwhile.
#pragma once

#include "libs/analytics/edge_walker.hpp"

#include <string>
#include <vector>

namespace penstock::analytics {

/// Reports what is done as `what` to the caller of a run. `options` outlives it.
inline graph::progress_meter progress_of(graph_options const& options, std::string const& what) {
  return graph::progress_meter([&options, what](u64 done, u64 total) {
    if (options.progress) options.progress(what, done, total);
  });
}

inline double seconds_since(u64 start_ns) { return static_cast<double>(now_ns() - start_ns) * 1e-9; }

/// Outlives no reference that it is made of. For one thread.
template <class Id>
class run_account {
 public:
  run_account(opened_graph<Id>& graph, edge_walker<Id>& walks) : graph_(graph), walks_(walks) {}

  /// Local memory, filled with one value.
  template <class T>
  buffer<T> filled(u64 count, T value) {
    vertex_bytes_ += count * sizeof(T);
    buffer<T> made(graph_.on().memory(), memory_kind::local, count);
    made.write(std::vector<T>(count, value));
    return made;
  }

  /// A round over `size` vertices begins; `done` of `of` are known to be finished.
  void begin_round(graph_cost& cost, std::string const& what, u64 size, u64 done, u64 of);
  /// `how`: what it was, if it was no walk.
  void end_round(graph_cost& cost, char const* how = nullptr);

  /// A trial is what is timed and counted: `cost` is of the last one, but for trial_seconds.
  template <class Job>
  void trial(graph_cost& cost, Job const& job) {
    begin_trial(cost);
    try {
      job();
    } catch (...) {
      // While drives serve, what is thrown would free memory, and wait for them.
      if (graph_.media() != nullptr) graph_.media()->stop();
      throw;
    }
    end_trial(cost);
  }

  graph::progress_meter meter(std::string const& what) const { return progress_of(graph_.options(), what); }

 private:
  void begin_trial(graph_cost& cost);
  void end_trial(graph_cost& cost);
  void add_caches(graph_cost& cost) const;
  u64 moved_bytes() const;

  opened_graph<Id>& graph_;
  edge_walker<Id>& walks_;
  u64 vertex_bytes_ = 0;
  std::vector<cache_stats> before_;  ///< a trial, of each cache
  u64 trial_begun_ns_ = 0, round_begun_ns_ = 0;
  u64 moved_before_ = 0;   ///< the round, in the trial
  u64 copied_before_ = 0;  ///< the trial
};

extern template class run_account<std::int32_t>;
extern template class run_account<std::int64_t>;

}  // namespace penstock::analytics
