#include "buffer_list.hpp"

#include <algorithm>

namespace penstock::controllers {
namespace {

constexpr u64 longest_registration = u64{1} << 30;  // io_uring's limit for one buffer

}  // namespace

void buffer_list::add(void* memory, u64 bytes) {
  const auto begin = reinterpret_cast<u64>(memory);
  const std::lock_guard lock(mutex_);
  std::erase_if(buffers_, [&](known_buffer const& old) { return old.begin < begin + bytes && begin < old.end; });
  for (u64 done = 0; done < bytes; done += longest_registration) {
    buffers_.push_back({next_number_++, begin + done, begin + std::min(bytes, done + longest_registration)});
  }
  version_.fetch_add(1, release);
}

std::vector<known_buffer> buffer_list::copy() const {
  const std::lock_guard lock(mutex_);
  return buffers_;
}

}  // namespace penstock::controllers
