// One command that an engine works on, and what an engine is: something that makes system calls without blocking the ring.
#pragma once

#include "pieces.hpp"
#include "storage_namespace.hpp"

#include "penstock/core/bits.hpp"

#include <memory>
#include <string>

namespace penstock::controllers {

struct transfer {
  action what = action::read;
  u16 command_id = 0;
  bool through_bounce = false;
  storage_namespace const* space = nullptr;
  u32 file = 0;         ///< index into the engine's files
  int descriptor = -1;  ///< >= 0: the file, which is not one of those
  u64 offset = 0;       ///< in the namespace
  u64 bytes = 0;        ///< of the command
  u64 asked = 0;        ///< of the file: a write leaves out what lies past the end
  u64 done = 0;         ///< of `asked`
  pieces data;          ///< the command's buffer
  pieces rest;          ///< what the next system call moves
  std::byte* bounce = nullptr;
  u64 bounce_bytes = 0;
  u64 give_up_ns = 0;  ///< 0, or until when EAGAIN and its like are tried again
  long result = 0;     ///< of the last system call: bytes, or -errno
  transfer* next = nullptr;

  transfer() = default;
  transfer(transfer const&) = delete;
  transfer& operator=(transfer const&) = delete;
  ~transfer();

  /// Aligned for any direct I/O; kept for the next command.
  void reserve_bounce(u64 needed);
};

/// The engine of one queue. Used by the holder of the queue's turn.
class transfer_engine {
 public:
  virtual ~transfer_engine() = default;

  /// Takes on one system call: `rest` at offset + done of `file`, or a sync. The transfer stays where it is until it is reaped.
  virtual void start(transfer& work) = 0;

  /// What was started since the last call goes to the kernel or the pool, all at once.
  virtual void submit() = 0;

  /// A list (by `next`) of the transfers whose system call has ended, with `result` set.
  virtual transfer* reap() = 0;

  /// Gives up what has not begun and waits for what has. False if that takes longer than until `deadline_ns`.
  virtual bool quiesce(u64 deadline_ns) = 0;
};

/// The files of a controller in the order of transfer::file: two to a namespace, -1 where there is none.
inline u32 file_index(u32 space, bool tail) { return space * 2 + (tail ? 1 : 0); }

}  // namespace penstock::controllers
