#include "fault_guard.hpp"

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <mutex>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace penstock::controllers {

/// One of a list that only grows, so that the handler can walk it whatever others do: a range that nobody needs any more is
/// empty, and the next one who needs one has it.
struct watched_range {
  std::atomic<u64> begin{0}, bytes{0};  ///< bytes 0: free; others change only while it is
  std::atomic<bool> writable{false}, cut{false};
  watched_range* next = nullptr;
};

namespace {

std::atomic<watched_range*> watched = nullptr;
std::mutex watching;
u64 page_bytes = 0;

/// Marks every range that has the address: memory of a caller may be watched for several arrays. False: there is none.
bool mark_cut(u64 address, bool& writable) {
  bool found = false;
  for (watched_range* range = watched.load(std::memory_order_acquire); range != nullptr; range = range->next) {
    const u64 bytes = range->bytes.load(std::memory_order_acquire);
    if (address - range->begin.load(std::memory_order_relaxed) >= bytes) continue;
    range->cut.store(true, std::memory_order_relaxed);
    writable = writable || range->writable.load(std::memory_order_relaxed);
    found = true;
  }
  return found;
}

/// Puts a page of zeros where a file has none any more. Not through mmap, which sanitizers take and a handler may not.
bool put_zeros(u64 address, bool writable) {
  const u64 page = address / page_bytes * page_bytes;
  const int access = PROT_READ | (writable ? PROT_WRITE : 0);
  return syscall(SYS_mmap, page, page_bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == static_cast<long>(page);
}

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
  // Not memory that has failed: that is no matter of a file.
  bool writable = false;
  const bool ours = info->si_code == BUS_ADRERR && mark_cut(reinterpret_cast<u64>(address), writable);
  if (ours && put_zeros(reinterpret_cast<u64>(address), writable)) return;
  pass_on(signal, info, context);
}

}  // namespace

void install_fault_guard() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_bytes = static_cast<u64>(sysconf(_SC_PAGESIZE));
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

watched_mapping::watched_mapping(void const* begin, u64 bytes, bool writable) {
  install_fault_guard();
  const std::lock_guard lock(watching);
  range_ = watched.load(std::memory_order_relaxed);
  while (range_ != nullptr && range_->bytes.load(std::memory_order_relaxed) != 0) range_ = range_->next;
  if (range_ == nullptr) {
    range_ = new watched_range;
    range_->next = watched.load(std::memory_order_relaxed);
    watched.store(range_, std::memory_order_release);
  }
  range_->cut.store(false, std::memory_order_relaxed);
  range_->writable.store(writable, std::memory_order_relaxed);
  range_->begin.store(reinterpret_cast<u64>(begin), std::memory_order_relaxed);
  range_->bytes.store(bytes, std::memory_order_release);
}

watched_mapping::~watched_mapping() {
  const std::lock_guard lock(watching);
  range_->bytes.store(0, std::memory_order_relaxed);
}

bool watched_mapping::was_cut() const { return range_->cut.load(std::memory_order_relaxed); }

}  // namespace penstock::controllers
