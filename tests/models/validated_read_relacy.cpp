// The validated read (array/line_reader.hpp) and the pin (cache/line_cache_view.hpp) against eviction, claim and refill of the
// same frame, with the memory orders of the code. One frame, two lines, `direct` directory.
//
// A word of an entry is version * 4 + state, plus `one_pin` for each pin; there is one frame, so `place` is left out. A piece
// of the frame holds line * 64 + the version of its fill: a reader knows exactly which value the entry that it saw stands for.
#include "relacy_run.hpp"

namespace {

enum {
  e1_read_relaxed = 1,      // R1 relaxed
  e1_no_recheck_order = 2,  // no R3 (CUDA); R2 relaxed (CPU, where R2's acquire is R3)
  e1_no_claim_order = 3,    // no fence after the claim (CUDA); bytes stored relaxed (CPU)
  e2_no_version = 4,        // SAME compares the state only
  e2_one_bit = 5,           // a version of one bit
  e8_unpin_relaxed = 6,     // unpin after reads
  e8_lanes_without_fence = 7,
  publish_relaxed = 8,
  peers_without_meeting = 9,  // peers read the frame on the word of a leader, with nothing but a shuffle between
};

constexpr auto relaxed = rl::mo_relaxed;
constexpr auto acquire = rl::mo_acquire;
constexpr auto release = rl::mo_release;
constexpr auto acq_rel = rl::mo_acq_rel;

enum : unsigned { empty = 0, filling = 1, valid = 2 };
constexpr unsigned one_version = 4, one_pin = 1024, identity_and_state = one_pin - 1;

unsigned version_mask() { return mutant(e2_one_bit) ? 1 : 63; }
unsigned same_mask() { return mutant(e2_no_version) ? 3 : identity_and_state; }

unsigned state(unsigned e) { return e & 3; }
unsigned version(unsigned e) { return e / one_version % 64; }
unsigned claimed(unsigned e, unsigned pins) {
  return ((version(e) + 1) & version_mask()) * one_version + filling + pins * one_pin;
}
unsigned evicted(unsigned e) { return version(e) * one_version + empty; }
bool same(unsigned a, unsigned b) { return ((a ^ b) & same_mask()) == 0; }
unsigned byte_of(unsigned line, unsigned fill) { return line * 64 + fill; }

// What differs between the executors: core/atomic.hpp, core/memory_access.hpp, core/copy_into_frame.hpp.
struct cpu {
  static void order_claim_before_bytes() {}
  static void order_read_before_recheck() {}
  static rl::memory_order load_piece() { return mutant(e1_no_recheck_order) ? relaxed : acquire; }
  static rl::memory_order store_piece() { return mutant(e1_no_claim_order) ? relaxed : release; }
};
struct cuda {
  static void order_claim_before_bytes() {
    if (!mutant(e1_no_claim_order)) rl::atomic_thread_fence(release, $);
  }
  static void order_read_before_recheck() {
    if (!mutant(e1_no_recheck_order)) rl::atomic_thread_fence(acquire, $);
  }
  static rl::memory_order load_piece() { return relaxed; }
  static rl::memory_order store_piece() { return relaxed; }
};

rl::memory_order r1() { return mutant(e1_read_relaxed) ? relaxed : acquire; }
rl::memory_order published() { return mutant(publish_relaxed) ? relaxed : release; }

// Two entries and a frame of two pieces. Line 0 is valid at first.
struct one_frame {
  rl::atomic<unsigned> entry[2];
  rl::atomic<unsigned> piece[2];
  unsigned fills[2];  // of each line: what a version would be if it had all the bits

  void start() {
    entry[0].store(valid, relaxed, $);
    entry[1].store(empty, relaxed, $);
    for (auto& p : piece) p.store(byte_of(0, 0), relaxed, $);
    fills[0] = 0;
    fills[1] = 0;
  }

  // look, claim, take_frame, evict: false where the code would start over.
  bool claim_and_evict(unsigned line, unsigned pins) {
    unsigned e = entry[line].load(relaxed, $);
    if (state(e) != empty || e >= one_pin) return false;
    if (!entry[line].compare_exchange_strong(e, claimed(e, pins), relaxed, $, relaxed, $)) return false;
    unsigned victim = entry[1 - line].load(acquire, $);
    const bool evictable = state(victim) == valid && victim < one_pin;
    if (!evictable || !entry[1 - line].compare_exchange_strong(victim, evicted(victim), acquire, $, relaxed, $)) {
      entry[line].fetch_sub(filling + pins * one_pin, release, $);
      return false;
    }
    return true;
  }

  template <class Executor>
  void store_pieces(unsigned line) {
    const unsigned fill = ++fills[line];
    for (auto& p : piece) p.store(byte_of(line, fill), Executor::store_piece(), $);
  }

