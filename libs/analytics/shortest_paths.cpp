#include "libs/analytics/analytics.hpp"
#include "libs/analytics/graph_run.hpp"
#include "libs/analytics/shortest_paths_bodies.hpp"
#include "libs/graph/analytics_reference.hpp"
#include "libs/graph/weights.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace penstock::analytics {
namespace {

/// So many edges are enough to know how long they are.
constexpr u64 weights_looked_at = 1 << 16;

template <class Weight>
double mean_weight(graph::graph_folder const& graph) {
  const u64 count = std::min(graph.edges(), weights_looked_at);
  if (count == 0) return 1;
  graph::edge_reader<Weight> reader(*graph.weights_place());
  double sum = 0;
  for (const Weight weight : reader.read(0, count, false)) sum += static_cast<double>(weight);
  return sum > 0 ? sum / static_cast<double>(count) : 1;
}

void check_delta(graph::graph_folder const& graph, double asked) {
  if (!(asked >= 0)) throw_bad_input("search", graph.path(), "delta " + std::to_string(asked) + ": give 0 or more");
}

/// All weights are ones that paths can be made of, and no sum of them leaves its type.
void check_lengths(graph::graph_folder const& graph, graph::progress_meter meter) {
  const double largest = graph::check_weights(graph, "search", meter);
  if (graph.weights_place()->kind == 'f' || graph::sums_fit(largest, graph.vertices())) return;
  throw_bad_input("search", graph.weights_place()->path,
                  "a path over all " + std::to_string(graph.vertices()) +
                      " vertices may be longer than 64 bits count: make the weights smaller");
}

/// Near-far's own choice: a warp's worth of edges at a time (section 5 there).
template <class Weight>
double chosen_delta(graph::graph_folder const& graph, double asked) {
  const double degree = static_cast<double>(graph.edges()) / static_cast<double>(graph.vertices());
  const double delta = asked != 0 ? asked : mean_weight<Weight>(graph) * list_group_width / std::max(degree, 1.0);
  // No way is as long as 2^62, so that a larger one says nothing more, and two of them are still a number.
  return std::is_floating_point_v<Weight> ? std::max(delta, 1e-30) : std::clamp(std::floor(delta), 1.0, 0x1p62);
}

template <class Id, class Weight>
class path_search {
 public:
  using distance = distance_of<Weight>;

  path_search(graph_run<Id>& run, double delta)
      : run_(run), n_(run.graph.vertices()), delta_(static_cast<distance>(delta)),
        distances_(run.account.template filled<distance>(n_, no_path<distance>)),
        places_(run.account.template filled<u32>(n_, place_of(waits::taken))),
        frontier_(run.account.template filled<Id>(n_, 0)), next_(run.account.template filled<Id>(n_, 0)),
        pile_(run.account.template filled<Id>(n_, 0)), old_pile_(run.account.template filled<Id>(n_, 0)),
        pile_count_(run.account.template filled<u64>(1, 0)),
        least_(run.account.template filled<distance>(1, no_path<distance>)) {}

  void search(u64 source, bool keeps_rounds, paths_result& result) {
    threshold_ = delta_;
    result.round_vertices.clear();
    run_.graph.write(distances_.data() + source, distance{0});
    run_.graph.write(places_.data() + source, place_of(waits::near));
    run_.graph.write(frontier_.data(), static_cast<Id>(source));
    u64 size = 1, done = 0;
    while (size != 0) {
      done += size;
      run_.account.begin_round(result, "round", size, std::min(done, n_), n_);
      const vertex_list<Id> which{frontier_.data(), size};
      if (keeps_rounds) keep(size, result.round_vertices);
      const path_data<Id, distance> data = shared(which);
      const u32 round = static_cast<u32>(result.level_sizes.size());
      run_.walks.over(size, take_frontier<Id, distance>{data, size, round});
      const array_view<Weight> weights = run_.graph.template weights<Weight>();
      run_.walks.walk_frontier(relax_edges<Id, Weight>{weights, data, threshold_, round, n_},
                               relax_edges<Id, Weight, true>{weights, data, threshold_, round, n_}, which);
      check_weights();
      size = take_next();
      if (size == 0) size = raise_threshold();
      run_.account.end_round(result);
    }
  }

  /// Once the search is over, in the memory of its lists.
  void link(u64 source, paths_result& result) {
    pile_.write(std::vector<Id>(n_, Id{-1}));
    run_.graph.write(pile_.data() + source, static_cast<Id>(source));
    const auto walk = [&](bool level, vertex_list<Id> which) {
      run_.account.begin_round(result, "predecessors", which.vertices != nullptr ? which.count : n_, n_, n_);
      run_.graph.write(pile_count_.data(), u64{0});
      const link_paths<Id, Weight> links{run_.graph.template weights<Weight>(),
                                         distances_.data(),
                                         pile_.data(),
                                         {old_pile_.data(), pile_count_.data(), 0},
                                         level};
      run_.walks.walk_frontier(links, links, which);
      run_.account.end_round(result);
      return level ? run_.graph.read(pile_count_.data()) : 0;
    };
    walk(false, {});
    run_.walks.over_vertices(count_unlinked<Id, distance>{distances_.data(), pile_.data(), pile_count_.data(), n_});
    if (run_.graph.read(pile_count_.data()) == 0) return;
    for (u64 size = walk(true, {}); size != 0;) {
      std::swap(old_pile_, next_);
      size = walk(true, {next_.data(), size});
    }
  }

