// What elements are read as: naturally aligned pieces that one load takes.
#pragma once

#include "penstock/core/memory_access.hpp"

#include <type_traits>

namespace penstock {

/// The largest naturally aligned piece, up to 16 bytes, that a T is made of.
template <class T>
inline constexpr u64 piece_bytes = sizeof(T) % 16 == 0 && alignof(T) >= 16 ? 16
                                   : alignof(T) > 8                        ? 8
                                                                           : alignof(T);

template <u64 Bytes>
using piece_of = std::conditional_t<
    Bytes == 16, piece16,
    std::conditional_t<Bytes == 8, u64, std::conditional_t<Bytes == 4, u32, std::conditional_t<Bytes == 2, u16, u8>>>>;

}  // namespace penstock
