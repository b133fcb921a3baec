#include "transfer.hpp"

#include <cstdlib>
#include <new>

namespace penstock::controllers {

transfer::~transfer() { std::free(bounce); }

void transfer::reserve_bounce(u64 needed) {
  if (needed <= bounce_bytes) return;
  std::free(bounce);
  bounce_bytes = 0;
  bounce = static_cast<std::byte*>(std::aligned_alloc(4096, round_up(needed, 4096)));
  if (bounce == nullptr) throw std::bad_alloc();
  bounce_bytes = needed;
}

}  // namespace penstock::controllers
