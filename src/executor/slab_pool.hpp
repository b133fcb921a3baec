// Memory that is got and made known to somebody in large pieces, given out in small ones.
#pragma once

#include "../host/address_ranges.hpp"

#include <functional>
#include <map>
#include <mutex>

namespace penstock {

/// Thread-safe.
class slab_pool {
 public:
  static constexpr u64 page = 4096;

  /// Where slabs come from, aligned to a page: `take` throws where there is none, `give` ends well. No two of them touch as far
  /// as the pool is concerned: a piece lies in one slab.
  struct source {
    std::function<void*(u64 bytes)> take;
    std::function<void(void* slab)> give;
  };

  /// `slab_bytes`: of a slab, but for one piece that is larger, which has its own. REQUIRES: a multiple of a page.
  slab_pool(u64 slab_bytes, source from) : slab_bytes_(slab_bytes), from_(std::move(from)) {}
  slab_pool(slab_pool const&) = delete;
  slab_pool& operator=(slab_pool const&) = delete;
  /// A slab of which a piece was not given back stays for ever: who was told of it may still use it.
  ~slab_pool();

  /// Aligned to a page; not zeroed.
  void* allocate(u64 bytes);
  /// False for what is not of this pool.
  bool deallocate(void* address, u64 bytes) noexcept;

 private:
  struct slab {
    u64 bytes = 0;
    address_ranges free;
  };

  bool all_free(slab const& of) const { return of.free.bytes() == of.bytes; }

  u64 slab_bytes_;
  source from_;
  std::mutex mutex_;
  std::map<u64, slab> slabs_;  ///< by address; under mutex_
};

}  // namespace penstock
