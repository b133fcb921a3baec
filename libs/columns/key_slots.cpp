#include "libs/columns/key_slots.hpp"

#include <bit>

namespace penstock::columns {

placed_keys place_keys(std::span<u64 const> keys) {
  placed_keys placed;
  placed.slots = std::bit_ceil(2 * keys.size() + 2);
  std::vector<u64> held(placed.slots);  // number of the key + 1; 0: free
  placed.slot_of.reserve(keys.size());
  for (u64 k = 0; k < keys.size(); ++k) {
    u64 slot = first_slot(keys[k], placed.slots);
    while (held[slot] != 0 && keys[held[slot] - 1] != keys[k]) slot = (slot + 1) & (placed.slots - 1);
    if (held[slot] != 0 && !placed.again) placed.again = k;
    if (held[slot] == 0) held[slot] = k + 1;
    placed.slot_of.push_back(slot);
  }
  return placed;
}

}  // namespace penstock::columns
