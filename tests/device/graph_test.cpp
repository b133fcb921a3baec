// Algorithms over graphs under lone threads and emulated warps.
#include "device/graph_test_body.hpp"

#include "penstock/executor/executor.hpp"
#include "support/run_everywhere.hpp"

namespace penstock::test {
namespace {

void expect_clean_report(check_report const& report, u64 seed) {
  EXPECT_TRUE(report.clean()) << "seed " << seed << ", line " << report.first_line << ": " << report.expected << ", not "
                              << report.found;
}

class graph_algorithms : public testing::TestWithParam<edges_at> {};

TEST_P(graph_algorithms, are_right_in_lone_threads) {
  const auto on = open_executor("cpu", 1);
  for (u64 round = 0; round < (yields_are_dear ? 2 : GetParam() == edges_at::memory ? 20 : 5); ++round) {
    const u64 seed = test_seed() + round;
    check_report report;
    constexpr u32 threads = 4;
    check_algorithms(*on, GetParam(), report, seed, false, [&](u64 items, auto const& body) {
      run_threads(threads, [&](u32 i) { body(lone_thread{}, grid_range{i, items, threads}); });
    });
    expect_clean_report(report, seed);
  }
}

// Every vertex of the frontier lowers all others, while their edges are read: a distance that is lowered after others have seen
// it must lead to another visit.
TEST(distances, lower_each_other) {
  constexpr u32 vertices = 24, threads = 2;
  constexpr u64 edges = vertices * vertices;
  std::vector<u64> offsets(vertices + 1), words(8);
  std::vector<std::int32_t> ends(edges), weights(edges), frontier(vertices), next(vertices), pile(vertices);
  for (u64 v = 0; v <= vertices; ++v) offsets[v] = v * vertices;
  const u64 seed = test_seed();
  for (u32 round = 0; round < (yields_are_dear ? 20u : 1500u); ++round) {
    for (u64 e = 0; e < edges; ++e) {
      ends[e] = static_cast<std::int32_t>(e % vertices);
      // Long ways of short edges are shorter than short ways of long ones.
      const u64 apart = (e % vertices + vertices - e / vertices) % vertices;
      weights[e] = static_cast<std::int32_t>(apart * apart * 3 + random_word(seed, round, static_cast<u32>(e)) % 8);
    }
    std::vector<u64> distances(vertices, ~0ull), expected(vertices, ~0ull);
    std::vector<u32> places(vertices, analytics::place_of(analytics::waits::taken));
    distances[0] = expected[0] = 0;
    places[0] = analytics::place_of(analytics::waits::near);
    u32 step = 0;
    frontier[0] = 0;
    std::fill(words.begin(), words.end(), 0);
    for (u64 size = 1; size != 0; size = words[3]) {
      words[3] = 0;
      const analytics::edge_lists<std::int32_t> lists{{ends.data(), edges}, offsets.data(), words.data(), words.data() + 6,
                                                      words.data() + 1,     vertices,       vertices};
      const analytics::path_data<std::int32_t, u64> data{
          distances.data(), places.data(), frontier.data(), {next.data(), words.data() + 3}, {pile.data(), words.data() + 4},
          words.data() + 5};
      analytics::take_frontier<std::int32_t, u64>{data, size, ++step}(lone_thread{}, grid_range{0, 1, 1});
      const analytics::relax_edges<std::int32_t, std::int32_t> visitor{{weights.data(), edges}, data, ~0ull, step, vertices};
      analytics::vertex_walk<std::int32_t, analytics::relax_edges<std::int32_t, std::int32_t>> body{lists, visitor,
                                                                                                    frontier.data(), size};
      run_threads(threads, [&](u32 i) { body(lone_thread{}, grid_range{i, body.items(), threads}); });
      std::swap(frontier, next);
    }
    for (u32 pass = 0; pass < vertices; ++pass) {
      for (u64 e = 0; e < edges; ++e) {
        const u64 from = expected[e / vertices];
        if (from == ~0ull) continue;
        expected[e % vertices] = std::min(expected[e % vertices], from + static_cast<u64>(weights[e]));
      }
    }
    ASSERT_EQ(expected, distances) << "seed " << seed << ", round " << round;
  }
}

TEST_P(graph_algorithms, are_right_in_warps) {
  const auto on = open_executor("cpu", 1);
  const u64 seed = test_seed();
  check_report report;
  constexpr u32 warps = 2;
  const bool brief = yields_are_dear || GetParam() != edges_at::memory;
  check_algorithms(*on, GetParam(), report, seed, brief, [&](u64 items, auto const& body) {
    std::vector<lane_assignment> lanes;
    for (u32 w = 0; w < warps; ++w) assign_group(lanes, w, 0xffffffffu);
    run_lanes(lanes, [&](emulated_warp const& g, lane_assignment const& a) { body(g, grid_range{a.warp, items, warps}); });
  });
  expect_clean_report(report, seed);
}

std::string name_of_place(testing::TestParamInfo<edges_at> const& where) {
  constexpr char const* names[]{"in_memory", "behind_a_cache", "on_small_lines"};
  return names[static_cast<u32>(where.param)];
}
INSTANTIATE_TEST_SUITE_P(edges, graph_algorithms, testing::Values(edges_at::memory, edges_at::cache, edges_at::small_lines),
                         name_of_place);

}  // namespace
}  // namespace penstock::test
