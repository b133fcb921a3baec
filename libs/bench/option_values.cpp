#include "libs/bench/option_values.hpp"

#include "libs/media/names.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace penstock::bench::option_values {

[[noreturn]] void refuse(std::string const& what, std::string const& problem) { throw_bad_input("measure", what, problem); }

std::string text(option_texts const& given, std::string const& key, std::string const& otherwise) {
  const auto at = given.find(key);
  return at == given.end() ? otherwise : at->second;
}

u64 number(option_texts const& given, std::string const& key, u64 otherwise) {
  const auto at = given.find(key);
  if (at == given.end()) return otherwise;
  u64 value = 0;
  auto const& word = at->second;
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failed != std::errc{} || end != word.data() + word.size()) {
    refuse(key + "=" + word, "it is no whole number: give one such as " + std::to_string(otherwise));
  }
  return value;
}

u32 small(option_texts const& given, std::string const& key, u32 otherwise) {
  return static_cast<u32>(number(given, key, otherwise));
}

std::vector<std::string> words(option_texts const& given, std::string const& key) {
  std::vector<std::string> all;
  std::istringstream in(text(given, key, ""));
  for (std::string word; std::getline(in, word, ',');) all.push_back(word);
  return all;
}

u64 parsed(std::string const& key, std::string const& word, u64 otherwise) { return number({{key, word}}, key, otherwise); }

std::vector<u32> numbers(option_texts const& given, std::string const& key, std::vector<u32> otherwise) {
  if (!given.contains(key)) return otherwise;
  std::vector<u32> all;
  for (auto const& word : words(given, key)) all.push_back(static_cast<u32>(parsed(key, word, 1)));
  if (all.empty()) refuse(key, "it names nothing: give numbers with commas between them");
  return all;
}

directory_kind directory(option_texts const& given, directory_kind otherwise) {
  const std::string name = text(given, "directory", "");
  if (name.empty()) return otherwise;
  return media::parse_directory(name);
}

ablations without(option_texts const& given) {
  ablations none;
  for (auto const& name : words(given, "ablate")) {
    if (name != "cache" && name != "coalescing" && name != "validation") {
      refuse("ablate " + name, "there is none of this name: choose of cache, coalescing, validation");
    }
    none.cache |= name == "cache";
    none.coalescing |= name == "coalescing";
    none.validation |= name == "validation";
  }
  return none;
}

int device(option_texts const& given, std::string const& key) {
  return given.contains(key) ? static_cast<int>(std::min<u64>(number(given, key, 1), 1 << 20)) : -1;
}

}  // namespace penstock::bench::option_values
