// Values of a topic's options, read from text by name. What is not given keeps its default; a wrong value throws bad_input.
#pragma once

#include "libs/bench/topics.hpp"

#include <string>
#include <vector>

namespace penstock::bench::option_values {

/// Throws bad_input.
[[noreturn]] void refuse(std::string const& what, std::string const& problem);

std::string text(option_texts const& given, std::string const& key, std::string const& otherwise);
u64 number(option_texts const& given, std::string const& key, u64 otherwise);
u32 small(option_texts const& given, std::string const& key, u32 otherwise);
/// Words with commas between them.
std::vector<std::string> words(option_texts const& given, std::string const& key);
/// The number in one of the words; the error of one that is none names `otherwise` as an example.
u64 parsed(std::string const& key, std::string const& word, u64 otherwise);
/// Numbers with commas between them.
std::vector<u32> numbers(option_texts const& given, std::string const& key, std::vector<u32> otherwise);
directory_kind directory(option_texts const& given, directory_kind otherwise);
ablations without(option_texts const& given);
/// -1 where none is named.
int device(option_texts const& given, std::string const& key);

}  // namespace penstock::bench::option_values
