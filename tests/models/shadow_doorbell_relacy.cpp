// A doorbell in memory and the controller's event index (src/pcie/shadow_doorbells.hpp), with the memory orders of the code.
// The controller goes to sleep only after it has stored where it waits and has looked once more; the host rings the register
// where that index is passed. A value that is neither seen nor rung is one that nobody fetches: a command that never ends.
#include "relacy_run.hpp"

namespace {

enum {
  value_released = 1,  // stored with release: the load of the index may overtake it
  event_acquired = 2,  // loaded with acquire, before the store is seen
  index_first = 3,     // the host looks at the index before it stores the value
  late_index = 4,      // the controller looks once more before it stores its index
};

constexpr auto acquire = rl::mo_acquire;
constexpr auto release = rl::mo_release;
constexpr auto in_one_order = rl::mo_seq_cst;

// Two steps of the host; the controller sleeps after each that it has seen. A register that is rung wakes it.
struct wakes : rl::test_suite<wakes, 2> {
  rl::atomic<unsigned> value, event, rung;
  unsigned fetched, told;

  static bool passes(unsigned at, unsigned next, unsigned last) {
    return static_cast<unsigned short>(next - at - 1) < static_cast<unsigned short>(next - last);
  }

  void before() {
    value.store(0, in_one_order, $);
    event.store(0, in_one_order, $);
    rung.store(0, in_one_order, $);
    fetched = told = 0;
  }

  void tell(unsigned next) {
    const unsigned last = next - 1;
    unsigned at = mutant(index_first) ? event.load(in_one_order, $) : 0;
    value.store(next, mutant(value_released) ? release : in_one_order, $);
    if (!mutant(index_first)) at = event.load(mutant(event_acquired) ? acquire : in_one_order, $);
    told = next;
    if (passes(at, next, last)) rung.store(next, release, $);
  }

  // Fetches what it is told of until there is nothing, and says where it waits.
  void serve() {
    for (;;) {
      unsigned seen = mutant(late_index) ? value.load(in_one_order, $) : 0;
      event.store(fetched, in_one_order, $);
      if (!mutant(late_index)) seen = value.load(in_one_order, $);
      if (seen == fetched) return;
      fetched = seen;
    }
  }

  void thread(unsigned index) {
    if (index == 0) {
      tell(1);
      tell(2);
    } else {
      serve();
      // Asleep: only the register wakes it.
      if (rung.load(acquire, $) > fetched) serve();
    }
  }

  // All threads have ended; what was rung after the controller's last look wakes it now.
  void after() {
    if (rung.load(acquire, $) > fetched) {
      fetched = value.load(in_one_order, $);
    }
    RL_ASSERT(fetched == told);
  }
};

}  // namespace

int main(int count, char** arguments) {
  choose_mutant(count, arguments);
  return holds<wakes>("doorbells in memory", all_schedules, 300'000) ? 0 : 1;
}
