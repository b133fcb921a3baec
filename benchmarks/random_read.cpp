// Random line reads through array_view and the software controller, over a file of words that tell where they lie.
//
//   random_read_benchmark FILE MIB LINE DEPTH direct|cached|memory EXECUTOR SECONDS [THREADS] [QUEUES] [QUEUE_DEPTH]
//
// Prints one JSON object {"lines_per_s": ..., "verified": ...}; benchmarks/random_read.py runs it against fio and keeps the
// result.
#include "harness/random_lines.hpp"

#include "penstock/controller/software_controller.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <vector>

namespace {

using namespace penstock;
using namespace penstock::benchmarks;

void make_file(std::string const& path, u64 bytes) {
  if (std::filesystem::exists(path) && std::filesystem::file_size(path) == bytes) return;
  std::ofstream file(path, std::ios::binary);
  std::vector<u64> piece(1 << 17);
  for (u64 word = 0; word < bytes / 8; word += piece.size()) {
    for (u64 k = 0; k < piece.size(); ++k) piece[k] = stamp(word + k);
    file.write(reinterpret_cast<char const*>(piece.data()), static_cast<std::streamsize>(piece.size() * 8));
  }
}

struct settings {
  std::string file;
  u64 bytes, line, depth;
  std::string mode, executor_name;
  double seconds;
  u32 threads = 0, queues = 0, queue_depth = 256;
};

int run(settings const& s) {
  const auto on = open_executor(s.executor_name, s.executor_name == "cpu" ? s.threads : 0, true);
  const bool cuda = on->kind() == executor_kind::cuda;
  software_options software;
  software.threads = cuda ? std::max(1u, s.threads) : 0;
  software_controller controller(software);
  std::vector<u64> memory;
  u32 space = 0;
  if (s.mode == "memory") {
    memory.resize(s.bytes / 8);
    for (u64 w = 0; w < memory.size(); ++w) memory[w] = stamp(w);
    space = controller.add_namespace(std::as_writable_bytes(std::span(memory)));
  } else {
    make_file(s.file, s.bytes);
    space = controller.add_namespace(file_namespace{s.file, s.mode == "direct"});
  }
  cache_options options;
  options.line_bytes = s.line;
  options.bytes = std::max<u64>(s.bytes / 16, 1024 * s.line);  // far smaller than the file: almost every line is a miss
  options.queue_depth = s.queue_depth;
  options.queues = s.queues;
  line_cache cache(*on, {{s.file, s.bytes, {volume_layout::single, {{&controller, space}}}}}, options);

  buffer<u64> wrong(on->memory(), memory_kind::local, 1);
  random_lines body;
  body.words = cache.array<u64>(0, 0, s.bytes / 8);
  body.wrong = wrong.data();
  body.lines = s.bytes / s.line;
  body.words_per_line = static_cast<u32>(s.line / 8);
  body.ahead = cuda ? static_cast<u32>(s.depth) : static_cast<u32>(std::max<u64>(1, s.depth / on->units()));
  auto launch_lines = [&](u64 items) {
    cuda ? run_random_lines_cuda(*on, items, body, cache.view().frames / 2) : run_random_lines_cpu(*on, items, body);
    cache.check_faults();
    body.first_item += items;
  };
  // Rounds until the time is up; one more afterwards looks at every word.
  const u64 round = std::min<u64>(body.lines, cuda ? 1 << 20 : 1 << 15);
  launch_lines(round / 4);
  const cache_stats before = cache.stats(0);
  const u64 start = now_ns();
  u64 items = 0;
  while (static_cast<double>(now_ns() - start) < s.seconds * 1e9) {
    launch_lines(round);
    items += round;
  }
  const double seconds = static_cast<double>(now_ns() - start) * 1e-9;
  const cache_stats after = cache.stats(0);
  body.whole = true;
  launch_lines(round / 4);
  u64 bad = 0;
  on->memory().read(&bad, wrong.data(), sizeof bad);
  const double fills = static_cast<double>(after.fills - before.fills);
  std::printf(
      "{\"lines_per_s\": %.0f, \"fills_per_s\": %.0f, \"gb_per_s\": %.3f, \"prefetched\": %.3f, \"engine\": \"%s\", "
      "\"device\": \"%s\", \"seconds\": %.3f, \"verified\": %s}\n",
      static_cast<double>(items) / seconds, fills / seconds, fills * static_cast<double>(s.line) / seconds * 1e-9,
      static_cast<double>(after.prefetches - before.prefetches) / std::max(fills, 1.0), controller.engine().c_str(),
      on->device().c_str(), seconds, bad == 0 ? "true" : "false");
  return bad == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  if (count < 8) {
    std::fprintf(stderr,
                 "usage: random_read_benchmark FILE MIB LINE DEPTH direct|cached|memory EXECUTOR SECONDS [THREADS] [QUEUES] "
                 "[QUEUE_DEPTH]\n");
    return 2;
  }
  try {
    settings s{words[1],
               std::strtoull(words[2], nullptr, 10) << 20,
               std::strtoull(words[3], nullptr, 10),
               std::strtoull(words[4], nullptr, 10),
               words[5],
               words[6],
               std::strtod(words[7], nullptr)};
    if (count > 8) s.threads = static_cast<u32>(std::atoi(words[8]));
    if (count > 9) s.queues = static_cast<u32>(std::atoi(words[9]));
    if (count > 10) s.queue_depth = static_cast<u32>(std::atoi(words[10]));
    return run(s);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "random_read_benchmark: %s\n", e.what());
    return 2;
  }
}
