// The validated read: one aligned piece of a line, without an atomic read-modify-write (PROTOCOLS.md §2).
//
// R1 loads the entry, R2 the piece, R4 the entry again; R3 keeps R4 behind R2. If both entries name the same fill the piece is
// good: had it been a later fill's, that fill's claim would be visible to R4. Before that comparison holds, the piece is used
// for nothing.
//
// A hit is bound by what it asks of L2, and by the registers that a kernel has for it (docs/HIT_PATH.md): no load twice, and
// what it computes is 32-bit arithmetic on constants that were made when the cache was.
#pragma once

#include "penstock/array/read_slowly.hpp"
#include "penstock/core/read_order.hpp"
#include "penstock/group/this_group.hpp"

namespace penstock {

/// Where the bytes of an array are.
enum class array_kind : u32 {
  resident,  ///< in memory that the kernel reaches
  direct,    ///< behind a cache, by the kind of its directory
  set_associative,
};

/// A line in a frame that may be read without a pin, as R1 saw it.
struct hit_line {
  u64* entry;
  u64 word;
  u64 frame;  ///< address
};

/// How a kernel reaches the bytes of one dataset through a cache. Trivially copyable; the fields that a hit needs are copies.
///
/// Positions are addresses in the cache's line space: `base` + offset in the dataset, so that the line's number is one shift
/// away.
struct line_reader {
  u64* entries = nullptr;  ///< the directory's
  u64 frames_base = 0;
  array_kind kind = array_kind::resident;
  u32 hit_word = never;  ///< what the low bits of an entry are that may be read without a pin
  u32 line_shift = 0;
  u32 line_mask = 0;  ///< bytes of a line - 1
  u32 line_bytes = 0;
  u32 entry_bytes = sizeof(u64);  ///< a field, so that the address of an entry is one multiplication with a 64-bit result
  u32 place_mask = 0;             ///< of a place that has been shifted down
  set_map map;
  u64 base = 0;                            ///< address of the dataset's first byte
  line_cache_view const* cache = nullptr;  ///< for all but hits
  u64 zero = 0;                            ///< a zero that the compiler does not know of
  counter_set_view counters;               ///< the dataset's
  u32 dataset = 0;

  /// State and referenced bit: a line that is not referenced yet takes the slow way, which sets it.
  static constexpr u32 hit_mask = 3u | static_cast<u32>(entry::referenced_bit);
  static constexpr u32 readable_word = static_cast<u32>(line_state::valid) | static_cast<u32>(entry::referenced_bit);
  /// Versions too short for reads without a pin on this executor.
  static constexpr u32 never = ~0u;

  /// Over a dataset of a cache whose view kernels find at `cache`. The view is given, too, because that address may be one that
  /// only kernels reach.
  static line_reader over(line_cache_view const& view, line_cache_view const* cache, u32 dataset, u64 first_line,
                          counter_set_view const& counters) {
    line_reader r;
    r.entries = view.directory.entries;
    r.frames_base = view.frames_base;
    r.kind = view.directory.is_direct() ? array_kind::direct : array_kind::set_associative;
    if (view.validates) r.hit_word = readable_word;
    r.line_shift = view.line_shift;
    r.line_bytes = 1u << view.line_shift;
    r.line_mask = r.line_bytes - 1;
    r.place_mask = (1u << view.directory.layout.place_bits) - 1;
    r.map = view.directory.map;
    r.base = first_line << view.line_shift;
    r.cache = cache;
    r.counters = counters;
    r.dataset = dataset;
    return r;
  }

  PENSTOCK_FN line_id line_of(u64 address) const { return line_id{address >> line_shift}; }
  PENSTOCK_FN u32 within(u64 address) const { return static_cast<u32>(address) & line_mask; }

  /// R1: whether the line of an address is in a frame, valid and referenced; if so, `at` is set.
  template <read_order Order = read_order::sound>
  PENSTOCK_FORCE_INLINE bool find(u64 address, hit_line& at) const {
    return kind == array_kind::direct ? find_direct<Order>(address, at) : find_in_set<Order>(address, at);
  }

