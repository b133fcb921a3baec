// A volume: an ordered set of namespaces and how a dataset's bytes lie on them.
#pragma once

#include "penstock/core/config.hpp"
#include "penstock/core/units.hpp"

namespace penstock {

enum class volume_layout : u32 {
  single,      ///< one namespace
  striped,     ///< pieces of `stripe_bytes` go round the members
  replicated,  ///< every member holds everything; a read asks one of them
};

/// One namespace and the queue pairs that lead to its controller.
struct volume_member {
  u32 namespace_id = 0;
  u32 block_shift = 9;  ///< log2 of the logical block size
  u32 first_queue = 0;  ///< in the cache's queue set
  u32 queues = 0;
};

/// Most members of a volume.
inline constexpr u32 volume_members_limit = 16;

struct volume_view {
  struct place {
    u32 member;
    byte_offset offset;  ///< on that member
  };

  volume_layout layout = volume_layout::single;
  u32 members_count = 0;
  u32 stripe_shift = 0;  ///< log2 of the stripe; at least a line
  volume_member members[volume_members_limit];

  /// Where the bytes at `offset` lie. `hint` spreads reads over replicas.
  PENSTOCK_FN place locate(byte_offset offset, u32 hint) const {
    const u64 at = value(offset);
    switch (layout) {
      case volume_layout::single: return {0, offset};
      case volume_layout::replicated: return {hint % members_count, offset};
      case volume_layout::striped: break;
    }
    const u64 stripe = at >> stripe_shift;
    const u64 within = at & ((1ull << stripe_shift) - 1);
    return {static_cast<u32>(stripe % members_count), byte_offset{(stripe / members_count << stripe_shift) + within}};
  }
};

}  // namespace penstock
