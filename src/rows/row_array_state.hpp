// What an array of rows owns, and the parts of its calls: row_array_open.cpp opens it, row_array.cpp calls.
#pragma once

#include "kept_memory.hpp"
#include "mapped_rows.hpp"
#include "penstock/host/watched_mapping.hpp"
#include "penstock/rows/row_array.hpp"
#include "registered_host.hpp"
#include "report_pool.hpp"
#include "row_job.hpp"
#include "watched_argument.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include <unistd.h>

namespace penstock {

struct row_array::state : std::enable_shared_from_this<row_array::state> {
  state(executor& executor, row_shape const& asked, row_source const& source, row_array_options const& with,
        row_progress const& watch);
  /// What is written back beside other work uses the cache until it is over.
  ~state();

  void copy_to_hbm(row_source const& source, row_progress const& watch);
  /// Copies what this process has of the rows. Returns where row 0 lies.
  std::byte* copy_own(std::byte const* from, row_progress const& watch);
  void open_storage(row_source const& source);
  void open_volume(row_source const& source);
  void open_host(row_source const& source);
  void start_controller();
  void make_cache(std::string const& name, u64 bytes, volume_spec const& where, u64 origin);
  void take_cache(u64 origin);
  /// A caller's memory may be a mapped file, which others cut short.
  void watch_memory(void* memory);
  void move_memory(void* to);

  /// Keeps the rows of a list that `made` has room for.
  void keep(std::span<std::int64_t const> rows, rows::kept_memory made, row_progress const& watch);

  /// Throws what the cache has met: of a file that is shorter by now that, and not the status of a read beyond its end.
  void check_faults();
  /// Throws for a file behind a cache that is shorter by now than the rows that lie in it.
  void check_stored() const;
  void flush_cache();
  /// Threads of the CPU that read a mapped file have read zeros where it was cut short.
  void check_file() const;

  bool sorts(row_list const& list, rows::row_place const& from, gather_order order) const;
  /// Of a list that is sorted: whether threads of the CPU help with it.
  bool shares(row_list const& list, rows::row_place const& from, row_call_options const& how) const;

  /// `marked`: the call can be waited for; else whoever asks waits for the stream.
  template <class Launch>
  row_call call(char const* operation, row_list const& list, rows::argument const& memory, row_call_options const& how,
                Launch const& launch, bool marked = true);
  /// The two ends of a call: nothing is launched yet, and everything is on the stream.
  std::unique_ptr<row_call::state> begin(char const* operation);
  row_call on_stream(std::unique_ptr<row_call::state> made, void* stream, bool marked);
  row_call gather(row_list const& list, void* out, row_call_options const& how, bool marked);

  /// After stores into `count` rows on a stream. CUDA: once so many were made that writers would soon clean before they go on,
  /// lines are written back beside what comes next.
  void note_stored(u64 count, u64 row_bytes, void* stream);

  bool copies_by_itself(rows::row_place const& from, row_call_options const& how) const;

  /// Of much that threads of the CPU copy: large pages to store it in, and of a run in a mapped file the pages that are not in
  /// memory yet.
  void expect_on_cpu(row_list const& list, rows::row_place const& from, void* out) const;

  /// CUDA: rows side by side in memory.
  bool is_one_copy(row_list const& list, rows::row_place const& at, row_call_options const& how) const;
  static void* address_in(rows::row_place const& at, row_list const& list);

  void check_copies(row_call_options const& how) const;

  std::shared_ptr<void> memory_owner;  ///< first: lines are written back to that memory until all below is gone
  executor& on;
  const pid_t process = ::getpid();
  row_shape shape;
  row_array_options options;
  std::unique_ptr<rows::row_device> device;
  rows::report_pool reports;
  buffer<std::byte> copy;
  mapped_parts shared;  ///< instead of `copy`
  std::optional<rows::mapped_rows> file;
  std::optional<watched_mapping> watched;  ///< memory of the caller's
  std::optional<rows::registered_host> registration;
  std::optional<software_controller> controller;
  std::string stored_path;  ///< storage: of the file
  u64 stored_end = 0;       ///< where the rows end in it
  std::optional<file_volume> volume;
  u32 memory_space = 0;  ///< of the controller, over memory of the caller's; 0: there is none
  std::unique_ptr<line_cache> cache;
  rows::row_place place;
  std::optional<rows::kept_memory> kept;
  std::atomic<u64> stored_since_cleaning{0};  ///< lines, about
  std::atomic<u64> requested{0};              ///< bytes, by gathers
};

}  // namespace penstock
