#include "fault_guard.hpp"

#include "penstock/core/bits.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace penstock {

/// One of a list that only grows, so that the handler can walk it whatever others do: a range that nobody needs any more is
/// empty, and the next one who needs one has it.
struct watched_range {
  std::atomic<u64> begin{0}, bytes{0};  ///< bytes 0: free; others change only while it is
  std::atomic<bool> writable{false}, of_caller{false}, cut{false};
  watched_range* next = nullptr;

  bool overlaps(u64 first, u64 end) const {
    const u64 all = bytes.load(std::memory_order_acquire), from = begin.load(std::memory_order_relaxed);
    return all != 0 && from < end && first < from + all;
  }
};

namespace {

std::atomic<watched_range*> watched = nullptr;
std::mutex watching;
u64 page_bytes = 0;

/// Zeros in place of a part of a caller's mapping, which lies elsewhere meanwhile.
struct zeroed_part {
  u64 begin = 0, end = 0;
  u64 kept = 0;  ///< where; 0: this is free
};

/// The handlers of all threads, and the watch that gives a part back, one at a time. REQUIRES: its holder touches no mapped
/// file.
class part_lock {
 public:
  part_lock() { take(); }
  part_lock(part_lock const&) = delete;
  part_lock& operator=(part_lock const&) = delete;
  ~part_lock() { give_back(); }

  static void take() {
    while (taken_.test_and_set(std::memory_order_acquire)) {}
  }
  static void give_back() { taken_.clear(std::memory_order_release); }

 private:
  static inline std::atomic_flag taken_;
};
std::array<zeroed_part, 256> zeroed;  ///< under part_lock

/// Of /dev/zero, mappings of which are anonymous memory that /proc/self/maps knows by name; -1: there is none.
std::atomic<int> zero_device{-1};
constexpr char zero_path[] = "/dev/zero";

/// What is known of a faulting address from the ranges that have it.
struct fault_place {
  bool watched = false, writable = false, of_caller = false;
  u64 end = 0;  ///< of the last of them
};

/// Marks every range that has the address: memory of a caller may be watched for several arrays.
fault_place mark_cut(u64 address) {
  fault_place found;
  for (watched_range* range = watched.load(std::memory_order_acquire); range != nullptr; range = range->next) {
    if (!range->overlaps(address, address + 1)) continue;
    range->cut.store(true, std::memory_order_relaxed);
    found.watched = true;
    found.writable |= range->writable.load(std::memory_order_relaxed);
    found.of_caller |= range->of_caller.load(std::memory_order_relaxed);
    found.end =
        std::max(found.end, range->begin.load(std::memory_order_relaxed) + range->bytes.load(std::memory_order_relaxed));
  }
  return found;
}

/// A line of /proc/self/maps.
struct mapped_area {
  u64 begin = 0, end = 0;
  bool is_shared = false;
};

/// The area that has an address; an empty one if that cannot be learned. By system calls alone: a handler may.
mapped_area area_of(u64 address) {
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return {};
  mapped_area area, found;
  std::array<char, 1024> text;
  u32 column = 0;  // 0: the first address, 1: the second, 2: what may be done there, 3: the rest of the line
  u32 access = 0;
  for (ssize_t count; found.end == 0 && (count = ::read(maps, text.data(), text.size())) > 0;) {
    for (ssize_t k = 0; k < count && found.end == 0; ++k) {
      const char c = text[static_cast<std::size_t>(k)];
      const u64 digit = c <= '9' ? static_cast<u64>(c - '0') : static_cast<u64>(c - 'a' + 10);
      if (c == '\n') {
        area = {};
        column = access = 0;
      } else if (column == 0) {
        c == '-' ? static_cast<void>(column = 1) : static_cast<void>(area.begin = area.begin * 16 + digit);
      } else if (column == 1) {
        c == ' ' ? static_cast<void>(column = 2) : static_cast<void>(area.end = area.end * 16 + digit);
      } else if (column == 2 && ++access == 4) {
        area.is_shared = c == 's';
        column = 3;
        if (area.begin <= address && address < area.end) found = area;
      }
    }
  }
  ::close(maps);
  return found;
}

/// Puts zeros where a file has none any more. Not through mmap, which sanitizers take and a handler may not.
bool put_zeros(u64 begin, u64 end, bool writable, int device = -1) {
  const int access = PROT_READ | (writable ? PROT_WRITE : 0);
  const int kind = MAP_PRIVATE | MAP_FIXED | (device < 0 ? MAP_ANONYMOUS : 0);
  return syscall(SYS_mmap, begin, end - begin, access, kind, device, 0) == static_cast<long>(begin);
}

/// A second mapping of a part of a caller's, to put back later; 0 if there can be none.
u64 kept_copy(mapped_area const& area, u64 begin, u64 end) {
  constexpr int leave_it_mapped = 4;  // MREMAP_DONTUNMAP, of Linux 5.13 for files
  const long kept = area.is_shared ? syscall(SYS_mremap, begin, 0, end - begin, MREMAP_MAYMOVE, 0)
                                   : syscall(SYS_mremap, begin, end - begin, end - begin, MREMAP_MAYMOVE | leave_it_mapped, 0);
  return kept < 0 ? 0 : static_cast<u64>(kept);
}

/// Zeros from a page of a caller's memory on, as far as it is watched. Whatever of it cannot be put back stays zeros.
bool put_zeros_for_now(u64 address, fault_place const& place) {
  const part_lock lock;
  zeroed_part* free_part = nullptr;
  for (zeroed_part& part : zeroed) {
    if (part.kept != 0 && part.begin <= address && address < part.end) return true;  // another thread was first
    if (part.kept == 0) free_part = &part;
  }
  const u64 begin = address / page_bytes * page_bytes;
  const mapped_area area = area_of(address);
  const u64 end = std::min(area.end, ceil_div(place.end, page_bytes) * page_bytes);
  const int device = zero_device.load(std::memory_order_relaxed);
  const u64 kept = free_part != nullptr && device >= 0 && end > begin ? kept_copy(area, begin, end) : 0;
  if (kept == 0) return put_zeros(begin, begin + page_bytes, place.writable);
  if (!put_zeros(begin, end, place.writable, device)) return false;
  *free_part = {begin, end, kept};
  return true;
}

/// Whether our zeros are still there: their owner may have given the memory back, and others have it.
bool are_there(zeroed_part const& part) {
  std::ifstream maps("/proc/self/maps");
  u64 next = part.begin;
  for (std::string line; next < part.end && std::getline(maps, line);) {
    char* rest = nullptr;
    const u64 begin = std::strtoull(line.c_str(), &rest, 16);
    const u64 end = *rest == '-' ? std::strtoull(rest + 1, nullptr, 16) : 0;
    if (end <= next) continue;
    if (begin > next || !line.ends_with(zero_path)) return false;
    next = end;
  }
  return next >= part.end;
}

/// Puts back what is watched no more.
void put_back() {
  const part_lock lock;
  for (zeroed_part& part : zeroed) {
    if (part.kept == 0) continue;
    bool needed = false;
    for (watched_range* range = watched.load(std::memory_order_acquire); range != nullptr; range = range->next) {
      needed = needed || range->overlaps(part.begin, part.end);
    }
    if (needed) continue;
    const u64 bytes = part.end - part.begin;
    if (are_there(part)) {
      syscall(SYS_mremap, part.kept, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, part.begin);
    } else {
      syscall(SYS_munmap, part.kept, bytes);
    }
    part = {};
  }
}

/// Whether zeros stand in for a part of a range.
bool has_zeros(u64 begin, u64 end) {
  const part_lock lock;
  return std::any_of(zeroed.begin(), zeroed.end(),
                     [&](zeroed_part const& part) { return part.kept != 0 && part.begin < end && begin < part.end; });
}

// A process that is forked has the locks free: no other thread of its parent's is there to give them back.
void before_fork() {
  watching.lock();
  part_lock::take();
}
void after_fork() {
  part_lock::give_back();
  watching.unlock();
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
  const u64 at = reinterpret_cast<u64>(address);
  const fault_place place = info->si_code == BUS_ADRERR ? mark_cut(at) : fault_place{};
  const u64 page = at / page_bytes * page_bytes;
  if (place.watched && (place.of_caller ? put_zeros_for_now(at, place) : put_zeros(page, page + page_bytes, place.writable)))
    return;
  pass_on(signal, info, context);
}

}  // namespace

