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

dma_arena::dma_arena(std::vector<std::span<std::byte>> const& pieces, std::string owner) : owner_(std::move(owner)) {
  for (std::span<std::byte> piece : pieces) join(all_, reinterpret_cast<u64>(piece.data()), piece.size());
  free_ = all_;
}

void dma_arena::join(ranges& all, u64 address, u64 bytes) {
  auto after = all.lower_bound(address);
  if (after != all.end() && address + bytes == after->first) {
    bytes += after->second;
    after = all.erase(after);
  }
  if (after != all.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == address) {
      before->second += bytes;
      return;
    }
  }
  all[address] = bytes;
}

void* dma_arena::allocate(memory_kind, u64 bytes) {
  const u64 wanted = round_up(bytes == 0 ? 1 : bytes, page);
  const std::lock_guard lock(mutex_);
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    const auto [address, length] = *at;
    if (length < wanted) continue;
    free_.erase(at);
    if (length > wanted) free_[address + wanted] = length - wanted;
    return std::memset(reinterpret_cast<void*>(address), 0, wanted);
  }
  throw_os_error("allocate", std::to_string(bytes) + " bytes for " + owner_, ENOMEM,
                 "no piece of its memory is so large and free: ask for a smaller cache");
}

void dma_arena::deallocate(memory_kind, void* address, u64 bytes) noexcept {
  const std::lock_guard lock(mutex_);
  join(free_, reinterpret_cast<u64>(address), round_up(bytes == 0 ? 1 : bytes, page));
}

void dma_arena::write(void* to, void const* from, u64 bytes) { std::memcpy(to, from, bytes); }
void dma_arena::read(void* to, void const* from, u64 bytes) { std::memcpy(to, from, bytes); }

bool dma_arena::holds(void const* address, u64 bytes) const {
  const u64 first = reinterpret_cast<u64>(address);
  auto at = all_.upper_bound(first);
  if (at == all_.begin()) return false;
  --at;
  const u64 before = first - at->first;
  return before <= at->second && bytes <= at->second - before;
}

u64 dma_arena::bytes_free() const {
  const std::lock_guard lock(mutex_);
  u64 sum = 0;
  for (auto const& [address, length] : free_) sum += length;
  return sum;
}

}  // namespace penstock::pcie
