// `penstock bench io`: commands of GPU threads through real queues to modelled drives, without a cache.
#pragma once

#include "libs/bench/measurement.hpp"
#include "libs/bench/stamped_store.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

/// Of a procedure, the steps with these values only; 0 or empty: all.
struct io_only {
  u32 drives = 0;
  u64 threads = 0;
  u32 block_bytes = 0;
  std::string preset;
};

struct io_options {
  std::string executor = "auto";
  u32 sm_share = 0;             ///< see executor_limits: SMs or threads that it is bounded to; 0: all
  std::string preset = "none";  ///< of the drives: see drive_preset
  std::string link = "none";    ///< that they share: see link_preset
  std::string media = "hbm";    ///< hbm or host: where the drives' bytes lie
  std::string rings = "hbm";    ///< hbm, or host for drives that reach host memory only
  u32 drives = 1;               ///< 1 to 16
  u32 block_bytes = 512;        ///< of one command: a power of two, 512 to 65536
  u32 queues = 128;             ///< over all drives
  u32 queue_depth = 1024;
  u64 first_ticket = 0;  ///< of each queue, rounded down to whole rings: to see them pass 2^32
  u64 threads = 0;       ///< that issue; 0: as many as fit beside the drives
  u32 in_flight = 1;     ///< commands that a thread sends before it waits for the first
  u64 commands = 0;      ///< of one run; 0: chosen
  u32 write_percent = 0;
  bool sequential = false;  ///< consecutive blocks, not any permutation of them
  std::string sweep;        ///< over what (sweep_names); empty: one run
  std::vector<u64> values;  ///< of the sweep; empty: chosen
  std::string procedure;    ///< of a paper (procedure_names); it sets drives, threads, blocks
  io_only only;
  u32 sms = 0;             ///< that issue; 0: what the drives leave
  u32 server_sms = 0;      ///< that the drives take; 0: a third. CPU: threads
  int server_device = -1;  ///< CUDA: GPU that the drives run on, with their media; -1: that of those who issue
  u64 drive_mib = 0;       ///< of one drive, a power of two; 0: chosen
  u32 repeats = 5;
  progress_fn progress;
  found_fn found;
};

/// A measurement for each step: commands/s, every command's status and first word checked, and every word in one run more.
/// Throws penstock::error: bad_input for options that cannot be; world where a command failed or brought wrong bytes.
std::vector<measurement> run_io_benchmark(io_options const& options);

}  // namespace penstock::bench
