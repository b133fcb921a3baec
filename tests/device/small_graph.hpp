// A small random graph, in memory or behind a cache, and the ways to hand its edges to a visitor.
#pragma once

#include "libs/analytics/edge_walks.hpp"
#include "libs/analytics/tile_bodies.hpp"
#include "penstock/runtime/line_cache.hpp"
#include "support/test_context.hpp"

#include <memory>
#include <vector>

namespace penstock::test {

/// Where the edges of a graph lie, and their weights.
enum class edges_at : u32 {
  memory,
  cache,        ///< in fewer frames than they have lines; tiles are larger than what a warp reads at once
  small_lines,  ///< the same, on lines of which two runs of a warp do not lie on one, and in small tiles
};

/// Self loops, edges that are there twice, vertices without any, and one with very many; all where kernels reach it.
struct small_graph {
  static constexpr u64 vertices = 200;

  small_graph(executor& on, u64 seed, edges_at where)
      : small_graph(on.memory(), seed, where == edges_at::cache ? 2003 : 903, where == edges_at::cache ? 9 : 6) {
    if (where == edges_at::memory) return;
    std::vector<dataset_spec> datasets;
    for (auto const* each : {&ends, &weights}) {
      datasets.push_back({.name = "edges", .bytes = edges * sizeof(std::int32_t), .volume = {}, .memory = each->data()});
    }
    const u64 line_bytes = where == edges_at::cache ? 1024 : 512;
    lines = std::make_unique<line_cache>(on, datasets,
                                         cache_options{.bytes = 7 * line_bytes, .line_bytes = line_bytes, .queues = 1});
  }
  small_graph(memory_resource& memory, u64 seed, u64 edges_, u32 tile_shift_)
      : edges(edges_), tile_shift(tile_shift_), tiles((edges >> tile_shift) + 1),
        offsets(memory, memory_kind::shared, vertices + 1), words(memory, memory_kind::shared, 8),
        first_vertices(memory, memory_kind::shared, tiles), ends(memory, memory_kind::shared, edges),
        weights(memory, memory_kind::shared, edges) {
    std::vector<std::vector<std::int32_t>> lists(vertices);
    for (u64 e = 0; e < edges; ++e) {
      const u64 draw = random_word(seed, 1, static_cast<u32>(e));
      // The upper half is reached by few.
      const u64 from = e % 5 == 0 ? 7 : draw % vertices;
      lists[from].push_back(static_cast<std::int32_t>(draw / vertices % (e % 9 == 0 ? vertices : vertices / 2)));
    }
    u64 at = 0;
    for (u64 v = 0; v < vertices; ++v) {
      offsets.data()[v] = at;
      for (const std::int32_t to : lists[v]) ends.data()[at++] = to;
    }
    offsets.data()[vertices] = at;
    for (u64 e = 0; e < edges; ++e)
      weights.data()[e] = static_cast<std::int32_t>(random_word(seed, 2, static_cast<u32>(e)) % 20);
    for (u64 k = 0; k < 8; ++k) words.data()[k] = 0;
  }

  analytics::edge_lists<std::int32_t> lists() const {
    const array_view<std::int32_t> to = lines ? lines->array<std::int32_t>(0, 0, edges) : array_view(ends.data(), edges);
    return {to, offsets.data(), words.data(), words.data() + 7, words.data() + 1, vertices, vertices};
  }
  array_view<std::int32_t> weight_view() const {
    return lines ? lines->array<std::int32_t>(1, 0, edges) : array_view(weights.data(), edges);
  }
  template <class Use>
  void for_each_edge(Use const& use) const {
    for (u64 v = 0; v < vertices; ++v) {
      for (u64 e = offsets.data()[v]; e < offsets.data()[v + 1]; ++e) use(v, static_cast<u64>(ends.data()[e]), e);
    }
  }

