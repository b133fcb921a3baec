// A CUDA block as one group of up to 1024 threads: for work where a block stays on a line (BaM dissertation 6.2.3). Its mask is
// as wide as the group, so code over a thread_group names masks by `auto` and asks them through the functions below.
#pragma once

#include "penstock/group/lone_thread.hpp"
#include "penstock/group/thread_group.hpp"

namespace penstock {

/// Set of members of a group of up to 1024 threads. Words beyond the group are 0.
///
/// No word is ever indexed by a value that only the run knows: nvcc 13.0 gave two masks that were in memory for such an index
/// the same memory, and one overwrote the other. Unrolled, they stay in registers.
struct block_mask {
  static constexpr u32 word_count = 32;

  u32 words[word_count] = {};

  PENSTOCK_FN void insert(u32 rank) {
    PENSTOCK_UNROLL
    for (u32 w = 0; w < word_count; ++w) words[w] |= w == rank / 32 ? 1u << rank % 32 : 0;
  }

  PENSTOCK_FN friend bool operator==(block_mask const& a, block_mask const& b) {
    bool equal = true;
    PENSTOCK_UNROLL
    for (u32 w = 0; w < word_count; ++w) equal &= a.words[w] == b.words[w];
    return equal;
  }
};

PENSTOCK_FN inline bool any(block_mask const& m) {
  u32 all = 0;
  PENSTOCK_UNROLL
  for (u32 w = 0; w < block_mask::word_count; ++w) all |= m.words[w];
  return all != 0;
}

PENSTOCK_FN inline u32 count(block_mask const& m) {
  u32 n = 0;
  PENSTOCK_UNROLL
  for (u32 w = 0; w < block_mask::word_count; ++w) n += bit_count(m.words[w]);
  return n;
}

/// REQUIRES: any(m).
PENSTOCK_FN inline u32 lowest(block_mask const& m) {
  u32 found = 0;
  PENSTOCK_UNROLL
  for (u32 w = block_mask::word_count; w-- > 0;) {
    if (m.words[w] != 0) found = 32 * w + lowest_bit(m.words[w]);
  }
  return found;
}

PENSTOCK_FN inline bool contains(block_mask const& m, u32 rank) {
  u32 word = 0;
  PENSTOCK_UNROLL
  for (u32 w = 0; w < block_mask::word_count; ++w) word = w == rank / 32 ? m.words[w] : word;
  return contains(word, rank % 32);
}

PENSTOCK_FN inline u32 count_below(block_mask const& m, u32 rank) {
  u32 n = 0;
  PENSTOCK_UNROLL
  for (u32 w = 0; w < block_mask::word_count; ++w) {
    n += w < rank / 32 ? bit_count(m.words[w]) : w == rank / 32 ? count_below(m.words[w], rank % 32) : 0;
  }
  return n;
}

/// Rank of the member that has n members below it. REQUIRES: n < count(m).
PENSTOCK_FN inline u32 nth(block_mask const& m, u32 n) {
  u32 found = 0, before = 0;
  PENSTOCK_UNROLL
  for (u32 w = 0; w < block_mask::word_count; ++w) {
    const u32 here = bit_count(m.words[w]);
    if (n >= before && n < before + here) found = 32 * w + nth(m.words[w], n - before);
    before += here;
  }
  return found;
}

PENSTOCK_FN inline block_mask without(block_mask a, block_mask const& b) {
  PENSTOCK_UNROLL
  for (u32 w = 0; w < block_mask::word_count; ++w) a.words[w] &= ~b.words[w];
  return a;
}

/// The ranks 0 to n - 1. REQUIRES: n <= 1024.
PENSTOCK_FN inline block_mask first_ranks(u32 n) {
  block_mask m;
  PENSTOCK_UNROLL
  for (u32 w = 0; w < block_mask::word_count; ++w) {
    m.words[w] = n >= 32 * (w + 1) ? 0xffffffffu : n > 32 * w ? (1u << n % 32) - 1 : 0;
  }
  return m;
}

#if defined(__CUDACC__)

/// What the threads of a block exchange through: `__shared__ block_scratch scratch;`, used by nothing else while the group
/// lives.
struct block_scratch {
  u64 values[1024];
  u32 words[block_mask::word_count];
};

/// All threads of the block, in any shape of up to three dimensions. As with `warp`, the functions carry both targets only so
/// that templates over a thread_group may.
/// REQUIRES: every thread of the block makes one and takes part in every collective; none has exited.
class block {
 public:
  PENSTOCK_FN explicit block(block_scratch& scratch) : scratch_(&scratch) {
#if PENSTOCK_ON_DEVICE
    rank_ = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    size_ = blockDim.x * blockDim.y * blockDim.z;
#endif
  }

