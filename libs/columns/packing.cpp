#include "libs/columns/packing.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace penstock::columns {
namespace {

constexpr u64 block_values = 1024;  // stay in the first-level cache while divisors are tried
constexpr double max_whole = 0x1p52;

u64 mask_of(u32 bits) { return bits == 0 ? 0 : ~u64{0} >> (64 - bits); }

/// The nearest integer, ties to even; from max_whole on inexact, and no less than max_whole.
double rounded(double number) {
  const double magnitude = std::fabs(number);
  return std::copysign((magnitude + max_whole) - max_whole, number);
}

/// Without an early end: a block is short, and its values fit vector instructions.
bool is_exact(std::span<double const> values, double divisor) {
  u32 wrong = 0;
  for (const double value : values) {
    const double whole = rounded(value * divisor);
    const bool negative_zero = std::bit_cast<u64>(value) == std::bit_cast<u64>(-0.0);
    wrong |= static_cast<u32>(!(std::fabs(whole) < max_whole)) | static_cast<u32>(whole / divisor != value) |
             static_cast<u32>(negative_zero);
  }
  return wrong == 0;
}

/// Whether values that are exact by one divisor are so by its multiples. Below 2^50 the product is off by less than a half, and
/// rounds to the multiple of the integer.
bool suits_multiples(std::span<double const> values, double largest_divisor) {
  const double bound = 0x1p50 / largest_divisor;
  u32 beyond = 0;
  for (const double value : values) beyond |= static_cast<u32>(!(std::fabs(value) < bound));
  return beyond == 0;
}

}  // namespace

template <class T>
value_range<T> range_of(std::span<T const> values) {
  value_range<T> found{values[0], values[0]};
  for (const T value : values) {
    found.low = value < found.low ? value : found.low;
    found.high = value > found.high ? value : found.high;
  }
  return found;
}

std::vector<double> exact_divisors(std::span<double const> values, std::vector<double> divisors) {
  for (u64 first = 0; first < values.size() && !divisors.empty(); first += block_values) {
    const auto block = values.subspan(first, std::min<u64>(block_values, values.size() - first));
    const auto fails = [block](double divisor) { return !is_exact(block, divisor); };
    divisors.erase(divisors.begin(), std::find_if_not(divisors.begin(), divisors.end(), fails));
    if (divisors.empty() || suits_multiples(block, divisors.back())) continue;
    divisors.erase(std::remove_if(divisors.begin() + 1, divisors.end(), fails), divisors.end());
  }
  return divisors;
}

bit_packer::bit_packer(packed_form const& form) : form_(form), mask_(mask_of(form.bits)) {}

template <class T>
u64 bit_packer::stored(T value) const {
  using wide = std::conditional_t<std::is_unsigned_v<T>, u64, std::int64_t>;
  wide whole{};
  if constexpr (std::is_floating_point_v<T>) {
    whole = static_cast<wide>(rounded(value * form_.divisor));
  } else {
    whole = static_cast<wide>(value);  // NOLINT(bugprone-signed-char-misuse): int8 is a number here
  }
  const auto least = static_cast<wide>(form_.base);
  return (static_cast<u64>(std::max(whole, least)) - form_.base) & mask_;
}

/// 1 if a word is full. Branch-free: widths that do not divide 64 fill words at no steady pace.
inline u64 bit_packer::append_one(u64 value, u64* out) {
  word_ |= value << used_;
  *out = word_;
  const u64 end = used_ + form_.bits, full = end / 64;
  word_ = full != 0 ? value >> 1 >> (63 - used_) : word_;
  used_ = end % 64;
  return full;
}

template <class T>
void bit_packer::append(std::span<T const> values, std::vector<u64>& words) {
  const u64 before = words.size();
  words.resize(before + (values.size() * form_.bits + used_) / 64 + 1);
  bit_packer here = *this;  // in registers: `words` may not alias it
  u64* out = words.data() + before;
  for (const T value : values) out += here.append_one(here.stored(value), out);
  *this = here;
  words.resize(static_cast<u64>(out - words.data()));
}

void bit_packer::finish(std::vector<u64>& words) {
  if (used_ != 0) words.push_back(word_);
  word_ = used_ = 0;
}

template <class T>
void unpack(packed_form const& form, u64 const* words, std::span<T> values) {
  const u64 mask = mask_of(form.bits);
  const u64 next = form.bits == 0 ? 0 : 1;
  u64 bit = 0;
  for (T& value : values) {
    const u64 word = bit / 64, within = bit % 64;
    const u64 low = words[word] >> within, high = words[word + next] << 1 << (63 - within);
    const u64 whole = form.base + ((low | high) & mask);
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(static_cast<std::int64_t>(whole)) / form.divisor;
    } else {
      value = static_cast<T>(whole);
    }
    bit += form.bits;
  }
}

#define PENSTOCK_PACKED(T)                                                              \
  template value_range<T> range_of(std::span<T const>);                                 \
  template void bit_packer::append(std::span<T const> values, std::vector<u64>& words); \
  template void unpack(packed_form const&, u64 const*, std::span<T>)
PENSTOCK_PACKED(std::int8_t);
PENSTOCK_PACKED(std::int16_t);
PENSTOCK_PACKED(std::int32_t);
PENSTOCK_PACKED(std::int64_t);
PENSTOCK_PACKED(u8);
PENSTOCK_PACKED(u16);
PENSTOCK_PACKED(u32);
PENSTOCK_PACKED(u64);
PENSTOCK_PACKED(double);
#undef PENSTOCK_PACKED

}  // namespace penstock::columns
