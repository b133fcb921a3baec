// Samples by executors: the same by any number of threads, and in the memory that there is.
#include "device/sampling_fixture.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace penstock::test {
namespace {

using sampling::all_neighbors;

struct sampler_case {
  char const* name;
  u32 fanout;
  bool funnel = false, replace = false, disjoint = false, weighted = false, timed = false, latest = false, induced = false;
  placement where = placement::host;
};

class sampling_by_executors : public testing::TestWithParam<sampler_case> {
 protected:
  std::vector<taken_sample> samples_by(u32 threads) const {
    sampler_case const& asked = GetParam();
    const auto on = open_executor("cpu", threads);
    const two_types graph(*on, asked.funnel, asked.weighted, asked.timed, asked.where);
    sampling::neighbor_sampler sampler(*on, {two_types::nodes, two_types::nodes}, graph.types());
    std::vector<taken_sample> all;
    for (const u64 count : {40, 700, 100}) {
      std::vector<std::int64_t> seeds(count), others(count / 4), times(count + count / 4);
      for (u64 k = 0; k < count; ++k) seeds[k] = static_cast<std::int64_t>(random_word(count, 1, k) % two_types::nodes);
      for (u64 k = 0; k < others.size(); ++k) others[k] = seeds[4 * k];
      for (u64 k = 0; k < times.size(); ++k) times[k] = static_cast<std::int64_t>(k % 9) - 1;
      sampling::sample_request request;
      request.seeds = {{seeds.data(), count}, {others.data(), others.size()}};
      request.seed_times = times.data();
      request.fanouts = {{asked.fanout, 2}, {asked.fanout, asked.fanout}, {3, asked.fanout}};
      request.replace = asked.replace;
      request.disjoint = asked.disjoint;
      request.latest = asked.latest;
      request.induced = asked.induced;
      request.seed = 77;
      request.call = count;
      all.push_back(take(sampler, request));
      check(graph, all.back(), asked.disjoint);
      EXPECT_EQ(all.back(), take(sampler, request)) << "the same again";
    }
    return all;
  }

 private:
  /// Nodes are there once behind the seeds, edges lead from where they should to where they say.
  static void check(two_types const& graph, taken_sample const& all, bool disjoint) {
    constexpr u32 targets[] = {0, 0, 1}, sources[] = {0, 1, 0};
    for (u32 type = 0; type < 2; ++type) {
      std::set<std::pair<std::int64_t, std::int64_t>> seen;
      u64 repeats = 0;
      for (u64 k = 0; k < all.nodes[type].size(); ++k) {
        const bool is_new = seen.emplace(all.nodes[type][k], disjoint ? all.trees[type][k] : 0).second;
        if (!is_new && k >= all.node_counts[type][0]) ++repeats;
      }
      EXPECT_EQ(0u, repeats);
    }
    for (u32 t = 0; t < 3; ++t) {
      u64 wrong = 0;
      for (u64 e = 0; e < all.edges[t].size(); ++e) {
        const auto row = static_cast<u64>(all.rows[t][e]), column = static_cast<u64>(all.columns[t][e]);
        const auto edge = static_cast<u64>(all.edges[t][e]);
        const auto& from = all.nodes[sources[t]];
        const auto& to = all.nodes[targets[t]];
        wrong += row >= from.size() || column >= to.size() ? 1 : 0;
        wrong += row < from.size() && graph.lists[t]->neighbor(edge) != static_cast<u64>(from[row]) ? 1 : 0;
        if (disjoint && wrong == 0) wrong += all.trees[sources[t]][row] != all.trees[targets[t]][column] ? 1 : 0;
      }
      EXPECT_EQ(0u, wrong) << "edge type " << t;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(
    , sampling_by_executors,
    testing::Values(sampler_case{.name = "funnel", .fanout = 10, .funnel = true},
                    sampler_case{.name = "funnel_of_trees", .fanout = 6, .funnel = true, .disjoint = true},
                    sampler_case{.name = "funnel_with_replacement", .fanout = 9, .funnel = true, .replace = true},
                    sampler_case{.name = "spread", .fanout = 7},
                    sampler_case{.name = "all", .fanout = all_neighbors, .where = placement::host_cached},
                    sampler_case{.name = "induced_weights", .fanout = 4, .weighted = true, .induced = true},
                    sampler_case{.name = "times", .fanout = 5, .disjoint = true, .timed = true},
                    sampler_case{.name = "latest_trees",
                                 .fanout = 3,
                                 .disjoint = true,
                                 .timed = true,
                                 .latest = true,
                                 .induced = true,
                                 .where = placement::host_cached}),
    [](auto const& test) { return std::string(test.param.name); });

TEST(sampling_memory, has_room_for_all_nodes_that_are_numbered) {
  constexpr u64 nodes = 6000, length = 20;
  std::vector<u64> pointers(nodes + 1), neighbors(nodes * length);
  for (u64 v = 0; v <= nodes; ++v) pointers[v] = v * length;
  for (u64 e = 0; e < neighbors.size(); ++e) neighbors[e] = (e * 7919 + nodes / 2) % nodes;
  for (const u64 count : {1, 3, 33, 1000, 2047}) {
    for (const bool disjoint : {false, true}) {
      for (const u32 fanout : {1, 2, 10, 20}) {
        guarded_executor on;
        const lists_in_arrays lists(on, pointers, neighbors);
        {
          sampling::neighbor_sampler sampler(on, {nodes}, {lists.type(0, 0)});
          std::vector<std::int64_t> seeds(count);
          std::iota(seeds.begin(), seeds.end(), std::int64_t{0});
          sampling::sample_request request;
          request.seeds = {{seeds.data(), count}};
          request.fanouts = {{fanout, 2}};
          request.disjoint = disjoint;
          EXPECT_EQ(count * fanout, take(sampler, request).edge_counts[0][0]);
        }
        EXPECT_EQ(0u, on.guards_broken()) << count << " seeds, fan-out " << fanout << ", disjoint " << disjoint;
      }
    }
  }
}

TEST_P(sampling_by_executors, is_the_same_by_eight_threads_as_by_one) {
  const std::vector<taken_sample> alone = samples_by(1), by_eight = samples_by(8);
  for (u64 k = 0; k < alone.size(); ++k) EXPECT_TRUE(alone[k] == by_eight[k]) << "sample " << k;
  EXPECT_GT(alone[1].edges[0].size(), 700u);
}

}  // namespace
}  // namespace penstock::test
