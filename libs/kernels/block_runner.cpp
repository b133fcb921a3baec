#include "libs/kernels/block_runner.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <vector>

#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace penstock::kernels {
namespace {

constexpr std::size_t stack_bytes = 1 << 20;  // as far as it is touched
constexpr u32 warp_threads = 32;

enum class fiber_state { ready, at_block_barrier, at_warp_barrier, ended };

/// Of one fiber, mapped when it first runs: pages that it does not touch cost nothing. Below it lies a page that nobody may
/// touch, so that an overflow ends the process instead of changing another fiber's locals.
class fiber_stack {
 public:
  fiber_stack() = default;
  fiber_stack(fiber_stack const&) = delete;
  fiber_stack& operator=(fiber_stack const&) = delete;
  ~fiber_stack() {
    if (memory_ != nullptr) ::munmap(memory_, guard_bytes + stack_bytes);
  }

  void* memory() {
    if (memory_ == nullptr) map();
    return memory_ + guard_bytes;
  }

 private:
  static constexpr std::size_t guard_bytes = 1 << 16;  // a page, of any machine

  void map() {
    void* const mapped =
        ::mmap(nullptr, guard_bytes + stack_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw_os_error("run", "threads of a kernel", errno, "launch smaller blocks");
    memory_ = static_cast<std::byte*>(mapped);
    if (::mprotect(memory_ + guard_bytes, stack_bytes, PROT_READ | PROT_WRITE) != 0) {
      throw_os_error("run", "threads of a kernel", errno, "launch smaller blocks");
    }
  }

  std::byte* memory_ = nullptr;
};

/// What ThreadSanitizer knows of a fiber: it is to be told of each switch.
class watched_fiber {
 public:
#if defined(__SANITIZE_THREAD__)
  watched_fiber() : made_(__tsan_create_fiber(0)) {}
  ~watched_fiber() { __tsan_destroy_fiber(made_); }
  void enter() {
    from_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(made_, 0);
  }
  void leave() { __tsan_switch_to_fiber(from_, 0); }

 private:
  void* made_;
  void* from_ = nullptr;
#else
  void enter() {}
  void leave() {}
#endif
};

struct fiber {
  host_thread place;
  ucontext_t context{};
  fiber_state state = fiber_state::ready;
  u32 lanes = 0;  ///< that it waits for, at a warp's barrier
  fiber_stack stack;
  watched_fiber watched;
};

u64 threads_of(extent const& e) { return u64{e.x} * e.y * e.z; }

}  // namespace

struct block_runner::fibers {
  std::vector<std::unique_ptr<fiber>> all;
  std::vector<std::array<u64, warp_threads>> exchanged;
  ucontext_t back{};
  fiber* current = nullptr;
  host_entry const* kernel = nullptr;
  void** parameters = nullptr;

