// How the four steps of a validated read are kept in order (PROTOCOLS.md §2): R1 loads the entry, R2 the piece, R3 keeps R4
// behind R2, R4 loads the entry again.
#pragma once

#include "penstock/core/memory_access.hpp"

namespace penstock {

/// All but `sound` are for CUDA hardware that never loads from an address that it guessed (PROTOCOLS.md §2, "Cheaper orders");
/// on a CPU they are `sound`.
enum class read_order {
  sound,    ///< R1 acquire; R2 acquire, or a fence behind it where it is of 16 bytes
  address,  ///< R1 relaxed: from R1 to R2 there is the address that R2 needs R1 for. R2 as above
  data,     ///< nothing stronger than relaxed: R4's address is made from what R2 read, as R2's is from R1
};

/// R1.
template <read_order Order>
PENSTOCK_FN u64 load_entry(u64& entry) {
  if constexpr (Order == read_order::sound) {
    return load_piece_acquire(&entry);
  } else {
    return load_piece(&entry);
  }
}

/// R1 of an entry that a scan has found; `seen` is the word that it saw. In the cheaper orders that is R1: the frame's address
/// follows from it. On a CPU the scan's loads were acquires.
template <read_order Order>
PENSTOCK_FN u64 load_scanned_entry([[maybe_unused]] u64& entry, u64 seen) {
#if PENSTOCK_ON_DEVICE
  if constexpr (Order == read_order::sound) return load_piece_acquire(&entry);
#endif
  return seen;
}

/// R4.
PENSTOCK_FN inline u64 load_entry_again(u64& entry) {
#if PENSTOCK_ON_DEVICE
  return load_piece(&entry);
#else
  return device_ref<u64>(entry).load(relaxed);
#endif
}

/// R3 behind loads of more than one piece, or of 16 bytes.
template <read_order Order>
PENSTOCK_FN void order_before_recheck() {
  if constexpr (Order != read_order::data) order_read_before_recheck();
}

/// R2 and R3. An acquire keeps R4 behind it, and a load that saw a byte of a later fill synchronizes with the fence that
/// followed that fill's claim: what `order_claim_before_bytes` is for.
template <read_order Order, class T>
PENSTOCK_FN T load_piece_in_order(T const* p) {
  if constexpr (Order == read_order::data) {
    return load_piece(p);
  } else if constexpr (sizeof(T) == 16) {
    const T read = load_piece(p);
    order_before_recheck<Order>();
    return read;
  } else {
    return load_piece_acquire(p);
  }
}

/// A word that depends on every byte of a piece.
template <class T>
PENSTOCK_FN u64 fold(T const& piece) {
  if constexpr (sizeof(T) == 16) {
    const auto whole = std::bit_cast<piece16>(piece);
    return whole.low ^ whole.high;
  } else {
    return static_cast<u64>(piece);
  }
}

/// The order `data`: what is added to the index of R4's address, 0, which only the launch knows. `zero` is a zero that the
/// compiler can't see; `read` is what R2 read.
template <read_order Order, class T>
PENSTOCK_FN u64 tie_recheck_to([[maybe_unused]] T const& read, [[maybe_unused]] u64 zero) {
#if PENSTOCK_ON_DEVICE
  if constexpr (Order == read_order::data) return fold(read) & zero;
#endif
  return 0;
}

}  // namespace penstock
