// `array_view<T>`: a typed array wherever its bytes live, passed to kernels by value.
#pragma once

#include "penstock/array/line_reader.hpp"
#include "penstock/array/pending_read.hpp"
#include "penstock/array/piece_of.hpp"
#include "penstock/array/span_reader.hpp"

#include <type_traits>

namespace penstock {

template <class T>
class array_view {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 64);

 public:
  array_view() = default;

  /// Over memory that the kernel reaches: HBM, or host memory that is pinned or plain (CPU).
  PENSTOCK_FN array_view(T const* resident, u64 elements) : resident_(resident), size_(elements) {}

  /// Over a dataset behind a cache; element 0 lies `origin` bytes in. REQUIRES: origin a multiple of alignof(T).
  PENSTOCK_FN array_view(line_reader const& reader, u64 origin, u64 elements)
      : reader_(reader), origin_(reader.base + origin), size_(elements) {}

  PENSTOCK_FN u64 size() const { return size_; }
  PENSTOCK_FN bool is_resident() const { return reader_.kind == array_kind::resident; }
  PENSTOCK_FN T const* resident() const { return resident_; }
  PENSTOCK_FN line_reader const& reader() const { return reader_; }
  /// Address of element i in the cache's line space.
  PENSTOCK_FN u64 address_of(u64 i) const { return origin_ + i * sizeof(T); }
  /// Whether element 0 lies at a multiple of `bytes`, a power of two up to 16.
  PENSTOCK_FN bool is_aligned(u64 bytes) const {
    return (is_resident() ? reinterpret_cast<u64>(resident_) : origin_) % bytes == 0;
  }

  /// Element i, from wherever it is. REQUIRES: i < size().
  /// Errors: T{}; the first failure is latched and thrown by the host at the next synchronize.
  PENSTOCK_FORCE_INLINE T operator[](u64 i) const { return read(i); }

  /// The same, in an order that may be cheaper (core/read_order.hpp).
  template <read_order Order = read_order::sound>
  PENSTOCK_FORCE_INLINE T read(u64 i) const {
    if (is_resident()) return resident_[i];
    if constexpr (sizeof(T) == piece_bytes<T>) {
      return std::bit_cast<T>(reader_.template read<piece_of<sizeof(T)>, Order>(address_of(i)));
    } else {
      return read_in_pieces(i);
    }
  }

  /// Element i into `out`, and how that went: for programs that have an answer to a failure. Nothing is latched.
  /// Cost:   hit: as operator[]. Miss: likewise.
  /// Errors: the status of the fill; failure::out_of_range from size() on. `out` stays as it was.
  PENSTOCK_FN status try_read(u64 i, T& out) const {
    if (i >= size_) return make_status(failure::out_of_range);
    if (is_resident()) {
      out = resident_[i];
      return {};
    }
    in_parts all{};
    status outcome{};
    for (u64 k = 0; k < parts && outcome.ok(); ++k) {
      const u64 address = address_of(i) + k * sizeof(part);
      const bool parted = reader_.template is_parted<meeting_in::tries>();
      const bool missed = !try_part(address, all.of[k]);
      outcome = try_late_here(parted, missed, address, all.of[k]);
    }
    if (outcome.ok()) out = std::bit_cast<T>(all);
    return outcome;
  }

  /// The same for one element per lane that wants one, each with its own status. Collective.
  template <thread_group G>
  PENSTOCK_FN status try_read(G const& g, bool want, u64 i, T& out) const {
    const bool inside = want && i < size_;
    status outcome = want && !inside ? make_status(failure::out_of_range) : status{};
    if (is_resident()) {
      if (inside) out = resident_[i];
      return outcome;
    }
    in_parts all{};
    for (u64 k = 0; k < parts; ++k) {
      const u64 address = address_of(i) + k * sizeof(part);
      const bool missed = inside && outcome.ok() && !try_part(address, all.of[k]);
      const status late = try_late(g, missed, address, all.of[k]);
      if (missed) outcome = late;
    }
    if (inside && outcome.ok()) out = std::bit_cast<T>(all);
    return outcome;
  }

  /// Calls use(i, element i) for `elements` elements from `first` on, each once, in some lane of the group. The directory is
  /// asked once for many lines, and all lines that are missing are asked for before any is waited for. Collective. `Order`: as
  /// for `read`.
  /// Cost:   one load for 16 bytes; one more look at the directory for each 4 KiB that a warp reads.
  /// Errors: as operator[].
  /// REQUIRES: elements of 1, 2, 4, 8 or 16 bytes; first + elements <= size().
  template <read_order Order = read_order::sound, thread_group G, class Use>
  PENSTOCK_FN void read_span(G const& g, u64 first, u64 elements, Use const& use) const {
    static_assert(sizeof(T) == piece_bytes<T>, "an element must lie on one line");
    if (elements == 0) return;
    if (is_resident()) return read_resident_span(g, first, elements, use);
    u64 used = 0;
    if constexpr (!std::is_same_v<G, lone_thread>) {  // for which read_over_lines does the same
      // Most likely on one line, in whole pieces; what is for other runs is not worked out before.
      const u64 begin = address_of(first), bytes = elements * sizeof(T);
      if ((begin | bytes) % 16 == 0 && reader_.line_of(begin) == reader_.line_of(begin + bytes - 1)) {
        const auto use_piece = [&](u32 number, piece16 piece) { use_elements(first + u64{number} * per_piece, piece, use); };
        const u32 done = read_on_one_line<Order>(g, reader_, begin, static_cast<u32>(bytes / 16), use_piece);
        if (16ull * done == bytes) return;
        used = u64{done} * per_piece;
      }
    }
    read_over_lines<Order>(g, worked_out_anew(first) + used, worked_out_anew(elements) - used, use);
  }

