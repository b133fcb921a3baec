// The hand-over of a command and of its completion (queue/queue_pair_submit.hpp, queue_pair_harvest.hpp) with the memory orders
// of the code: publish -> ring -> doorbell -> controller -> completion -> harvest -> slot free again.
//
// Lone threads, so the meetings of 14, 29 and 31 have no one to order. What the code stores plainly (slot context, submission
// entry, data, the doorbell counter) is a plain variable here: an order that is missing shows as a race on it.
#include "relacy_run.hpp"

namespace {

enum {
  published_relaxed = 1,     // 6: 4t + 1 stored relaxed
  published_early = 2,       // Q3: 4t + 1 stored before the last bytes of the entry
  doorbell_relaxed = 3,      // 16
  completion_relaxed = 4,    // the controller's dword 3
  ring_lock_relaxed = 5,     // 17
  doorbell_after_lock = 6,   // Q2: 16 after 17
  doorbell_before_rung = 7,  // Q2: 15 and 16 swapped
  d0_before_d3 = 8,          // Q7: 23 before 21
  free_relaxed = 9,          // 29: the slot's next owner writes its context and entry
  harvest_lock_relaxed = 10,
  given_up_by_shuffle = 11,  // lanes load `failed` on the word of a leader, with nothing but a shuffle between
};

constexpr auto relaxed = rl::mo_relaxed;
constexpr auto acquire = rl::mo_acquire;
constexpr auto release = rl::mo_release;

template <unsigned Depth, unsigned Commands>
struct queue_pair {
  static constexpr unsigned in_flight_limit = Depth - 1;  // C = D
  enum : unsigned { free = 0, published = 1, finishing = 3 };

  rl::atomic<unsigned> ticket, rung, ring_lock, cq_head, harvest_lock;
  rl::atomic<unsigned> word[Depth];
  rl::var<unsigned> context[Depth], sq_first[Depth], sq_last[Depth], data[Depth];
  rl::var<unsigned> doorbells, completions;  // queue_state's counters, written by lock holders only
  rl::atomic<unsigned> sq_doorbell, cq_doorbell, d0[Depth], d3[Depth];
  // Of the checker, and in no thread's view.
  unsigned last_doorbell, last_cq_doorbell, finished[Commands];

  void before() {
    for (auto* a : {&ticket, &rung, &ring_lock, &cq_head, &harvest_lock, &sq_doorbell, &cq_doorbell}) a->store(0, relaxed, $);
    for (unsigned s = 0; s < Depth; ++s) {
      word[s].store(4 * s, relaxed, $);
      d0[s].store(0, relaxed, $);
      d3[s].store(0, relaxed, $);
      context[s]($) = sq_first[s]($) = sq_last[s]($) = data[s]($) = 0;
    }
    doorbells($) = 0;
    completions($) = 0;
    last_doorbell = last_cq_doorbell = 0;
    for (auto& f : finished) f = 0;
  }

  static unsigned free_word(unsigned t) { return 4 * t; }
  static unsigned published_word(unsigned t) { return 4 * t + published; }
  static unsigned phase_of_lap(unsigned position) { return 1 - (position / Depth & 1); }

  // submit, up to line 6; false where the slot is not free yet.
  bool publish(unsigned t) {
    const unsigned s = t % Depth;
    if (word[s].load(acquire, $) != free_word(t)) return false;
    context[s]($) = t;
    sq_first[s]($) = t;
    if (!mutant(published_early)) sq_last[s]($) = t;
    word[s].store(published_word(t), mutant(published_relaxed) ? relaxed : release, $);
    if (mutant(published_early)) sq_last[s]($) = t;
    return true;
  }

  bool done(unsigned t) { return word[t % Depth].load(relaxed, $) >= free_word(t + Depth); }

  void try_ring() {
    unsigned r = rung.load(relaxed, $);
    if (word[r % Depth].load(relaxed, $) != published_word(r)) return;
    if (ring_lock.exchange(1, acquire, $) != 0) return;
    const unsigned start = r = rung.load(relaxed, $);
    while (word[r % Depth].load(acquire, $) == published_word(r) && (r < in_flight_limit || done(r - in_flight_limit))) ++r;
    if (r != start) {
      if (mutant(doorbell_before_rung)) ring(r);
      rung.store(r, relaxed, $);
      if (!mutant(doorbell_before_rung) && !mutant(doorbell_after_lock)) ring(r);
      doorbells($) = doorbells($) + 1;
    }
    ring_lock.store(0, mutant(ring_lock_relaxed) ? relaxed : release, $);
    if (r != start && mutant(doorbell_after_lock)) ring(r);
  }

  void ring(unsigned r) {
    RL_ASSERT(r > last_doorbell);  // Q8
    last_doorbell = r;
    sq_doorbell.store(r % Depth, mutant(doorbell_relaxed) ? relaxed : release, $);
  }

  // ring_server: fetches what the doorbell covers, writes the data, posts a completion for each.
  void serve(unsigned& head, unsigned& tail) {
    const unsigned bell = sq_doorbell.load(acquire, $);
    while (head % Depth != bell) {
      const unsigned s = head++ % Depth;
      const unsigned first = sq_first[s]($);
      RL_ASSERT(sq_last[s]($) == first);
      data[s]($) = first + 100;
      // Never full: no more commands are in flight than the completion queue takes.
      RL_ASSERT(tail - last_cq_doorbell < Depth);
      const unsigned at = tail % Depth, phase = phase_of_lap(tail);
      ++tail;
      d0[at].store(first + 200, relaxed, $);
      d3[at].store(2 * s + phase, mutant(completion_relaxed) ? relaxed : release, $);
    }
  }

