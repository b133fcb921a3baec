// `penstock bench` for machines without Python: one JSON line per measurement, on the terminal and appended to RESULTS.
//
//   penstock_bench_benchmark TOPIC RESULTS.jsonl [KEY=VALUE...]
#include "libs/bench/topics.hpp"

#include <cstdio>
#include <exception>

int main(int count, char** words) {
  using namespace penstock;
  if (count < 3) {
    std::fprintf(stderr, "usage: penstock_bench_benchmark TOPIC RESULTS.jsonl [KEY=VALUE...]\n");
    for (auto const& t : bench::topics()) std::fprintf(stderr, "  %s: %s\n", t.name.c_str(), t.what.c_str());
    return 2;
  }
  try {
    bench::option_texts given;
    for (int k = 3; k < count; ++k) {
      const std::string word = words[k];
      const auto equals = word.find('=');
      given[word.substr(0, equals)] = equals == std::string::npos ? "" : word.substr(equals + 1);
    }
    bench::run_topic(words[1], given, {}, [&](bench::measurement const& m) { bench::write_line(m, words[2]); });
    return 0;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "penstock_bench: %s\n", e.what());
    return 2;
  }
}
