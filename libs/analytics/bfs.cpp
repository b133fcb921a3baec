#include "libs/analytics/bfs.hpp"

#include "libs/analytics/bfs_level.hpp"
#include "libs/analytics/graph_run.hpp"
#include "libs/graph/bfs_reference.hpp"
#include "libs/graph/incoming.hpp"

namespace penstock::analytics {
namespace {

/// When to search from what is not reached, and when no longer (Beamer, Asanovic, Patterson, SC 2012; GAP's numbers).
constexpr u64 alpha = 15, beta = 18;
/// On a GPU a level of at least one in so many of the vertices is taken to reach many. CPU threads append as well as they look.
constexpr u64 few = 64;

template <class Id>
class level_search {
 public:
  explicit level_search(graph_run<Id>& run)
      : run_(run), n_(run.graph.vertices()), parents_(run.account.template filled<Id>(n_, -1)),
        depths_(run.account.template filled<std::int32_t>(n_, -1)), frontier_(run.account.template filled<Id>(n_, 0)),
        next_(run.account.template filled<Id>(n_, 0)),
        may_pull_(run.walks.is_automatic() && run.graph.reads_single_edges() && run.graph.has_incoming()),
        edges_left_(run.graph.folder().edges()) {}

  void search(u64 source, bfs_result& result) {
    result.source = source;
    result.reached = 0;
    run_.graph.write(parents_.data() + source, static_cast<Id>(source));
    run_.graph.write(depths_.data() + source, std::int32_t{0});
    run_.graph.write(frontier_.data(), static_cast<Id>(source));
    for (u64 size = 1, before = 0; size != 0;) {
      result.reached += size;
      run_.account.begin_round(result, "level", size, result.reached, n_);
      choose_direction(size, before);
      const vertex_list<Id> which{frontier_.data(), size};
      const bfs_data<Id> data{parents_.data(), depths_.data(), run_.walks.found_list(next_, which),
                              static_cast<std::int32_t>(result.level_sizes.size() - 1),
                              run_.graph.is_cpu() || (!pulls_ && size < n_ / few)};
      if (pulls_) {
        run_.walks.walk_narrow(bfs_pull<Id>{data});
      } else {
        run_.walks.walk_frontier(bfs_push<Id>{data}, bfs_push<Id, true>{data}, which);
      }
      if (!data.lists) {
        run_.walks.over_vertices(list_level<Id>{data, n_});
        run_.walks.read_counts();
      }
      before = size;
      size = run_.walks.take_found();
      std::swap(frontier_, next_);
      run_.account.end_round(result, pulls_ ? "pull" : nullptr);
    }
    result.levels = result.level_sizes.size();
  }

  buffer<Id> const& parents() const { return parents_; }

 private:
  void choose_direction(u64 size, u64 before) {
    if (!may_pull_) return;
    if (pulls_) {
      pulls_ = size >= before || size > n_ / beta;
      return;
    }
    // A frontier that is small has few edges, or is a hub or two.
    // A round from below looks at all vertices, so a short frontier is never worth it, however few edges are left.
    const u64 least = std::max(edges_left_ / alpha, n_ / beta);
    if (size * run_.graph.longest_list() <= least) {
      edges_left_ -= std::min(size, edges_left_);
      return;
    }
    const u64 edges = run_.walks.edges_of({frontier_.data(), size});
    pulls_ = edges > least;
    edges_left_ -= std::min(edges, edges_left_);
  }

  graph_run<Id>& run_;
  u64 n_;
  buffer<Id> parents_;
  buffer<std::int32_t> depths_;
  buffer<Id> frontier_, next_;
  bool may_pull_, pulls_ = false;
  u64 edges_left_;
};

}  // namespace

bfs_result run_bfs(bfs_options const& options) {
  return run_on_graph<bfs_result>(options, [&](auto const& graph, executor& on, auto id, u64 begun, bfs_result& result) {
    using vertex = decltype(id);
    check_memory(options, graph, on, 3 * sizeof(vertex) + sizeof(std::int32_t));
    graph_run<vertex> run(options, graph, on);
    if (run.walks.is_automatic() && run.graph.is_resident() && graph.directed() && graph::has_incoming(graph) &&
        has_room_for_incoming(options, graph, on)) {
      run.graph.open_incoming();
    }
    result.load_seconds = seconds_since(begun);
    std::vector<vertex> found(graph.vertices());
    for (u32 trial = 0; trial < options.trials; ++trial) {
      const u64 source = choose_source(graph, options.source, options.sources, trial);
      result.trial_sources.push_back(source);
      level_search<vertex> job(run);
      run.walks.prepare_walks(bfs_push<vertex>{});
      run.walks.prepare_touched(bfs_push<vertex, true>{});
      run.walks.prepare_narrow(bfs_pull<vertex>{});
      run.walks.prepare(list_level<vertex>{});
      run.account.trial(result, [&] { job.search(source, result); });
      if (trial + 1 == options.trials) job.parents().read(found);
    }
    result.parents.assign(found.begin(), found.end());
    verify_result(options, graph, result, [&] {
      auto meter = run.account.meter("verify");
      return graph::verify_bfs(graph, result.source, std::span<vertex const>(found), meter);
    });
  });
}

}  // namespace penstock::analytics
