#include "apps/bfs/bfs.hpp"

#include "apps/analytics/graph_run.hpp"
#include "apps/bfs/bfs_level.hpp"
#include "apps/graph/bfs_reference.hpp"

namespace penstock::apps {
namespace {

/// Gives the parents.
template <class Id>
buffer<Id> search(graph_run<Id>& run, u64 source, bfs_result& result) {
  const u64 n = run.vertices();
  buffer<Id> parents = run.template filled<Id>(n, -1), frontier = run.template filled<Id>(n, 0),
             next = run.template filled<Id>(n, 0);
  buffer<u64> next_count = run.template filled<u64>(1, 0);
  buffer<u8> scratch;
  const u64 begun = now_ns();
  result.source = source;
  run.write(parents.data() + source, static_cast<Id>(source));
  run.write(frontier.data(), static_cast<Id>(source));
  for (u64 size = 1; size != 0;) {
    result.reached += size;
    run.begin_round(result, "level", size, result.reached, n);
    run.walk(bfs_level<Id>{run.lists(size), {parents.data(), frontier.data(), next.data(), next_count.data()}});
    size = run.read(next_count.data());
    run.write(next_count.data(), u64{0});
    sort_vertices(run.on(), next.data(), frontier.data(), size, n, scratch);
    run.end_round(result);
  }
  result.levels = result.level_sizes.size();
  run.account(result, seconds_since(begun));
  return parents;
}

}  // namespace

bfs_result run_bfs(bfs_options const& options) {
  return run_on_graph<bfs_result>(options, [&](auto const& graph, executor& on, auto id, u64 begun, bfs_result& result) {
    using vertex = decltype(id);
    graph_run<vertex> run(options, graph, on);
    const u64 source = choose_source(graph, options.source);
    result.load_seconds = seconds_since(begun);
    std::vector<vertex> found(graph.vertices());
    search(run, source, result).read(found);
    result.parents.assign(found.begin(), found.end());
    verify_result(options, result, [&] {
      auto meter = run.meter("verify");
      return graph::verify_bfs(graph, source, std::span<vertex const>(found), meter);
    });
  });
}

}  // namespace penstock::apps
