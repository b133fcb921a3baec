#include "libs/kernels/block_runner.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <cerrno>
#include <cstddef>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace penstock::kernels {
namespace {

/// Of threads that wait for each other, and of others: as OS threads have. As far as they are touched.
constexpr std::size_t waiting_stack_bytes = 1 << 20, stack_bytes = 8 << 20;
/// Fibers of all runners, where threads need none of their own: a stack takes two of the 65,530 mappings that a process has.
constexpr u32 most_fibers = 8192;
constexpr u32 warp_threads = 32;
/// Fibers that begin in the first round; in each after it as many as there are. Whether turns gain is seen before there are
/// more.
constexpr u32 begun_first = 8;
/// Lines of a turn at most. They stay in a core's own cache, and a switch of fibers is little beside so many lines.
constexpr u32 most_lines = 256;
/// Turns after which is seen whether threads come up to each other; how many at least do so where turns are worth it; and for
/// how many times the lines of those turns there are none where not.
constexpr u32 judged_turns = 8, least_together = 1, times_without = 128;

enum class fiber_state { ready, at_block_barrier, at_warp_barrier, ended };

/// Of one fiber, mapped when it first runs: pages that it does not touch cost nothing. Below it lies a page that nobody may
/// touch, so that an overflow ends the process instead of changing another fiber's locals.
class fiber_stack {
 public:
  fiber_stack() = default;
  fiber_stack(fiber_stack const&) = delete;
  fiber_stack& operator=(fiber_stack const&) = delete;
  ~fiber_stack() { unmap(); }

  /// Whether there are so many bytes; errno says why not. What was there before is gone where there were fewer.
  bool map(std::size_t bytes) {
    if (bytes <= bytes_) return true;
    unmap();
    constexpr int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;  // of small pages
    void* const mapped = ::mmap(nullptr, guard_bytes + bytes, PROT_NONE, kind, -1, 0);
    if (mapped == MAP_FAILED) return false;
    if (::mprotect(static_cast<std::byte*>(mapped) + guard_bytes, bytes, PROT_READ | PROT_WRITE) != 0) {
      const int why = errno;
      ::munmap(mapped, guard_bytes + bytes);
      errno = why;
      return false;
    }
    memory_ = static_cast<std::byte*>(mapped);
    bytes_ = bytes;
    return true;
  }
  void* memory() { return memory_ + guard_bytes; }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t guard_bytes = 1 << 16;  // a page, of any machine

  void unmap() {
    if (memory_ != nullptr) ::munmap(memory_, guard_bytes + bytes_);
    memory_ = nullptr;
    bytes_ = 0;
  }

  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
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
  fiber_state state = fiber_state::ended;
  bool is_made = false;  ///< its context is
  u32 lanes = 0;         ///< that it waits for, at a warp's barrier
  int maps = 0;          ///< of files, that it holds
  fiber_stack stack;
  watched_fiber watched;
};

u64 threads_of(extent const& e) { return u64{e.x} * e.y * e.z; }

}  // namespace

/// Fiber k is thread k where threads wait for each other. Elsewhere a fiber whose thread has ended takes the next one that has
/// not begun: there are as many as threads whose turn has ended, and one where no turn ends.
struct block_runner::fibers {
  explicit fibers(u32 runner) : turn(turns_of_runners[runner]), has_turns(runner != 0) {}

  lines_of_turn& turn;
  bool has_turns;
  std::vector<std::unique_ptr<fiber>> all;
  std::vector<std::array<u64, warp_threads>> exchanged;
  ucontext_t back{};
  fiber* current = nullptr;
  std::exception_ptr failure;

  // The block.
  block_launch const* launch = nullptr;
  host_thread first;
  bool waits = false;
  u64 threads = 0, next = 0;  ///< the next that begins
  u64 begun = 0, most = 0;    ///< fibers
  u32 rounds = 0;             ///< of turns, so far

  // Of the launch, on this OS thread.
  penstock::u64 number = 0;
  u32 lines = 0;  ///< of a turn; 0: no cache has been met
  bool takes_turns = true;
  u32 without = 0;              ///< lines that come before it does
  u32 ended = 0, together = 0;  ///< turns since they were judged: those where threads had come up to each other
  std::array<penstock::u64, lines_of_turn::kept> last_end{};  ///< the lines where the last turn ended

  void begin_block(block_launch const& of, host_thread const& at);
  void end_block();
  bool run_round();
  void begin_turn(u32 times);
  bool begin();
  void take_next(fiber& by);
  static void enter();
  void resume(fiber& to);
  void leave(fiber& self);
  bool open_barriers();
  bool open_warp(u64 from, u64 last);
};

namespace {

thread_local block_runner::fibers* running = nullptr;

}  // namespace

lines_of_turn turns_of_runners[max_runners];

