#include "libs/bench/topics.hpp"

#include "libs/bench/option_values.hpp"
#include "libs/bench/topic_list.hpp"

#include <algorithm>

namespace penstock::bench {
namespace {

using option_values::refuse;

void check_options(topic const& t, option_texts const& given) {
  const auto unknown =
      std::find_if(given.begin(), given.end(), [&](auto const& option) { return !t.options.contains(option.first); });
  if (unknown == given.end()) return;
  refuse(t.name, "it has no option " + unknown->first + ": see penstock bench " + t.name + " --help");
}

}  // namespace

std::vector<topic> const& topics() {
  static const std::vector<topic> all = {hit_topic(),    io_topic(),   miss_topic(),  latency_topic(), model_topic(),
                                         litmus_topic(), soak_topic(), write_topic(), own_topic(),     cliffs_topic(),
                                         files_topic(),  grep_topic(), gpufs_topic(), collage_topic(), image_search_topic()};
  return all;
}

std::vector<measurement> run_topic(std::string const& name, option_texts const& given, progress_fn const& progress,
                                   found_fn const& found) {
  std::string known;
  for (auto const& t : topics()) {
    if (!known.empty()) known += ", ";
    known += t.name;
    if (t.name != name) continue;
    check_options(t, given);
    return t.run(given, progress, found);
  }
  refuse(name, "there is no such topic: choose one of " + known);
}

}  // namespace penstock::bench