  static void enter();
  void start(u64 thread);
  void resume(fiber& next);
  bool open_barriers(u64 threads);
  bool open_warp(u64 first, u64 last);
};

namespace {

thread_local block_runner::fibers* running = nullptr;

}  // namespace

block_runner::block_runner() = default;
block_runner::~block_runner() = default;

// A fiber goes back to whoever resumed it: uc_link is of another block by the time it ends.
void block_runner::fibers::enter() {
  fibers& own = *running;
  fiber& self = *own.current;
  own.kernel->run(own.parameters);
  self.state = fiber_state::ended;
  self.watched.leave();
  ::swapcontext(&self.context, &own.back);
}

void block_runner::fibers::start(u64 thread) {
  fiber& made = *all[thread];
  made.state = fiber_state::ready;
  ::getcontext(&made.context);
  made.context.uc_stack.ss_sp = made.stack.memory();
  made.context.uc_stack.ss_size = stack_bytes;
  made.context.uc_link = nullptr;
  ::makecontext(&made.context, &fibers::enter, 0);
}

void block_runner::fibers::resume(fiber& next) {
  current = &next;
  kernel->enter(&next.place);
  next.watched.enter();
  ::swapcontext(&back, &next.context);
}

/// Lanes of a warp go on together when all of those that one waits for, and that have not ended, wait for the same.
bool block_runner::fibers::open_warp(u64 first, u64 last) {
  bool opened = false;
  for (u64 k = first; k < last; ++k) {
    fiber const& self = *all[k];
    if (self.state != fiber_state::at_warp_barrier) continue;
    const u32 lanes = self.lanes;
    bool complete = true;
    for (u64 other = first; other < last; ++other) {
      fiber const& with = *all[other];
      if ((lanes >> (other - first) & 1) == 0 || with.state == fiber_state::ended) continue;
      complete = complete && with.state == fiber_state::at_warp_barrier && with.lanes == lanes;
    }
    if (!complete) continue;
    for (u64 other = first; other < last; ++other) {
      if ((lanes >> (other - first) & 1) == 0 || all[other]->state == fiber_state::ended) continue;
      all[other]->state = fiber_state::ready;
      opened = true;
    }
  }
  return opened;
}

bool block_runner::fibers::open_barriers(u64 threads) {
  bool opened = false, all_at_block = true;
  for (u64 first = 0; first < threads; first += warp_threads) {
    opened = open_warp(first, std::min<u64>(first + warp_threads, threads)) || opened;
  }
  for (u64 k = 0; k < threads; ++k) {
    all_at_block = all_at_block && (all[k]->state == fiber_state::at_block_barrier || all[k]->state == fiber_state::ended);
  }
  if (!all_at_block) return opened;
  for (u64 k = 0; k < threads; ++k) {
    if (all[k]->state != fiber_state::at_block_barrier) continue;
    all[k]->state = fiber_state::ready;
    opened = true;
  }
  return opened;
}

void block_runner::run(std::string const& name, host_entry const& kernel, void** parameters, host_thread const& first) {
  const u64 threads = threads_of(first.block_size);
  const auto place_of = [&](u64 k) {
    host_thread place = first;
    place.thread = {static_cast<u32>(k % first.block_size.x), static_cast<u32>(k / first.block_size.x % first.block_size.y),
                    static_cast<u32>(k / first.block_size.x / first.block_size.y)};
    return place;
  };
  if (!kernel.waits()) {
    for (u64 k = 0; k < threads; ++k) {
      const host_thread place = place_of(k);
      kernel.enter(&place);
      kernel.run(parameters);
    }
    return;
  }
  if (fibers_ == nullptr) fibers_ = std::make_unique<fibers>();
  fibers& own = *fibers_;
  while (own.all.size() < threads) own.all.push_back(std::make_unique<fiber>());
  own.exchanged.assign((threads + warp_threads - 1) / warp_threads, {});  // a launch that was given up leaves its votes
  own.kernel = &kernel;
  own.parameters = parameters;
  running = &own;
  for (u64 k = 0; k < threads; ++k) {
    own.all[k]->place = place_of(k);
    own.all[k]->place.exchanged = own.exchanged[k / warp_threads].data();
    own.start(k);
  }
  for (bool moved = true; moved;) {
    for (u64 k = 0; k < threads; ++k) {
      if (own.all[k]->state == fiber_state::ready) own.resume(*own.all[k]);
    }
    moved = own.open_barriers(threads);
  }
  for (u64 k = 0; k < threads; ++k) {
    if (own.all[k]->state == fiber_state::ended) continue;
    throw_bad_input("run", "the kernel " + name,
                    "thread " + std::to_string(k) + " of block " + std::to_string(first.block.x) +
                        " waits for threads that wait elsewhere: let all of them come to each __syncthreads and shuffle");
  }
}

void block_runner::wait(u32 kind, u32 lanes) {
  fibers& own = *running;
  fiber& self = *own.current;
  self.state = kind == of_block ? fiber_state::at_block_barrier : fiber_state::at_warp_barrier;
  self.lanes = lanes;
  self.watched.leave();
  ::swapcontext(&self.context, &own.back);
}

}  // namespace penstock::kernels
