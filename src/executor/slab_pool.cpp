#include "slab_pool.hpp"

#include "penstock/core/bits.hpp"

#include <algorithm>
#include <iterator>

namespace penstock {

slab_pool::~slab_pool() {
  for (auto const& [address, each] : slabs_) {
    if (all_free(each)) from_.give(reinterpret_cast<void*>(address));
  }
}

void* slab_pool::allocate(u64 bytes) {
  const u64 wanted = round_up(std::max<u64>(bytes, 1), page);
  const std::lock_guard lock(mutex_);
  for (auto& [address, each] : slabs_) {
    if (const auto piece = each.free.take(wanted)) return reinterpret_cast<void*>(*piece);
  }
  const u64 size = std::max(wanted, slab_bytes_);
  const auto address = reinterpret_cast<u64>(from_.take(size));
  slab& fresh = slabs_[address];
  fresh.bytes = size;
  fresh.free.add(address, size);
  return reinterpret_cast<void*>(*fresh.free.take(wanted));
}

bool slab_pool::deallocate(void* address, u64 bytes) noexcept {
  const u64 at = reinterpret_cast<u64>(address);
  const std::lock_guard lock(mutex_);
  const auto after = slabs_.upper_bound(at);
  if (after == slabs_.begin()) return false;
  const auto of = std::prev(after);
  if (at - of->first >= of->second.bytes) return false;
  of->second.free.add(at, round_up(std::max<u64>(bytes, 1), page));
  // One that is of use for others stays; a larger one was this piece's alone.
  if (of->second.bytes <= slab_bytes_) return true;
  from_.give(reinterpret_cast<void*>(of->first));
  slabs_.erase(of);
  return true;
}

}  // namespace penstock