namespace {

struct runner_numbers {
  std::mutex mutex;
  std::bitset<max_runners> taken{1};  // 0 is of none
};
runner_numbers& all_numbers() {
  static runner_numbers* const all = new runner_numbers;  // OS threads end when they will
  return *all;
}

u32 take_number() {
  runner_numbers& all = all_numbers();
  const std::lock_guard lock(all.mutex);
  for (u32 k = 1; k < max_runners; ++k) {
    if (all.taken[k]) continue;
    all.taken[k] = true;
    return k;
  }
  return 0;
}

}  // namespace

block_runner::block_runner() : number_(take_number()) {}
block_runner::~block_runner() {
  runner_numbers& all = all_numbers();
  const std::lock_guard lock(all.mutex);
  if (number_ != 0) all.taken[number_] = false;
}

void block_runner::fibers::begin_block(block_launch const& of, host_thread const& at) {
  launch = &of;
  first = at;
  waits = of.kernel.waits();
  threads = threads_of(at.block_size);
  next = begun = 0;
  most = waits ? threads : std::min<u64>(threads, std::max(most_fibers / of.runners, begun_first));
  rounds = 0;
  failure = nullptr;
  if (number != of.number) {
    number = of.number;
    lines = ended = together = 0;
    takes_turns = has_turns && !of.kernel.spins;
    without = 0;
  }
  if (waits) exchanged.assign((threads + warp_threads - 1) / warp_threads, {});  // a launch that was given up leaves its votes
  running = this;
  if (has_turns && !takes_turns) turn.left = without;
}

/// What has not ended then never does: its fibers are made anew.
void block_runner::fibers::end_block() {
  running = nullptr;
  if (has_turns) {
    if (!takes_turns) without = turn.left;
    turn.left = lines_of_turn::no_end;
  }
  for (u64 k = 0; k < begun; ++k) all[k]->is_made = all[k]->is_made && all[k]->state == fiber_state::ended;
}

void block_runner::fibers::take_next(fiber& by) {
  const u64 k = next++;
  extent const& size = first.block_size;
  by.place = first;
  by.place.thread = {static_cast<u32>(k % size.x), static_cast<u32>(k / size.x % size.y),
                     static_cast<u32>(k / size.x / size.y)};
  if (waits) by.place.exchanged = exchanged[k / warp_threads].data();
  by.state = fiber_state::ready;
}

// A fiber goes back to whoever resumed it: uc_link is of another block by the time it ends.
void block_runner::fibers::enter() {
  fibers& own = *running;
  fiber& self = *own.current;
  for (;;) {
    try {
      own.launch->kernel.run(own.launch->parameters);
    } catch (...) {
      own.failure = std::current_exception();
    }
    self.state = fiber_state::ended;
    if (own.waits || own.failure != nullptr || own.next == own.threads) {
      own.leave(self);
    } else {
      own.take_next(self);
      own.launch->kernel.enter(&self.place);
    }
  }
}

/// One more fiber. False: there is no memory for its stack, and others go on without it.
bool block_runner::fibers::begin() {
  if (all.size() == begun) all.push_back(std::make_unique<fiber>());
  fiber& made = *all[begun];
  const std::size_t bytes = waits ? waiting_stack_bytes : stack_bytes;
  made.is_made = made.is_made && bytes <= made.stack.bytes();
  if (!made.stack.map(bytes)) {
    if (waits || begun == 0) throw_os_error("run", "threads of a kernel", errno, "launch smaller blocks");
    most = begun;
    return false;
  }
  if (!made.is_made) {
    ::getcontext(&made.context);
    made.context.uc_stack.ss_sp = made.stack.memory();
    made.context.uc_stack.ss_size = made.stack.bytes();
    made.context.uc_link = nullptr;
    ::makecontext(&made.context, &fibers::enter, 0);
    made.is_made = true;
  }
  made.maps = 0;
  ++begun;
  take_next(made);
  begin_turn(rounds);  // it comes up to those that began before
  resume(made);
  return true;
}

void block_runner::fibers::resume(fiber& to) {
  current = &to;
  launch->kernel.enter(&to.place);
  to.watched.enter();
  ::swapcontext(&back, &to.context);
}

void block_runner::fibers::leave(fiber& self) {
  self.watched.leave();
  ::swapcontext(&self.context, &back);
}

/// False: nobody can go on.
bool block_runner::fibers::run_round() {
  bool moved = false;
  ++rounds;
  const u64 there = begun;
  for (u64 k = 0; k < there && failure == nullptr; ++k) {
    if (all[k]->state != fiber_state::ready) continue;
    begin_turn(1);
    resume(*all[k]);
    moved = true;
  }
  for (u64 k = 0; k < std::max<u64>(there, begun_first) && next < threads && begun < most && failure == nullptr; ++k) {
    moved = begin() || moved;
  }
  return failure == nullptr && (moved || open_barriers());
}

/// Of the first cache that is met only one line comes before it is known.
void block_runner::fibers::begin_turn(u32 times) {
  if (takes_turns) turn.left = lines == 0 ? 1 : lines * times;
}

