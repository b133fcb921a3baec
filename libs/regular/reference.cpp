#include "libs/regular/reference.hpp"

#include "libs/graph/file.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <type_traits>

namespace penstock::regular {
namespace {

constexpr u64 piece_elements = 1 << 19;

template <class T>
std::vector<reference_sum> add_up(media::array_file const& file, u64 columns, progress_fn const& progress) {
  std::vector<reference_sum> sums(columns);
  const graph::file from = graph::file::open(file.path);
  std::vector<T> part;
  u64 column = 0;
  for (u64 done = 0; done < file.elements; done += part.size()) {
    if (progress) progress("adding up the reference", done, file.elements);
    part.resize(std::min(piece_elements, file.elements - done));
    from.read(file.origin + done * sizeof(T), std::as_writable_bytes(std::span(part)));
    for (T const v : part) {
      reference_sum& sum = sums[column];
      if constexpr (std::is_integral_v<T>) sum.word += static_cast<u64>(v);  // sign-extended
      sum.number += static_cast<long double>(v);
      sum.magnitude += std::fabs(static_cast<long double>(v));
      if (++column == columns) column = 0;
    }
  }
  return sums;
}

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

template <class T>
std::string compare(media::array_file const& file_a, media::array_file const& file_b,
                    std::function<void(u64, std::span<std::byte>)> const& read, progress_fn const& progress) {
  const graph::file from_a = graph::file::open(file_a.path), from_b = graph::file::open(file_b.path);
  std::vector<T> a, b, c;
  for (u64 done = 0; done < file_a.elements; done += a.size()) {
    if (progress) progress("checking", done, file_a.elements);
    for (auto* part : {&a, &b, &c}) part->resize(std::min(piece_elements, file_a.elements - done));
    from_a.read(file_a.origin + done * sizeof(T), std::as_writable_bytes(std::span(a)));
    from_b.read(file_b.origin + done * sizeof(T), std::as_writable_bytes(std::span(b)));
    read(done * sizeof(T), std::as_writable_bytes(std::span(c)));
    for (u64 i = 0; i < a.size(); ++i) {
      const T expected = a[i] + b[i];
      if (c[i] == expected || (is_nan(c[i]) && is_nan(expected))) continue;  // any NaN will do
      return "element " + std::to_string(done + i) + " is " + std::to_string(c[i]) + ", not " + std::to_string(expected);
    }
  }
  return "";
}

}  // namespace

std::vector<reference_sum> reference_sums(media::array_file const& file, u64 columns, progress_fn const& progress) {
  const bool wide = file.type.bytes == 8;
  switch (file.type.kind) {
    case 'f': return wide ? add_up<double>(file, columns, progress) : add_up<float>(file, columns, progress);
    case 'u': return wide ? add_up<std::uint64_t>(file, columns, progress) : add_up<std::uint32_t>(file, columns, progress);
    default: return wide ? add_up<std::int64_t>(file, columns, progress) : add_up<std::int32_t>(file, columns, progress);
  }
}

std::string compare_added(media::array_file const& a, media::array_file const& b,
                          std::function<void(u64, std::span<std::byte>)> const& read, progress_fn const& progress) {
  const bool wide = a.type.bytes == 8;
  if (a.type.kind == 'f') return wide ? compare<double>(a, b, read, progress) : compare<float>(a, b, read, progress);
  // Signed or not: the bits are the same.
  return wide ? compare<std::uint64_t>(a, b, read, progress) : compare<std::uint32_t>(a, b, read, progress);
}

std::string compare_sum(reference_sum const& expected, u64 found) {
  if (expected.word == found) return "";
  return "its sum is " + std::to_string(found) + " modulo 2^64, that of a plain loop " + std::to_string(expected.word);
}

std::string compare_sum(reference_sum const& expected, double found, double tolerance) {
  const double number = static_cast<double>(expected.number);
  if (std::isnan(number) && std::isnan(found)) return "";
  if (!std::isfinite(number) && number == found) return "";
  if (std::fabs(static_cast<long double>(found) - expected.number) <= tolerance * expected.magnitude) return "";
  char text[128];
  std::snprintf(text, sizeof text, "its sum is %.17g, that of a plain loop %.17g", found, number);
  return text;
}

}  // namespace penstock::regular
