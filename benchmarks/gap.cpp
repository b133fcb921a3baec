// The algorithms of GAP's reference written plainly over arrays in memory, beside Penstock's CPU executor over the mapped file:
// what one source for GPUs and CPUs costs a CPU.
//
//   gap_benchmark GRAPH FOLDER RESULTS.jsonl [REPEATS] [THREADS]
//
// Direction-optimising search (Beamer), Afforest (Sutton), PageRank by pulling, delta-stepping (Meyer and Sanders). GRAPH is
// made in FOLDER, with weights, if it is not there. Results are compared: depths, components, ranks, distances.
#include "libs/analytics/analytics.hpp"
#include "libs/analytics/bfs.hpp"
#include "libs/bench/measurement.hpp"
#include "libs/graph/bfs_reference.hpp"
#include "libs/graph/csr_builder.hpp"
#include "libs/graph/folder_writer.hpp"
#include "libs/graph/generator.hpp"
#include "penstock/core/clock.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <limits>
#include <thread>

namespace {

using namespace penstock;
using vertex = std::int32_t;

struct csr {
  std::span<u64 const> offsets;
  std::vector<vertex> ends;
  std::vector<std::int32_t> weights;

  u64 vertices() const { return offsets.size() - 1; }
  std::span<vertex const> list(u64 v) const { return {ends.data() + offsets[v], ends.data() + offsets[v + 1]}; }
};

/// Calls work(first, last, thread) for pieces of [0, count), from all threads.
template <class Work>
void share_out(u32 threads, u64 count, u64 piece, Work const& work) {
  std::atomic<u64> next = 0;
  const auto run = [&](u32 thread) {
    for (u64 first; (first = next.fetch_add(piece, std::memory_order_relaxed)) < count;) {
      work(first, std::min(count, first + piece), thread);
    }
  };
  std::vector<std::jthread> helpers;
  for (u32 t = 1; t < threads; ++t) helpers.emplace_back(run, t);
  run(0);
}

template <class T>
std::atomic_ref<T> shared(T& value) {
  return std::atomic_ref<T>(value);
}
constexpr auto relaxed_order = std::memory_order_relaxed;

std::vector<vertex> search(csr const& g, u64 source, u32 threads) {
  const u64 n = g.vertices();
  std::vector<vertex> parents(n, -1);
  std::vector<u64> front((n + 63) / 64, 0), next(front);
  std::vector<vertex> queue{static_cast<vertex>(source)};
  parents[source] = static_cast<vertex>(source);
  u64 to_check = g.ends.size(), before = 0;
  while (!queue.empty()) {
    u64 edges = 0;
    for (const vertex v : queue) edges += g.offsets[static_cast<u64>(v) + 1] - g.offsets[static_cast<u64>(v)];
    std::vector<std::vector<vertex>> found(threads);
    if (edges > to_check / 15) {
      std::fill(front.begin(), front.end(), 0);
      for (const vertex v : queue) front[static_cast<u64>(v) / 64] |= u64{1} << (v % 64);
      std::atomic<u64> awake = queue.size();
      do {
        before = awake;
        awake = 0;
        std::fill(next.begin(), next.end(), 0);
        share_out(threads, n, 1024, [&](u64 first, u64 last, u32) {
          u64 woken = 0;
          for (u64 v = first; v < last; ++v) {
            if (parents[v] >= 0) continue;
            for (const vertex u : g.list(v)) {
              if ((front[static_cast<u64>(u) / 64] >> (u % 64) & 1) == 0) continue;
              parents[v] = u;
              next[v / 64] |= u64{1} << (v % 64);  // a word has one thread: pieces are whole words
              ++woken;
              break;
            }
          }
          awake += woken;
        });
        std::swap(front, next);
      } while (awake != 0 && (awake >= before || awake > n / 18));
      queue.clear();
      for (u64 v = 0; v < n; ++v) {
        if (front[v / 64] >> (v % 64) & 1) queue.push_back(static_cast<vertex>(v));
      }
      to_check = 15;  // what is left is searched from above
      continue;
    }
    to_check -= std::min(edges, to_check);
    share_out(threads, queue.size(), 64, [&](u64 first, u64 last, u32 thread) {
      for (u64 k = first; k < last; ++k) {
        for (const vertex to : g.list(static_cast<u64>(queue[k]))) {
          vertex unset = -1;
          auto parent = shared(parents[static_cast<u64>(to)]);
          if (parent.load(relaxed_order) < 0 && parent.compare_exchange_strong(unset, queue[k], relaxed_order)) {
            found[thread].push_back(to);
          }
        }
      }
    });
    queue.clear();
    for (auto const& some : found) queue.insert(queue.end(), some.begin(), some.end());
  }
  return parents;
}

void link(std::vector<vertex>& parents, vertex a, vertex b) {
  vertex p = shared(parents[static_cast<u64>(a)]).load(relaxed_order),
         q = shared(parents[static_cast<u64>(b)]).load(relaxed_order);
  while (p != q) {
    const vertex high = std::max(p, q), low = std::min(p, q);
    vertex above = shared(parents[static_cast<u64>(high)]).load(relaxed_order);
    if (above == low) return;
    if (above == high && shared(parents[static_cast<u64>(high)]).compare_exchange_strong(above, low, relaxed_order)) return;
    p = shared(parents[static_cast<u64>(shared(parents[static_cast<u64>(high)]).load(relaxed_order))]).load(relaxed_order);
    q = shared(parents[static_cast<u64>(low)]).load(relaxed_order);
  }
}

std::vector<vertex> components(csr const& g, u32 threads) {
  const u64 n = g.vertices();
  std::vector<vertex> parents(n);
  for (u64 v = 0; v < n; ++v) parents[v] = static_cast<vertex>(v);
  const auto compress = [&] {
    share_out(threads, n, 4096, [&](u64 first, u64 last, u32) {
      for (u64 v = first; v < last; ++v) {
        vertex at = shared(parents[v]).load(relaxed_order);
        for (vertex above; (above = shared(parents[static_cast<u64>(at)]).load(relaxed_order)) != at;) at = above;
        shared(parents[v]).store(at, relaxed_order);
      }
    });
  };
  for (u64 turn = 0; turn < 2; ++turn) {
    share_out(threads, n, 4096, [&](u64 first, u64 last, u32) {
      for (u64 v = first; v < last; ++v) {
        if (g.list(v).size() > turn) link(parents, static_cast<vertex>(v), g.list(v)[turn]);
      }
    });
    compress();
  }
  std::vector<vertex> sample;
  for (u64 k = 0; k < 1024; ++k) sample.push_back(parents[(k * 0x9e3779b97f4a7c15ull >> 20) % n]);
  std::sort(sample.begin(), sample.end());
  vertex largest = sample[0];
  for (u64 k = 0, most = 0; k < sample.size();) {
    const u64 end = static_cast<u64>(std::upper_bound(sample.begin(), sample.end(), sample[k]) - sample.begin());
    if (end - k > most) largest = sample[k];
    most = std::max(most, end - k);
    k = end;
  }
  share_out(threads, n, 4096, [&](u64 first, u64 last, u32) {
    for (u64 v = first; v < last; ++v) {
      if (shared(parents[v]).load(relaxed_order) == largest || g.list(v).size() <= 2) continue;
      for (const vertex to : g.list(v).subspan(2)) link(parents, static_cast<vertex>(v), to);
    }
  });
  compress();
  return parents;
}

std::vector<float> ranks(csr const& g, u32 threads, u32& iterations) {
  const u64 n = g.vertices();
  const float base = 0.15f / static_cast<float>(n);
  std::vector<float> scores(n, 1 / static_cast<float>(n)), shares(n);
  for (iterations = 0; iterations < 20;) {
    share_out(threads, n, 4096, [&](u64 first, u64 last, u32) {
      for (u64 v = first; v < last; ++v) shares[v] = g.list(v).empty() ? 0 : scores[v] / static_cast<float>(g.list(v).size());
    });
    std::vector<double> changes(threads, 0);
    share_out(threads, n, 1024, [&](u64 first, u64 last, u32 thread) {
      for (u64 v = first; v < last; ++v) {
        float sum = 0;
        for (const vertex u : g.list(v)) sum += shares[static_cast<u64>(u)];
        const float now = base + 0.85f * sum;
        changes[thread] += std::abs(now - scores[v]);
        scores[v] = now;
      }
    });
    ++iterations;
    double change = 0;
    for (const double each : changes) change += each;
    if (change < 1e-4) break;
  }
  return scores;
}

std::vector<std::int64_t> paths(csr const& g, u64 source, std::int64_t delta, u32 threads) {
  constexpr std::int64_t farthest = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> distances(g.vertices(), farthest);
  std::vector<std::vector<std::vector<vertex>>> bins(threads);
  std::vector<vertex> frontier{static_cast<vertex>(source)};
  distances[source] = 0;
  for (u64 bin = 0;;) {
    share_out(threads, frontier.size(), 64, [&](u64 first, u64 last, u32 thread) {
      for (u64 k = first; k < last; ++k) {
        const u64 v = static_cast<u64>(frontier[k]);
        const std::int64_t here = shared(distances[v]).load(relaxed_order);
        if (here < delta * static_cast<std::int64_t>(bin)) continue;
        for (u64 e = g.offsets[v]; e < g.offsets[v + 1]; ++e) {
          auto at = shared(distances[static_cast<u64>(g.ends[e])]);
          const std::int64_t there = here + g.weights[e];
          std::int64_t seen = at.load(relaxed_order);
          while (there < seen) {
            if (!at.compare_exchange_weak(seen, there, relaxed_order)) continue;
            const u64 to = static_cast<u64>(there / delta);
            if (bins[thread].size() <= to) bins[thread].resize(to + 1);
            bins[thread][to].push_back(g.ends[e]);
            break;
          }
        }
      }
    });
    u64 next = ~0ull;
    for (auto const& mine : bins) {
      for (u64 b = bin; b < mine.size(); ++b) {
        if (!mine[b].empty()) next = std::min(next, b);
      }
    }
    if (next == ~0ull) return distances;
    bin = next;
    frontier.clear();
    for (auto& mine : bins) {
      if (bin >= mine.size()) continue;
      frontier.insert(frontier.end(), mine[bin].begin(), mine[bin].end());
      mine[bin].clear();
    }
  }
}

void make_graph(std::string const& text, std::string const& folder) {
  if (std::filesystem::exists(folder)) return;
  graph::generator_spec spec = graph::parse_generator(text);
  spec.weighted = true;
  graph::build_options options;
  options.symmetrise = options.drop_duplicates = options.drop_self_loops = true;
  options.budget_bytes = graph::roomy_budget();
  graph::progress_meter meter;
  write_graph(graph::generator(spec), folder, {.directed = false, .source = graph::to_string(spec)}, options, meter);
}

struct contest {
  std::string graph, folder, results;
  u32 repeats, threads;

