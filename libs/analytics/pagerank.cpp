#include "libs/analytics/analytics.hpp"
#include "libs/analytics/graph_run.hpp"
#include "libs/analytics/pagerank_bodies.hpp"
#include "libs/graph/analytics_reference.hpp"
#include "libs/graph/incoming.hpp"
#include "libs/graph/weights.hpp"

#include <cmath>
#include <optional>

namespace penstock::analytics {
namespace {

/// One of the distributions, scaled to a sum of 1; empty stays empty.
std::vector<double> scaled(std::vector<double> given, char const* name, graph::graph_folder const& graph) {
  if (given.empty()) return given;
  const auto refuse = [&](std::string const& what) { throw_bad_input("rank", graph.path(), name + (" " + what)); };
  if (given.size() != graph.vertices()) {
    refuse("has " + std::to_string(given.size()) + " values for " + std::to_string(graph.vertices()) +
           " vertices: give one for each");
  }
  double sum = 0;
  for (u64 v = 0; v < given.size(); ++v) {
    if (!(given[v] >= 0) || std::isinf(given[v])) {
      refuse("of vertex " + std::to_string(v) + " is " + std::to_string(given[v]) + ": give a finite number of 0 or more");
    }
    sum += given[v];
  }
  if (!(sum > 0) || std::isinf(sum)) refuse("adds up to " + std::to_string(sum) + ": give a finite sum above 0");
  for (double& each : given) each /= sum;
  return given;
}

/// What ranks are shared out by, where it is not the same for all: [vertices] each, or empty.
struct distributions {
  distributions(pagerank_options const& options, graph::graph_folder const& graph)
      : teleport(scaled(options.teleport, "personalization", graph)), start(scaled(options.start, "nstart", graph)),
        dangling_goes(scaled(options.dangling_goes, "dangling", graph)) {}
  std::vector<double> teleport, start, dangling_goes;
};

void check_options(pagerank_options const& options) {
  const auto refuse = [&](std::string const& what) { throw_bad_input("rank", options.graph, what); };
  if (!(options.damping >= 0 && options.damping < 1)) {
    refuse("damping " + std::to_string(options.damping) + ": give a number of at least 0 and less than 1");
  }
  if (!(options.tolerance >= 0)) refuse("tolerance " + std::to_string(options.tolerance) + ": give 0 or more");
  if (options.iterations == 0) refuse("0 iterations: give at least one");
}

/// `run` is over lists of incoming edges if `pulls` and the graph is directed; `offsets`: of the lists of outgoing ones.
template <class Real, class Id, bool Weighted>
class rank_iteration {
 public:
  rank_iteration(graph_run<Id>& run, u64 const* offsets, bool pulls, pagerank_options const& options, distributions const& by)
      : run_(run), offsets_(offsets), pulls_(pulls), options_(options), n_(run.graph.vertices()),
        each_(1 / static_cast<double>(n_)), ranks_(run.account.template filled<Real>(n_, static_cast<Real>(each_))),
        shares_(run.account.template filled<Real>(n_, 0)), sums_(run.account.template filled<Real>(n_, 0)),
        words_(run.account.template filled<double>(2, 0)),
        strengths_(Weighted ? run.account.template filled<double>(n_, 0) : buffer<double>()), teleport_(copy_of(by.teleport)),
        dangling_goes_(options.dangling ? copy_of(by.dangling_goes) : buffer<double>()) {
    if (!by.start.empty()) ranks_.write(std::vector<Real>(by.start.begin(), by.start.end()));
  }

  void iterate(pagerank_result& result) {
    result.iterations = 0;
    result.converged = false;
    pulls_ ? run_.walks.prepare_walks(pull()) : run_.walks.prepare_walks(push());
    if constexpr (Weighted) run_.walks.prepare_walks(pull_ranks<double, true>{{}, weights()});
    run_.walks.prepare(share_ranks<Real>{}, take_ranks<Real>{});
    run_.account.trial(result, [&] {
      if constexpr (Weighted) add_up_weights();
      while (result.iterations < options_.iterations && !result.converged) {
        run_.account.begin_round(result, "iteration", n_, result.iterations, options_.iterations);
        step(result);
        run_.account.end_round(result);
      }
    });
  }

  std::vector<Real> ranks() const {
    std::vector<Real> found(n_);
    ranks_.read(found);
    return found;
  }

 private:
  buffer<double> copy_of(std::vector<double> const& values) {
    if (values.empty()) return {};
    buffer<double> made = run_.account.template filled<double>(n_, 0);
    made.write(values);
    return made;
  }

  weights_if<Weighted> weights() const {
    if constexpr (Weighted) {
      if (run_.graph.folder().weights_place()->kind == 'f') return {as_words(run_.graph.template weights<float>()), true};
      return {as_words(run_.graph.template weights<std::int32_t>()), false};
    } else {
      return {};
    }
  }
  rank_data<Real> data() { return {ranks_.data(), shares_.data(), sums_.data(), words_.data(), words_.data() + 1}; }
  pull_ranks<Real, Weighted> pull() { return {data(), weights()}; }
  push_ranks<Real, Weighted> push() { return {data(), weights()}; }

  /// The weights that leave a vertex are what it would pull, if each of its neighbours had 1 to share.
  void add_up_weights() {
    buffer<double> ones(run_.graph.on().memory(), memory_kind::local, n_);
    ones.write(std::vector<double>(n_, 1));
    strengths_.write(std::vector<double>(n_, 0));
    rank_data<double> sums;
    sums.share = ones.data();
    sums.sum = strengths_.data();
    run_.walks.walk(pull_ranks<double, true>{sums, weights()});
    run_.graph.on().synchronize();
  }

