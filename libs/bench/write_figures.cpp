#include "libs/bench/write_figures.hpp"

#include <algorithm>

namespace penstock::bench {
namespace {

constexpr double seconds_of_a_day = 86400;

double number(u64 n) { return static_cast<double>(n); }

}  // namespace

void write_account::add(cache_stats const& now, cache_stats const& before) {
  requests += now.misses + now.whole_lines - before.misses - before.whole_lines;
  frame_waits += now.frame_waits - before.frame_waits;
  evicting_ns += now.evicting_ns() - before.evicting_ns();
  search_ns += now.search_ns - before.search_ns;
  clean_ns += now.clean_ns - before.clean_ns;
  lines += now.write_backs - before.write_backs;
  commands += now.write_commands - before.write_commands;
  bytes_changed += now.bytes_changed - before.bytes_changed;
  bytes_written += now.bytes_written - before.bytes_written;
}

void describe_writes(std::map<std::string, double>& details, line_cache const& cache, write_account const& of) {
  const auto tell = [&](char const* name, double over, double under) {
    if (under > 0) details[name] = over / under;
  };
  tell("evicting_share", number(of.evicting_ns) * 1e-9, of.kernel_seconds * number(of.threads));
  tell("searching_share", number(of.search_ns) * 1e-9, of.kernel_seconds * number(of.threads));
  tell("cleaning_share", number(of.clean_ns) * 1e-9, of.kernel_seconds * number(of.threads));
  details["requests"] = number(of.requests);
  details["frame_waits"] = number(of.frame_waits);
  // Who waited may have found its line brought in by another one.
  tell("frame_wait_share", number(of.frame_waits), number(std::max(of.requests, of.frame_waits)));
  details["least_clean_frames"] = number(cache.least_clean_frames());
  details["reserved_frames"] = number(cache.view().frames - std::min<u64>(cache.view().frames, cache.view().writes.most_dirty));
  details["bytes_changed"] = number(of.bytes_changed);
  details["bytes_written"] = number(of.bytes_written);
  tell("write_amplification", number(of.bytes_written), number(of.bytes_changed));
  tell("commands_per_line", number(of.commands), number(of.lines));
  if (of.seconds > 0) tell("drive_writes_per_day", number(of.bytes_written) / of.seconds * seconds_of_a_day, of.capacity);
}

}  // namespace penstock::bench
