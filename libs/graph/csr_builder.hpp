// Edges from a source to a CSR in .npy files. Edges are counted by bins of vertices in one pass over the source; then the
// vertices are taken in ranges whose edges fit a budget, with one more pass for each: share the edges out to buckets, each of
// which one thread sorts in its cache, drop what is to be dropped, append. So the files are written once, in order, no two
// threads write to one list, and memory is the offsets plus the budget, however large the graph is.
#pragma once

#include "libs/graph/edge_source.hpp"
#include "libs/graph/parallel.hpp"

#include <string>

namespace penstock::graph {

struct build_options {
  bool symmetrise = false;       ///< store each edge in both directions
  bool drop_duplicates = false;  ///< of equal edges keep the one with the lowest weight (bytes as an unsigned number)
  bool drop_self_loops = false;
  bool wide_ids = false;         ///< int64 ids also where int32 would do
  bool check_both_ways = false;  ///< find out whether each edge that is stored is stored the other way round, too
  unsigned threads = 0;          ///< 0: all processors that this process may use
  /// Edges held at once, in bytes (8 each, 12 with a weight); more is used where the source's worthwhile_passes() would be
  /// exceeded, or where the edges of one bin take more.
  u64 budget_bytes = u64{128} << 20;
  /// All memory that the source and the build may take, in bytes: offsets, edges and 8 MiB for each thread, of which there are
  /// fewer if need be. Then budget_bytes does not count, and there are as many passes as it takes. 0: no limit.
  u64 memory_limit = 0;
  /// What errors say: "convert to" its folder unless given; "convert" with the path of the input, where the folder is no
  /// business of the user.
  std::string operation = "convert to";
  std::string target{};
};

/// An eighth of the memory that the system could give, at least 128 MiB: one pass for most graphs that fit memory.
u64 roomy_budget();

struct csr_counts {
  u64 vertices = 0;
  u64 edges = 0;          ///< stored neighbours: an undirected edge counts twice
  bool both_ways = true;  ///< where that was to be checked
};

/// Writes offsets.npy (uint64, shape (n + 1,)), edges.npy (int32 when n < 2^31, else int64; each list sorted) and, if the
/// source has weights, weights.npy (int32 or float32) into `folder`, on the disk when it returns. The same bytes for any number
/// of threads and any budget. Reports progress from `progress_from` per mille on. Errors: those of the source; world when
/// memory or disk do not suffice; bad_input when memory_limit is too small. Files may then be left behind: see folder_writer.
csr_counts build_csr(edge_source const& source, std::string const& folder, build_options const& options, progress_meter& meter,
                     u64 progress_from = 0);

}  // namespace penstock::graph
