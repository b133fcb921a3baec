// `penstock bench write`: stores through the cache, beside the controller's own ceiling.
#pragma once

#include "libs/bench/measurement.hpp"
#include "libs/bench/stamped_store.hpp"

#include <string>
#include <vector>

namespace penstock::bench {

struct write_options {
  std::string executor = "auto";
  std::string controller = "model";  ///< model or software
  std::string media = "hbm";         ///< of the modelled drive: hbm or host
  std::string preset = "none";       ///< likewise
  std::string file;                  ///< that the software controller serves, made anew; empty: host memory
  bool direct = false;               ///< the file past the page cache
  u64 bytes = 0;        ///< of data, a power of two; 0: 4 GiB on CUDA, 64 MiB on the CPU. The media holds twice that
  u64 cache_bytes = 0;  ///< 0: a sixteenth of the data
  u64 line_bytes = 4096;
  directory_kind directory = directory_kind::automatic;
  u32 most_dirty_percent = 50;  ///< of the frames
  u64 command_bytes = 0;        ///< most of one Write; 0: random4k: a line, to be like the ceiling; others: 64 KiB
  u64 elements = 0;             ///< of random8 and sequential8 in one turn; 0: a 64th of all
  u32 slots = 0;                ///< Writes of the cache under way; 0: see write_back_options
  u32 queues = 0;               ///< 0: 128 on CUDA, one per thread on the CPU
  u32 queue_depth = 1024;
  u32 controller_threads = 0;  ///< software, CUDA
  u32 server_sms = 0;          ///< model: 0: a third
  u32 sms = 0;                 ///< that store; 0: all that are left
  u32 repeats = 3;
  std::vector<std::string> patterns;  ///< of random4k, random8, sequential8; empty: all
  progress_fn progress;
  found_fn found;
};

/// One measurement for each pattern; each turn ends with a flush, and after the last every byte of the media is looked at.
///   write.random4k     whole lines in any order: GB/s, beside Writes of a line by a client that does the least a host can do
///   write.random8      single elements of 8 bytes in any order: elements/s, beside that client's Read and Write of a line for
///                      each
///   write.sequential8  elements one after another, beside its Read and Write of each line
/// Throws penstock::error: bad_input for options that cannot be; world where a write failed or a byte is wrong.
std::vector<measurement> run_write_benchmark(write_options const& options);

}  // namespace penstock::bench
