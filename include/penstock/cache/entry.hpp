// The entry: one 64-bit word with everything about a line that must change together (PROTOCOLS.md §2).
//
//   63      48 47                                      5    4     3       2      1  0
//   [ pins 16 ][ version, 43 - P bits ][ place, P bits ][ ref ][dirty][writing][state]
//
// Pins are on top, so that a lost count cannot reach the identity. All transitions are read-modify-writes, because any thread
// may add a pin and take it back at any moment.
#pragma once

#include "penstock/core/bits.hpp"
#include "penstock/core/config.hpp"
#include "penstock/core/units.hpp"

namespace penstock {

enum class line_state : u32 { empty = 0, filling = 1, valid = 2, failed = 3 };

namespace entry {

inline constexpr u64 writing_bit = 1ull << 2;
inline constexpr u64 dirty_bit = 1ull << 3;
inline constexpr u64 referenced_bit = 1ull << 4;
inline constexpr u32 identity_shift = 5;
inline constexpr u32 identity_bits = 43;
inline constexpr u32 pin_shift = 48;
inline constexpr u64 one_pin = 1ull << pin_shift;
/// Most pins that a line takes; half of what the field holds, so that what is added before it is looked at cannot overflow.
inline constexpr u64 most_pins = 1ull << 15;
/// What a validated read compares: identity and state, not pins, dirty, writing or referenced.
inline constexpr u64 same_mask = 0x0000ffffffffffe3ull;
inline constexpr u64 identity_mask = ((1ull << identity_bits) - 1) << identity_shift;

/// From filling: published, or failed; added with release.
inline constexpr u64 publish = 1;
inline constexpr u64 fail = 2;
/// From valid: the frame's bytes are dropped, and the next access reads the line anew.
inline constexpr u64 forget = 1;

PENSTOCK_FN constexpr line_state state(u64 e) { return static_cast<line_state>(e & 3u); }
PENSTOCK_FN constexpr u64 pins(u64 e) { return e >> pin_shift; }
PENSTOCK_FN constexpr bool same(u64 a, u64 b) { return ((a ^ b) & same_mask) == 0; }
PENSTOCK_FN constexpr bool dirty(u64 e) { return (e & dirty_bit) != 0; }
PENSTOCK_FN constexpr bool writing(u64 e) { return (e & writing_bit) != 0; }
/// Its bytes are to be written, and no write is under way.
PENSTOCK_FN constexpr bool waits_for_write(u64 e) {
  return (e & (dirty_bit | writing_bit | 3u)) == (dirty_bit | static_cast<u64>(line_state::valid));
}
/// No thread holds it, nothing is to be written: it may be claimed or evicted.
PENSTOCK_FN constexpr bool at_rest(u64 e) { return pins(e) == 0 && (e & (dirty_bit | writing_bit)) == 0; }

}  // namespace entry

/// How the identity of an entry divides into place (`direct`: the frame's number; `set_associative`: the line's tag) and
/// version (fills of this line; claims of this frame). Fixed when the cache is made: the version gets what the place leaves.
struct entry_layout {
  u32 place_bits = 0;  ///< P

  PENSTOCK_FN u64 place(u64 e) const { return e >> entry::identity_shift & ((1ull << place_bits) - 1); }
  PENSTOCK_FN u64 without_place(u64 e) const { return e & ~(((1ull << place_bits) - 1) << entry::identity_shift); }
  PENSTOCK_FN bool same_place(u64 a, u64 b) const { return place(a ^ b) == 0; }
  /// The place in the low half of a word. REQUIRES: P <= 27.
  PENSTOCK_FN u32 low_place_mask() const { return ((1u << place_bits) - 1) << entry::identity_shift; }
  PENSTOCK_FN u32 version_bits() const { return entry::identity_bits - place_bits; }

  /// The word of a claim: same place, next version (it wraps inside its field), `pins` pins, filling, no flags.
  PENSTOCK_FN u64 claimed(u64 e, u64 pins) const {
    const u64 next = (e & entry::identity_mask) + (1ull << (entry::identity_shift + place_bits));
    return pins << entry::pin_shift | (next & entry::identity_mask) | static_cast<u64>(line_state::filling);
  }

  /// The same for another place.
  PENSTOCK_FN u64 claimed(u64 e, u64 pins, u64 new_place) const {
    return without_place(claimed(e, pins)) | new_place << entry::identity_shift;
  }

  /// The word of an evicted line: its version stays, so that the next fill gets another.
  PENSTOCK_FN u64 evicted(u64 e) const { return without_place(e & entry::identity_mask); }
};

}  // namespace penstock