  void publish(unsigned line) { entry[line].fetch_add(1, published(), $); }
};

// Reader of line 0; the other thread turns the frame over, line 1, line 0, ... `Turns` times.
template <class Executor, unsigned Turns>
struct turnover : rl::test_suite<turnover<Executor, Turns>, 2> {
  one_frame c;
  void before() { c.start(); }
  void thread(unsigned index) {
    if (index == 0) {
      read(0);
    } else {
      for (unsigned turn = 0; turn < Turns; ++turn) {
        const unsigned line = 1 - turn % 2;
        if (!c.claim_and_evict(line, 0)) return;
        Executor::order_claim_before_bytes();
        c.template store_pieces<Executor>(line);
        c.publish(line);
      }
    }
  }
  // line_reader::read: R1, then try_read.
  void read(unsigned line) {
    const unsigned e = c.entry[line].load(r1(), $);
    if (state(e) != valid) return;
    const unsigned v = c.piece[1].load(Executor::load_piece(), $);
    Executor::order_read_before_recheck();
    if (same(e, c.entry[line].load(relaxed, $))) RL_ASSERT(v == byte_of(line, version(e)));
  }
};

// The same with bytes that another thread stores: claim -> doorbell -> controller.
template <class Executor>
struct far_fill : rl::test_suite<far_fill<Executor>, 3> {
  one_frame c;
  rl::atomic<unsigned> doorbell;
  void before() {
    c.start();
    doorbell.store(0, relaxed, $);
  }
  void thread(unsigned index) {
    if (index == 0) {
      const unsigned e = c.entry[0].load(r1(), $);
      const unsigned v = c.piece[1].load(Executor::load_piece(), $);
      Executor::order_read_before_recheck();
      if (same(e, c.entry[0].load(relaxed, $)) && state(e) == valid) RL_ASSERT(v == byte_of(0, version(e)));
    } else if (index == 1) {
      if (!c.claim_and_evict(1, 1)) return;
      doorbell.store(1, release, $);
    } else {
      if (doorbell.load(acquire, $) == 0) return;
      Executor::order_claim_before_bytes();
      c.template store_pieces<Executor>(1);
      c.publish(1);
    }
  }
};

// Across lanes: every lane reads a piece and fences, the lanes meet, the leader looks at the entry for all.
struct lanes : rl::test_suite<lanes, 3> {
  one_frame c;
  rl::atomic<unsigned> met;
  unsigned read_by_lane;
  unsigned seen;
  void before() {
    c.start();
    met.store(0, relaxed, $);
  }
  void thread(unsigned index) {
    if (index == 0) {  // a lane; R1 was the leader's, before a meeting, so it is simply the first state
      read_by_lane = c.piece[0].load(cuda::load_piece(), $);
      if (!mutant(e8_lanes_without_fence)) rl::atomic_thread_fence(acquire, $);
      met.store(1, release, $);
    } else if (index == 1) {  // the leader
      if (met.load(acquire, $) == 0) return;
      rl::atomic_thread_fence(acquire, $);
      if (same(valid, c.entry[0].load(relaxed, $))) RL_ASSERT(read_by_lane == byte_of(0, 0));
    } else {
      if (!c.claim_and_evict(1, 0)) return;
      cuda::order_claim_before_bytes();
      c.store_pieces<cuda>(1);
      c.publish(1);
    }
  }
};

// Under a pin. The frame is a plain variable here: any access that the orders do not keep apart is a race.
struct pinned : rl::test_suite<pinned, 2> {
  one_frame c;
  rl::var<unsigned> bytes;
  void before() {
    c.start();
    bytes($) = byte_of(0, 0);
  }
  void thread(unsigned index) {
    if (index == 0) {
      read_pinned(0);
      read_pinned(1);
    } else {
      if (!c.claim_and_evict(1, 1)) return;
      bytes($) = byte_of(1, 1);
      c.publish(1);
      RL_ASSERT(bytes($) == byte_of(1, 1));  // the asker's pin went in with its claim
      unpin(1);
    }
  }
  void read_pinned(unsigned line) {  // pin_valid of a whole warp
    const unsigned e = c.entry[line].load(acquire, $);
    if (state(e) != valid) return;
    const unsigned old = c.entry[line].fetch_add(one_pin, acquire, $);
    if (same(old, e)) {
      RL_ASSERT(bytes($) == byte_of(line, version(old)));
      unpin(line);
    } else {
      c.entry[line].fetch_sub(one_pin, relaxed, $);
    }
  }
  void unpin(unsigned line) { c.entry[line].fetch_sub(one_pin, mutant(e8_unpin_relaxed) ? relaxed : release, $); }
};

// A leader waits for a fill and tells its peers, who then read the frame themselves.
struct peers : rl::test_suite<peers, 3> {
  one_frame c;
  rl::atomic<unsigned> report;
  void before() {
    c.start();
    report.store(0, relaxed, $);
  }
  void thread(unsigned index) {
    const bool shuffle_only = mutant(peers_without_meeting);
    if (index == 0) {
      if (report.load(shuffle_only ? relaxed : acquire, $) == 0) return;
      RL_ASSERT(c.piece[0].load(cuda::load_piece(), $) == byte_of(1, 1));
    } else if (index == 1) {
      if (state(c.entry[1].load(acquire, $)) == valid) report.store(1, shuffle_only ? relaxed : release, $);
    } else {
      if (!c.claim_and_evict(1, 2)) return;
      cuda::order_claim_before_bytes();
      c.store_pieces<cuda>(1);
      c.publish(1);
    }
  }
};

}  // namespace

int main(int count, char** arguments) {
  choose_mutant(count, arguments);
  constexpr unsigned samples = 200'000;
  bool ok = true;
  ok = ok && holds<turnover<cpu, 4>>("read, CPU", all_schedules, samples);
  ok = ok && holds<turnover<cuda, 4>>("read, CUDA", all_schedules, samples);
  ok = ok && holds<far_fill<cpu>>("read, far fill, CPU", all_schedules, samples);
  ok = ok && holds<far_fill<cuda>>("read, far fill, CUDA", all_schedules, samples);
  ok = ok && holds<lanes>("read across lanes", all_schedules, samples);
  ok = ok && holds<pinned>("read under a pin", all_schedules, samples);
  ok = ok && holds<peers>("peers of a leader", all_schedules, samples);
  return ok ? 0 : 1;
}