namespace controllers {

void install_fault_guard() {
  static std::atomic<pid_t> installed_in{0};
  const pid_t here = ::getpid();
  if (installed_in.load(std::memory_order_acquire) == here) return;
  const std::lock_guard lock(watching);
  if (installed_in.load(std::memory_order_relaxed) == here) return;
  page_bytes = static_cast<u64>(sysconf(_SC_PAGESIZE));
  struct sigaction action = {}, before;
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, nullptr, &before);
  const bool is_ours = (before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction == on_bus_error;
  if (!is_ours) {
    previous = before;
    sigaction(SIGBUS, &action, nullptr);
  }
  if (installed_in.load(std::memory_order_relaxed) == 0) pthread_atfork(before_fork, after_fork, after_fork);
  installed_in.store(here, std::memory_order_release);
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

}  // namespace controllers

watched_mapping::watched_mapping(void const* begin, u64 bytes, bool writable, mapping_of owner) {
  controllers::install_fault_guard();
  const std::lock_guard lock(watching);
  range_ = watched.load(std::memory_order_relaxed);
  while (range_ != nullptr && range_->bytes.load(std::memory_order_relaxed) != 0) range_ = range_->next;
  if (range_ == nullptr) {
    range_ = new watched_range;
    range_->next = watched.load(std::memory_order_relaxed);
    watched.store(range_, std::memory_order_release);
  }
  const u64 first = reinterpret_cast<u64>(begin);
  if (owner == mapping_of::caller && zero_device.load(std::memory_order_relaxed) < 0) {
    zero_device.store(::open(zero_path, O_RDWR | O_CLOEXEC), std::memory_order_relaxed);
  }
  range_->cut.store(false, std::memory_order_relaxed);
  range_->writable.store(writable, std::memory_order_relaxed);
  range_->of_caller.store(owner == mapping_of::caller, std::memory_order_relaxed);
  range_->begin.store(first, std::memory_order_relaxed);
  range_->bytes.store(bytes, std::memory_order_release);
  if (owner == mapping_of::caller && has_zeros(first, first + bytes)) range_->cut.store(true, std::memory_order_relaxed);
}

watched_mapping::~watched_mapping() {
  const std::lock_guard lock(watching);
  range_->bytes.store(0, std::memory_order_relaxed);
  if (range_->of_caller.load(std::memory_order_relaxed) && was_cut()) put_back();
}

bool watched_mapping::was_cut() const { return range_->cut.load(std::memory_order_relaxed); }

bool watched_mapping::is_cut() const {
  const u64 bytes = range_->bytes.load(std::memory_order_relaxed);
  auto* const last = reinterpret_cast<u8 const*>(range_->begin.load(std::memory_order_relaxed) + bytes - 1);
  if (bytes != 0) static_cast<void>(__atomic_load_n(last, __ATOMIC_RELAXED));
  return was_cut();
}

}  // namespace penstock