  void try_harvest() {
    unsigned h = cq_head.load(relaxed, $);
    if ((d3[h % Depth].load(relaxed, $) & 1) != phase_of_lap(h)) return;
    if (harvest_lock.exchange(1, acquire, $) != 0) return;
    h = cq_head.load(relaxed, $);
    for (;;) {
      const unsigned early = mutant(d0_before_d3) ? d0[h % Depth].load(relaxed, $) : 0;
      const unsigned outcome = d3[h % Depth].load(acquire, $);
      if ((outcome & 1) != phase_of_lap(h)) break;
      complete(outcome / 2, mutant(d0_before_d3) ? early : d0[h % Depth].load(relaxed, $));
      ++h;
      cq_head.store(h, relaxed, $);
      RL_ASSERT(h == last_cq_doorbell + 1);
      last_cq_doorbell = h;
      cq_doorbell.store(h % Depth, release, $);
      completions($) = completions($) + 1;
    }
    harvest_lock.store(0, mutant(harvest_lock_relaxed) ? relaxed : release, $);
  }

  void complete(unsigned s, unsigned result) {
    unsigned w = word[s].load(acquire, $);
    RL_ASSERT(w % 4 == published);             // 25
    RL_ASSERT(w / 4 < rung.load(relaxed, $));  // 26
    RL_ASSERT(word[s].compare_exchange_strong(w, w + 2, acquire, $, relaxed, $));
    const unsigned t = context[s]($);
    RL_ASSERT(t == w / 4 && data[s]($) == t + 100 && result == t + 200);
    if (!mutant(free_relaxed)) rl::atomic_thread_fence(rl::mo_release, $);  // order_before_telling
    RL_ASSERT(++finished[t] == 1);                                          // Q4
    word[s].store(free_word(t + Depth), relaxed, $);
  }
};

// Two submitters, who also ring and harvest, and a controller. A slot is used once.
struct two_submitters : rl::test_suite<two_submitters, 3> {
  queue_pair<3, 2> q;
  void before() { q.before(); }
  void thread(unsigned index) {
    if (index == 2) {
      unsigned head = 0, tail = 0;
      q.serve(head, tail);
      q.serve(head, tail);
    } else {
      q.publish(q.ticket.fetch_add(1, relaxed, $));
      q.try_ring();
      q.try_harvest();
    }
  }
};

// Three tickets through two slots, one in flight: the guard of the full ring, and a slot's second owner. One thread submits and
// rings, one is the controller, one harvests; and all of them may find nothing to do.
struct second_lap : rl::test_suite<second_lap, 3> {
  queue_pair<2, 3> q;
  void before() { q.before(); }
  void thread(unsigned index) {
    if (index == 0) {
      for (unsigned k = 0; k < 3; ++k) {
        const unsigned t = q.ticket.fetch_add(1, relaxed, $);
        unsigned looked = 0;
        while (!q.publish(t)) {
          if (++looked == 3) return;
          rl::yield(1, $);
        }
        q.try_ring();
      }
    } else if (index == 1) {
      unsigned head = 0, tail = 0;
      for (unsigned k = 0; k < 3; ++k) {
        q.serve(head, tail);
        rl::yield(1, $);
      }
    } else {
      for (unsigned k = 0; k < 3; ++k) {
        q.try_harvest();
        rl::yield(1, $);
      }
    }
  }
};

// give_up, and a group that finds it done: the leader looks at `failed` (relaxed), tells its lanes, and each asks
// failure_status for the reason. A lane that got "ok" would report a withdrawn command as submitted.
struct given_up : rl::test_suite<given_up, 3> {
  rl::atomic<unsigned> failed, failure, told;
  void before() {
    failed.store(0, relaxed, $);
    failure.store(0, relaxed, $);
    told.store(0, relaxed, $);
  }
  unsigned failure_status() { return failed.load(acquire, $) == 0 ? 0 : failure.load(relaxed, $); }
  void thread(unsigned index) {
    const bool shuffle_only = mutant(given_up_by_shuffle);
    if (index == 0) {
      failure.store(5, relaxed, $);
      failed.store(1, release, $);
    } else if (index == 1) {
      if (failed.load(relaxed, $) == 0) return;
      RL_ASSERT(failure_status() == 5);
      told.store(1, shuffle_only ? relaxed : release, $);
    } else {
      if (told.load(shuffle_only ? relaxed : acquire, $) == 1) RL_ASSERT(failure_status() == 5);
    }
  }
};

}  // namespace

int main(int count, char** arguments) {
  choose_mutant(count, arguments);
  constexpr unsigned samples = 300'000;
  bool ok = true;
  ok = ok && holds<two_submitters>("two submitters", 3, samples);
  ok = ok && holds<second_lap>("second lap", 2, samples);
  ok = ok && holds<given_up>("controller given up", all_schedules, samples);
  return ok ? 0 : 1;
}
