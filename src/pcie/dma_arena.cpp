#include "dma_arena.hpp"

#include "dma_space.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <cerrno>
#include <cstring>

namespace penstock::pcie {

dma_arena::dma_arena(std::vector<std::span<std::byte>> const& pieces, std::string owner) : owner_(std::move(owner)) {
  for (std::span<std::byte> piece : pieces) all_.add(reinterpret_cast<u64>(piece.data()), piece.size());
  free_ = all_;
}

void* dma_arena::allocate(memory_kind, u64 bytes) {
  const u64 wanted = round_up(bytes == 0 ? 1 : bytes, dma_page);
  const std::lock_guard lock(mutex_);
  if (const auto address = free_.take(wanted)) return std::memset(reinterpret_cast<void*>(*address), 0, wanted);
  throw_os_error("allocate", std::to_string(bytes) + " bytes for " + owner_, ENOMEM,
                 "no piece of its memory is so large and free: ask for a smaller cache");
}

void dma_arena::deallocate(memory_kind, void* address, u64 bytes) noexcept {
  const std::lock_guard lock(mutex_);
  free_.add(reinterpret_cast<u64>(address), round_up(bytes == 0 ? 1 : bytes, dma_page));
}

void dma_arena::write(void* to, void const* from, u64 bytes) { std::memcpy(to, from, bytes); }
void dma_arena::read(void* to, void const* from, u64 bytes) { std::memcpy(to, from, bytes); }

bool dma_arena::holds(void const* address, u64 bytes) const { return all_.holds(reinterpret_cast<u64>(address), bytes); }

u64 dma_arena::bytes_free() const {
  const std::lock_guard lock(mutex_);
  return free_.bytes();
}

}  // namespace penstock::pcie
