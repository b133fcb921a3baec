// `penstock bench` for machines without Python: one JSON line per measurement, on the terminal and appended to RESULTS.
//
//   penstock_bench_benchmark hit RESULTS.jsonl [KEY=VALUE...]
#include "apps/bench/hit.hpp"

#include <cstdio>
#include <exception>
#include <map>
#include <sstream>

namespace {

using namespace penstock;

using arguments = std::map<std::string, std::string>;

std::vector<std::string> words_of(std::string const& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

u64 number(arguments const& given, std::string const& key, u64 otherwise) {
  const auto at = given.find(key);
  return at == given.end() ? otherwise : std::stoull(at->second);
}

std::string text(arguments const& given, std::string const& key, std::string const& otherwise) {
  const auto at = given.find(key);
  return at == given.end() ? otherwise : at->second;
}

std::vector<bench::measurement> run_hit(arguments const& given) {
  bench::hit_options options;
  options.executor = text(given, "executor", options.executor);
  options.bytes = number(given, "mib", 0) << 20;
  options.line_bytes = number(given, "line", options.line_bytes);
  options.step = number(given, "step", options.step);
  options.repeats = static_cast<u32>(number(given, "repeats", options.repeats));
  options.sms = static_cast<u32>(number(given, "sms", 0));
  options.patterns = words_of(text(given, "patterns", ""));
  return bench::run_hit_benchmark(options);
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::fprintf(stderr, "usage: penstock_bench_benchmark hit RESULTS.jsonl [KEY=VALUE...]\n");
    return 2;
  }
  try {
    arguments given;
    for (int k = 3; k < count; ++k) {
      const std::string word = words[k];
      given[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    }
    for (auto const& m : run_hit(given)) {
      bench::write_line(m, words[2]);
    }
    return 0;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "penstock_bench: %s\n", e.what());
    return 2;
  }
}
