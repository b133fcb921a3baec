// A scheduler that decides, from a seed, which thread of a run goes on: one at a time, handed over before each operation of
// device_ref and system_ref (after each store, too), in each wait (backoff) and so in each collective of an emulated warp. The
// same seed gives the same interleaving, so a failure is repeated by its seed, whatever else the machine does.
//
// How the next one is chosen. *PCT* (Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic
// Guarantees of Finding Bugs, ASPLOS 2010, section 2.2): threads get random priorities, the highest always runs, and at d - 1
// random steps the one that runs falls below all others; a bug that takes d orderings among n threads and k steps is found with
// probability 1 / (n k^(d-1)) or more. Who waits falls below all but those that fell at a change point; these are held until
// others have waited a random number of times, so that what is held up stays so while others go through storage and back, and
// who spins does not starve the one it waits for. *Random walk*: at one step in `rate`, and in each wait, any thread goes on.
//
// What it can find: whatever is wrong under sequential consistency. What it cannot: a missing release, acquire or fence, for
// each operation sees all before it. Those are for relacy and the litmus tests. Nor what lies between two plain accesses.
//
// Threads are contexts of one OS thread, so a switch costs no system's scheduler; time is counted in steps (`now_ns`), so that
// deadlines pass at the same step, too. A run that fails, or does not end within its steps, is left where it stands: the other
// threads' stacks are not unwound.
//
// REQUIRES: the first include of its program, which links no code that the library has compiled with other aliases.
#pragma once

#define PENSTOCK_SCHEDULED 1
#include "penstock/core/atomic.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/core/ordinal.hpp"

#include <sys/mman.h>
#include <ucontext.h>
#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace penstock::test {

static_assert(std::is_same_v<device_ref<u32>, scheduled::atomic_ref<u32>>, "include support/scheduler.hpp first");

enum class strategy : u32 { pct, random_walk };

struct schedule_options {
  u64 seed = 0;
  strategy how = strategy::pct;
  u32 depth = 3;              ///< pct: orderings that the bug takes
  u64 expected_steps = 4000;  ///< pct: change points lie among so many
  u32 rate = 4;               ///< walk: a step in so many may be another's
  u64 most_steps = 2'000'000;
};

struct schedule_outcome {
  std::string failure;  ///< empty: all threads came to their end
  u64 steps = 0;
  u64 switches = 0;
  u64 trace = 0;  ///< hash of who went on when
};

/// Memory of stacks, kept for the next run.
class fiber_stack {
 public:
  static constexpr u64 bytes = 512 << 10;

  fiber_stack() : memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    mprotect(memory_, 4096, PROT_NONE);  // who outgrows it is told
  }
  fiber_stack(fiber_stack const&) = delete;
  fiber_stack& operator=(fiber_stack const&) = delete;
  ~fiber_stack() { munmap(memory_, bytes); }
  char* begin() const { return static_cast<char*>(memory_); }

  static fiber_stack& number(u64 n) {
    static std::vector<std::unique_ptr<fiber_stack>> all;
    while (all.size() <= n) all.push_back(std::make_unique<fiber_stack>());
    return *all[n];
  }

 private:
  void* memory_;
};

/// One run. Not for use by several OS threads.
class scheduler {
 public:
  explicit scheduler(schedule_options const& options) : options_(options), draw_(options.seed) {}
  scheduler(scheduler const&) = delete;
  scheduler& operator=(scheduler const&) = delete;

  /// A thread of the run; all are added before it starts.
  void add(std::function<void()> body) { add(std::move(body), false); }
  /// One that calls step() until all others have come to their end, and waits where it returns false.
  void add_server(std::function<bool()> step) {
    add(
        [this, step = std::move(step)] {
          while (workers_ != 0) {
            if (!step()) pause();
          }
        },
        true);
  }

  /// Runs all to their end, or to the first failure.
  schedule_outcome run() {
    if (options_.how == strategy::pct) draw_priorities();
    current_ = this;
    if (!fibers_.empty()) switch_to(any_of_all());
    current_ = nullptr;
    return std::move(outcome_);
  }

