// A mutex for sections of about a microsecond: a thread that finds it taken tries again for a while before it sleeps. A sleeper
// is woken by a system call of the thread that unlocks, which takes several times as long as such a section: eight threads that
// open files then do less than one.
#pragma once

#include <mutex>

namespace penstock::controllers {

class spinning_mutex {
 public:
  void lock() {
    for (unsigned turn = 0; turn < max_turns; ++turn) {
      if (mutex_.try_lock()) return;
      pause();
    }
    mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }

 private:
  static constexpr unsigned max_turns = 500;  // some 20 us

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  std::mutex mutex_;
};

}  // namespace penstock::controllers
