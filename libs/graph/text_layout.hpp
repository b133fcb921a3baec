// How the edges of a text file are laid out, where its lines do not say so themselves.
#pragma once

#include "penstock/core/config.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace penstock::graph {

/// What a line may be: text_edge_list.hpp describes them.
enum class text_dialect : u8 { el, wel, gr };

/// sparse: ids are numbered anew, in ascending order, where the range that they span has more than 1024 numbers, and more than
/// eight for each edge; always: wherever the range has gaps; never: a vertex is its id less the first one.
enum class renumbering : u8 { sparse, always, never };

struct text_layout {
  u64 first_id = 0;     ///< what the lowest vertex is called
  char separator = 0;   ///< ends a field besides blanks
  bool header = false;  ///< whether the first line with something to say names the columns
  /// Those that are read, two or with a weight three, by name or by number from 0; empty: as the dialect has them.
  std::vector<std::string> columns{};
  renumbering renumber = renumbering::sparse;
};

/// Places of columns in a line, from 0.
struct column_places {
  static constexpr u64 none = ~u64{0};
  u64 from = 0;
  u64 to = 1;
  u64 weight = none;
};

}  // namespace penstock::graph
