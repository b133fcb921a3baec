#include "libs/lsh/find_within.hpp"

#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>

namespace penstock::lsh {
namespace {

folder_options searching_options(executor const& on, within_options const& options) {
  folder_options how;
  const u64 usual = on.kind() == executor_kind::cuda ? u64{2} << 30 : u64{256} << 20;
  how.cache.bytes = options.cache_bytes != 0 ? options.cache_bytes : usual;
  how.cache.line_bytes = options.line_bytes;
  how.max_files = 1024;
  return how;
}

/// Records of a set. Throws bad_input.
u64 records_in(std::string const& path, u64 record_bytes) {
  std::error_code failed;
  const u64 bytes = std::filesystem::file_size(path, failed);
  if (failed) throw_os_error("search", path, failed.value(), "name a file of records");
  if (bytes == 0 || bytes % record_bytes != 0 || bytes / record_bytes > max_records) {
    throw_bad_input("search", path,
                    std::to_string(bytes) + " bytes are no records of " + std::to_string(record_bytes) + ": give their size");
  }
  return bytes / record_bytes;
}

void check_within(std::string const& folder, u64 record_bytes, u32 dimensions, std::span<float const> queries, float distance,
                  within_options const& options) {
  const auto refuse = [&](std::string const& problem) { throw_bad_input("search", folder, problem); };
  if (dimensions == 0 || dimensions > max_dimensions || dimensions % 4 != 0) {
    refuse(std::to_string(dimensions) + " dimensions: give a multiple of 4 up to " + std::to_string(max_dimensions));
  }
  if (!std::has_single_bit(record_bytes) || record_bytes < u64{dimensions} * sizeof(float)) {
    refuse("records of " + std::to_string(record_bytes) + " bytes: give a power of two of at least " +
           std::to_string(u64{dimensions} * sizeof(float)));
  }
  if (options.line_bytes < record_bytes) {
    refuse("lines of " + std::to_string(options.line_bytes) + " bytes: a record of " + std::to_string(record_bytes) +
           " must fit one");
  }
  if (queries.empty() || queries.size() % dimensions != 0 || queries.size() / dimensions > (1u << 20)) {
    refuse(std::to_string(queries.size()) + " numbers: give 1 to 1048576 vectors of " + std::to_string(dimensions));
  }
  if (!(distance >= 0)) refuse("the distance: give a number from 0 on");
}

}  // namespace

within_result find_within(std::string const& folder_path, std::vector<std::string> const& sets, u64 record_bytes,
                          u32 dimensions, std::span<float const> queries, float distance, within_options const& options) {
  check_within(folder_path, record_bytes, dimensions, queries, distance, options);
  std::vector<u64> records;
  records.reserve(sets.size());
  for (std::string const& set : sets) records.push_back(records_in(folder_path + "/" + set, record_bytes));
  const auto on = open_executor(options.executor, options.threads, has_kernels);
  folder files(*on, folder_path, searching_options(*on, options));
  const u32 count = static_cast<u32>(queries.size() / dimensions);
  using body = match_records<file_range>;
  buffer<float> asked(on->memory(), local, round_up(u64{count}, u64{body::tile}) * dimensions);
  buffer<u64> found(on->memory(), local, count);
  buffer<u32> failed(on->memory(), local, 1);
  asked.write(queries);
  within_result result;
  result.found.assign(count, no_match);
  found.write(result.found);
  const u64 begun = now_ns();
  for (u32 s = 0; s < sets.size(); ++s) {
    const file_descriptor file = open_in_kernel(*on, files, folder_path, sets[s]);
    const body search{{files.view(), file}, records[s],   record_bytes, s, asked.data(), dimensions, dimensions, count,
                      distance * distance,  found.data(), failed.data()};
    run(*on, search.items(), search);
    u32 error = 0;
    failed.read({&error, 1});
    if (error != 0) throw_os_error("read", folder_path + "/" + sets[s], static_cast<int>(error), "see that it does not change");
  }
  found.read(result.found);
  result.seconds = static_cast<double>(now_ns() - begun) * 1e-9;
  result.cache = files.cache().stats(0);
  return result;
}

}  // namespace penstock::lsh
