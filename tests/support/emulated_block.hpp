// A block for tests on the CPU: up to 64 lanes, one std::thread each, with the wide mask of group/block.hpp. The same meetings
// as emulated_warp, always of the whole group, as on a GPU.
#pragma once

#include "penstock/group/block.hpp"
#include "support/lane_meetings.hpp"

namespace penstock::test {

class emulated_block {
 public:
  /// REQUIRES: only this thread uses the lane; lane < lanes <= 64.
  emulated_block(lane_meetings& state, u32 lane, u32 lanes)
      : state_(&state), lane_(lane), lanes_(lanes), peers_(lanes == 64 ? ~u64{0} : (u64{1} << lanes) - 1) {}

  u32 rank() const { return lane_; }
  block_mask members() const { return first_ranks(lanes_); }

  block_mask match_any(u64 v) const { return mask_of(state_->match_any(lane_, peers_, v)); }
  block_mask ballot(bool p) const { return mask_of(state_->ballot(lane_, peers_, p)); }
  u64 shfl(u64 v, u32 rank) const {
    if (rank >= lanes_) state_->misuse("shfl on mask " + hex(peers_) + " reads rank " + std::to_string(rank));
    return state_->shfl(lane_, peers_, v, rank);
  }
  void sync() const { state_->sync(lane_, peers_); }

 private:
  static block_mask mask_of(u64 lanes) { return {{static_cast<u32>(lanes), static_cast<u32>(lanes >> 32)}}; }

  lane_meetings* state_;
  u32 lane_;
  u32 lanes_;
  u64 peers_;
};
static_assert(thread_group<emulated_block>);

/// Calls body(emulated_block const&) in one thread per lane. Rethrows the first failure of any lane.
template <class Body>
void run_emulated_block(u32 lanes, Body const& body, u64 timeout_ns = meeting_timeout_ns) {
  failure_latch failure;
  lane_meetings state(lanes, failure, timeout_ns);
  run_threads(lanes, failure, [&](u32 lane) { state.run_lane(lane, [&] { body(emulated_block(state, lane, lanes)); }); });
}

}  // namespace penstock::test