  PENSTOCK_FN u32 rank() const { return rank_; }
  PENSTOCK_FN block_mask members() const { return first_ranks(size_); }

  /// Cost: two barriers where all values are equal; else three, and each thread reads the values of all.
  PENSTOCK_FN block_mask match_any(u64 v) const {
    scratch_->values[rank_] = v;
    barrier();
    if (all_of_block(v == scratch_->values[0])) return members();
    block_mask m;
    PENSTOCK_UNROLL
    for (u32 w = 0; w < block_mask::word_count; ++w) {
      for (u32 r = 32 * w; r < size_ && r < 32 * (w + 1); ++r) m.words[w] |= (scratch_->values[r] == v ? 1u : 0u) << r % 32;
    }
    barrier();  // all have read before the next collective writes
    return m;
  }

  /// Cost: two barriers.
  PENSTOCK_FN block_mask ballot(bool p) const {
    const u32 word = warp_ballot(p);
    if (rank_ % 32 == 0) scratch_->words[rank_ / 32] = word;
    barrier();
    block_mask m;
    PENSTOCK_UNROLL
    for (u32 w = 0; w < block_mask::word_count; ++w) m.words[w] = 32 * w < size_ ? scratch_->words[w] : 0;
    barrier();
    return m;
  }

  /// Cost: two barriers.
  PENSTOCK_FN u64 shfl(u64 v, u32 rank) const {
    scratch_->values[rank_] = v;
    barrier();
    const u64 theirs = scratch_->values[rank];
    barrier();
    return theirs;
  }

  PENSTOCK_FN void sync() const { barrier(); }

 private:
  // The lanes of a warp may come from different branches of the caller, so not `__syncthreads`, which wants them together.
  PENSTOCK_FN static void barrier() {
#if PENSTOCK_ON_DEVICE
    asm volatile("barrier.sync 0;" ::: "memory");
#else
    __builtin_trap();
#endif
  }

  /// A barrier as well.
  PENSTOCK_FN static bool all_of_block([[maybe_unused]] bool p) {
#if PENSTOCK_ON_DEVICE
    u32 all;
    asm volatile(
        "{\n"
        "  .reg .pred mine, every;\n"
        "  setp.ne.u32 mine, %1, 0;\n"
        "  barrier.red.and.pred every, 0, mine;\n"
        "  selp.u32 %0, 1, 0, every;\n"
        "}"
        : "=r"(all)
        : "r"(static_cast<u32>(p))
        : "memory");
    return all != 0;
#else
    __builtin_trap();
#endif
  }

  /// The last warp of a block may have fewer than 32 lanes.
  PENSTOCK_FN u32 warp_ballot([[maybe_unused]] bool p) const {
#if PENSTOCK_ON_DEVICE
    const u32 in_warp = size_ - rank_ / 32 * 32;
    return __ballot_sync(in_warp >= 32 ? 0xffffffffu : (1u << in_warp) - 1, p);
#else
    __builtin_trap();
#endif
  }

  block_scratch* scratch_;
  u32 rank_ = 0;
  u32 size_ = 1;
};
static_assert(thread_group<block>);

#endif

}  // namespace penstock
