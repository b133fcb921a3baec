// Lets something happen between any two instructions of a function: the processor's trap flag stops the thread after each one.
// What two threads do at once within a few instructions then needs no luck, and no second processor.
#pragma once

#include "penstock/core/config.hpp"

#include <ucontext.h>
#include <csignal>
#include <functional>

namespace penstock::test {

#if defined(__x86_64__) && defined(__linux__) && !defined(PENSTOCK_TSAN) && !defined(__SANITIZE_ADDRESS__)
inline constexpr bool can_single_step = true;
#else
inline constexpr bool can_single_step = false;
#endif

/// Not thread-safe: one at a time in the process.
class single_step {
 public:
  /// Runs `body` and, in the same thread, `action` after its instruction number `at`. False if the body was over before.
  /// REQUIRES: can_single_step; the action takes no lock and allocates nothing that the body may be about to.
  static bool interrupt(u64 at, std::function<void()> const& body, std::function<void()> const& action) {
    left_ = at + 1;
    action_ = &action;
    struct sigaction on_trap = {}, before = {};
    on_trap.sa_flags = SA_SIGINFO;
    on_trap.sa_sigaction = [](int, siginfo_t*, [[maybe_unused]] void* context) {
      if (left_ == 0) return;
      left_ = left_ - 1;
      if (left_ != 0) return;
      (*action_)();
      stop_trapping(context);  // a trap is slow, and the rest of the body need not be watched
    };
    sigaction(SIGTRAP, &on_trap, &before);
    trap(true);
    body();
    trap(false);
    sigaction(SIGTRAP, &before, nullptr);
    return left_ == 0;
  }

 private:
  // Below the red zone; the kernel clears the flag while a handler runs.
  static void trap([[maybe_unused]] bool on) {
#if defined(__x86_64__)
    if (on) {
      asm volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "memory", "cc");
    } else {
      asm volatile("lea -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "memory", "cc");
    }
#endif
  }

  static void stop_trapping([[maybe_unused]] void* context) {
#if defined(__x86_64__) && defined(__linux__)
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~0x100ll;
#endif
  }

  inline static volatile u64 left_ = 0;
  inline static std::function<void()> const* action_ = nullptr;
};

}  // namespace penstock::test
