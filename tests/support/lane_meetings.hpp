// How the lanes of an emulated group meet: each sends its value to every peer, then waits for the value of every peer.
//
// A collective other than `sync` must order no memory, or ThreadSanitizer would accept it in place of a missing `sync`. So all
// exchange is by relaxed atomics, and ThreadSanitizer, for which relaxed atomics are most of the work of a test, is not shown
// it at all. Relaxed stores to several words may be seen in any order; hence each word carries the number of the meeting that
// it belongs to and is judged alone. Only `sync` stores the head with release and loads it with acquire, and is shown.
//
// Meetings are numbered per pair of lanes: two lanes that are in the same groups meet in the same order, whatever other groups
// (other masks) each takes part in between. So a peer's next message that names another collective or another mask can only be
// a misuse, and is one on a GPU as well. Two message slots per direction suffice: who sends number n + 2 has received the
// peer's n + 1, which the peer sent after it had read number n.
#pragma once

#include "penstock/core/backoff.hpp"
#include "support/run_threads.hpp"

#include <array>
#include <bit>
#include <memory>
#include <utility>

namespace penstock::test {

enum class collective : u32 { none, ballot, match_any, shfl, sync, gone };

constexpr char const* name(collective c) {
  constexpr char const* names[] = {"none", "ballot", "match_any", "shfl", "sync", "gone"};
  return names[static_cast<u32>(c)];
}

inline std::string hex(u64 mask) {
  char text[17];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(mask));
  return text;
}

inline constexpr u64 meeting_timeout_ns = 20 * one_second_ns;

// Clang's and GCC's, which inline what is marked always_inline into it whatever its own attributes are.
#define PENSTOCK_UNSEEN_BY_TSAN __attribute__((no_sanitize("thread")))
#define PENSTOCK_PART_OF_CALLER __attribute__((always_inline)) inline

struct yields_meanwhile {
  yields_meanwhile() : before_(std::exchange(waits_by_yielding(), true)) {}
  ~yields_meanwhile() { waits_by_yielding() = before_; }

 private:
  bool before_;
};

/// Shared by all lanes of one emulated warp or block. Each lane is used by one thread only.
///
/// The collectives wait until all of `peers` (a set of lanes, this one among them) have come with the same one. They throw when
/// a peer came with something else, has left or does not come in time; in every lane once one has thrown.
class lane_meetings {
 public:
  static constexpr u32 max_lanes = 64;

  lane_meetings(u32 lanes, failure_latch& failure, u64 timeout_ns)
      : lanes_(lanes), failure_(failure), timeout_ns_(timeout_ns), storage_(std::make_unique<channel[]>(lanes * lanes)),
        channels_(storage_.get()) {}

  /// Which of them came with true.
  PENSTOCK_UNSEEN_BY_TSAN u64 ballot(u32 lane, u64 peers, bool yes) {
    return meet(lane, peers, {.kind = collective::ballot, .yes = yes}).agreeing;
  }
  /// Which of them came with this lane's value.
  PENSTOCK_UNSEEN_BY_TSAN u64 match_any(u32 lane, u64 peers, u64 value) {
    return meet(lane, peers, {.kind = collective::match_any, .value = value}).agreeing;
  }
  /// What lane `from`, one of them, came with.
  PENSTOCK_UNSEEN_BY_TSAN u64 shfl(u32 lane, u64 peers, u64 value, u32 from) {
    return meet(lane, peers, {.kind = collective::shfl, .value = value, .from = from}).received;
  }
  void sync(u32 lane, u64 peers) { meet(lane, peers, {.kind = collective::sync}); }

  /// Everything that one lane does. After it the lane takes part in nothing: who still waits for it is told at once.
  template <class Body>
  void run_lane(u32 lane, Body const& body) {
    const yields_meanwhile because_peers_share_its_core;
    try {
      body();
    } catch (lane_aborted const&) {
    } catch (...) {
      failure_.fail(std::current_exception());  // before the lane leaves, or a peer's complaint would come first
    }
    send(lane, ~(u64{1} << lane) & all_lanes(), 0, {.kind = collective::gone});
  }

  [[noreturn]] void misuse(std::string const& what) { failure_.fail_and_throw(what); }

 private:
  static constexpr u32 stamp_bits = 28;
  static constexpr u64 stamp_mask = (u64{1} << stamp_bits) - 1;
  static constexpr u64 said_yes = u64{1} << 35;

  struct message {
    std::atomic<u64> head{0};          // stamp : 28, yes : 1, collective : 3, low half of the peers : 32
    std::atomic<u64> low{0}, high{0};  // stamp : 32, half of the value : 32; only of match_any and shfl
  };
  struct channel {     // from one lane to one other
    message slots[2];  // by the stamp's lowest bit
    u32 sent = 0;      // stamp of the latest message; the sender's own
  };
  struct contribution {
    collective kind;
    bool yes = false;
    u64 value = 0;
    u32 from = 0;

    PENSTOCK_PART_OF_CALLER bool has_value() const { return kind == collective::match_any || kind == collective::shfl; }
  };
  struct roll_call {
    u64 here = 0;
    u64 elsewhere = 0;  // came with something else, or left
    u64 agreeing = 0;
    u64 received = 0;
  };

