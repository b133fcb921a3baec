// The host's half of GPUfs: threads that look for requests, read the file into pinned memory and move the bytes on
// (SYSTOR 2016, section 4.3; "RPC daemon", "worker threads").
#pragma once

#include "libs/bench/gpufs_view.hpp"
#include "penstock/executor/executor.hpp"

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace penstock::bench {

/// Copies from pinned host memory to memory of an executor while its kernel runs. Of one thread.
class gpufs_mover {
 public:
  virtual ~gpufs_mover() = default;
  /// Returns when the bytes are there. Throws penstock::error.
  virtual void move(void* to, void const* from, u64 bytes) = 0;
};

/// gpufs_cuda.cu: on a stream of its own. Throws penstock::error.
std::unique_ptr<gpufs_mover> open_gpufs_cuda_mover(executor& on);

struct gpufs_traffic {
  u64 pages = 0;
  u64 bytes = 0;
  u64 transfers = 0;  ///< moves to the executor's memory: fewer than pages where they are batched

  double mean_bytes() const { return transfers == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(transfers); }
};

/// An open file. Movable.
class gpufs_open_file {
 public:
  /// Throws penstock::error.
  explicit gpufs_open_file(std::string const& path);
  gpufs_open_file(gpufs_open_file&& other) noexcept;
  ~gpufs_open_file();

  u64 bytes() const { return bytes_; }
  /// Reads [offset, offset + count) as far as the file had bytes there when it was opened.
  bool read(void* to, u64 count, u64 offset) const;

 private:
  int descriptor_;
  u64 bytes_ = 0;
};

/// Outlives every kernel that has the view. Not copyable.
class gpufs_server {
 public:
  /// REQUIRES: what `view` points at outlives this. Adds to the view what serves its requests in place, if that is asked for.
  gpufs_server(executor& on, gpufs_options const& options, std::vector<gpufs_open_file> files, gpufs_view& view);
  ~gpufs_server();

  gpufs_traffic traffic() const;

 private:
  struct worker;
  struct found_request {
    u32 slot;
    u64 number, key, frame;
  };

  void work(std::stop_token const& stop, worker& own, u32 first) noexcept;
  u64 collect(worker& own, u32 first, u64 limit, std::vector<found_request>& found) const;
  void serve_single(worker& own, found_request const& request);
  void serve_batch(std::stop_token const& stop, worker& own, std::vector<found_request> const& batch);
  void serve_in_place(u32 slot);
  void wait_for_copies(std::stop_token const& stop, std::vector<found_request> const& batch) const;
  bool read_page(u64 key, void* to) const;
  void count_move(u64 pages);
  static void answer(gpufs_request& request, u64 number, void const* staged, bool good);
  found_request load(u32 slot) const;

  bool polls_;
  gpufs_options options_;
  std::vector<gpufs_open_file> files_;
  gpufs_view view_;
  std::atomic<u64> pages_{0}, transfers_{0};
  std::vector<std::unique_ptr<worker>> workers_;
  std::vector<std::jthread> threads_;  ///< last: they end first
};

}  // namespace penstock::bench
