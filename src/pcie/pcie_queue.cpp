#include "pcie_queue.hpp"

#include <mutex>

namespace penstock::pcie {

bool pcie_queue::serve() {
  if (!told_here_) return false;  // its words may lie where the host does not reach them
  const bool submitted = forward(rings_.sq_doorbell, submission_, false, rings_.sq_entries);
  const bool completed = forward(rings_.cq_doorbell, completion_, true, rings_.cq_entries);
  return submitted || completed;
}

/// The entries that a tail stands for are written (acquire), and so are what the device reads of them: a store to a register
/// follows all earlier stores to memory. That holds where a GPU rings, too. Its lanes write entries and bounce buffers to host
/// memory, publish their slots, and the one that rings stores the word with release at system scope: what its lanes published
/// comes before it, and on PCIe a write does not pass an earlier one, so who loads the word has the entries in memory. (The way
/// back needs nobody here: the device writes data, then the completion, to the same memory, in that order; the lane that sees
/// the phase loads it with acquire at system scope, and what it reads after that is no older.)
bool pcie_queue::forward(u32* from, doorbell& last, bool completion, u32 entries) {
  const u32 value = system_ref<u32>(*from).load(acquire);
  if (value == last.told) return false;
  if (value >= entries) {
    if (value != last.refused) lives_.refused_doorbells.fetch_add(1, relaxed);
    last.refused = value;
    return false;
  }
  // Who holds the gate alone turns the controller off: this queue is then gone, or about to be.
  const std::shared_lock open(lives_.gate, std::try_to_lock);
  if (!open.owns_lock() || life_ != lives_.current.load(relaxed)) return false;
  // A store to the device's memory does not pass one to its registers, nor the other way.
  if (!completion && copy_.there() && !copy_.tell(rings_.sq, rings_.sq_entries, last.told, value)) return false;
  const bool rings = !last.shadow.there() || last.shadow.tell(value, last.told);
  if (rings) registers_.ring(rings_.id, completion, value);
  (rings ? lives_.doorbells : lives_.spared_doorbells).fetch_add(1, relaxed);
  last.told = value;
  return true;
}

}  // namespace penstock::pcie
