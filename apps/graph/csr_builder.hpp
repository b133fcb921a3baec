// Edges from a source to a CSR in .npy files. Degrees are counted in one pass over the source; then the vertices are taken in
// ranges whose lists fit a budget, with one more pass for each: gather the lists, sort, drop what is to be dropped, append. So
// the files are written once, in order, and memory is the offsets plus the budget, however large the graph is.
#pragma once

#include "apps/graph/edge_source.hpp"
#include "apps/graph/parallel.hpp"

#include <string>

namespace penstock::graph {

struct build_options {
  bool symmetrise = false;       ///< store each edge in both directions
  bool drop_duplicates = false;  ///< of equal edges keep the one with the lowest weight (bytes as an unsigned number)
  bool drop_self_loops = false;
  bool wide_ids = false;  ///< int64 ids also where int32 would do
  unsigned threads = 0;   ///< 0: all processors that this process may use
  /// Lists held at once, in bytes; more is used where the source's worthwhile_passes() would be exceeded, or where one list is
  /// longer.
  u64 budget_bytes = u64{128} << 20;
};

/// An eighth of the memory that the system could give, at least 128 MiB: one pass for most graphs that fit memory.
u64 roomy_budget();

struct csr_counts {
  u64 vertices = 0;
  u64 edges = 0;  ///< stored neighbours: an undirected edge counts twice
};

/// Writes offsets.npy (uint64, shape (n + 1,)), edges.npy (int32 when n < 2^31, else int64; each list sorted) and, if the
/// source has weights, weights.npy (int32 or float32) into `folder`, on the disk when it returns. The same bytes for any number
/// of threads and any budget. Reports progress from `progress_from` per mille on. Errors: those of the source; world when
/// memory or disk do not suffice. Files may then be left behind: see folder_writer.
csr_counts build_csr(edge_source const& source, std::string const& folder, build_options const& options, progress_meter& meter,
                     u64 progress_from = 0);

}  // namespace penstock::graph
