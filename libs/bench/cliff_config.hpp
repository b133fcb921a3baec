// A configuration of `penstock bench cliffs`: what is read how through which cache, drawn by a seed, and what an LRU cache of
// the same size would move for the same accesses.
#pragma once

#include "penstock/core/bits.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace penstock::bench {

/// Which elements are accessed, number `j` of all accesses in the order of a grid:
///   linear    element j                          strided   element j * 37
///   in_order  one element of line j              permuted  one of a line, each line once in a turn, far apart
///   uniform   any                                zipf      any of few lines mostly: of the first 2^-k, k drawn below 16
///   hot       16 lines, and a tenth elsewhere    lists     runs of some 40 that follow each other, from anywhere on
///   resident  any of lines drawn at random, four fifths as many as the cache holds
enum class cliff_pattern : u32 { linear, strided, in_order, permuted, uniform, zipf, hot, lists, resident };
/// `a[i]`; an array_ref; read_async with four on their way; whole lines by read_span; whole lines pinned; fetch_add and a
/// flush.
enum class cliff_access : u32 { index, reference, async, span, pinned, add };
/// A file in page cache; host memory through the software controller; host memory that a thread that misses copies itself.
enum class cliff_source : u32 { file, memory, copied };

/// Elements that a thread of read_async asks for before it waits.
inline constexpr u64 asked_together = 4;

struct cliff_config {
  cliff_pattern pattern = cliff_pattern::uniform;
  cliff_access access = cliff_access::index;
  cliff_source source = cliff_source::file;
  directory_kind directory = directory_kind::direct;
  u64 line_bytes = 4096;
  u64 data_bytes = 64ull << 20;
  u64 cache_bytes = 8ull << 20;
  u64 streams = 1;     ///< threads, or groups where an access is a whole line
  u64 per_stream = 1;  ///< accesses
  u32 lanes = 1;       ///< that go side by side: 32 on a GPU
  u64 seed = 1;

  u64 accesses() const { return streams * per_stream; }
  u64 line_elements() const { return line_bytes / sizeof(u64); }
  u64 lines() const { return data_bytes / line_bytes; }
  u64 resident_lines() const { return std::max<u64>(1, std::min(lines(), cache_bytes / line_bytes) * 4 / 5); }
  /// Streams that go side by side as a group.
  u64 width() const { return takes_lines() ? 1 : lanes; }
  u64 groups() const { return ceil_div(streams, width()); }
  bool takes_lines() const { return access == cliff_access::span || access == cliff_access::pinned; }
  /// Whether accesses follow each other, so that lines can be brought before they are asked for.
  bool is_sequential() const { return pattern <= cliff_pattern::in_order || pattern == cliff_pattern::lists; }
};

/// Everything but the size of the data by one seed. `most_streams`: that an executor is given. `copied` memory is read alone.
cliff_config draw_config(u64 seed, u64 data_bytes, u64 most_streams, u32 lanes);
/// By name, for people and results.
std::map<std::string, std::string> describe(cliff_config const& config);

/// [per_stream][streams] elements, a line's first where lines are taken.
std::vector<u32> elements_of(cliff_config const& config);

/// What an LRU cache moves: a stream after the other where they have one lane, else an access of each stream after the other.
struct lru_counts {
  u64 stalls = 0;  ///< times that a group has to wait: a step, or steps that are on their way together, with a fill or more
  u64 fills = 0, write_backs = 0;  ///< lines; write-backs with a flush at the end, where they are changed
};
/// `frames`: of the cache.
lru_counts simulate_lru(cliff_config const& config, std::vector<u32> const& elements, u64 frames);

}  // namespace penstock::bench
