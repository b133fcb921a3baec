// The default controller: host threads that serve files, block devices and memory as NVMe namespaces. Needs no root, no module.
//
// Each queue has a server of its own (ring state, an io_uring instance or a share of the pread pool), so queues share no lock.
// A Read whose bytes are in the page cache is copied from a mapping; any other is handed to io_uring (or to the pool) and the
// ring goes on. Served by `threads` threads, queue q by thread q mod threads, or with threads = 0 inside the polling thread.
#pragma once

#include "penstock/controller/controller.hpp"
#include "penstock/controller/file_folder.hpp"
#include "penstock/executor/executor.hpp"

#include <memory>
#include <span>
#include <string>

namespace penstock {

enum class io_engine {
  automatic,  ///< io_uring where the kernel allows it, else pread
  io_uring,
  pread,
};

struct software_options {
  io_engine engine = io_engine::automatic;
  u32 threads = 0;       ///< 0: polled in place
  u32 pool_threads = 4;  ///< of the pread engine
  u32 max_queues = 1024;
  u32 max_queue_entries = 4096;
  bool copy_resident = true;  ///< false: never copy from a mapping, every transfer is a system call; so it is for a file that
                              ///< this user neither owns nor may write: the kernel does not report what of it is in memory
};

/// For the kernels of an executor, on the machine's cores. CUDA: `threads` threads serve, 0: as many as leave two cores to the
/// caller and to the driver. CPU: none, waiters poll it.
software_options software_options_for(executor const& on, io_engine engine, u32 threads);

/// Of a controller with these options.
controller_limits limits_of(software_options const& options);

struct file_namespace {
  std::string path;       ///< regular file or block device
  bool direct = false;    ///< bypasses the page cache (O_DIRECT)
  bool writable = false;  ///< one writer at a time has these bytes, in whatever process: a second is refused after 1 s
  u32 block_bytes = 512;  ///< logical block size, a power of two, 512 or more
  /// Where block 0 begins: what lies before it in the file (a header) is not of the namespace. Direct I/O needs a multiple of
  /// the device's block.
  u64 first_byte = 0;
  u64 bytes = 0;  ///< from there on; what follows them is not of the namespace. 0: up to the end of the file
};

/// What the controller did, over all queues that it ever had.
struct software_counts {
  u64 commands = 0;           ///< fetched
  u64 copied = 0;             ///< of those: served by a copy, from a mapping or from and to memory
  u64 handed_on = 0;          ///< of those: handed to io_uring or to the pool
  u64 refused_doorbells = 0;  ///< values that no correct host writes
};

class software_controller final : public controller {
 public:
  explicit software_controller(software_options const& options = {});
  ~software_controller() override;

  /// Adds a namespace and gives its identifier, counted from 1. The last block of a file whose size is no multiple of the block
  /// size reads as zeros past the end, and what is written there is dropped: the file keeps its size. Throws penstock::error
  /// with path, reason, remedy. REQUIRES: before the first attach.
  u32 add_namespace(file_namespace const& file);

  /// The same over memory, which the caller keeps alive.
  u32 add_namespace(std::span<std::byte> memory, u32 block_bytes = 512);
  /// The same over all files of a folder, which are opened and closed by calls (file_folder.hpp).
  u32 add_folder(file_folder const& folder);
  /// The memory of a namespace has moved: the same bytes lie at `to` from now on. REQUIRES: no command of it is under way.
  void move_memory(u32 namespace_id, std::byte* to);
  /// Lets others write to the files of its namespaces. REQUIRES: no command writes from now on.
  void give_up_writing();

  void attach(queue_rings const& rings) override;
  /// Throws penstock::error (world, ETIMEDOUT) if a system call has not come back after 30 s; the queue's memory must then be
  /// kept.
  void detach(u16 queue) override;
  void poll(u16 queue) override;
  void add_buffer(void* memory, u64 bytes) override;
  controller_limits limits() const override;
  std::string engine() const override;

  software_counts counts() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Whether this kernel lets this process use io_uring; where not, `reason` says why (an errno's text, or how Penstock was
/// built).
bool io_uring_usable(std::string* reason = nullptr);

}  // namespace penstock
