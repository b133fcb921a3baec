// Sorting the edges of one bucket, which fits a core's cache: by counting, digit by digit from the lowest (Knuth, volume 3,
// 5.2.5), because comparing mispredicts at each other step.
#pragma once

#include "libs/graph/packed_edge.hpp"

#include <array>
#include <span>
#include <utility>

namespace penstock::graph {

/// Sorts by key() - base, of which only the lowest `bits` bits may be set; equal ones in any order. Where `scratch` is shorter
/// than `entries`, it does so in place by comparing.
template <class Entry>
class bucket_sorter {
 public:
  bucket_sorter(std::span<Entry> scratch, u64 base, u32 bits)
      : scratch_(scratch), base_(base), digits_(std::max(1u, (bits + 10) / 11)), width_((bits + digits_ - 1) / digits_) {}

  void sort(std::span<Entry> entries) const {
    if (entries.size() < few || entries.size() > scratch_.size()) {
      std::sort(entries.begin(), entries.end(), [this](Entry const& a, Entry const& b) { return place(a) < place(b); });
      return;
    }
    std::span<Entry> from = entries, to = scratch_.first(entries.size());
    for (u32 digit = 0; digit < digits_; ++digit) {
      scatter(from, to.data(), digit * width_);
      std::swap(from, to);
    }
    if (from.data() != entries.data()) std::copy(from.begin(), from.end(), entries.begin());
  }

 private:
  static constexpr u64 few = 256;

  u64 place(Entry const& entry) const { return entry.key() - base_; }

  void scatter(std::span<Entry const> from, Entry* to, u32 shift) const {
    std::array<u32, 1 << 11> next{};
    u64 const mask = (u64{1} << width_) - 1;
    for (Entry const& entry : from) ++next[place(entry) >> shift & mask];
    u32 sum = 0;
    for (u64 i = 0; i <= mask; ++i) sum += std::exchange(next[i], sum);
    for (Entry const& entry : from) to[next[place(entry) >> shift & mask]++] = entry;
  }

  std::span<Entry> scratch_;
  u64 base_;
  u32 digits_, width_;
};

}  // namespace penstock::graph
