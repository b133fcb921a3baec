#include "libs/graph/graph_json.hpp"

#include "penstock/host/error.hpp"

#include <charconv>
#include <cstdio>
#include <map>

namespace penstock::graph {
namespace {

std::string quote(std::string const& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

void append_utf8(std::string& out, unsigned code) {
  auto const put = [&](unsigned byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

/// Reads a flat object; values of strings are decoded, other values are kept as they stand.
class flat_object {
 public:
  flat_object(std::string_view text, std::string const& name) : text_(text), name_(name) {
    expect('{');
    if (!accept('}')) {
      do {
        std::string const key = string();
        expect(':');
        skip_space();
        bool const fresh = at_ < text_.size() && text_[at_] == '"' ? strings_.emplace(key, string()).second
                                                                   : words_.emplace(key, word()).second;
        if (!fresh) fail("\"" + key + "\" stands twice");
      } while (accept(','));
      expect('}');
    }
    skip_space();
    if (at_ != text_.size()) fail("text after the closing brace");
  }

  [[noreturn]] void fail(std::string const& what) const {
    throw_bad_input("open", name_, what + ": convert the graph again, or correct the file");
  }
  u64 number(std::string const& key) const {
    auto const found = words_.find(key);
    u64 value = 0;
    if (found == words_.end()) fail("\"" + key + "\" is missing or no number");
    std::string const& word = found->second;
    auto const [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) fail("\"" + key + "\" is " + word + ", no whole number");
    return value;
  }
  bool boolean(std::string const& key) const {
    auto const found = words_.find(key);
    if (found == words_.end() || (found->second != "true" && found->second != "false"))
      fail("\"" + key + "\" is missing or neither true nor false");
    return found->second == "true";
  }
  std::string string_or_empty(std::string const& key) const {
    if (auto const word = words_.find(key); word != words_.end() && word->second != "null")
      fail("\"" + key + "\" is " + word->second + ", no text in quotation marks");
    auto const found = strings_.find(key);
    return found == strings_.end() ? std::string() : found->second;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail("no '" + std::string(1, c) + "' at byte " + std::to_string(at_) + " where JSON needs one");
  }
  std::string string() {
    expect('"');
    std::string out;
    for (;;) {
      if (at_ == text_.size() || static_cast<unsigned char>(text_[at_]) < 0x20) fail("a string without end");
      char const c = text_[at_++];
      if (c == '"') return out;
      if (c == '\\')
        escape(out);
      else
        out += c;
    }
  }
  void escape(std::string& out) {
    if (at_ == text_.size()) fail("a string without end");
    char const c = text_[at_++];
    constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    if (auto const i = letters.find(c); i != std::string_view::npos) {
      out += meanings[i];
      return;
    }
    std::string_view const hex = text_.substr(at_, 4);
    unsigned code = 0;
    auto const [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
    if (c != 'u' || hex.size() != 4 || error != std::errc() || end != hex.data() + 4) fail("an escape that JSON does not have");
    append_utf8(out, code);
    at_ += 4;
  }
  std::string word() {
    std::size_t const begin = at_;
    while (at_ < text_.size() && std::string_view(",}[]{\": \t\r\n").find(text_[at_]) == std::string_view::npos) ++at_;
    if (at_ == begin) fail("no simple value at byte " + std::to_string(at_));
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string_view text_;
  std::string const& name_;
  std::size_t at_ = 0;
  std::map<std::string, std::string> strings_, words_;
};

}  // namespace

std::string to_json(graph_facts const& facts) {
  std::string text = "{\n  \"format\": " + std::to_string(graph_facts::format);
  text += ",\n  \"vertices\": " + std::to_string(facts.vertices);
  text += ",\n  \"edges\": " + std::to_string(facts.edges);
  text += std::string(",\n  \"directed\": ") + (facts.directed ? "true" : "false");
  text += ",\n  \"source\": " + quote(facts.source);
  if (!facts.names.empty()) text += ",\n  \"names\": " + quote(facts.names);
  if (!facts.reading.empty()) text += ",\n  \"reading\": " + quote(facts.reading);
  return text + "\n}\n";
}

graph_facts parse_graph_json(std::string_view text, std::string const& name) {
  flat_object const object(text, name);
  if (u64 const format = object.number("format"); format != graph_facts::format)
    throw_bad_input("open", name, "format " + std::to_string(format) + ", this version reads format 1: use a newer Penstock");
  graph_facts facts{object.number("vertices"),        object.number("edges"),          object.boolean("directed"),
                    object.string_or_empty("source"), object.string_or_empty("names"), object.string_or_empty("reading")};
  if (facts.names.find('/') != std::string::npos || facts.names.find('\0') != std::string::npos)
    object.fail("\"names\" must be a file in the same folder");
  return facts;
}

}  // namespace penstock::graph
