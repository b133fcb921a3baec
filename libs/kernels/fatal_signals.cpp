#include "libs/kernels/fatal_signals.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>

#include <signal.h>
#include <unistd.h>

namespace penstock::kernels {
namespace {

struct handled_signal {
  int number;
  char const* meaning;
  struct sigaction before;
};

std::array<handled_signal, 3> handled_signals{{
    {SIGSEGV,
     "SIGSEGV: it used memory that it does not have, by a null pointer, an index out of range (check_bounds=True names it), or "
     "locals that its stack has no room for (endless recursion)",
     {}},
    {SIGFPE, "SIGFPE: it divided an integer by zero", {}},
    {SIGILL, "SIGILL: __trap(), or the end of a function that returns nothing", {}},
}};

/// Of a thread that runs a kernel. The handler is everybody's, and storage of a thread that has run none might have to be made
/// for it first, in the middle of an allocation.
struct running_thread {
  std::atomic<pid_t> thread{0};
  std::atomic<char const*> name{nullptr};
};
constexpr std::size_t most_threads = 1024;  // of others nothing is said
std::array<running_thread, most_threads> running_threads;

running_thread* find_running(pid_t thread) {
  for (running_thread& each : running_threads) {
    if (each.thread.load(std::memory_order_relaxed) == thread) return &each;
  }
  return nullptr;
}

void print(char const* text) { [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text)); }

void on_fatal_signal(int number, siginfo_t* info, void* context) {
  handled_signal* handled = handled_signals.data();
  while (handled->number != number) ++handled;
  struct sigaction const& before = handled->before;
  if (before.sa_handler == SIG_IGN && info->si_code <= 0) return;  // of another process
  running_thread* const runs = find_running(::gettid());
  if (char const* const name = runs != nullptr ? runs->name.exchange(nullptr) : nullptr; name != nullptr) {
    print("penstock: run the kernel ");
    print(name);
    print(": ");
    print(handled->meaning);
    print(": correct its source\n");
  }
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(number, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(number);
  ::sigaction(number, &before, nullptr);  // the instruction runs again, and ends the process as it would have without us
  if (info->si_code <= 0) ::raise(number);
}

/// Of a thread that has none, for as long as it lives.
class handler_stack {
 public:
  handler_stack() {
    stack_t here{};
    if (::sigaltstack(nullptr, &here) != 0 || (here.ss_flags & SS_DISABLE) == 0) return;
    memory_ = std::make_unique<std::byte[]>(bytes);
    here = {};
    here.ss_sp = memory_.get();
    here.ss_size = bytes;
    ::sigaltstack(&here, nullptr);
  }
  handler_stack(handler_stack const&) = delete;
  handler_stack& operator=(handler_stack const&) = delete;
  ~handler_stack() {
    if (memory_ == nullptr) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
  }

 private:
  static constexpr std::size_t bytes = 1 << 16;
  std::unique_ptr<std::byte[]> memory_;
};

/// Until the thread ends. One of its own where there is none left, which the handler does not find.
class running_place {
 public:
  running_place() {
    for (running_thread& each : running_threads) {
      pid_t nobody = 0;
      if (each.thread.compare_exchange_strong(nobody, ::gettid())) {
        at_ = &each;
        return;
      }
    }
  }
  running_place(running_place const&) = delete;
  running_place& operator=(running_place const&) = delete;
  ~running_place() { at_->thread.store(0); }

  running_thread& get() { return *at_; }

 private:
  running_thread own_;
  running_thread* at_ = &own_;
};

running_thread& own_place() {
  thread_local running_place here;
  return here.get();
}

}  // namespace

void install_fatal_signals() {
  static std::once_flag installed;
  std::call_once(installed, [] {
    for (handled_signal& each : handled_signals) {
      ::sigaction(each.number, nullptr, &each.before);
      struct sigaction action{};
      action.sa_sigaction = on_fatal_signal;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      ::sigaction(each.number, &action, nullptr);
    }
  });
}

running_kernel::running_kernel(char const* name) {
  thread_local const handler_stack stack;
  place_ = &own_place().name;
  outer_ = place_->exchange(name);
}
running_kernel::~running_kernel() { place_->store(outer_); }

}  // namespace penstock::kernels
