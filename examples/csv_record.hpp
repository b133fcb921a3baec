// The sequential half of csv_filter.cpp: a parser of one CSV record, and of the number in one of its fields.
#pragma once

#include "penstock/core/config.hpp"

using penstock::u32;
using penstock::u64;

constexpr u32 max_number = 64;  // characters

/// 0.DIGITS * 10^exponent, the first of 19 digits not 0; zero has the exponent 0.
struct decimal {
  u64 digits = 0;
  long long exponent = 0;
  bool negative = false;
};

PENSTOCK_FN inline bool is_less(decimal const& a, decimal const& b) {
  const int sign_a = a.digits == 0 ? 0 : a.negative ? -1 : 1, sign_b = b.digits == 0 ? 0 : b.negative ? -1 : 1;
  if (sign_a != sign_b || sign_a == 0) return sign_a < sign_b;
  decimal const &low = a.negative ? b : a, &high = a.negative ? a : b;
  return low.exponent != high.exponent ? low.exponent < high.exponent : low.digits < high.digits;
}

/// False: the text is no number.
PENSTOCK_FN inline bool read_decimal(char const* text, u32 count, decimal& value) {
  char const *at = text, *const end = text + count;
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  const auto is_digit = [&] { return at < end && *at >= '0' && *at <= '9'; };
  const auto take = [&](char a, char b) { return at < end && (*at == a || *at == b) && (++at, true); };
  const auto take_sign = [&] { return !take('+', '+') && take('-', '-'); };
  while (at < end && is_blank(*at)) ++at;
  value = {.negative = take_sign()};
  u32 kept = 0;  // digits from the first one that is not 0 on
  bool any = false, behind_point = false;
  for (;; ++at) {
    if (!behind_point && take('.', '.')) behind_point = true;
    if (!is_digit()) break;
    any = true;
    const u32 digit = static_cast<u32>(*at - '0');
    const bool leading = kept == 0 && digit == 0;
    if (leading && behind_point) --value.exponent;
    if (!leading && !behind_point) ++value.exponent;
    if (leading || kept == 19) continue;
    value.digits = 10 * value.digits + digit;
    ++kept;
  }
  if (!any) return false;
  if (take('e', 'E')) {
    const bool down = take_sign();
    if (!is_digit()) return false;
    long long power = 0;
    for (; is_digit(); ++at) power = power < 1'000'000 ? 10 * power + (*at - '0') : power;
    value.exponent += down ? -power : power;
  }
  while (at < end && is_blank(*at)) ++at;
  for (; kept < 19; ++kept) value.digits *= 10;
  if (value.digits == 0) value.exponent = 0;
  return at == end;
}

/// What a row must satisfy to be printed.
struct condition {
  u32 column, columns;
  decimal low, high;
  bool has_high;

  PENSTOCK_FN bool holds(decimal const& value) const { return !is_less(value, low) && !(has_high && is_less(high, value)); }
};

enum class problem : u32 { none, open_quote, text_behind_quote, quote_in_field, few_fields, many_fields };

/// Parses a record character by character; keeps its state from one window to the next.
struct record_parser {
  enum class place : u32 { field_start, plain, quoted, quote_seen, behind_quote };

  bool active = false;
  bool blank = true;
  place at = place::field_start;
  problem wrong = problem::none;
  u32 column = 0;
  u64 begin = 0;
  u64 quote = 0;  // offset of the last opening or stray quote
  u32 length = 0;
  char text[max_number];  // of the field in the wanted column

  PENSTOCK_FN void start(u64 offset) {
    active = blank = true;
    at = place::field_start;
    wrong = problem::none;
    column = length = 0;
    begin = offset;
  }

  /// True: the character ended the record. REQUIRES: no problem so far.
  PENSTOCK_FN bool take(char c, u64 offset, condition const& wanted) {
    blank = blank && (c == '\r' || c == '\n');
    if (at == place::quoted) {
      if (c != '"' && column == wanted.column) keep(c);
      if (c == '"') at = place::quote_seen;
    } else if (c == ',') {
      ++column;
      at = place::field_start;
    } else if (c == '\n') {
      return true;
    } else if (at == place::behind_quote || (at == place::quote_seen && c != '"')) {
      at = place::behind_quote;
      if (c != '\r') wrong = problem::text_behind_quote;
    } else if (c == '"') {
      if (at == place::plain) wrong = problem::quote_in_field;
      if (at != place::quote_seen) quote = offset;
      if (at == place::quote_seen && column == wanted.column) keep(c);
      at = place::quoted;
    } else {
      at = place::plain;
      if (column == wanted.column) keep(c);
    }
    return false;
  }

  PENSTOCK_FN void keep(char c) {
    if (length < max_number) text[length] = c;
    ++length;
  }
  PENSTOCK_FN bool has_number(decimal& value) const { return length <= max_number && read_decimal(text, length, value); }

  PENSTOCK_FN void end(condition const& wanted) {
    if (at == place::quoted) wrong = problem::open_quote;
    if (wrong != problem::none || blank || column + 1 == wanted.columns) return;
    wrong = column + 1 < wanted.columns ? problem::few_fields : problem::many_fields;
  }
};