  /// Asks for the line of element i, and does not wait. Does nothing for resident arrays.
  PENSTOCK_FN void prefetch(u64 i) const {
    if (!is_resident()) prefetch(this_group(), true, i);
  }

  /// The same for one element per lane that wants one. Collective.
  template <thread_group G>
  PENSTOCK_FN void prefetch(G const& g, bool want, u64 i) const {
    if (is_resident()) return;
    const line_id line = reader_.line_of(address_of(i));
    const bool absent = want && reader_.cache->directory.glance(line).state() == line_state::empty;
    if (any(g.ballot(absent))) prefetch_line(g, *reader_.cache, reader_.dataset, absent, line, fill_purpose::guess);
  }

  /// Asks for element i and does not wait: the token's `wait` gives the value, after other work. Several may be on their way.
  /// Cost:   hit: that of a read, and `wait` costs nothing. Miss: the command goes out at once, unless as many are in flight
  ///         ahead of need as may be; then `wait` sends it.
  /// Errors: `wait` has them. REQUIRES: i < size(); elements of 1, 2, 4, 8 or 16 bytes; the view outlives the token.
  PENSTOCK_FORCE_INLINE pending_read<T> read_async(u64 i) const {
    pending_read<T> token(reader_, address_of(i));
    const bool missed = !try_at_once(token, i);
    const auto g = passing_group();  // after the hits: line_reader::complete
    if (any(g.ballot(missed))) ask(g, missed, i);
    return token;
  }

  /// The same for one element per lane that wants one. Collective.
  template <thread_group G>
  PENSTOCK_FN pending_read<T> read_async(G const& g, bool want, u64 i) const {
    pending_read<T> token(reader_, address_of(i));
    if (!want) token.here_ = true;
    const bool missed = want && !try_at_once(token, i);
    if (any(g.ballot(missed))) ask(g, missed, i);
    return token;
  }

  /// Asks for the lines of `elements` elements from `first` on and does not wait; a `read_span` of them later finds them here
  /// or on their way. Collective.
  template <thread_group G>
  PENSTOCK_FN void ask_span(G const& g, u64 first, u64 elements) const {
    if (is_resident() || elements == 0) return;
    const u64 last = value(reader_.line_of(address_of(first + elements) - 1));
    for (u64 line = value(reader_.line_of(address_of(first))); line <= last; line += penstock::size(g)) {
      const u64 mine = line + index_in(g);
      const bool absent = mine <= last && reader_.cache->directory.glance(line_id{mine}).state() == line_state::empty;
      if (any(g.ballot(absent))) {
        prefetch_line(g, *reader_.cache, reader_.dataset, absent, line_id{mine}, fill_purpose::asked);
      }
    }
  }

 private:
  using part = piece_of<piece_bytes<T>>;
  static constexpr u64 parts = sizeof(T) / sizeof(part);
  struct in_parts {
    part of[parts];
  };

  PENSTOCK_FORCE_INLINE bool try_at_once(pending_read<T>& token, u64 i) const {
    if (is_resident()) {
      token.take(std::bit_cast<piece_of<sizeof(T)>>(resident_[i]));
      return true;
    }
    return token.here_ = token.try_now();
  }

  template <thread_group G>
  PENSTOCK_FN void ask(G const& g, bool want, u64 i) const {
    prefetch_line(g, *reader_.cache, reader_.dataset, want, reader_.line_of(address_of(i)), fill_purpose::asked);
  }

  PENSTOCK_FORCE_INLINE bool try_part(u64 address, part& piece) const {
    hit_line at;
    return reader_.find(address, at) && reader_.try_read(at, reader_.within(address), piece);
  }

  /// Of the lanes that have missed; collective.
  template <thread_group G>
  PENSTOCK_FN status try_late(G const& g, bool missed, u64 address, part& piece) const {
    if (!any(g.ballot(missed))) return {};
    const read_piece late = try_read_slowly(g, *reader_.cache, reader_.dataset, missed, address, sizeof(part));
    if (!missed) return {};
    piece = first_bytes<part>(late.bytes);
    return late.error;
  }

