#include "dma_arena.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <cerrno>
#include <cstring>
#include <iterator>

namespace penstock::pcie {
namespace {

constexpr u64 page = 4096;

}  // namespace

dma_arena::dma_arena(std::byte* begin, u64 bytes, std::string owner) : begin_(begin), bytes_(bytes), owner_(std::move(owner)) {
  if (bytes != 0) free_[0] = bytes;
}

void* dma_arena::allocate(memory_kind, u64 bytes) {
  const u64 wanted = round_up(bytes == 0 ? 1 : bytes, page);
  const std::lock_guard lock(mutex_);
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    const auto [offset, length] = *at;
    if (length < wanted) continue;
    free_.erase(at);
    if (length > wanted) free_[offset + wanted] = length - wanted;
    std::memset(begin_ + offset, 0, wanted);
    return begin_ + offset;
  }
  throw_os_error("allocate", std::to_string(bytes) + " bytes for " + owner_, ENOMEM,
                 "no such piece of its " + std::to_string(bytes_) + " bytes is free: ask for a smaller cache");
}

void dma_arena::deallocate(memory_kind, void* address, u64 bytes) noexcept {
  u64 offset = static_cast<u64>(static_cast<std::byte*>(address) - begin_);
  u64 length = round_up(bytes == 0 ? 1 : bytes, page);
  const std::lock_guard lock(mutex_);
  auto after = free_.lower_bound(offset);
  if (after != free_.end() && offset + length == after->first) {
    length += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += length;
      return;
    }
  }
  free_[offset] = length;
}

void dma_arena::write(void* to, void const* from, u64 bytes) { std::memcpy(to, from, bytes); }
void dma_arena::read(void* to, void const* from, u64 bytes) { std::memcpy(to, from, bytes); }

bool dma_arena::holds(void const* address, u64 bytes) const {
  auto const* at = static_cast<std::byte const*>(address);
  return at >= begin_ && at <= begin_ + bytes_ && bytes <= static_cast<u64>(begin_ + bytes_ - at);
}

u64 dma_arena::bytes_free() const {
  const std::lock_guard lock(mutex_);
  u64 sum = 0;
  for (auto const& [offset, length] : free_) sum += length;
  return sum;
}

}  // namespace penstock::pcie
