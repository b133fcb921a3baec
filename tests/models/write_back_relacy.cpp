// Stores under a pin (line_cache_view::unpin_written, store_piece) and write-back (write_back/cleaner.hpp) against eviction and
// against validated reads of the frame's last line, with the memory orders of the code. One frame; line 0 is in it at first.
//
// A word of an entry is version * 4 + state, flags above it, and `one_pin` for each pin, as in validated_read_relacy.cpp.
#include "relacy_run.hpp"

namespace {

enum {
  store_relaxed = 1,     // a store under a pin (CUDA: without the fence before it)
  dirty_relaxed = 2,     // at the end of a write pin
  claim_relaxed = 3,     // dirty -> writing
  written_relaxed = 4,   // writing is cleared
  answered_relaxed = 5,  // a slot is told to be answered
  pending_relaxed = 6,   // one of several commands of a run is over
};

constexpr auto relaxed = rl::mo_relaxed;
constexpr auto acquire = rl::mo_acquire;
constexpr auto release = rl::mo_release;
constexpr auto acq_rel = rl::mo_acq_rel;

enum : unsigned {
  empty = 0,
  filling = 1,
  valid = 2,
  state_mask = 3,
  one_version = 4,
  dirty = 256,
  writing = 512,
  one_pin = 1024
};
constexpr unsigned identity_and_state = 255;

bool same(unsigned a, unsigned b) { return ((a ^ b) & identity_and_state) == 0; }
rl::memory_order unless(int m, rl::memory_order order) { return mutant(m) ? relaxed : order; }

// E1 for stores. A reader of line 0 that sees what was stored into line 1 must find that line 0 has gone.
template <bool Fenced>
struct next_tenant : rl::test_suite<next_tenant<Fenced>, 3> {
  rl::atomic<unsigned> entry[2];
  rl::atomic<unsigned> piece;
  void before() {
    entry[0].store(valid, relaxed, $);
    entry[1].store(empty, relaxed, $);
    piece.store(0, relaxed, $);
  }
  void thread(unsigned index) {
    if (index == 0) {  // line_reader::read of line 0
      const unsigned e = entry[0].load(acquire, $);
      if ((e & state_mask) != valid) return;
      const unsigned v = piece.load(Fenced ? relaxed : acquire, $);
      if (Fenced) rl::atomic_thread_fence(acquire, $);
      if (same(e, entry[0].load(relaxed, $))) RL_ASSERT(v == 0);
    } else if (index == 1) {  // line 1 takes the frame; its fill happens to store the same bytes
      unsigned e = valid;
      if (!entry[0].compare_exchange_strong(e, one_version + empty, acq_rel, $, relaxed, $)) return;
      entry[1].store(one_version + filling, relaxed, $);
      entry[1].fetch_add(1, release, $);
    } else {  // an element of line 1 is written
      const unsigned e = entry[1].load(acquire, $);
      if ((e & state_mask) != valid) return;
      const unsigned old = entry[1].fetch_add(one_pin, acquire, $);
      if (!same(old, e)) return;
      if (Fenced && !mutant(store_relaxed)) rl::atomic_thread_fence(release, $);
      piece.store(7, Fenced ? relaxed : unless(store_relaxed, release), $);
      entry[1].fetch_or(dirty, release, $);
      entry[1].fetch_sub(one_pin, relaxed, $);
    }
  }
};

// A writer, the cleaner, and who takes the frame. The bytes are plain variables: any access that the orders do not keep apart
// is a race, and what is evicted must have been copied.
struct written_back : rl::test_suite<written_back, 3> {
  rl::atomic<unsigned> entry;
  rl::var<unsigned> bytes;
  rl::var<unsigned> copied;
  void before() {
    entry.store(valid, relaxed, $);
    bytes($) = 0;
    copied($) = 0;
  }
  void thread(unsigned index) {
    if (index == 0) {
      const unsigned old = entry.fetch_add(one_pin, acquire, $);
      if (!same(old, valid)) {
        entry.fetch_sub(one_pin, relaxed, $);
        return;
      }
      bytes($) = 1;
      entry.fetch_or(dirty, unless(dirty_relaxed, release), $);
      entry.fetch_sub(one_pin, relaxed, $);
    } else if (index == 1) {  // write_run::claim_line, send, retire_run
      unsigned e = entry.load(relaxed, $);
      if ((e & (dirty | writing | state_mask)) != (dirty | valid)) return;
      if (!entry.compare_exchange_strong(e, e - dirty + writing, unless(claim_relaxed, acq_rel), $, relaxed, $)) return;
      copied($) = bytes($);
      entry.fetch_and(~unsigned{writing}, unless(written_relaxed, release), $);
    } else {  // evict, and the next tenant's first byte
      unsigned e = entry.load(relaxed, $);
      if (!same(e, valid) || e >= one_pin || (e & (dirty | writing)) != 0) return;
      if (!entry.compare_exchange_strong(e, one_version + empty, acq_rel, $, relaxed, $)) return;
      if (bytes($) == 1) RL_ASSERT(copied($) == 1);
      bytes($) = 2;
    }
  }
};

// A run of two commands (two replicas), whose slot whoever comes by retires and uses again.
struct slot : rl::test_suite<slot, 3> {
  rl::atomic<unsigned> pending;
  rl::atomic<unsigned> outcome;
  rl::atomic<unsigned> phase;  // 2 sent, 3 answered, 1 held
  rl::var<unsigned> lines;
  void before() {
    pending.store(2, relaxed, $);
    outcome.store(0, relaxed, $);
    phase.store(2, relaxed, $);
    lines($) = 5;
  }
  void thread(unsigned index) {
    if (index < 2) {  // line_sink::finish: the first command has failed
      RL_ASSERT(lines($) == 5);
      if (index == 0) outcome.store(9, relaxed, $);
      if (pending.fetch_sub(1, unless(pending_relaxed, acq_rel), $) == 1) phase.store(3, unless(answered_relaxed, release), $);
    } else {
      unsigned answered = 3;
      if (!phase.compare_exchange_strong(answered, 1, acquire, $, relaxed, $)) return;
      RL_ASSERT(outcome.load(relaxed, $) == 9);
      lines($) = 6;
    }
  }
};

}  // namespace

int main(int count, char** arguments) {
  choose_mutant(count, arguments);
  constexpr unsigned samples = 200'000;
  bool ok = true;
  ok = ok && holds<next_tenant<false>>("store under a pin, CPU", all_schedules, samples);
  ok = ok && holds<next_tenant<true>>("store under a pin, CUDA", all_schedules, samples);
  ok = ok && holds<written_back>("write-back", all_schedules, samples);
  ok = ok && holds<slot>("write slot", all_schedules, samples);
  return ok ? 0 : 1;
}
