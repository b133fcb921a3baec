// `cached_array<T, Cache>`: elements of one dataset through a view of a cache that is the program's own, with another
// replacement policy (basic_line_cache_view::with) or fills of its own (filled_cache_view). A hit is that of an array_view; a
// miss is instantiated for this view, where that of array_view comes compiled with the library.
//
// So the kernel takes the registers of its misses, 190 of a thread: launch<Width, 1>, or nvcc's -maxrregcount=64 for the file,
// with which the misses alone spill.
#pragma once

#include "penstock/array/line_reader.hpp"
#include "penstock/array/piece_of.hpp"

#include <bit>

namespace penstock {

/// Trivially copyable, passed to kernels by value.
template <class T, class Cache>
class cached_array {
  static_assert(sizeof(T) == piece_bytes<T>, "an element must lie on one line");
  using piece = piece_of<sizeof(T)>;

 public:
  /// By line_cache::array_through. `cache`: where kernels find the view.
  cached_array(line_reader const& reader, Cache const* cache, u64 origin, u64 elements)
      : reader_(reader), cache_(cache), origin_(reader.base + origin), size_(elements) {}

  PENSTOCK_FN u64 size() const { return size_; }

  /// Element i. REQUIRES: i < size().
  /// Errors: T{}; the first failure is latched, and line_cache::check_faults throws it.
  PENSTOCK_FORCE_INLINE T operator[](u64 i) const {
    const u64 address = origin_ + i * sizeof(T);
    // Of this view: lanes that read the dataset through another are in other code.
    const u32 here = static_cast<u32>(reinterpret_cast<u64>(cache_) >> 7) ^ reader_.dataset << 24 ^ 1u;
    const bool parted = lanes_are_parted<meeting_in::reads>(here);
    hit_line at;
    piece value{};
    const bool hit = reader_.find(address, at) && reader_.try_read(at, reader_.within(address), value);
    const auto g = passing_group();  // after the hits: line_reader::complete
    if (any_of(g, !hit || parted)) {
      value = first_bytes<piece>(
          read_together(g, this_meeting<meeting_in::reads>(), here, *cache_, reader_.dataset, true, address, sizeof(T)));
    }
    return std::bit_cast<T>(value);
  }

  /// Element i for each lane that wants one, T{} for the others. Collective. Errors: likewise.
  template <thread_group G>
  PENSTOCK_FN T read(G const& g, bool want, u64 i) const {
    const u64 address = origin_ + i * sizeof(T);
    hit_line at;
    piece value{};
    const bool hit = want && reader_.find(address, at) && reader_.try_read(at, reader_.within(address), value);
    if (any_of(g, want && !hit)) {
      value = first_bytes<piece>(read_slowly(g, *cache_, reader_.dataset, want, address, sizeof(T)));
    }
    return std::bit_cast<T>(value);
  }

 private:
  line_reader reader_;
  Cache const* cache_;
  u64 origin_;
  u64 size_;
};

}  // namespace penstock
