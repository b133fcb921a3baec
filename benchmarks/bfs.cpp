// Breadth-first search of a generated graph whose edges stay on storage, as `penstock bfs` does it, measured and verified.
//
//   bfs_benchmark GRAPH FOLDER CACHE_MIB EXECUTOR direct|cached RESULTS.jsonl [REPEATS] [LINE] [QUEUE_DEPTH]
#include "libs/analytics/bfs.hpp"
#include "libs/bench/measurement.hpp"
#include "libs/graph/csr_builder.hpp"
#include "libs/graph/folder_writer.hpp"
#include "libs/graph/generator.hpp"

#include <cstdlib>
#include <exception>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace penstock;

void make_graph(std::string const& text, std::string const& folder) {
  if (std::filesystem::exists(folder)) return;
  const graph::generator_spec spec = graph::parse_generator(text);
  graph::build_options options;
  options.symmetrise = options.drop_duplicates = options.drop_self_loops = true;
  options.budget_bytes = u64{4} << 30;
  graph::progress_meter meter;
  write_graph(graph::generator(spec), folder, {.directed = false, .source = graph::to_string(spec)}, options, meter);
}

/// Puts the edges into the page cache, or takes them out: what is measured starts from a known state.
void set_page_cache(std::string const& folder, bool warm) {
  const int file = open((folder + "/edges.npy").c_str(), O_RDONLY);
  if (file < 0) return;
  if (warm) {
    std::string buffer(1 << 20, '\0');
    while (read(file, buffer.data(), buffer.size()) > 0) {}
  } else {
    fdatasync(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  }
  close(file);
}

int measure(int count, char** words) {
  const std::string text = words[1], folder = words[2], results = words[6];
  const int repeats = count > 7 ? std::atoi(words[7]) : 3;
  analytics::bfs_options options;
  options.graph = folder;
  options.cache_bytes = std::strtoull(words[3], nullptr, 10) << 20;
  options.executor = words[4];
  options.direct = std::string(words[5]) == "direct";
  options.line_bytes = count > 8 ? std::strtoull(words[8], nullptr, 10) : 4096;
  options.queue_depth = count > 9 ? static_cast<u32>(std::strtoul(words[9], nullptr, 10)) : options.queue_depth;
  options.verify = true;
  make_graph(text, folder);

  bench::measurement m;
  analytics::bfs_result last;
  m.baseline = options.executor == "cuda" ? "edges in HBM" : "edges mapped, warm";
  for (int k = 0; k < repeats; ++k) {
    options.placement = options.executor == "cuda" ? "hbm" : "host";
    const analytics::bfs_result baseline = analytics::run_bfs(options);
    m.baseline_values.push_back(baseline.seconds);
    options.placement = "storage";
    set_page_cache(folder, !options.direct);
    last = analytics::run_bfs(options);
    m.values.push_back(last.seconds);
    m.verified = last.verified.value_or(false) && baseline.verified.value_or(false);
    if (!m.verified) break;
  }
  for (std::size_t l = 0; l < last.level_sizes.size(); ++l) {
    std::fprintf(stderr, "level %zu: %llu vertices, %.4f s\n", l, static_cast<unsigned long long>(last.level_sizes[l]),
                 last.level_seconds[l]);
  }
  m.id = "bfs." + text + (options.direct ? ".direct" : ".page_cache") + "." + last.executor;
  m.params = {{"graph", text},
              {"cache_bytes", std::to_string(last.cache_bytes)},
              {"line_bytes", std::to_string(last.line_bytes)},
              {"queue_depth", std::to_string(options.queue_depth)},
              {"executor", last.executor},
              {"engine", last.engine},
              {"source", std::to_string(last.source)}};
  m.unit = "s";
  m.bytes = {{"asked", static_cast<double>(last.bytes_asked)}, {"storage", static_cast<double>(last.bytes_moved)}};
  m.details = {{"teps", last.teps},
               {"iops", static_cast<double>(last.fills) / last.seconds},
               {"gb_per_s", static_cast<double>(last.bytes_moved) / last.seconds * 1e-9},
               {"amplification", last.amplification},
               {"reached", static_cast<double>(last.reached)},
               {"levels", static_cast<double>(last.levels)},
               {"edges_traversed", static_cast<double>(last.edges_traversed)},
               {"fills", static_cast<double>(last.fills)},
               {"prefetches", static_cast<double>(last.prefetches)},
               {"misses", static_cast<double>(last.misses)},
               {"retries", static_cast<double>(last.retries)},
               {"edge_bytes", static_cast<double>(last.edge_bytes)},
               {"offset_bytes", static_cast<double>(last.offset_bytes)},
               {"vertex_bytes", static_cast<double>(last.vertex_bytes)},
               {"peak_rss_bytes", static_cast<double>(last.peak_rss_bytes)},
               {"file_rss_bytes", static_cast<double>(last.file_rss_bytes)},
               {"verify_seconds", last.verify_seconds},
               {"load_seconds", last.load_seconds}};
  m.machine = bench::describe_host();
  m.machine["device"] = last.device;
  bench::write_line(m, results);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count < 7) {
    std::fprintf(
        stderr,
        "usage: bfs_benchmark GRAPH FOLDER CACHE_MIB EXECUTOR direct|cached RESULTS.jsonl [REPEATS] [LINE] [QUEUE_DEPTH]\n");
    return 2;
  }
  try {
    return measure(count, words);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "bfs_benchmark: %s\n", e.what());
    return 2;
  }
}
