#include "line_ranges.hpp"

#include <iterator>

namespace penstock::controllers {

std::optional<line_ranges::extent> line_ranges::take_from(std::map<u64, u64>::iterator begin, std::map<u64, u64>::iterator end,
                                                          u64 count) {
  for (auto at = begin; at != end; ++at) {
    const auto [first, free] = *at;
    if (free < count) continue;
    free_.erase(at);
    if (free > count) free_[first + count] = free - count;
    next_ = first + count;
    return extent{first, count};
  }
  return std::nullopt;
}

std::optional<line_ranges::extent> line_ranges::take(u64 count) {
  const auto next = free_.lower_bound(next_);
  std::optional<extent> taken = take_from(next, free_.end(), count);
  return taken ? taken : take_from(free_.begin(), free_.lower_bound(next_), count);
}

void line_ranges::give(extent free) {
  const auto after = free_.lower_bound(free.first);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == free.first) {
      free.first = before->first;
      free.count += before->second;
      free_.erase(before);
    }
  }
  if (after != free_.end() && free.first + free.count == after->first) {
    free.count += after->second;
    free_.erase(after);
  }
  free_[free.first] = free.count;
}

void line_ranges::retire(extent old) {
  retired_.push_back(old);
  retired_count_ += old.count;
}

line_ranges::reclaim line_ranges::begin_reclaim(u64 count, u64 max) {
  reclaim begun;
  for (u64 had = 0; !retired_.empty() && had < count && begun.extents.size() < max;) {
    had += retired_.front().count;
    retired_count_ -= retired_.front().count;
    begun.extents.push_back(retired_.front());
    retired_.pop_front();
  }
  if (begun.extents.empty()) return begun;
  begun.ticket = ++tickets_;
  reclaims_[begun.ticket] = begun.extents;
  return begun;
}

void line_ranges::end_reclaim(u64 ticket, bool forgotten) {
  const auto found = reclaims_.find(ticket);
  if (found == reclaims_.end()) return;
  for (extent each : found->second) {
    if (forgotten) {
      give(each);
    } else {
      retire(each);
    }
  }
  reclaims_.erase(found);
}

}  // namespace penstock::controllers
