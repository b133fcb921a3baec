// `penstock reduce` and `penstock vectoradd` for machines without Python, over arrays that are made first and removed
// afterwards: one JSON line per way of access, on the terminal and appended to RESULTS.
//
//   regular_benchmark reduce|vectoradd FOLDER RESULTS.jsonl [KEY=VALUE...]
#include "libs/regular/regular.hpp"
#include "libs/graph/file.hpp"
#include "libs/graph/parallel.hpp"
#include "penstock/host/error.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <sstream>

namespace penstock::regular {
namespace {

constexpr char usage[] =
    "usage: regular_benchmark reduce|vectoradd FOLDER RESULTS.jsonl [KEY=VALUE...]\n"
    "  mib (of an array), media, drives, place (hbm, host), executor, access (naive,line), cache-mib, line, repeats, "
    "server-sms\n";

/// Small numbers in doubles: their sums are exact.
void make_array(std::string const& path, u64 elements, u64 seed) {
  constexpr u64 piece = 1 << 20;
  std::filesystem::remove(path);
  const graph::file made = graph::file::create(path);
  graph::progress_meter quiet;
  graph::parallel_for(ceil_div(elements, piece), graph::worker_count(0), quiet, [&](u64 p) {
    std::vector<double> part(std::min(piece, elements - p * piece));
    for (u64 k = 0; k < part.size(); ++k) {
      const u64 mixed = (p * piece + k + seed) * 0x9e3779b97f4a7c15ull;
      part[k] = static_cast<double>(mixed >> 44);
    }
    made.write(p * piece * sizeof(double), std::as_bytes(std::span(part)));
  });
}

struct job {
  regular_options options;
  u64 elements = 8 << 20;

  void take(std::string const& key, std::string const& value) {
    const auto number = [&] { return std::strtoull(value.c_str(), nullptr, 10); };
    if (key == "mib") {
      elements = (number() << 20) / sizeof(double);
    } else if (key == "media") {
      options.media = value;
    } else if (key == "drives") {
      options.drives = static_cast<u32>(number());
    } else if (key == "place") {
      options.place = value;
    } else if (key == "executor") {
      options.executor = value;
    } else if (key == "cache-mib") {
      options.cache_bytes = number() << 20;
    } else if (key == "line") {
      options.line_bytes = number();
    } else if (key == "repeats") {
      options.repeats = static_cast<u32>(number());
    } else if (key == "server-sms") {
      options.server_sms = static_cast<u32>(number());
    } else if (key == "access") {
      std::istringstream in(value);
      for (std::string word; std::getline(in, word, ',');) options.access.push_back(word);
    } else {
      throw_bad_input("measure", "regular workloads", "there is no option " + key);
    }
  }
};

std::vector<bench::measurement> measure(std::string const& what, std::string const& folder, job const& todo) {
  std::filesystem::create_directories(folder);
  const std::string a = folder + "/a.raw", b = folder + "/b.raw", c = folder + "/c.raw";
  struct remover {
    std::vector<std::string> paths;
    ~remover() {
      std::error_code none;
      for (auto const& path : paths) std::filesystem::remove(path, none);
    }
  } const made{{a, b, c}};
  make_array(a, todo.elements, 1);
  if (what == "reduce") return run_reduce(a, false, todo.options).measurements;
  make_array(b, todo.elements, 2);
  return run_vectoradd(a, b, c, true, todo.options).measurements;
}

}  // namespace
}  // namespace penstock::regular

int main(int count, char** words) {
  using namespace penstock;
  const std::string what = count > 3 ? words[1] : "";
  if (what != "reduce" && what != "vectoradd") {
    std::fputs(regular::usage, stderr);
    return 2;
  }
  try {
    regular::job todo;
    todo.options.raw = "float64";
    for (int k = 4; k < count; ++k) {
      const std::string word = words[k];
      const auto equals = word.find('=');
      todo.take(word.substr(0, equals), equals == std::string::npos ? "" : word.substr(equals + 1));
    }
    for (auto const& m : regular::measure(what, words[2], todo)) bench::write_line(m, words[3]);
    return 0;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "regular_benchmark: %s\n", e.what());
    return 2;
  }
}
