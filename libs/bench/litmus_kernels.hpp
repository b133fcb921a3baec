// Kernel of `penstock bench litmus`: refills against reads. Each group fills its own line over and over, as a claim, a drive
// and a completion would, and reads its neighbours' lines: without a pin, and now and then, as a whole warp, under one.
#pragma once

#include "penstock/array/pinned_line.hpp"
#include "penstock/core/backoff.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/executor/launch.hpp"

namespace penstock::bench {

inline constexpr u32 litmus_line_bytes = 512;
inline constexpr u64 hold_up_ns = 300;  ///< some refills long

/// What a group adds to at its end.
struct litmus_counts {
  u64 refills = 0;
  u64 accepted = 0;  ///< reads that were validated
  u64 rejected = 0;  ///< reads that a refill overtook
  u64 wrong = 0;     ///< accepted, and of another fill than the entry's: what must not be
  u64 stuck = 0;     ///< lines whose pins were not given back for a second: likewise
};

/// Group t owns line t of a `direct` directory, which stays in frame t; fill r of a line is the word r, over and over. So a
/// piece says which fill it is of, and its entry's version which it must be of.
template <read_order Order>
struct race_refills {
  line_reader reader;
  u32 place_bits = 0;
  u32 lines = 0;
  u64 before = 0;  ///< refills that each line has had
  u64 rounds = 0;
  u32 neighbours = 0;  ///< whose lines a group reads: the next so many
  litmus_counts* counts = nullptr;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    for (u64 t = range.first; t < range.last; t += range.step) run(g, t);
  }

 private:
  template <thread_group G>
  PENSTOCK_FN void run(G const& g, u64 own) const {
    const u32 me = index_in(g);
    litmus_counts mine;
    for (u64 r = before + 1; r <= before + rounds; ++r) {
      if (!refill(g, own, r)) break;  // it would wait as long in each of the rounds that are left
      if (r % 4 == 0) hold(g, (own + 1 + r % neighbours) % lines, mine);
      for (u32 k = 0; k < neighbours; ++k) {
        const u64 line = (own + 1 + (r + k) % neighbours) % lines;
        const u32 offset = static_cast<u32>(r + k + me) % (litmus_line_bytes / 16) * 16;
        const u64 address = line * litmus_line_bytes + offset;
        switch ((r + k) % 5) {
          case 0: look<u8>(address, (r + k) % 8 == 0, mine); break;
          case 1: look<u16>(address, (r + k) % 8 == 0, mine); break;
          case 2: look<u32>(address, (r + k) % 8 == 0, mine); break;
          case 3: look<u64>(address, (r + k) % 8 == 0, mine); break;
          default: look<piece16>(address, (r + k) % 8 == 0, mine); break;
        }
      }
    }
    if (is_leader(g)) device_ref<u64>(counts->refills).fetch_add(rounds, relaxed);
    device_ref<u64>(counts->accepted).fetch_add(mine.accepted, relaxed);
    device_ref<u64>(counts->rejected).fetch_add(mine.rejected, relaxed);
    device_ref<u64>(counts->wrong).fetch_add(mine.wrong, relaxed);
  }

  // The steps of PROTOCOLS.md §2: evict, claim, place, fence, bytes, publish; and the referenced bit, without which no read
  // tries. False: the line could not be had.
  template <thread_group G>
  PENSTOCK_FN bool refill(G const& g, u64 own, u64 r) const {
    const entry_layout layout{place_bits};
    const device_ref<u64> word(reader.entries[own]);
    bool took = true;
    if (is_leader(g)) {
      took = take(word, [&](u64 e) { return layout.evicted(e); }) && take(word, [&](u64 e) { return layout.claimed(e, 0); });
      if (!took) device_ref<u64>(counts->stuck).fetch_add(1, relaxed);
    }
    if (from_leader(g, took) == 0) return false;
    if (is_leader(g)) {
      word.fetch_add(own << entry::identity_shift, relaxed);
      order_claim_before_bytes();
    }
    g.sync();
    order_claim_before_bytes();  // each lane's stores stay behind the claim
    const u64 frame = reader.frames_base + own * litmus_line_bytes;
    for (u32 at = 16 * index_in(g); at < litmus_line_bytes; at += 16 * size(g)) store_shared(frame + at, {r, r});
    g.sync();
    if (!is_leader(g)) return true;
    word.fetch_add(entry::publish, release);
    word.fetch_or(entry::referenced_bit, relaxed);
    return true;
  }

  /// Changes an entry that nobody has a pin on; a passer-by's is soon taken back. False: one was not, for a second.
  template <class Next>
  PENSTOCK_FN bool take(device_ref<u64> const& word, Next const& next) const {
    backoff wait(one_second_ns);
    for (u64 e = word.load(relaxed);; e = word.load(relaxed)) {
      if (entry::at_rest(e) && word.compare_exchange_strong(e, next(e), acq_rel, relaxed)) return true;
      if (!wait.pause()) return false;
    }
  }

  /// A line under a pin, and a piece of it for each lane. Collective; whole warps only.
  template <thread_group G>
  PENSTOCK_FN void hold(G const& g, u64 line, litmus_counts& mine) const {
    constexpr read_order how = Order == read_order::data ? Order : read_order::sound;
    if (size(g) < 32) return;
    const held_line held = pin_at_once<how>(g, reader, line_id{line});
    if (held.frame == 0) {
      ++mine.rejected;
      return;
    }
    // Which fill it is of does not change under the pin.
    const u64 word = load_piece(&reader.entries[line]);
    const piece16 piece = load_piece(reinterpret_cast<piece16 const*>(held.frame) + index_in(g));
    unpin_read<how>(g, held.entry, tie_recheck_to<how>(piece, reader.zero) | tie_recheck_to<how>(word, reader.zero));
    ++mine.accepted;
    if (!of_fill(piece, version_of(word))) ++mine.wrong;
  }

  PENSTOCK_FN u64 version_of(u64 word) const { return (word & entry::identity_mask) >> (entry::identity_shift + place_bits); }

  /// `sleeps`: held up between R1 and R2, as by an interrupt: most of those must be rejected.
  template <class Piece>
  PENSTOCK_FN void look(u64 address, bool sleeps, litmus_counts& mine) const {
    hit_line at{};
    Piece piece{};
    const bool found = reader.find<Order>(address, at);
    if (found && sleeps) {
      const u64 until = now_ns() + hold_up_ns;
      while (now_ns() < until) {}
    }
    if (!found || !reader.try_read<Order>(at, reader.within(address), piece)) {
      ++mine.rejected;
      return;
    }
    ++mine.accepted;
    if (!of_fill(piece, version_of(at.word))) ++mine.wrong;
  }

  /// As many bits as both have.
  template <class Piece>
  PENSTOCK_FN bool of_fill(Piece piece, u64 version) const {
    const u64 version_mask = (1ull << entry_layout{place_bits}.version_bits()) - 1;
    if constexpr (sizeof(Piece) == 16) {
      return (piece.low & version_mask) == version && (piece.high & version_mask) == version;
    } else {
      return static_cast<Piece>(version & version_mask) == static_cast<Piece>(piece & version_mask);
    }
  }
};

}  // namespace penstock::bench
