#include "apps/analytics/analytics.hpp"
#include "apps/analytics/graph_run.hpp"
#include "apps/analytics/pagerank_bodies.hpp"
#include "apps/graph/analytics_reference.hpp"
#include "apps/graph/incoming.hpp"

#include <optional>

namespace penstock::apps {
namespace {

void check_options(pagerank_options const& options) {
  const auto refuse = [&](std::string const& what) { throw_bad_input("rank", options.graph, what); };
  if (!(options.damping >= 0 && options.damping < 1)) {
    refuse("damping " + std::to_string(options.damping) + ": give a number of at least 0 and less than 1");
  }
  if (!(options.tolerance >= 0)) refuse("tolerance " + std::to_string(options.tolerance) + ": give 0 or more");
  if (options.iterations == 0) refuse("0 iterations: give at least one");
}

/// `run` is over lists of incoming edges if ranks are pulled; `offsets`: of the lists of outgoing ones.
template <class Real, class Id>
void rank(graph_run<Id>& run, u64 const* offsets, bool pulls, pagerank_options const& options, bool last,
          pagerank_result& result) {
  const u64 n = run.vertices();
  const double each = 1 / static_cast<double>(n);
  buffer<Real> ranks = run.template filled<Real>(n, static_cast<Real>(each)), shares = run.template filled<Real>(n, 0),
               sums = run.template filled<Real>(n, 0);
  buffer<double> words = run.template filled<double>(2, 0);
  const rank_data<Real> data{ranks.data(), shares.data(), sums.data(), words.data(), words.data() + 1};
  result.iterations = 0;
  result.converged = false;
  pulls ? run.prepare_walks(pull_ranks<Real>{}) : run.prepare_walks(push_ranks<Real>{});
  run.prepare(share_ranks<Real>{}, take_ranks<Real>{});
  run.trial(result, [&] {
    while (result.iterations < options.iterations && !result.converged) {
      run.begin_round(result, "iteration", n, result.iterations, options.iterations);
      run.write(words.data(), 0.0);
      run.write(words.data() + 1, 0.0);
      run.over_vertices(share_ranks<Real>{data, offsets, n, options.damping});
      if (pulls) {
        run.walk(pull_ranks<Real>{data});
      } else {
        run.walk(push_ranks<Real>{data});
      }
      const double lost = options.dangling ? run.read(words.data()) : 0;
      run.over_vertices(take_ranks<Real>{data, n, (1 - options.damping + lost) * each});
      result.change = run.read(words.data() + 1);
      result.converged = result.change < options.tolerance;
      ++result.iterations;
      run.end_round(result);
    }
  });
  if (!last) return;
  std::vector<Real> found(n);
  ranks.read(found);
  result.ranks = std::move(found);
}

}  // namespace

pagerank_result run_pagerank(pagerank_options const& options) {
  check_options(options);
  auto ranked =
      run_on_graph<pagerank_result>(options, [&](auto const& graph, executor& on, auto id, u64 begun, pagerank_result& result) {
        std::optional<graph::graph_folder> incoming;
        if (graph.directed() && graph::has_incoming(graph)) incoming = graph::open_incoming(graph);
        check_memory(options, graph, on, 3 * (options.wide ? sizeof(double) : sizeof(float)) + (incoming ? sizeof(u64) : 0));
        graph_run<decltype(id)> run(options, incoming ? *incoming : graph, on);
        buffer<u64> degrees(on.memory(), memory_kind::local, incoming && !run.is_cpu() ? graph.vertices() + 1 : 0);
        if (degrees.size() != 0) degrees.write(graph.offsets());
        u64 const* const offsets = !incoming ? run.lists().offsets : run.is_cpu() ? graph.offsets().data() : degrees.data();
        const bool pulls = incoming || !graph.directed();
        result.load_seconds = seconds_since(begun);
        for (u32 trial = 1; trial <= options.trials; ++trial) {
          const bool last = trial == options.trials;
          options.wide ? rank<double>(run, offsets, pulls, options, last, result)
                       : rank<float>(run, offsets, pulls, options, last, result);
        }
        verify_result(options, graph, result, [&] {
          auto meter = run.meter("verify");
          // What one more iteration may change: the tolerance, or what was left when the iterations were over.
          const double limit = result.converged ? options.tolerance : result.change;
          return std::visit(
              [&](auto const& ranks) {
                return graph::verify_pagerank(graph, std::vector<double>(ranks.begin(), ranks.end()),
                                              {options.damping, options.dangling, limit}, meter);
              },
              result.ranks);
        });
      });
  if (ranked.iterations != 0) return ranked;
  ranked.converged = true;  // there is no vertex
  if (options.wide) ranked.ranks = std::vector<double>();
  return ranked;
}

}  // namespace penstock::apps