/// Lanes of a warp go on together when all of those that one waits for, and that have not ended, wait for the same.
bool block_runner::fibers::open_warp(u64 from, u64 last) {
  bool opened = false;
  for (u64 k = from; k < last; ++k) {
    fiber const& self = *all[k];
    if (self.state != fiber_state::at_warp_barrier) continue;
    const u32 lanes = self.lanes;
    bool complete = true;
    for (u64 other = from; other < last; ++other) {
      fiber const& with = *all[other];
      if ((lanes >> (other - from) & 1) == 0 || with.state == fiber_state::ended) continue;
      complete = complete && with.state == fiber_state::at_warp_barrier && with.lanes == lanes;
    }
    if (!complete) continue;
    for (u64 other = from; other < last; ++other) {
      if ((lanes >> (other - from) & 1) == 0 || all[other]->state == fiber_state::ended) continue;
      all[other]->state = fiber_state::ready;
      opened = true;
    }
  }
  return opened;
}

bool block_runner::fibers::open_barriers() {
  bool opened = false, all_at_block = next == threads;
  for (u64 from = 0; from < begun; from += warp_threads) {
    opened = open_warp(from, std::min<u64>(from + warp_threads, begun)) || opened;
  }
  for (u64 k = 0; k < begun; ++k) {
    all_at_block = all_at_block && (all[k]->state == fiber_state::at_block_barrier || all[k]->state == fiber_state::ended);
  }
  if (!all_at_block) return opened;
  for (u64 k = 0; k < begun; ++k) {
    if (all[k]->state != fiber_state::at_block_barrier) continue;
    all[k]->state = fiber_state::ready;
    opened = true;
  }
  return opened;
}

void block_runner::run(block_launch const& launch, host_thread const& first) {
  if (fibers_ == nullptr) fibers_ = std::make_unique<fibers>(number_);
  fibers& own = *fibers_;
  own.begin_block(launch, first);
  struct ending {
    fibers& of;
    ~ending() { of.end_block(); }
  } const at_end{own};
  while (own.run_round()) {}
  if (own.failure != nullptr) std::rethrow_exception(std::exchange(own.failure, nullptr));
  for (u64 k = 0; k < own.begun; ++k) {
    if (own.all[k]->state == fiber_state::ended) continue;
    throw_bad_input("run", "the kernel " + launch.name,
                    "thread " + std::to_string(k) + " of block " + std::to_string(first.block.x) +
                        " waits for threads that wait elsewhere: let all of them come to each __syncthreads and shuffle");
  }
}

void block_runner::wait(u32 kind, u32 lanes) {
  if (running == nullptr) return;
  fibers& own = *running;
  fiber& self = *own.current;
  if (kind == of_nobody && own.launch->kernel.spins) return;  // others may wait for what it holds, and not say so
  switch (kind) {
    case of_block: self.state = fiber_state::at_block_barrier; break;
    case of_warp: self.state = fiber_state::at_warp_barrier; break;
    default: self.state = fiber_state::ready; break;
  }
  self.lanes = lanes;
  own.leave(self);
}

void block_runner::note_maps(int more) {
  if (running != nullptr) running->current->maps += more;
}

void block_runner::come_to_line(lines_of_turn& own, line_reader const& reader, penstock::u64 line) {
  own.again = 0;
  if (own.last[0] == line) return wait(of_nobody, 0);
  u32 k = 1;
  while (k + 1 < lines_of_turn::kept && own.last[k] != line) ++k;
  const bool is_new = own.last[k] != line;
  for (; k > 0; --k) own.last[k] = own.last[k - 1];
  own.last[0] = line;
  if (is_new && own.left != lines_of_turn::no_end && --own.left == 0) end_turn(own, reader);
}

void block_runner::end_turn(lines_of_turn& turn, line_reader const& reader) {
  fibers& own = *running;
  const u64 part = std::max<u64>(1, reader.cache->frames / (4 * own.launch->runners));
  const u32 lines = static_cast<u32>(std::min<u64>(part, most_lines));
  if (own.lines == 0 || !own.takes_turns || own.current->maps > 0) {  // it begins with this line
    own.lines = lines;
    own.takes_turns = true;
    turn.left = lines;
    return;
  }
  own.lines = std::min(own.lines, lines);
  const auto here = std::to_array(turn.last);
  const auto is_near = [&](penstock::u64 line) {
    const penstock::u64 most = std::max(lines / 2, 1u);
    return std::ranges::any_of(own.last_end, [&](u64 other) { return (line < other ? other - line : line - other) <= most; });
  };
  own.together += std::ranges::any_of(here, is_near) ? 1 : 0;
  own.last_end = here;
  if (++own.ended == judged_turns) {
    own.takes_turns = own.together >= least_together;
    own.ended = own.together = 0;
  }
  if (!own.takes_turns) {
    turn.left = times_without * judged_turns * own.lines;
    return;
  }
  own.current->state = fiber_state::ready;
  own.leave(*own.current);
  std::ranges::copy(here, turn.last);  // which it reads now
}

}  // namespace penstock::kernels
