// `array_ref<T>`: one thread's line reference over an array_view, which follows the index by itself (BaM dissertation 5.3.3).
#pragma once

#include "penstock/array/array_view.hpp"

namespace penstock {

template <class T, u32 Runs, u32 Count>
class runs_of;

/// A thread's reference to the line it last read. While the index stays on the line it does not ask the directory; it holds no
/// pin, so each read is validated against the entry as it was when the reference moved there: the version must not wrap while
/// it stays (2^13 fills of one line at the least, 2^20 and more for caches up to 32 GiB). Counts what it reads and adds it to
/// the array's counters when it goes. Not thread-safe: one per thread.
template <class T>
class array_ref {
  static_assert(sizeof(T) == piece_bytes<T>, "an element must lie on one line");

 public:
  /// REQUIRES: the view outlives the reference.
  PENSTOCK_FN explicit array_ref(array_view<T> const& view) : view_(view) {}
  array_ref(array_ref const&) = delete;
  array_ref& operator=(array_ref const&) = delete;
  PENSTOCK_FN ~array_ref() {
    if (!view_.is_resident()) tally_.add_to(view_.reader().counters, sizeof(T));
  }

  /// As array_view's.
  PENSTOCK_FORCE_INLINE T operator[](u64 i) {
    if (view_.is_resident()) return view_.resident()[i];
    const bool parted = view_.reader().is_parted();
    piece read{};
    const bool hit = try_read(i, read);
    return std::bit_cast<T>(view_.reader().complete_here(parted, true, hit, view_.address_of(i), read));
  }

  /// The same for all lanes of a group together, each with an element of its own or none (then T{}). Where lanes part ways
  /// before they read, this keeps the whole group at work on a miss. Collective.
  template <thread_group G>
  PENSTOCK_FORCE_INLINE T read(G const& g, bool want, u64 i) {
    if (view_.is_resident()) return want ? view_.resident()[i] : T{};
    return std::bit_cast<T>(read_piece<piece>(g, want, i));
  }

 private:
  template <class, u32, u32>
  friend class runs_of;

  using piece = piece_of<sizeof(T)>;

  // Zeros for those that want nothing.
  template <class Piece, thread_group G>
  PENSTOCK_FORCE_INLINE Piece read_piece(G const& g, bool want, u64 i) {
    Piece read{};
    const bool hit = want && try_read(i, read);
    return view_.reader().complete(g, want, hit, view_.address_of(i), read);
  }

  template <class Piece>
  PENSTOCK_FORCE_INLINE bool try_read(u64 i, Piece& read) {
    line_reader const& reader = view_.reader();
    const u64 address = view_.address_of(i);
    const u64 line = value(reader.line_of(address));
    constexpr u64 piece_bytes = sizeof(Piece);
    tally_.reads += piece_bytes / sizeof(T);
    if (line == line_ && reader.try_read(at_, reader.within(address), read)) return true;
    // The reference moves.
    line_ = none;
    if (!reader.find(address, at_) || !reader.try_read(at_, reader.within(address), read)) return false;
    ++tally_.hits;
    line_ = line;
    return true;
  }

  static constexpr u64 none = ~0ull;

  array_view<T> const& view_;
  u64 line_ = none;
  hit_line at_{};
  access_tally tally_;
};

/// What `read_runs` is to read of one array, and where to. Lives for one call.
template <class T, u32 Runs, u32 Count>
class runs_of {
  static constexpr u64 run_bytes = Count * sizeof(T);
  using piece = piece_of<run_bytes <= 16 ? run_bytes : 16>;
  static constexpr u32 per_piece = sizeof(piece) / sizeof(T);
  static_assert(run_bytes % sizeof(piece) == 0);
  struct elements {
    T of[per_piece];
  };

 public:
  using wants = bool[Runs];

  PENSTOCK_FORCE_INLINE runs_of(array_ref<T>& from, T (&to)[Runs][Count]) : from_(from), to_(to) {}

  PENSTOCK_FORCE_INLINE void read_resident(wants const& want, u64 first, u64 stride) {
    array_view<T> const& view = from_.view_;
    PENSTOCK_UNROLL
    for (u32 r = 0; r < Runs; ++r) {
      T const* const from = view.resident() + first + r * stride;
      const u64 left = left_of(want, first, stride, r);
      if (left < Count || !has_pieces()) {
        PENSTOCK_UNROLL
        for (u32 k = 0; k < Count; ++k) to_[r][k] = k < left ? from[k] : T{};
        continue;
      }
      PENSTOCK_UNROLL
      for (u32 k = 0; k < Count; k += per_piece) take(r, k, *reinterpret_cast<piece const*>(from + k));
    }
  }