  /// The scheduler of the run that the caller is in; null outside.
  static scheduler* current() { return current_; }

  /// Ends the run. By one of its threads.
  [[noreturn]] void fail(std::string const& what) {
    outcome_.failure = what;
    leave();
  }

  /// A number for each call, in the order of the calls: a clock for histories.
  u64 tick() { return ++ticks_; }
  u64 draw() { return draw_(); }
  u64 now_ns() const { return now_ns_; }
  /// Threads that are not at their end, servers aside.
  u32 workers() const { return workers_; }

  void yield_point() {
    step(step_ns);
    if (options_.how == strategy::random_walk) {
      if (draw_() % options_.rate == 0) go_on(any_of_all());
    } else if (changes_ != 0 && outcome_.steps == change_points_[changes_ - 1]) {
      fibers_[running_].priority = held + --changes_;
      fibers_[running_].held_until = pauses_ + 1 + draw_() % most_held;
      go_on(highest());
    }
  }

  void pause() {
    step(pause_ns);
    if (options_.how == strategy::random_walk) return go_on(any_but_this());
    ++pauses_;
    for (fiber& f : fibers_) {
      if (f.held_until != 0 && f.held_until <= pauses_) release(f);
    }
    release(fibers_[running_]);
    go_on(highest());
  }

 private:
  // A look at memory and a wait, in the time that deadlines are in.
  static constexpr u64 step_ns = 10, pause_ns = 1000;
  /// Priorities of those that fell at a change point begin here.
  static constexpr long long held = -(1ll << 60);
  static constexpr u64 most_held = 128;  ///< waits of others

  struct fiber {
    std::function<void()> body;
    bool serves = false;
    bool over = false;
    long long priority = 0;
    u64 held_until = 0;  ///< so many waits of the run; 0: is not held
    ucontext_t context{};
    void* fake_stack = nullptr;  ///< of the address sanitizer
  };

  void add(std::function<void()> body, bool serves) {
    workers_ += !serves;
    fibers_.emplace_back();
    fibers_.back().body = std::move(body);
    fibers_.back().serves = serves;
  }

  // Change points from the last to the first.
  void draw_priorities() {
    changes_ = options_.depth - 1;
    for (u32 k = 0; k < changes_; ++k) change_points_.push_back(1 + draw_() % options_.expected_steps);
    std::sort(change_points_.rbegin(), change_points_.rend());
    // The first of several that fall on one step would hide the others.
    for (u32 k = changes_; k-- > 1;) change_points_[k - 1] = std::max(change_points_[k - 1], change_points_[k] + 1);
    std::vector<long long> priorities;
    for (u64 k = 0; k < fibers_.size(); ++k) priorities.push_back(static_cast<long long>(k));
    for (u64 k = fibers_.size(); k-- > 0;) {
      std::swap(priorities[k], priorities[draw_() % (k + 1)]);
      fibers_[k].priority = priorities[k];
    }
  }

  void release(fiber& f) {
    f.priority = --lowest_;
    f.held_until = 0;
  }

  void step(u64 ns) {
    now_ns_ += ns;
    if (++outcome_.steps > options_.most_steps) fail("no end within " + std::to_string(options_.most_steps) + " steps");
  }

  u32 highest() const {
    u32 best = nobody;
    for (u32 k = 0; k < fibers_.size(); ++k) {
      if (!fibers_[k].over && (best == nobody || fibers_[k].priority > fibers_[best].priority)) best = k;
    }
    return best;
  }
  // By the first run of a walk: all; else the one that PCT would take.
  u32 any_of_all() {
    if (options_.how == strategy::pct) return highest();
    return pick(nobody);
  }
  u32 any_but_this() {
    const u32 other = pick(running_);
    return other == nobody ? running_ : other;
  }
  u32 pick(u32 but) {
    u32 left = 0;
    for (u32 k = 0; k < fibers_.size(); ++k) left += !fibers_[k].over && k != but;
    if (left == 0) return nobody;
    u64 skip = draw_() % left;
    for (u32 k = 0;; ++k) {
      if (!fibers_[k].over && k != but && skip-- == 0) return k;
    }
  }

