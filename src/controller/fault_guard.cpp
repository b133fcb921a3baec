#include "fault_guard.hpp"

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <mutex>

#include <ucontext.h>

namespace penstock::far_side {
namespace {

struct guarded_range {
  sigjmp_buf jump;
  std::byte const* begin;
  std::byte const* end;
};

// A guarded thread has touched this before its copy starts, so the handler finds its storage made. (The initial-exec model
// would say so for every thread, but a Python module that also holds CUDA's runtime then asks for more static storage than is
// left.)
thread_local guarded_range* volatile active = nullptr;

struct sigaction previous;

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(signal, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(signal);
  sigaction(signal, &previous, nullptr);  // the access is made again and ends the process as it would have without us
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  guarded_range* range = active;
  auto const* address = static_cast<std::byte const*>(info->si_addr);
  if (range != nullptr && address >= range->begin && address < range->end) {
    active = nullptr;
    // The jump leaves the handler, so the signals that were blocked for it are let through again here; sigsetjmp could restore
    // them, but would pay a system call for every copy.
    pthread_sigmask(SIG_SETMASK, &static_cast<ucontext_t const*>(context)->uc_sigmask, nullptr);
    siglongjmp(range->jump, 1);
  }
  pass_on(signal, info, context);
}

}  // namespace

void install_fault_guard() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous);
  });
}

bool run_guarded(void const* begin, u64 bytes, void (*body)(void*), void* argument) {
  guarded_range range;
  range.begin = static_cast<std::byte const*>(begin);
  range.end = range.begin + bytes;
  if (sigsetjmp(range.jump, 0) != 0) return false;
  active = &range;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  body(argument);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  active = nullptr;
  return true;
}

}  // namespace penstock::far_side