  /// Of the lanes that are here, and those of their warp that they are parted from: as line_reader::complete_here. The group is
  /// made after the hits. Of one made before them, whose lanes part and meet as the hits have it, a GPU was seen to mix up what
  /// it exchanged (a frame's address with a vote), one run of the device tests in ten.
  PENSTOCK_FN status try_late_here(bool parted, bool missed, u64 address, part& piece) const {
    const auto g = passing_group();
    if (!any(g.ballot(missed || parted))) return {};
    const read_piece late = try_read_together(g, this_meeting<meeting_in::tries>(), reader_.meets_at(), *reader_.cache,
                                              reader_.dataset, missed, address, sizeof(part));
    if (!missed) return {};
    piece = first_bytes<part>(late.bytes);
    return late.error;
  }

  static constexpr u64 per_piece = 16 / sizeof(T);  // elements of a span

  // What lies before the first whole piece and behind the last, element by element.
  template <thread_group G, class Use>
  PENSTOCK_FN void read_resident_span(G const& g, u64 first, u64 elements, Use const& use) const {
    const u64 origin = reinterpret_cast<u64>(resident_);
    const u64 begin = origin + first * sizeof(T), end = begin + elements * sizeof(T);
    const u64 ceiling = (begin + 15) & ~15ull;
    const u64 inner = ceiling < end ? ceiling : end;
    const u64 floor = end & ~15ull;
    const u64 outer = floor > inner ? floor : inner;
    const auto use_alone = [&](u64 from, u64 to) {
      for (u64 at = from + index_in(g) * sizeof(T); at < to; at += penstock::size(g) * sizeof(T)) {
        use((at - origin) / sizeof(T), *reinterpret_cast<T const*>(at));
      }
    };
    use_alone(begin, inner);
    use_alone(outer, end);
    const u64 whole = (inner - origin) / sizeof(T);
    const auto use_piece = [&](u64 number, piece16 piece) { use_elements(whole + number * per_piece, piece, use); };
    read_resident_pieces(g, inner, outer, use_piece);
  }

  // Of a run behind a cache. What a window needs is worked out from its first element and how many are left, so that a kernel
  // keeps little else meanwhile.
  template <read_order Order, thread_group G, class Use>
  PENSTOCK_FN void read_over_lines(G const& g, u64 first, u64 elements, Use const& use) const {
    [[maybe_unused]] const bool windows = !std::is_same_v<G, lone_thread> && walks_windows(g, reader_);
    for (;;) {
      const u64 begin = address_of(first), floor = begin & ~15ull;
      const u32 before = static_cast<u32>(begin - floor) / sizeof(T);  // elements of the first piece that are not wanted
      [[maybe_unused]] const u64 pieces = (before + elements + per_piece - 1) / per_piece;
      const auto use_piece = [&](u64 number, piece16 piece) { use_elements(first - before + number * per_piece, piece, use); };
      const auto use_edge = [&](u64 number, piece16 piece) {
        const auto use_wanted = [&](u64 i, T v) {
          if (i - first < elements) use(i, v);
        };
        use_elements(first - before + number * per_piece, piece, use_wanted);
      };
      u64 used = 0;
      if constexpr (std::is_same_v<G, lone_thread>) {
        // One look serves one line: nothing is gained by a window, which has fewer loads in flight. What is no whole batch is
        // read piece by piece; the first of them brings a line that is missing, and the others are hits then.
        const u64 on_line = (reader_.line_bytes - reader_.within(begin)) / 16, left = elements / per_piece;
        const u32 wanted = static_cast<u32>(on_line < left ? on_line : left);
        if (before == 0) used = u64{read_on_one_line<Order>(g, reader_, begin, wanted, use_piece)} * per_piece;
        if (used == 0) {
          use_edge(0, reader_.template read<piece16, Order>(floor));
          used = per_piece - before;
        }
      } else {
        if (!windows) return read_alone<Order>(g, reader_, floor, pieces, use_edge);
        const bool whole = before == 0 && elements % per_piece == 0;
        used = u64{read_window<Order>(g, reader_, floor, pieces, whole, use_piece, use_edge)} * per_piece - before;
      }
      if (used >= elements) return;
      first += used;
      elements -= used;
    }
  }
  // Calls use(i, element i) for those of a piece, the first of which is element `first`.
  template <class Use>
  PENSTOCK_FORCE_INLINE static void use_elements(u64 first, piece16 piece, Use const& use) {
    struct elements_of {
      T of[per_piece];
    };
    const auto all = std::bit_cast<elements_of>(piece);
    PENSTOCK_UNROLL
    for (u32 k = 0; k < per_piece; ++k) use(first + k, all.of[k]);
  }

  // An element of several pieces may straddle two lines and is no atom to writers: each piece is read by itself.
  PENSTOCK_FN T read_in_pieces(u64 i) const {
    in_parts all;
    for (u64 k = 0; k < parts; ++k) {
      all.of[k] = reader_.template read<part>(address_of(i) + k * sizeof(part));
    }
    return std::bit_cast<T>(all);
  }

  T const* resident_ = nullptr;
  line_reader reader_;
  u64 origin_ = 0;
  u64 size_ = 0;
};

}  // namespace penstock
