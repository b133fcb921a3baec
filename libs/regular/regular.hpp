// Regular workloads (BaM dissertation 7.3): a sum, column means and c = a + b over arrays larger than the cache, to see what
// access on demand costs beside explicit tiles. Every result is compared with a plain loop on the host.
#pragma once

#include "libs/bench/measurement.hpp"
#include "libs/bench/stamped_store.hpp"

#include <string>
#include <vector>

namespace penstock::regular {

struct regular_options {
  std::string executor = "auto";
  std::string media = "file";       ///< or the preset of a modelled drive (drive_preset)
  u32 drives = 1;                   ///< modelled: the arrays are striped over them
  std::string place = "hbm";        ///< modelled: where their bytes lie: hbm (a CPU's own memory) or host
  std::string engine = "auto";      ///< files: auto, io_uring, pread
  bool direct = false;              ///< files: past the page cache
  std::string raw;                  ///< dtype of files without a header; empty: .npy
  std::vector<std::string> access;  ///< of tiled, naive, line; empty: all. tiled is always measured
  std::string directory = "auto";   ///< auto, direct, set
  u64 cache_bytes = 0;              ///< 0: an eighth of the data
  u64 line_bytes = 4096;
  u64 tile_bytes = 65536;  ///< a power of two, 4 KiB to 64 KiB
  u32 in_flight = 0;       ///< tiles of a worker; 0: 8 on the CPU, 4 on CUDA
  u32 threads = 0;         ///< CPU executor: its threads; CUDA: those of the software controller. 0: all cores
  u32 server_sms = 0;      ///< modelled drives; 0: a third; CPU: threads, 0: served by who waits
  u32 repeats = 3;
  progress_fn progress;
};

struct reduce_result {
  std::string type;  ///< dtype
  std::vector<u64> shape;
  u64 word = 0;       ///< sum of integers, wrapped at 64 bits; of signed ones as two's complement
  double number = 0;  ///< sum of floating point
  std::vector<double> means;
  std::vector<bench::measurement> measurements;  ///< tiled first, then those of `access`
};

/// Sum of all elements of a file, or with `columns` the mean of each column of a matrix. Throws penstock::error: bad_input for
/// options or a file that cannot be; world when storage failed, or a result is not the reference's.
reduce_result run_reduce(std::string const& path, bool columns, regular_options const& options);

struct vectoradd_result {
  std::string type;
  std::vector<u64> shape;
  std::vector<bench::measurement> measurements;
};

/// c = a + b, element by element: `out` is made, with the shape and the type of both. It is not replaced unless that is asked
/// for, and removed again where the run fails. Throws likewise.
vectoradd_result run_vectoradd(std::string const& a, std::string const& b, std::string const& out, bool replace,
                               regular_options const& options);

}  // namespace penstock::regular
