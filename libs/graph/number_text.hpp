// Numbers in messages.
#pragma once

#include <charconv>
#include <string>

namespace penstock::graph {

/// The shortest text that reads back as the same number. By no stream: in a Python process with two C++ libraries a stream may
/// find the other one's locale, and crash.
template <class Number>
std::string number_text(Number number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

}  // namespace penstock::graph