  u64 edges;
  u32 tile_shift;  ///< log2 of a tile's edges
  u64 tiles;
  buffer<u64> offsets;
  buffer<u64> words;  ///< edges looked at, bad edge, components, next, pile, bad weight, list of links, sectors
  buffer<std::int32_t> first_vertices;
  buffer<std::int32_t> ends, weights;
  std::unique_ptr<line_cache> lines;
};

/// Where a run takes long, each fifth of its cases has to do.
inline bool is_left_out(bool brief, u32 number) { return brief && number % 5 != 2; }

/// The ways to walk all vertices.
constexpr u32 ways_to_walk = 7;

/// Hands the edges of the vertices that a visitor wants to it, in one of them. start(items, body) runs a body in all groups
/// that there are, and waits.
template <class Visitor, class Start>
void walk_all(small_graph const& graph, Visitor const& visitor, u32 way, Start const& start) {
  constexpr u64 n = small_graph::vertices;
  if (way >= 5) {
    analytics::tile_walk<std::int32_t, Visitor> body{graph.lists(), visitor};
    body.count = graph.tiles;
    body.edges = graph.edges;
    body.tile_shift = graph.tile_shift;
    if (way == 5) {
      start(
          ceil_div(n, analytics::vertices_at_once),
          analytics::list_first_vertices<std::int32_t>{graph.offsets.data(), graph.first_vertices.data(), n, body.tile_shift});
      body.first_vertices = graph.first_vertices.data();
    }
    return start(body.items(), body);
  }
  analytics::vertex_walk<std::int32_t, Visitor> body{graph.lists(), visitor};
  body.count = n;
  body.aligned = way != 1;
  if (way == 2) {
    body.stride = 7;
    body.pivot = ceil_div(n, body.stride);
    body.count = body.pivot * body.stride;
  }
  if (way == 3) body.run_vertices = 8;
  if (way == 4) body.in_flight = analytics::most_in_flight;
  start(body.items(), body);
}

/// The ways to walk those in a list; the last one walks tiles that whoever found its vertices has listed.
constexpr u32 ways_to_walk_a_list = 5;

/// The tiles of this round and of the next one.
struct listed_tiles {
  listed_tiles(memory_resource& memory, small_graph const& graph)
      : tiles(memory, memory_kind::shared, 2 * graph.tiles), seen(memory, memory_kind::shared, 4),
        counts(memory, memory_kind::shared, 2) {
    begin();
  }

  void begin() {
    now = 0;
    for (u32 k = 0; k < 4; ++k) seen.data()[k] = 0;
    counts.data()[0] = 0;
    counts.data()[1] = 3;  // counted on from list to list
  }
  analytics::touched_tiles<std::int32_t> touched(small_graph const& graph, u32 side) const {
    return {graph.offsets.data(),
            seen.data() + 2 * side,
            {tiles.data() + side * graph.tiles, counts.data() + side, taken(side)},
            graph.tile_shift};
  }
  /// What a walk is to list, in one of the ways.
  analytics::touched_tiles<std::int32_t> next(small_graph const& graph, u32 way) const {
    return way == ways_to_walk_a_list - 1 ? touched(graph, now ^ 1u) : analytics::touched_tiles<std::int32_t>{};
  }
  u64 taken(u32 side) const { return side == 1 ? 3 : 0; }
  bool is_empty() const { return counts.data()[now] == taken(now); }

  u32 now = 0;
  buffer<std::int32_t> tiles;
  buffer<u32> seen;
  buffer<u64> counts;
};

template <class Visitor, class Start>
void walk_list(check_report& report, small_graph const& graph, listed_tiles& listed, Visitor const& visitor,
               std::int32_t const* chosen, u64 count, u32 way, Start const& start) {
  if (way == 3) return walk_all(graph, visitor, 5, start);
  if (way == 2 || way == 4) {
    const analytics::touched_tiles<std::int32_t> touched = listed.touched(graph, listed.now);
    if (listed.is_empty()) {
      start(ceil_div(count, analytics::vertices_at_once), analytics::list_tiles<std::int32_t>{touched, chosen, count});
    }
    analytics::tile_walk<std::int32_t, Visitor> body{graph.lists(), visitor};
    body.chosen = touched.tiles;
    body.seen = touched.seen;
    body.count = graph.tiles;
    body.edges = graph.edges;
    body.tile_shift = graph.tile_shift;
    start(body.items(), body);
    PENSTOCK_CHECK(report, touched.seen[0] == 0 && touched.seen[1] == 0);
    listed.counts.data()[listed.now] = listed.taken(listed.now);
    if (way == 4) listed.now ^= 1u;
    return;
  }
  analytics::vertex_walk<std::int32_t, Visitor> body{graph.lists(), visitor};
  body.chosen = chosen;
  body.count = count;
  body.run_vertices = way == 0 ? 1 : 5;
  body.in_flight = way == 0 ? 1 : analytics::most_in_flight;
  start(body.items(), body);
}

}  // namespace penstock::test
