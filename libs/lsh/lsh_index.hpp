// An index of approximate nearest neighbours that was built into a folder (build_index.hpp), opened for queries: records and
// entries stay in their files and come through one cache; where buckets begin is in the executor's memory.
#pragma once

#include "libs/lsh/lsh_kernels.hpp"
#include "penstock/runtime/folder.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

namespace penstock::lsh {

inline constexpr auto local = memory_kind::local;

using progress_fn = std::function<void(std::string const&, u64, u64)>;

struct index_options {
  std::string executor = "auto";
  u64 cache_bytes = 0;  ///< 0: 256 MiB, on a GPU 2 GiB
  u64 line_bytes = 4096;
  u32 threads = 0;            ///< of the CPU executor; 0: one a core
  u32 max_candidates = 1024;  ///< of a query
  u32 fallback = 0;           ///< records that a query is compared with whose buckets are empty
};

struct query_result {
  std::vector<u32> ids;          ///< [queries][nearest]; no_id behind the last one
  std::vector<float> distances;  ///< [queries][nearest]: Euclidean, squared
  u64 candidates = 0;            ///< that were compared
  u64 cut = 0;                   ///< queries with more than max_candidates
  double seconds = 0;
};

/// Queries whose candidates were found, in the executor's memory.
struct comparison {
  float const* queries;  ///< [count][stride]
  u32 dimensions, stride;
  u32 const* lists;   ///< [count][room] numbers of records
  u32 const* counts;  ///< [count]
  u64 count;
  u32 room;
  float* distances;  ///< [count][room], to be set
};
using compare_fn = std::function<void(comparison const&)>;

struct index_facts {
  index_header header;
  std::string executor, device;
  u64 cache_bytes = 0;
  cache_stats cache;
};

/// Thread-safe; queries take turns.
class lsh_index {
 public:
  /// Throws penstock::error: bad_input for a folder without an index or with one that is damaged, with the remedy.
  lsh_index(std::string const& folder, index_options const& options);
  ~lsh_index();

  /// The `nearest` of each query's candidates. `queries`: [n][dimensions].
  /// Throws penstock::error: bad_input for a vector that has another length or is not finite; world for what cannot be read.
  /// `compare`: in place of the comparison with the records in their file, for measurements.
  query_result query(std::span<float const> queries, u32 nearest, progress_fn const& progress = {},
                     compare_fn const& compare = {});
  /// Takes the memory that queries of this many need; else the first one does, and keeps it.
  void reserve(u64 queries, u32 nearest);
  /// The nearest of all records: reads all of them.
  query_result query_all(std::span<float const> queries, u32 nearest, progress_fn const& progress = {});

  index_header const& header() const { return header_; }
  /// The records in their file, for kernels.
  file_records records() const { return {folder_.view(), records_, header_.record_bytes}; }
  executor& on() const { return *on_; }
  /// This process was forked from the one that made it: nothing of it works here.
  bool is_inherited() const { return process_ != ::getpid(); }
  index_facts facts() const;

 private:
  struct batch_room;

  u64 check_queries(std::span<float const> queries, u32 nearest) const;
  batch_room make_room(u64 queries, u32 nearest, u32 room) const;
  batch_room& keep_room(u64 queries, u32 nearest);
  void load(batch_room& room, std::span<float const> queries, u64 first, u64 count) const;
  void find_candidates(batch_room& room, u64 count);
  void compare(batch_room& room, u64 count, u32 const* lists, u64 first_id);
  void select(batch_room& room, u64 count, u32 const* lists, u64 first_id, u32 nearest) const;
  void check(std::string const& what);
  file_descriptor open_file(char const* name);

  pid_t process_ = ::getpid();
  std::string root_;
  index_options options_;
  std::unique_ptr<executor> on_;
  index_header header_;
  folder folder_;
  buffer<float> projections_, shifts_;
  buffer<u32> offsets_, failed_;
  file_descriptor records_, entries_;
  std::unique_ptr<batch_room> kept_;  ///< of the last query
  mutable std::mutex mutex_;
};

/// The sections in front of the entries of `folder`'s index, checked against the folder's files.
struct index_sections {
  index_header header;
  std::vector<float> projections, shifts;
  std::vector<u32> offsets;
};
/// Throws penstock::error, bad_input, with the remedy.
index_sections read_sections(std::string const& folder);

/// The same for a folder without an index: what `records` must be.
void check_records(std::string const& folder, index_header const& header);

template <class Body>
void run_cuda(executor& on, u64 items, Body const& body);

template <class Body>
void run(executor& on, u64 items, Body const& body) {
  if constexpr (has_kernels) {
    if (on.kind() == executor_kind::cuda) return run_cuda(on, items, body);
  }
  launch<group_width>(on, items, body);
}

/// Opens a file to read, in a kernel.
struct open_named {
  folder_view folder;
  char const* name;
  u32 bytes;
  open_result* opened;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range) const {
    const open_result one = folder.open(g, name, bytes, file_flag::read);
    if (is_leader(g)) *opened = one;
  }
};

/// Throws penstock::error (world) where it cannot be opened.
file_descriptor open_in_kernel(executor& on, folder const& files, std::string const& root, std::string const& name);

}  // namespace penstock::lsh