  // A stack that is unwound keeps the processor: what the exception machinery knows is the OS thread's.
  void go_on(u32 next) {
    if (next != running_ && std::uncaught_exceptions() == 0) switch_to(next);
  }

  void switch_to(u32 next) {
    fiber& to = fibers_[next];
    ucontext_t& from = running_ == nobody ? main_ : fibers_[running_].context;
    void*& fake_stack = running_ == nobody ? main_fake_stack_ : fibers_[running_].fake_stack;
    const bool ends = running_ != nobody && fibers_[running_].over;
    note(next);
    if (to.context.uc_stack.ss_sp == nullptr) make_context(to, next);
    running_ = next;
    thread_ordinal() = next;
    begin_switch(ends ? nullptr : &fake_stack, to.context.uc_stack.ss_sp, to.context.uc_stack.ss_size);
    swapcontext(&from, &to.context);
    end_switch(fake_stack);
  }

  void note(u32 next) {
    ++outcome_.switches;
    outcome_.trace = (outcome_.trace ^ (outcome_.steps << 8 | next)) * 0x9e3779b97f4a7c15ull;
    outcome_.trace ^= outcome_.trace >> 29;
  }

  void make_context(fiber& f, u32 number) {
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = fiber_stack::number(number).begin() + 4096;
    f.context.uc_stack.ss_size = fiber_stack::bytes - 4096;
    makecontext(&f.context, &scheduler::enter, 0);
  }

  static void enter() { current_->live(); }

  void live() {
    end_switch(nullptr);
    try {
      fibers_[running_].body();
    } catch (std::exception const& problem) {
      outcome_.failure = problem.what();
    } catch (...) {
      if (outcome_.failure.empty()) outcome_.failure = "something was thrown";
    }
    if (!outcome_.failure.empty()) leave();
    fibers_[running_].over = true;
    workers_ -= !fibers_[running_].serves;
    const u32 next = any_of_all();
    if (next == nobody) leave();
    switch_to(next);
    std::terminate();  // nobody goes on where a thread has ended
  }

  // Back to `run`, for good.
  [[noreturn]] void leave() {
    begin_switch(nullptr, main_stack_, main_stack_bytes_);
    setcontext(&main_);
    std::terminate();
  }

#if defined(__SANITIZE_ADDRESS__)
  static void begin_switch(void** fake_stack, void const* stack, u64 bytes) {
    __sanitizer_start_switch_fiber(fake_stack, stack, bytes);
  }
  void end_switch(void* fake_stack) {
    void const* stack = nullptr;
    std::size_t bytes = 0;
    __sanitizer_finish_switch_fiber(fake_stack, &stack, &bytes);
    if (main_stack_ != nullptr) return;
    main_stack_ = stack;  // the first switch comes from there
    main_stack_bytes_ = bytes;
  }
#else
  static void begin_switch(void**, void const*, u64) {}
  void end_switch(void*) {}
#endif

  static constexpr u32 nobody = ~0u;
  inline static scheduler* current_ = nullptr;

  schedule_options options_;
  std::mt19937_64 draw_;
  schedule_outcome outcome_;
  std::vector<fiber> fibers_;
  std::vector<u64> change_points_;
  u32 changes_ = 0;       ///< that are to come
  long long lowest_ = 0;  ///< priority of who waited last
  u64 pauses_ = 0;
  u32 running_ = nobody;
  u32 workers_ = 0;
  u64 ticks_ = 0;
  u64 now_ns_ = 0;
  ucontext_t main_{};
  void* main_fake_stack_ = nullptr;
  void const* main_stack_ = nullptr;
  u64 main_stack_bytes_ = 0;
};

}  // namespace penstock::test

namespace penstock::scheduled {

inline void yield_point() {
  if (auto* const run = test::scheduler::current()) run->yield_point();
}
inline void pause() {
  if (auto* const run = test::scheduler::current()) run->pause();
}
inline u64 now_ns() {
  auto const* const run = test::scheduler::current();
  return run != nullptr ? run->now_ns() : 0;
}

}  // namespace penstock::scheduled