  /// R1, where all runs lie on one line; else they are read one after another, by `complete`.
  PENSTOCK_FORCE_INLINE void find(wants const& want, u64 first, u64 stride) {
    PENSTOCK_UNROLL
    for (u32 r = 0; r < Runs; ++r) {
      missing_ = missing_ || want[r];
      PENSTOCK_UNROLL
      for (u32 k = 0; k < Count; ++k) to_[r][k] = T{};
    }
    array_view<T> const& view = from_.view_;
    const u64 end = first + (Runs - 1) * stride + Count;
    if (!missing_ || end > view.size() || !has_pieces()) return;
    const u64 address = view.address_of(first);
    const u64 line = value(view.reader().line_of(address));
    if (line != value(view.reader().line_of(view.address_of(end) - 1))) return;
    loaded_ = line == from_.line_;
    if (loaded_) return;
    from_.line_ = array_ref<T>::none;
    loaded_ = moved_ = view.reader().find(address, from_.at_);
    if (moved_) from_.line_ = line;
  }
  /// R2.
  PENSTOCK_FORCE_INLINE void load(wants const& want, u64 first, u64 stride) {
    if (!loaded_) return;
    const u64 from = from_.at_.frame + from_.view_.reader().within(from_.view_.address_of(first));
    PENSTOCK_UNROLL
    for (u32 r = 0; r < Runs; ++r) {
      if (!want[r]) continue;
      PENSTOCK_UNROLL
      for (u32 k = 0; k < Count; k += per_piece) {
        take(r, k, load_piece(reinterpret_cast<piece const*>(from + (r * stride + k) * sizeof(T))));
      }
    }
  }
  PENSTOCK_FORCE_INLINE bool loaded() const { return loaded_; }
  /// R4.
  PENSTOCK_FORCE_INLINE void check(wants const& want) {
    if (!loaded_) return;
    if (!from_.view_.reader().unchanged(from_.at_)) {
      from_.line_ = array_ref<T>::none;
      return;
    }
    missing_ = false;
    from_.tally_.hits += moved_ ? 1 : 0;
    PENSTOCK_UNROLL
    for (u32 r = 0; r < Runs; ++r) from_.tally_.reads += want[r] ? Count : 0;
  }
  /// What could not be read so far. Collective.
  template <thread_group G>
  PENSTOCK_FORCE_INLINE void complete(G const& g, wants const& want, u64 first, u64 stride) {
    if (any(g.ballot(missing_))) read_one_by_one(g, want, first, stride);
  }

 private:
  PENSTOCK_FORCE_INLINE bool has_pieces() const { return per_piece == 1 || from_.view_.is_aligned(sizeof(piece)); }

  PENSTOCK_FORCE_INLINE u64 left_of(wants const& want, u64 first, u64 stride, u32 r) const {
    const u64 at = first + r * stride;
    return want[r] && at < from_.view_.size() ? from_.view_.size() - at : 0;
  }

  PENSTOCK_FORCE_INLINE void take(u32 r, u32 k, piece read) {
    const auto all = std::bit_cast<elements>(read);
    PENSTOCK_UNROLL
    for (u32 j = 0; j < per_piece; ++j) to_[r][k + j] = all.of[j];
  }

  // One copy of the code, and no index into `to_` that only the run knows: that would put it into memory.
  template <thread_group G>
  PENSTOCK_FORCE_INLINE void read_one_by_one(G const& g, wants const& want, u64 first, u64 stride) {
    const u32 step = has_pieces() ? per_piece : 1;
    PENSTOCK_UNROLL_BY(1)
    for (u32 n = 0; n < Runs * Count; n += step) {
      const u64 at = first + n / Count * stride + n % Count;
      bool wanted = false;
      PENSTOCK_UNROLL
      for (u32 r = 0; r < Runs; ++r) wanted = wanted || (want[r] && n / Count == r);
      const u64 left = wanted && missing_ && at < from_.view_.size() ? from_.view_.size() - at : 0;
      elements late{};
      if (step == 1) {
        late.of[0] = from_.read(g, left != 0, left != 0 ? at : 0);
      } else {
        late = std::bit_cast<elements>(from_.template read_piece<piece>(g, left != 0, at));
      }
      if constexpr (std::same_as<G, lone_thread>) {  // whose array is in memory anyway
        for (u32 j = 0; j < step && j < left; ++j) to_[n / Count][n % Count + j] = late.of[j];
      } else {
        PENSTOCK_UNROLL
        for (u32 other = 0; other < Runs * Count; ++other) {
          PENSTOCK_UNROLL
          for (u32 j = 0; j < per_piece; ++j) {
            if (other == n + j && j < step && j < left) to_[other / Count][other % Count] = late.of[j];
          }
        }
      }
    }
  }

  array_ref<T>& from_;
  T (&to_)[Runs][Count];
  bool missing_ = false;  ///< something is wanted that has not been read
  bool loaded_ = false;   ///< it has been, and is to be checked
  bool moved_ = false;    ///< the reference has, for it
};

/// Reads runs of elements that follow each other for each lane, of the arrays of runs_of(reference, to), T to[Runs][Count]:
/// `Runs` of each, from element `first` on and each `stride` behind the last, in pieces of 16 bytes, or of a shorter run's,
/// where element 0 of the array is aligned so. With runs of one element (T to[Runs][1]) and a stride of the group's size, a
/// group reads along an array with `Runs` loads of each lane on their way. `want`, `first` and `stride` are the lane's own. All
/// runs are on their way together, and of each array they are validated once, behind one fence for all arrays, where all of
/// them, wanted or not, lie on one line and within the array; else each of them goes its own way. Runs that are not wanted, and
/// what lies behind an array's end, are T{}. Collective. `Resident`: as all of the arrays are.
/// Cost:   hit: an entry for each array, a load for each piece, a fence, an entry again for each array.
/// Errors: as operator[].
/// REQUIRES: the bytes of a run are a multiple of 16, or 1, 2, 4 or 8; those of `first` and of `stride` elements are multiples
/// of a piece's. For each array.
template <bool Resident, u32 Runs, thread_group G, class... Of>
PENSTOCK_DEVICE_INLINE void read_runs(G const& g, bool const (&want)[Runs], u64 first, u64 stride, Of&&... of) {
  if constexpr (Resident) {
    (of.read_resident(want, first, stride), ...);
  } else {
    (of.find(want, first, stride), ...);
    (of.load(want, first, stride), ...);
    if ((of.loaded() || ...)) order_before_recheck<read_order::sound>();
    (of.check(want), ...);
    (of.complete(g, want, first, stride), ...);
  }
}

}  // namespace penstock