  /// The entry to pin for the line of an address. Of `direct` it follows from the address, and a look before the pin would make
  /// two trips to memory of one: a pin on what is no such line is taken back, as any passer-by's (PROTOCOLS.md §2,
  /// "Transitions").
  PENSTOCK_FORCE_INLINE bool find_entry(u64 address, hit_line& at) const {
    if (kind != array_kind::direct) return find_in_set<read_order::data>(address, at);
    at.entry = entry_of(address);
    return hit_word != never;
  }
  /// Whether a thread that added a pin to that entry, and saw it as `old`, holds the line; if so, `at` has its frame.
  PENSTOCK_FORCE_INLINE bool is_pinned(u64 old, hit_line& at) const {
    return kind == array_kind::direct ? take(old, at) : entry::same(old, at.word);
  }

  /// R2 to R4 of one piece against what R1 gave. False: nothing was learned.
  template <read_order Order = read_order::sound, class Piece>
  PENSTOCK_FORCE_INLINE bool try_read(hit_line const& at, u32 within_line, Piece& piece) const {
    const Piece read = load_piece_in_order<Order>(reinterpret_cast<Piece const*>(at.frame + within_line));
    if (!unchanged(at, tie_recheck_to<Order>(read, zero))) return false;
    piece = read;
    return true;
  }

  /// R4.
  PENSTOCK_FORCE_INLINE bool unchanged(hit_line const& at, u64 nothing = 0) const {
    return entry::same(at.word, load_entry_again(at.entry[nothing]));
  }

  /// The piece at `address`. REQUIRES: aligned to its size.
  /// Cost:   hit: three loads, in a set seven, and four for each set away from home that is looked at. Miss: one command, and a
  ///         wait for it.
  /// Errors: Piece{}; the first one is latched in the cache's fault slot.
  template <class Piece, read_order Order = read_order::sound>
  PENSTOCK_FORCE_INLINE Piece read(u64 address) const {
    const bool parted = is_parted();
    hit_line at;
    Piece piece{};
    const bool hit = find<Order>(address, at) && try_read<Order>(at, within(address), piece);
    return complete_here(parted, true, hit, address, piece);
  }

  /// `piece`, where all lanes of the group that want one have it; else all of them read theirs once more, by the slow path.
  /// Collective.
  ///
  /// A warp stays together: lanes with a hit that went on alone would not meet the others again, and each part of the warp
  /// would miss by itself from then on. So a group of the lanes that are here (`passing_group`) is made where this is called,
  /// after the hits, and nothing parts it before its last collective. The slow path brings it back together; a sync behind
  /// the call would not be safe (PROTOCOLS.md, "Lanes of a warp"). What a hit has read is read again so that a kernel keeps
  /// nothing of it across the call.
  template <class Piece, thread_group G>
  PENSTOCK_FORCE_INLINE Piece complete(G const& g, bool want, bool has, u64 address, Piece piece) const {
    return any_of(g, want && !has) ? read_slowly<Piece>(g, want, address) : piece;
  }

  /// Whether others of this warp are in the slow path of this dataset, or wait for these lanes to come: asked before a read of
  /// the lanes that are here, for no branch may stand behind its hits. A hint; a whole warp has no others.
  template <meeting_in Call = meeting_in::reads>
  PENSTOCK_FORCE_INLINE bool is_parted() const {
    return lanes_are_parted<Call>(meets_at());
  }

  /// As `complete` of the lanes that are here. Those that are parted from others of their warp meet them again
  /// (group/lane_meeting.hpp).
  template <class Piece>
  PENSTOCK_FORCE_INLINE Piece complete_here(bool parted, bool want, bool has, u64 address, Piece piece) const {
    const auto g = passing_group();
    if (!any_of(g, (want && !has) || parted)) return piece;
    const piece16 late =
        read_together(g, this_meeting<meeting_in::reads>(), meets_at(), *cache, dataset, want, address, sizeof(Piece));
    return want ? first_bytes<Piece>(late) : piece;
  }

  /// Everything but an undisturbed hit. Collective; lanes that want nothing help the others.
  template <class Piece, thread_group G>
  PENSTOCK_FN Piece read_slowly(G const& g, bool want, u64 address) const {
    return first_bytes<Piece>(penstock::read_slowly(g, *cache, dataset, want, address, sizeof(Piece)));
  }

  /// What lanes meet at: the dataset.
  PENSTOCK_FN u32 meets_at() const { return static_cast<u32>(reinterpret_cast<u64>(cache) >> 7) ^ dataset << 24 ^ 1u; }

