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

/// Of the thread that runs on an OS thread.
struct alignas(64) lines_of_turn {
  static constexpr penstock::u32 no_end = 0;
  static constexpr penstock::u32 kept = 4;  ///< as many arrays a loop goes through side by side

  penstock::u64 last[kept] = {};  ///< that it came to; the last one first
  penstock::u32 left = no_end;    ///< until its turn ends
  penstock::u32 again = 0;        ///< times that it came to the last one
};

inline constexpr penstock::u32 max_runners = 1024;
/// By the numbers of runners: a number in an array's descriptor costs a read less than storage of an OS thread.
extern lines_of_turn turns_of_runners[max_runners];

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

  /// Another one for each runner there is; 0: there are too many, and its threads take no turns at lines.
  u32 number() const { return number_; }

  /// Called by a thread of the block of that runner (0: of none) before it reads or changes what is at an address; it holds
  /// nothing.
  static void come_to(u32 runner, line_reader const& reader, penstock::u64 address) {
    if (runner == 0) return;
    const penstock::u64 line = value(reader.line_of(address));
    lines_of_turn& own = turns_of_runners[runner];
    if (own.last[0] != line || ++own.again >= waits_after) come_to_line(own, reader, line);
  }
  /// Called by a thread that may wait for a word that another one of its block changes.
  static void try_again(u32 runner) {
    if (runner != 0) wait(of_nobody, 0);
  }
  /// A thread that has mapped files keeps its turn: what it holds others may wait for.
  static void note_maps(int more);

  struct fibers;

 private:
  /// Reads of one line after which a thread is taken for one that waits there.
  static constexpr u32 waits_after = 1 << 16;

  static void come_to_line(lines_of_turn& own, line_reader const& reader, penstock::u64 line);
  static void end_turn(lines_of_turn& own, line_reader const& reader);

  u32 number_;
  std::unique_ptr<fibers> fibers_;
};

}  // namespace penstock::kernels
