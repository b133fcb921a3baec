// Searches the text files below a folder: names are listed, files opened and read by the executor's threads.
#pragma once

#include "penstock/core/config.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace penstock::files {

struct found_line {
  u64 number = 0;  ///< from 1
  std::string text;
};

struct searched_file {
  std::string path;  ///< below the folder
  u64 bytes = 0;
  bool binary = false;  ///< it has a zero byte: no line of it counts
  int error = 0;  ///< an errno: it, or a folder, could not be read; ESTALE: it changed meanwhile, and no line of it counts
  std::vector<found_line> lines;
};

struct search_options {
  std::string executor = "auto";
  bool ignore_case = false;  ///< of ASCII letters
  u64 cache_bytes = 0;       ///< 0: 64 MiB, on a GPU 1 GiB
  u64 line_bytes = 65536;
  u32 threads = 0;  ///< of the CPU executor; 0: one a core
  /// Called between launches with what is done, how far it is, and of how much; may throw.
  std::function<void(std::string const&, u64, u64)> progress;
  /// Called with some files, searched, after others whose names come before theirs; may throw.
  std::function<void(std::span<searched_file const>)> searched;
};

struct search_result {
  std::vector<searched_file> files;  ///< in the order of their names; those without a match, too
  u64 folders = 0;
  u64 bytes = 0;  ///< that were looked at
  double seconds = 0;
  double listing_seconds = 0, searching_seconds = 0;  ///< of these, until all names were known, and in launches that read files
  std::string executor, device;
  u64 hits = 0, misses = 0, bytes_moved = 0, host_calls = 0;
};

inline constexpr u32 max_pattern_bytes = 255;
inline constexpr u64 max_line_bytes = u64{1} << 20;  ///< of a line's text, before a match and behind where it begins

/// Lines that contain `pattern`, as it is. Symbolic links below the folder are not followed.
/// Throws penstock::error: bad_input for a pattern that is empty, too long or has a line end, and for a folder that is none.
search_result search_tree(std::string const& folder, std::string const& pattern, search_options const& options);

}  // namespace penstock::files