 private:
  PENSTOCK_FORCE_INLINE u64* entry_of(u64 address) const {
    const u64 offset = static_cast<u64>(static_cast<u32>(address >> line_shift)) * entry_bytes;
    return reinterpret_cast<u64*>(reinterpret_cast<u64>(entries) + offset);
  }

  PENSTOCK_FORCE_INLINE u64 words_of_set(u32 set) const {
    return reinterpret_cast<u64>(entries) + static_cast<u64>(set * set_words) * entry_bytes;
  }

  // Of `direct`: the frame that a word names. False: it is not to be read without a pin.
  PENSTOCK_FORCE_INLINE bool take(u64 word, hit_line& at) const {
    at.word = word;
    at.frame = frames_base + static_cast<u64>(static_cast<u32>(word >> entry::identity_shift) & place_mask) * line_bytes;
    return (static_cast<u32>(word) & hit_mask) == hit_word;
  }

  template <read_order Order>
  PENSTOCK_FORCE_INLINE bool find_direct(u64 address, hit_line& at) const {
    at.entry = entry_of(address);
    return take(load_entry<Order>(*at.entry), at);
  }

  // The scan's loads are relaxed; the entry that it finds is loaded once more, and that is R1. In the cheaper orders the scan
  // was: which entry and which frame follow from what it read. The ways beyond the first sector of a set are looked at only
  // where those in it are others: what many hits are bound by is requests to L2 (docs/HIT_PATH.md). For the same reason other
  // sets than the line's home are looked at only where the home's header, which has come with the ways, names them.
  template <read_order Order>
  PENSTOCK_FORCE_INLINE bool find_in_set(u64 address, hit_line& at) const {
    const u64 line = address >> line_shift;
    const u32 upper = map.upper_of(line);
    const u32 mixed = map.mix_lower(static_cast<u32>(line), upper);
    const u32 home = map.set_of_lower(mixed);
    const u32 mask = place_mask << entry::identity_shift | hit_mask;
    u32 want = (map.tag_of_lower(mixed, upper) << map.reach_bits & place_mask) << entry::identity_shift | hit_word;
    u32 set = home, way = no_way;
    u64 seen = 0;
    const auto look_at = [&](u32 w, u64 word) {
      if (((static_cast<u32>(word) ^ want) & mask) != 0) return;
      way = w;
      seen = word;
    };
    u64 words = words_of_set(home);
    auto const* const pieces = reinterpret_cast<piece16 const*>(words);
    const piece16 a = load_piece(pieces), b = load_piece(pieces + 1);
    look_at(0, a.high);
    look_at(1, b.low);
    look_at(2, b.high);
    if (way == no_way) {
      const piece16 c = load_piece(pieces + 2), d = load_piece(pieces + 3);
      look_at(3, c.low);
      look_at(4, c.high);
      look_at(5, d.low);
      look_at(6, d.high);
    }
    // Most lines are at home, most homes have none away.
    if (way == no_way && set_header::away(a.low) != 0) {
      const u32 want_at_home = want;
      u32 away = set_header::away(a.low);
      do {
        const u32 distance = lowest_bit(away);
        away &= away - 1;
        set = home + distance < map.sets ? home + distance : home + distance - map.sets;
        want = want_at_home + (distance << entry::identity_shift);
        words = words_of_set(set);
        auto const* const beside = reinterpret_cast<piece16 const*>(words);
        const piece16 p = load_hint(beside), q = load_hint(beside + 1);
        look_at(0, p.high);
        look_at(1, q.low);
        look_at(2, q.high);
        if (way != no_way) break;
        const piece16 r = load_hint(beside + 2), s = load_hint(beside + 3);
        look_at(3, r.low);
        look_at(4, r.high);
        look_at(5, s.low);
        look_at(6, s.high);
      } while (way == no_way && away != 0);
    }
    if (way == no_way || hit_word == never) return false;
    at.entry = reinterpret_cast<u64*>(words + static_cast<u64>(way + 1) * entry_bytes);
    at.word = load_scanned_entry<Order>(*at.entry, seen);
    at.frame = frames_base + static_cast<u64>(set * set_ways + way) * line_bytes;
    return ((static_cast<u32>(at.word) ^ want) & mask) == 0;
  }
};

}  // namespace penstock
