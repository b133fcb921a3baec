// Runs the threads of one block on one OS thread: one after the other, or in turns where they wait for each other or go through
// many lines.
//
// A thread that goes through a file with steps as wide as the launch reads one element of a line, and its neighbours read the
// others. One after the other each would bring in the whole file. So a thread's turn ends with so many lines as a part of the
// cache holds, and the others come up to it before the first of those lines is gone. Where they do not come up to each other,
// but read here and there or each a part of its own, turns gain nothing, and what is read ahead of one would be gone when it is
// its turn again: then threads run on as if there were no turns, and after a while it is seen anew.
#pragma once

#include "penstock/array/line_reader.hpp"
#include "penstock/kernels/host_entry.hpp"

#include <memory>
#include <string>

namespace penstock::kernels {

/// Of the thread that runs on this OS thread.
struct lines_of_turn {
  static constexpr penstock::u32 no_end = 0;

  penstock::u64 last = 0;       ///< that it came to
  penstock::u32 left = no_end;  ///< until its turn ends
};
[[gnu::tls_model("initial-exec")]] extern constinit thread_local lines_of_turn turn;

/// What the blocks of a launch have in common.
struct block_launch {
  std::string const& name;
  host_entry const& kernel;
  void** parameters;
  u32 runners = 1;           ///< OS threads that run them
  penstock::u64 number = 0;  ///< another for each launch
};

/// Keeps its fibers' stacks from one block to the next. Not thread-safe: one for each OS thread.
class block_runner {
 public:
  block_runner();
  ~block_runner();

  /// Every thread of a block, to its end. `first`: its thread 0. Throws penstock::error where threads wait for others that wait
  /// elsewhere; and what a thread throws.
  void run(block_launch const& launch, host_thread const& first);

  /// Called by a thread of the block that runs on this OS thread.
  static void wait(u32 kind, u32 lanes);

  /// Called by a thread, of a block or not, before it reads or changes what is at an address; it holds nothing.
  static void come_to(line_reader const& reader, penstock::u64 address) {
    const penstock::u64 line = value(reader.line_of(address));
    lines_of_turn& own = turn;
    if (own.last == line) return;
    own.last = line;
    if (own.left != lines_of_turn::no_end && --own.left == 0) end_turn(reader);
  }

  struct fibers;

 private:
  static void end_turn(line_reader const& reader);

  std::unique_ptr<fibers> fibers_;
};

}  // namespace penstock::kernels
