// One line of a text format, taken apart into fields that blanks separate.
#pragma once

#include "penstock/core/config.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace penstock::graph {

/// What is wrong with a line, and where; nothing while `at` is null.
struct line_fault {
  char const* at = nullptr;
  std::string problem{};
};

/// Fields from the front of a line without its newline. The text must outlive it.
/// separator: a character that ends a field besides blanks, and of which two enclose an empty field; 0: blanks alone.
class line_fields {
 public:
  line_fields(char const* at, char const* end, char separator = 0) : at_(at), end_(end), separator_(separator) {
    skip_blanks();
  }

  bool empty() const { return at_ == end_; }
  /// Where the next field begins.
  char const* at() const { return at_; }
  /// The first character of the next field; 0 when there is none.
  char front() const { return empty() ? '\0' : *at_; }

  /// Whether the next field is an integer of any size.
  bool has_digits_alone() const {
    char const* const from = front() == '-' ? at_ + 1 : at_;
    char const* const to = field_end(from);
    return from != to && std::all_of(from, to, [](char c) { return c >= '0' && c <= '9'; });
  }

  /// Takes the next field if all of it is a number of this type.
  template <class T>
  bool take(T& value) {
    T parsed{};
    auto const [next, error] = std::from_chars(at_, end_, parsed);
    if (error != std::errc() || (next != end_ && !ends_field(*next))) return false;
    value = parsed;
    go_on_from(next);
    return true;
  }

  /// Whether the next field is a number that is too large, or too small, for a T.
  template <class T>
  bool out_of_range() const {
    T ignored{};
    auto const [next, error] = std::from_chars(at_, end_, ignored);
    return error == std::errc::result_out_of_range && (next == end_ || ends_field(*next));
  }

  /// Takes the next field, whatever it is; empty when there is none.
  std::string_view take_word() {
    std::string_view const word(at_, static_cast<std::size_t>(field_end(at_) - at_));
    go_on_from(at_ + word.size());
    return word;
  }

  /// All that is left of the line.
  std::string_view rest() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }

  /// The next field in quotes, as far as a sentence has room for it; what is no printable ASCII as in \xff.
  std::string quoted() const {
    constexpr char digits[] = "0123456789abcdef";
    line_fields copy = *this;
    std::string shown = "'";
    for (char const c : copy.take_word().substr(0, 40)) {
      auto const byte = static_cast<unsigned char>(c);
      if (byte >= 0x20 && byte < 0x7f)
        shown += c;
      else
        shown += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
    return shown + "'";
  }

 private:
  static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
  bool ends_field(char c) const { return blank(c) || (separator_ != 0 && c == separator_); }
  char const* field_end(char const* from) const {
    return std::find_if(from, end_, [this](char c) { return ends_field(c); });
  }
  void go_on_from(char const* next) {
    at_ = next;
    skip_blanks();
    if (separator_ != 0) skip_separator();
  }
  void skip_separator() {
    if (at_ == end_ || blank(separator_) || *at_ != separator_) return;
    ++at_;
    skip_blanks();
  }
  void skip_blanks() {
    while (at_ != end_ && blank(*at_)) ++at_;
  }

  char const* at_;
  char const* end_;
  char separator_;
};

}  // namespace penstock::graph