  std::vector<distance> distances() const {
    std::vector<distance> found(n_);
    distances_.read(found);
    return found;
  }
  std::vector<std::int64_t> predecessors() const {
    std::vector<Id> found(n_);
    pile_.read(found);
    return {found.begin(), found.end()};
  }

 private:
  path_data<Id, distance> shared(vertex_list<Id> which = {}) {
    return {distances_.data(),
            places_.data(),
            frontier_.data(),
            run_.walks.found_list(next_, which),
            {pile_.data(), pile_count_.data(), 0},
            run_.walks.bad_weight_word()};
  }

  void keep(u64 size, std::vector<std::int64_t>& rounds) const {
    std::vector<Id> these(size);
    frontier_.read(these);
    rounds.insert(rounds.end(), these.begin(), these.end());
  }

  u64 take_next() {
    const u64 size = run_.walks.take_found();
    std::swap(frontier_, next_);
    return size;
  }

  /// To where something of the pile lies below it, which is at the second try at the latest, when the least is known; gives the
  /// size of the frontier, 0 when the pile is empty.
  u64 raise_threshold() {
    threshold_ += delta_;
    for (;;) {
      const u64 waiting = run_.graph.read(pile_count_.data());
      if (waiting == 0) return 0;
      std::swap(pile_, old_pile_);
      run_.graph.write(pile_count_.data(), u64{0});
      run_.graph.write(least_.data(), no_path<distance>);
      run_.walks.over(waiting, read_pile<Id, distance>{shared(), old_pile_.data(), waiting, threshold_, least_.data()});
      run_.walks.read_counts();
      if (const u64 size = take_next(); size != 0) return size;
      threshold_ = beyond(run_.graph.read(least_.data()));
    }
  }

  /// More than `least`, also where it is so large that delta is lost in it.
  distance beyond(distance least) const {
    if constexpr (std::is_floating_point_v<distance>) return std::max(least + delta_, std::nextafter(least, no_path<distance>));
    return least + delta_;
  }

  void check_weights() {
    if (!run_.walks.met_bad_weight()) return;
    throw_bad_input("search", run_.graph.folder().weights_place()->path,
                    "a weight became negative, or no number, while paths were searched: search again");
  }

  graph_run<Id>& run_;
  u64 n_;
  distance delta_, threshold_{};
  buffer<distance> distances_;
  buffer<u32> places_;
  buffer<Id> frontier_, next_, pile_, old_pile_;
  buffer<u64> pile_count_;
  buffer<distance> least_;
};

template <class Weight, class Id>
void find_paths(graph_run<Id>& run, paths_options const& options, paths_result& result) {
  result.delta = chosen_delta<Weight>(run.graph.folder(), options.delta);
  std::vector<distance_of<Weight>> found;
  for (u32 trial = 0; trial < options.trials; ++trial) {
    result.source = choose_source(run.graph.folder(), options.source, options.sources, trial);
    result.trial_sources.push_back(result.source);
    path_search<Id, Weight> job(run, result.delta);
    run.walks.prepare_walks(relax_edges<Id, Weight>{run.graph.template weights<Weight>(), {}});
    run.walks.prepare_touched(relax_edges<Id, Weight, true>{run.graph.template weights<Weight>(), {}});
    run.walks.prepare(take_frontier<Id, distance_of<Weight>>{}, read_pile<Id, distance_of<Weight>>{});
    if (options.parents) {
      run.walks.prepare_walks(link_paths<Id, Weight>{run.graph.template weights<Weight>()});
      run.walks.prepare(count_unlinked<Id, distance_of<Weight>>{});
    }
    run.account.trial(result, [&] {
      job.search(result.source, options.round_vertices, result);
      if (options.parents) job.link(result.source, result);
    });
    if (trial + 1 != options.trials) continue;
    found = job.distances();
    if (options.parents) result.predecessors = job.predecessors();
  }
  if constexpr (std::is_floating_point_v<Weight>) {
    result.distances = std::move(found);
  } else {
    std::vector<std::int64_t> whole(found.begin(), found.end());  // the largest number is -1
    result.distances = std::move(whole);
  }
  std::visit(
      [&](auto const& all) {
        for (auto const at : all) {
          if (at < 0 || std::isinf(static_cast<double>(at))) continue;
          ++result.reached;
          result.farthest = std::max(result.farthest, static_cast<double>(at));
        }
      },
      result.distances);
}

}  // namespace

paths_result run_shortest_paths(paths_options const& options) {
  return run_on_graph<paths_result>(options, [&](auto const& graph, executor& on, auto id, u64 begun, paths_result& result) {
    check_delta(graph, options.delta);
    weights_of(graph);
    check_lengths(graph, progress_of(options, "check weights"));
    const u64 of_distances = weights_of(graph).kind == 'f' ? sizeof(double) : sizeof(u64);
    check_memory(options, graph, on, of_distances + sizeof(u32) + 4 * sizeof(id), true);
    graph_run<decltype(id)> run(options, graph, on, true);
    result.load_seconds = seconds_since(begun);
    graph.weights_place()->kind == 'f' ? find_paths<float>(run, options, result)
                                       : find_paths<std::int32_t>(run, options, result);
    verify_result(options, graph, result, [&] {
      auto meter = run.account.meter("verify");
      return std::visit(
          [&](auto const& all) {
            std::string wrong = graph::verify_distances(graph, result.source, all, meter);
            if (!wrong.empty() || !options.parents) return wrong;
            return graph::verify_predecessors(graph, result.source, all, result.predecessors, meter);
          },
          result.distances);
    });
  });
}

}  // namespace penstock::analytics
