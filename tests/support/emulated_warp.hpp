// A warp for tests on the CPU: one std::thread per lane, any sub-mask, and divergence as on a GPU: lanes of one warp may be in
// different groups at the same time, and each lane goes at its own pace between two collectives.
//
// ThreadSanitizer sees the truth: only `sync` orders memory (lane_meetings.hpp). A misuse fails the run with a message such as
// "match_any on mask 7 has only lanes 3; lane 2 has left" in place of a hang. Masks in messages are hexadecimal.
#pragma once

#include "penstock/group/thread_group.hpp"
#include "support/lane_meetings.hpp"

#include <deque>
#include <vector>

namespace penstock::test {

/// What the lanes of one warp share.
struct emulated_warp_state : lane_meetings {
  explicit emulated_warp_state(failure_latch& failure, u64 timeout_ns = meeting_timeout_ns)
      : lane_meetings(32, failure, timeout_ns) {}
};

/// One lane's view of a group of lanes of one warp. Copies mean the same lane and group.
class emulated_warp {
 public:
  /// REQUIRES: the lane is in the mask, and only this thread uses the lane.
  emulated_warp(emulated_warp_state& state, u32 lane, lane_mask mask) : state_(&state), lane_(lane), mask_(mask) {}

  u32 rank() const { return lane_; }
  lane_mask members() const { return mask_; }

  lane_mask match_any(u64 v) const { return static_cast<lane_mask>(state_->match_any(lane_, mask_, v)); }
  lane_mask ballot(bool p) const { return static_cast<lane_mask>(state_->ballot(lane_, mask_, p)); }
  u64 shfl(u64 v, u32 rank) const {
    if (rank >= 32 || !contains(mask_, rank)) {
      state_->misuse("shfl on mask " + hex(mask_) + " reads rank " + std::to_string(rank));
    }
    return state_->shfl(lane_, mask_, v, rank);
  }
  void sync() const { state_->sync(lane_, mask_); }

  /// The same lane in a narrower group, as after a branch that only these lanes took.
  /// REQUIRES: this lane is in `mask`, and `mask` is within members().
  emulated_warp subgroup(lane_mask mask) const {
    if (!contains(mask, lane_) || without(mask, mask_) != 0) {
      state_->misuse("subgroup " + hex(mask) + " of mask " + hex(mask_) + " is not for lane " + std::to_string(lane_));
    }
    return {*state_, lane_, mask};
  }

 private:
  emulated_warp_state* state_;
  u32 lane_;
  lane_mask mask_;
};
static_assert(thread_group<emulated_warp>);

/// One thread of a run: lane `lane` of warp `warp`, in the group `group` of that warp.
struct lane_assignment {
  u32 warp;
  u32 lane;
  lane_mask group;
};

/// Calls body(emulated_warp const&, lane_assignment const&) in one thread per assignment. Rethrows the first failure of any
/// lane, which ends the collectives of all lanes of all warps of the run.
template <class Body>
void run_lanes(std::vector<lane_assignment> const& lanes, Body const& body, u64 timeout_ns = meeting_timeout_ns) {
  failure_latch failure;
  std::deque<emulated_warp_state> warps;
  for (lane_assignment const& a : lanes) {
    while (warps.size() <= a.warp) warps.emplace_back(failure, timeout_ns);
  }
  run_threads(static_cast<u32>(lanes.size()), failure, [&](u32 i) {
    lane_assignment const& a = lanes[i];
    warps[a.warp].run_lane(a.lane, [&] { body(emulated_warp(warps[a.warp], a.lane, a.group), a); });
  });
}

/// Appends the lanes of one group of one warp.
inline void assign_group(std::vector<lane_assignment>& lanes, u32 warp, lane_mask group) {
  for (lane_mask rest = group; rest != 0; rest &= rest - 1) lanes.push_back({warp, lowest(rest), group});
}

/// Random disjoint masks, none empty, that make up `mask`: from one group of all to groups of one, with holes.
template <class Random>
std::vector<lane_mask> random_partition(Random& rng, lane_mask mask) {
  std::vector<lane_mask> parts(1 + rng() % (count(mask) + 1));
  for (lane_mask rest = mask; rest != 0; rest &= rest - 1) parts[rng() % parts.size()] |= rest & (0 - rest);
  std::erase(parts, lane_mask{0});
  return parts;
}

/// Calls body(emulated_warp const&) in one thread per lane of `mask`, as one group of one warp.
template <class Body>
void run_emulated_warp(lane_mask mask, Body const& body, u64 timeout_ns = meeting_timeout_ns) {
  std::vector<lane_assignment> lanes;
  assign_group(lanes, 0, mask);
  run_lanes(lanes, [&](emulated_warp const& g, lane_assignment const&) { body(g); }, timeout_ns);
}

/// As run_emulated_warp, with the lanes split into random groups that run at once in one warp.
template <class Random, class Body>
void run_partition(Random& rng, lane_mask mask, Body const& body, u64 timeout_ns = meeting_timeout_ns) {
  std::vector<lane_assignment> lanes;
  for (lane_mask part : random_partition(rng, mask)) assign_group(lanes, 0, part);
  run_lanes(lanes, [&](emulated_warp const& g, lane_assignment const&) { body(g); }, timeout_ns);
}

}  // namespace penstock::test
