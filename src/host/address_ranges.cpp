#include "address_ranges.hpp"

#include <algorithm>
#include <iterator>

namespace penstock {

void address_ranges::add(u64 address, u64 bytes) {
  auto after = ranges_.lower_bound(address);
  if (after != ranges_.end() && address + bytes == after->first) {
    bytes += after->second;
    after = ranges_.erase(after);
  }
  if (after != ranges_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == address) {
      before->second += bytes;
      return;
    }
  }
  ranges_[address] = bytes;
}

std::optional<u64> address_ranges::take(u64 bytes) {
  const auto at = std::ranges::find_if(ranges_, [bytes](auto const& range) { return range.second >= bytes; });
  if (at == ranges_.end()) return std::nullopt;
  const u64 address = at->first;
  take_at(address, bytes);
  return address;
}

bool address_ranges::take_at(u64 address, u64 bytes) {
  if (!holds(address, bytes)) return false;
  const auto at = std::prev(ranges_.upper_bound(address));
  const auto [first, length] = *at;
  ranges_.erase(at);
  if (first != address) ranges_[first] = address - first;
  if (first + length != address + bytes) ranges_[address + bytes] = first + length - address - bytes;
  return true;
}

bool address_ranges::holds(u64 address, u64 bytes) const {
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return false;
  const auto [first, length] = *std::prev(after);
  return address - first <= length && bytes <= length - (address - first);
}

u64 address_ranges::bytes() const {
  u64 sum = 0;
  for (auto const& [address, length] : ranges_) sum += length;
  return sum;
}

}  // namespace penstock
