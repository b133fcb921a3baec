#include "libs/columns/key_slots.hpp"

#include <algorithm>
#include <bit>

namespace penstock::columns {
namespace {

constexpr u64 span_for_a_slot = 2;

void place_by_value(std::span<u64 const> keys, placed_keys& placed) {
  std::vector<bool> held(placed.places);
  for (u64 k = 0; k < keys.size(); ++k) {
    const u64 place = keys[k] - placed.low;
    if (held[place] && !placed.again) placed.again = k;
    held[place] = true;
    placed.place_of[k] = place;
  }
}

void place_in_slots(std::span<u64 const> keys, placed_keys& placed) {
  std::vector<u64> held(placed.places);  // number of the key + 1; 0: free
  for (u64 k = 0; k < keys.size(); ++k) {
    u64 slot = first_slot(keys[k], placed.places);
    while (held[slot] != 0 && keys[held[slot] - 1] != keys[k]) slot = (slot + 1) & (placed.places - 1);
    if (held[slot] != 0 && !placed.again) placed.again = k;
    if (held[slot] == 0) held[slot] = k + 1;
    placed.place_of[k] = slot;
  }
}

}  // namespace

placed_keys place_keys(std::span<u64 const> keys) {
  placed_keys placed;
  placed.place_of.resize(keys.size());
  placed.places = std::bit_ceil(2 * keys.size() + 2);
  if (keys.empty()) return placed;
  const auto signed_less = [](u64 a, u64 b) { return static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b); };
  const auto [least, greatest] = std::minmax_element(keys.begin(), keys.end(), signed_less);
  placed.by_value = *greatest - *least < span_for_a_slot * placed.places;
  if (placed.by_value) {
    placed.low = *least;
    placed.places = *greatest - *least + 1;
    place_by_value(keys, placed);
  } else {
    place_in_slots(keys, placed);
  }
  return placed;
}

}  // namespace penstock::columns
