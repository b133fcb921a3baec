// A GPU's memory that a device of another maker reaches (dma-buf).
#pragma once

#include "slab_pool.hpp"

#include "penstock/executor/memory.hpp"

#include <memory>
#include <string>

namespace penstock {

/// Pieces of that GPU's memory, mapped for `device` in slabs of 64 MiB. Null where that cannot be, and `reason` says why.
std::unique_ptr<slab_pool> open_peer_memory(int gpu, peer_mapper& device, std::string& reason);

}  // namespace penstock
