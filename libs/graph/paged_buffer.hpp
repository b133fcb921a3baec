// Memory that is as long as a good part of a graph: in huge pages where the system gives them, because its readers and writers
// jump about in it, and not cleared first.
#pragma once

#include "penstock/core/config.hpp"

#include <sys/mman.h>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace penstock::graph {

template <class T>
class paged_buffer {
 public:
  /// Errors: std::bad_alloc.
  explicit paged_buffer(u64 count) : count_(count) {
    u64 const bytes = (count * sizeof(T) + page - 1) / page * page;
    if (bytes == 0) return;
    items_.reset(static_cast<T*>(std::aligned_alloc(page, bytes)));
    if (!items_) throw std::bad_alloc();
    ::madvise(items_.get(), bytes, MADV_HUGEPAGE);
  }

  std::span<T> items() const { return {items_.get(), count_}; }

 private:
  static constexpr u64 page = u64{2} << 20;

  struct release {
    void operator()(T* items) const { std::free(items); }
  };

  std::unique_ptr<T, release> items_;
  u64 count_;
};

}  // namespace penstock::graph