  void step(pagerank_result& result) {
    run_.graph.write(words_.data(), 0.0);
    run_.graph.write(words_.data() + 1, 0.0);
    run_.walks.over_vertices(share_ranks<Real>{data(), offsets_, n_, options_.damping, strengths_.data()});
    pulls_ ? run_.walks.walk(pull()) : run_.walks.walk(push());
    const double kept = 1 - options_.damping, lost = options_.dangling ? run_.graph.read(words_.data()) : 0;
    take_ranks<Real> take{data(), n_};
    take.teleport = teleport_.data();
    take.dangling = dangling_goes_.data() != nullptr ? dangling_goes_.data() : teleport_.data();
    if (take.teleport != nullptr) take.teleported = kept;
    if (take.dangling != nullptr) take.lost = lost;
    take.base = ((take.teleport == nullptr ? kept : 0) + (take.dangling == nullptr ? lost : 0)) * each_;
    run_.walks.over_vertices(take);
    result.change = run_.graph.read(words_.data() + 1);
    result.converged = result.change < options_.tolerance;
    ++result.iterations;
  }

  graph_run<Id>& run_;
  u64 const* offsets_;
  bool pulls_;
  pagerank_options const& options_;
  u64 n_;
  double each_;
  buffer<Real> ranks_, shares_, sums_;
  buffer<double> words_, strengths_, teleport_, dangling_goes_;
};

template <class Real, bool Weighted, class Id>
void rank(graph_run<Id>& run, u64 const* offsets, bool pulls, pagerank_options const& options, distributions const& by,
          pagerank_result& result) {
  for (u32 trial = 1; trial <= options.trials; ++trial) {
    rank_iteration<Real, Id, Weighted> job(run, offsets, pulls, options, by);
    job.iterate(result);
    if (trial == options.trials) result.ranks = job.ranks();
  }
}

template <class Id>
void rank_as_asked(graph_run<Id>& run, u64 const* offsets, bool pulls, pagerank_options const& options, distributions const& by,
                   pagerank_result& result) {
  if (options.weighted) {
    options.wide ? rank<double, true>(run, offsets, pulls, options, by, result)
                 : rank<float, true>(run, offsets, pulls, options, by, result);
  } else {
    options.wide ? rank<double, false>(run, offsets, pulls, options, by, result)
                 : rank<float, false>(run, offsets, pulls, options, by, result);
  }
}

/// Of a vertex, where kernels run.
u64 bytes_of_a_vertex(pagerank_options const& options, bool has_incoming) {
  const u64 own = options.teleport.empty() ? 0 : sizeof(double);
  const u64 goes = options.dangling_goes.empty() ? 0 : sizeof(double);
  return 3 * (options.wide ? sizeof(double) : sizeof(float)) + (has_incoming ? sizeof(u64) : 0) + own + goes +
         (options.weighted ? 2 * sizeof(double) : 0);
}

std::string check_ranks(graph::graph_folder const& graph, pagerank_options const& options, distributions const& by,
                        pagerank_result const& result, graph::progress_meter meter) {
  graph::rank_rules rules;
  rules.damping = options.damping;
  rules.dangling = options.dangling;
  // Each iteration takes the changes of the one before, times the damping at most.
  rules.limit = options.damping * result.change;
  rules.weighted = options.weighted;
  rules.rounding = options.wide ? 1e-10 : 1e-6;
  rules.teleport = by.teleport;
  rules.dangling_goes = by.dangling_goes;
  return std::visit(
      [&](auto const& ranks) {
        return graph::verify_pagerank(graph, std::vector<double>(ranks.begin(), ranks.end()), rules, meter);
      },
      result.ranks);
}

}  // namespace

pagerank_result run_pagerank(pagerank_options const& options) {
  check_options(options);
  auto ranked = run_on_graph<pagerank_result>(options, [&](auto const& graph, executor& on, auto id, u64 begun,
                                                           pagerank_result& result) {
    const distributions by(options, graph);
    if (options.weighted) {
      weights_of(graph);
      graph::progress_meter meter = progress_of(options, "check weights");
      graph::check_weights(graph, "rank", meter);
    }
    // Lists of incoming edges have no weights.
    std::optional<graph::graph_folder> incoming;
    if (graph.directed() && !options.weighted && graph::has_incoming(graph)) incoming = graph::open_incoming(graph);
    check_memory(options, graph, on, bytes_of_a_vertex(options, incoming.has_value()), options.weighted);
    graph_run<decltype(id)> run(options, incoming ? *incoming : graph, on, options.weighted);
    buffer<u64> degrees(on.memory(), memory_kind::local, incoming && !run.graph.is_cpu() ? graph.vertices() + 1 : 0);
    if (degrees.size() != 0) degrees.write(graph.offsets());
    u64 const* const offsets = !incoming ? run.graph.offsets() : run.graph.is_cpu() ? graph.offsets().data() : degrees.data();
    result.load_seconds = seconds_since(begun);
    rank_as_asked(run, offsets, incoming || !graph.directed(), options, by, result);
    verify_result(options, graph, result, [&] { return check_ranks(graph, options, by, result, run.account.meter("verify")); });
  });
  if (ranked.iterations != 0) return ranked;
  ranked.converged = true;  // there is no vertex
  if (options.wide) ranked.ranks = std::vector<double>();
  return ranked;
}

}  // namespace penstock::analytics