  /// plain() and ours() give seconds; same() compares what they found last.
  template <class Plain, class Ours, class Same>
  void run(std::string const& name, Plain const& plain, Ours const& ours, Same const& same) const {
    bench::measurement m;
    m.id = "gap." + name + "." + graph;
    m.params = {{"graph", graph}, {"threads", std::to_string(threads)}, {"placement", "host"}};
    m.unit = "s";
    m.baseline = "the same algorithm, plain C++";
    for (u32 k = 0; k <= repeats; ++k) {
      const u64 begun = now_ns();
      plain();
      const double seconds = static_cast<double>(now_ns() - begun) * 1e-9;
      const analytics::graph_cost cost = ours();
      if (k == 0) continue;
      m.baseline_values.push_back(seconds);
      m.values.push_back(cost.seconds);
      m.details["edges_traversed"] = static_cast<double>(cost.edges_traversed);
    }
    m.verified = same();
    m.machine = bench::describe_host();
    m.machine["device"] = std::to_string(threads) + " CPU threads";
    bench::write_line(m, results);
    std::printf("%s: %.1f ms, plain %.1f ms: %.2fx its time, %s\n", m.id.c_str(), bench::median(m.values) * 1e3,
                bench::median(m.baseline_values) * 1e3, bench::median(m.values) / bench::median(m.baseline_values),
                m.verified ? "the same results" : "OTHER RESULTS");
  }
};

template <class Options>
Options options_of(contest const& c) {
  Options options;
  options.graph = c.folder;
  options.placement = "host";
  options.executor = "cpu";
  options.threads = c.threads;
  return options;
}

int measure(contest const& c) {
  make_graph(c.graph, c.folder);
  const auto folder = graph::graph_folder::open(c.folder);
  csr g{folder.offsets(), {}, {}};
  {
    graph::edge_reader<vertex> ends(folder);
    auto const read = ends.read(0, folder.edges(), false);
    g.ends.assign(read.begin(), read.end());
    graph::edge_reader<std::int32_t> weights(*folder.weights_place());
    auto const lengths = weights.read(0, folder.edges(), false);
    g.weights.assign(lengths.begin(), lengths.end());
  }
  graph::progress_meter meter;
  {
    std::vector<vertex> plain;
    analytics::bfs_result ours;
    auto options = options_of<analytics::bfs_options>(c);
    u64 source = 0;
    while (g.list(source).empty()) ++source;
    options.source = source;
    c.run(
        "bfs", [&] { plain = search(g, source, c.threads); }, [&] { return ours = run_bfs(options); },
        [&] {
          const std::vector<vertex> parents(ours.parents.begin(), ours.parents.end());
          return graph::verify_bfs(folder, source, std::span<vertex const>(plain), meter).empty() &&
                 graph::verify_bfs(folder, source, std::span<vertex const>(parents), meter).empty();
        });
  }
  {
    std::vector<vertex> plain;
    analytics::components_result ours;
    c.run(
        "cc", [&] { plain = components(g, c.threads); },
        [&] { return ours = run_components(options_of<analytics::graph_options>(c)); },
        [&] { return std::equal(plain.begin(), plain.end(), ours.labels.begin(), ours.labels.end()); });
  }
  {
    std::vector<float> plain;
    u32 iterations = 0;
    analytics::pagerank_result ours;
    c.run(
        "pagerank", [&] { plain = ranks(g, c.threads, iterations); },
        [&] { return ours = run_pagerank(options_of<analytics::pagerank_options>(c)); },
        [&] {
          auto const& found = std::get<std::vector<float>>(ours.ranks);
          double apart = 0;
          for (u64 v = 0; v < plain.size(); ++v) apart += std::abs(plain[v] - found[v]);
          return iterations == ours.iterations && apart < 1e-4;
        });
  }
  {
    std::vector<std::int64_t> plain;
    analytics::paths_result ours;
    auto options = options_of<analytics::paths_options>(c);
    options.delta = 32;
    u64 source = 0;
    while (g.list(source).empty()) ++source;
    options.source = source;
    c.run(
        "sssp", [&] { plain = paths(g, source, 32, c.threads); }, [&] { return ours = run_shortest_paths(options); },
        [&] {
          for (std::int64_t& each : plain) each = each == std::numeric_limits<std::int64_t>::max() ? -1 : each;
          return plain == std::get<std::vector<std::int64_t>>(ours.distances);
        });
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) {
    std::fprintf(stderr, "usage: %s GRAPH FOLDER RESULTS.jsonl [REPEATS] [THREADS]\n", words[0]);
    return 2;
  }
  try {
    const u32 threads = count > 5 ? static_cast<u32>(std::atoi(words[5])) : std::max(1u, std::thread::hardware_concurrency());
    return measure({words[1], words[2], words[3], count > 4 ? static_cast<u32>(std::atoi(words[4])) : 3, threads});
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}