  u64 all_lanes() const { return lanes_ == 64 ? ~u64{0} : (u64{1} << lanes_) - 1; }
  PENSTOCK_PART_OF_CALLER channel& at(u32 from, u32 to) { return channels_[from * lanes_ + to]; }
  PENSTOCK_PART_OF_CALLER static u64 head_of(u64 stamp, collective kind, u64 peers) {
    return stamp << 36 | static_cast<u64>(kind) << 32 | (peers & 0xffffffffu);
  }

  PENSTOCK_PART_OF_CALLER roll_call meet(u32 lane, u64 peers, contribution mine);
  PENSTOCK_PART_OF_CALLER void send(u32 lane, u64 to, u64 peers, contribution mine);
  PENSTOCK_PART_OF_CALLER void look(u32 lane, u64 peers, contribution mine, roll_call& roll);
  [[noreturn]] void tell(u32 lane, u64 peers, collective kind, roll_call const& roll);

  u32 lanes_;
  failure_latch& failure_;
  u64 timeout_ns_;
  std::unique_ptr<channel[]> storage_;
  channel* channels_;
};

PENSTOCK_PART_OF_CALLER lane_meetings::roll_call lane_meetings::meet(u32 lane, u64 peers, contribution mine) {
  const u64 self = u64{1} << lane;
  const bool agrees = mine.kind == collective::match_any || mine.yes;
  roll_call roll = {.here = self, .agreeing = agrees ? self : 0, .received = mine.from == lane ? mine.value : 0};
  // A destructor that runs while its lane is unwound must not throw: it gets what a group of one would get.
  if (std::uncaught_exceptions() > 0) return roll;
  send(lane, peers & ~self, peers, mine);
  look(lane, peers, mine, roll);
  if (roll.here == peers) return roll;
  backoff patience(timeout_ns_);
  for (bool in_time = true;;) {
    if (failure_.failed()) throw lane_aborted();
    if (!in_time || (roll.here | roll.elsewhere) == peers) tell(lane, peers, mine.kind, roll);
    in_time = patience.pause();
    look(lane, peers, mine, roll);
    if (roll.here == peers) return roll;
  }
}

PENSTOCK_PART_OF_CALLER void lane_meetings::send(u32 lane, u64 to, u64 peers, contribution mine) {
  const auto order = mine.kind == collective::sync ? std::memory_order_release : std::memory_order_relaxed;
  for (; to != 0; to &= to - 1) {
    channel& c = at(lane, static_cast<u32>(__builtin_ctzll(to)));
    const u64 stamp = c.sent = static_cast<u32>((c.sent + 1) & stamp_mask);
    message& m = c.slots[stamp & 1];
    if (mine.has_value()) {
      m.low.store(stamp << 32 | (mine.value & 0xffffffffu), std::memory_order_relaxed);
      m.high.store(stamp << 32 | mine.value >> 32, std::memory_order_relaxed);
    }
    m.head.store(head_of(stamp, mine.kind, peers) | (mine.yes ? said_yes : 0), order);
  }
}

// A lane's own latest stamp to a peer is also the number of the message that it awaits from that peer.
PENSTOCK_PART_OF_CALLER void lane_meetings::look(u32 lane, u64 peers, contribution mine, roll_call& roll) {
  const auto order = mine.kind == collective::sync ? std::memory_order_acquire : std::memory_order_relaxed;
  for (u64 open = peers & ~(roll.here | roll.elsewhere); open != 0; open &= open - 1) {
    const u32 peer = static_cast<u32>(__builtin_ctzll(open));
    const u64 stamp = at(lane, peer).sent;
    message& m = at(peer, lane).slots[stamp & 1];
    const u64 head = m.head.load(order);
    if (head >> 36 != stamp) continue;
    if ((head & ~said_yes) != head_of(stamp, mine.kind, peers)) {
      roll.elsewhere |= u64{1} << peer;
      continue;
    }
    bool agrees = (head & said_yes) != 0;
    if (mine.kind == collective::match_any || (mine.kind == collective::shfl && peer == mine.from)) {
      const u64 low = m.low.load(std::memory_order_relaxed);
      const u64 high = m.high.load(std::memory_order_relaxed);
      if (low >> 32 != stamp || high >> 32 != stamp) continue;
      const u64 value = high << 32 | (low & 0xffffffffu);
      agrees = value == mine.value;
      roll.received = value;
    }
    if (agrees) roll.agreeing |= u64{1} << peer;
    roll.here |= u64{1} << peer;
  }
}

inline void lane_meetings::tell(u32 lane, u64 peers, collective kind, roll_call const& roll) {
  std::string what = std::string(name(kind)) + " on mask " + hex(peers) + " has only lanes " + hex(roll.here);
  for (u64 rest = peers & ~roll.here; rest != 0; rest &= rest - 1) {
    const u32 peer = static_cast<u32>(std::countr_zero(rest));
    what += "; lane " + std::to_string(peer);
    if ((roll.elsewhere >> peer & 1) == 0) {
      what += " did not come within " + std::to_string(timeout_ns_ / one_millisecond_ns) + " ms";
      continue;
    }
    const u64 head = at(peer, lane).slots[at(lane, peer).sent & 1].head.load(std::memory_order_relaxed);
    const auto found = static_cast<collective>(head >> 32 & 7);
    what +=
        found == collective::gone ? " has left" : std::string(" is in ") + name(found) + " on mask " + hex(head & 0xffffffffu);
  }
  misuse(what);
}

}  // namespace penstock::test
