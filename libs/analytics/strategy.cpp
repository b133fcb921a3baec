#include "libs/analytics/strategy.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <array>
#include <charconv>
#include <string_view>

namespace penstock::analytics {
namespace {

constexpr std::array<char const*, 9> names{"auto",      "thread", "merged",   "merged_aligned", "transposed",
                                           "coarsened", "tiled",  "frontier", "tiled_frontier"};

bool has_tiles(strategy how) { return how == strategy::tiled || how == strategy::tiled_frontier; }

void take_word(walk_options& options, std::string_view word, std::string const& text) {
  const auto refuse = [&](std::string const& what) { throw_bad_input("walk", "strategy '" + text + "'", what); };
  if (word == "search" && has_tiles(options.how)) {
    options.search = true;
  } else if (word == "sort" && options.how == strategy::tiled_frontier) {
    options.sort = true;
  } else {
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), options.parameter);
    const bool takes = has_tiles(options.how) || options.how == strategy::transposed || options.how == strategy::coarsened;
    if (!takes || failed != std::errc{} || end != word.data() + word.size() || options.parameter == 0) {
      refuse("'" + std::string(word) +
             "': transposed takes a stride and coarsened a number of vertices; tiled the edges of a tile and 'search', and "
             "tiled_frontier also 'sort'");
    }
    if (has_tiles(options.how) &&
        (options.parameter < 32 || options.parameter > 1 << 20 || !is_power_of_two(options.parameter))) {
      refuse("a tile has a power of two of edges, from 32 to 1048576");
    }
    if (options.how == strategy::coarsened && options.parameter > 1 << 20) refuse("a group takes at most 1048576 vertices");
  }
}

}  // namespace

char const* name_of(strategy how) { return names[static_cast<u32>(how)]; }

walk_options parse_strategy(std::string const& text) {
  walk_options options;
  const std::size_t bracket = text.find('(');
  const std::string name = text.substr(0, bracket);
  u32 found = 0;
  while (found < names.size() && name != names[found]) ++found;
  if (found == names.size() || (bracket != std::string::npos && text.back() != ')')) {
    std::string all;
    for (char const* each : names) all += (all.empty() ? "" : ", ") + std::string(each);
    throw_bad_input("walk", "strategy '" + text + "'", "there is no such strategy; choose one of " + all);
  }
  options.how = static_cast<strategy>(found);
  if (bracket == std::string::npos) return options;
  std::string_view inside(text);
  inside = inside.substr(bracket + 1, text.size() - bracket - 2);
  for (;;) {
    const std::size_t comma = inside.find(',');
    take_word(options, inside.substr(0, comma), text);
    if (comma == std::string_view::npos) return options;
    inside.remove_prefix(comma + 1);
  }
}

}  // namespace penstock::analytics
