// A breadth-first search over edges that are copied to memory whole: ../search.cpp before Penstock.
//
//   search GRAPH SOURCE        a folder that `penstock graph convert` made, with ids of 4 bytes; prints the depth of each
//   vertex
//
// A warp to each vertex of the frontier, edges[i] in each lane.
#include "penstock/core/atomic.hpp"
#include "penstock/executor/launch.hpp"
#include "plain/npy.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <vector>

using penstock::u32;
using penstock::u64;

struct search_level {
  std::int32_t const* edges;
  std::int64_t const* offsets;
  u32 const* frontier;
  u32* next;
  u32* next_count;
  std::int32_t* depths;  // -1: not reached
  std::int32_t level;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, penstock::grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u32 v = frontier[k];
      const u64 last = static_cast<u64>(offsets[v + 1]);
      for (u64 i = static_cast<u64>(offsets[v]) + penstock::index_in(g); i < last; i += penstock::size(g)) {
        const std::int32_t to = edges[i];
        std::int32_t unseen = -1;
        if (penstock::device_ref<std::int32_t>(depths[to])
                .compare_exchange_strong(unseen, level, penstock::relaxed, penstock::relaxed))
          next[penstock::device_ref<u32>(*next_count).fetch_add(1, penstock::relaxed)] = static_cast<u32>(to);
      }
    }
  }
};

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: search GRAPH SOURCE\n");
    return 2;
  }
  try {
    const std::string folder = words[1];
    auto on = penstock::open_executor("auto");
    const auto all_offsets = load_npy<std::int64_t>(folder + "/offsets.npy");
    const auto all_edges = load_npy<std::int32_t>(folder + "/edges.npy");
    const u64 vertices = all_offsets.size() - 1, source = std::strtoull(words[2], nullptr, 10);
    if (source >= vertices) {
      std::fprintf(stderr, "search: vertex %s: the graph has %llu\n", words[2], static_cast<unsigned long long>(vertices));
      return 2;
    }
    const auto memory = penstock::memory_kind::local;
    penstock::buffer<std::int64_t> offsets(on->memory(), memory, vertices + 1);
    offsets.write(all_offsets);
    penstock::buffer<std::int32_t> edges(on->memory(), memory, all_edges.size());
    edges.write(all_edges);

    std::vector<std::int32_t> found(vertices, -1);
    found[source] = 0;
    penstock::buffer<std::int32_t> depths(on->memory(), memory, vertices);
    penstock::buffer<u32> frontier(on->memory(), memory, vertices), next(on->memory(), memory, vertices),
        next_count(on->memory(), memory, 1);
    depths.write(found);
    std::vector<u32> first(vertices, static_cast<u32>(source));
    frontier.write(first);
    const u32 none = 0;
    std::int32_t level = 1;
    for (u32 size = 1; size != 0; ++level) {
      next_count.write({&none, 1});
      penstock::launch<32>(
          *on, size,
          search_level{edges.data(), offsets.data(), frontier.data(), next.data(), next_count.data(), depths.data(), level});
      next_count.read({&size, 1});
      std::swap(frontier, next);
    }
    depths.read(found);
    for (const std::int32_t depth : found) std::printf("%d\n", depth);
    return 0;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "search: %s\n", problem.what());
    return 2;
  }
}
