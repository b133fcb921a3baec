// Memory of GPUs that processes share (CUDA driver API, "Virtual Memory Management"): each part is named by a file descriptor,
// and each process maps those of all side by side.
#pragma once

#include "penstock/executor/memory.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace penstock::memory_parts {

// As the functions of memory_resource, for one GPU.
int make(int gpu, u64 bytes);
std::byte* map(int gpu, std::span<memory_part const> parts);
/// REQUIRES: no kernel reads them.
void unmap(std::byte* begin, std::span<memory_part const> parts) noexcept;

/// Its UUID.
std::string name_of(int gpu);
std::string no_fast_link(int gpu, std::string const& place);

}  // namespace penstock::memory_parts
