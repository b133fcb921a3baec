// The source of a kernel for one pass of one program, whose instructions, encodings and registers are constants: the body that
// is compiled into the library, with a type of constants in the place of `interpreted` (program.hpp). Literals are none of
// them: another threshold is the same source.
#pragma once

#include "libs/columns/column_table.hpp"

#include <string>
#include <vector>

namespace penstock::columns {

/// REQUIRES: launched with the bodies of this library, by the layout that their headers have.
struct compiled_source {
  std::string text;           ///< of `extern "C" __global__ penstock_query(body, items, groups)`; empty: too long
  std::vector<u64> literals;  ///< for evaluation::literals
  bool is_resident = false;   ///< it reads nothing behind a cache, and calls nothing of the device library
};

/// What a pass of a query is made of. The pointers of `view` are not followed.
struct compiled_pass {
  query_program const& program;
  query_view const& view;                    ///< its notes, and whether there are ranges
  std::vector<column_range> const& ranges;   ///< of the view
  std::vector<column_facts> const& columns;  ///< of the table
};

compiled_source source_of(compiled_pass const& pass, aggregate_zones const& body);
compiled_source source_of(compiled_pass const& pass, mark_zones const& body);
compiled_source source_of(compiled_pass const& pass, emit_zones const& body);
compiled_source source_of(compiled_pass const& pass, group_zones const& body);

}  // namespace penstock::columns
