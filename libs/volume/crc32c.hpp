// CRC-32C (Castagnoli), as iSCSI (RFC 3720, section B.4) and ext4 have it: the checksum of all that a volume stores.
#pragma once

#include "penstock/core/config.hpp"

#include <cstddef>
#include <span>

namespace penstock::volumes {

/// Of `bytes`, or, given that of what goes before, of the two together. By the processor's instruction where it has one.
u32 crc32c(std::span<std::byte const> bytes, u32 before = 0);

/// The same by tables alone.
u32 crc32c_by_tables(std::span<std::byte const> bytes, u32 before = 0);

}  // namespace penstock::volumes
