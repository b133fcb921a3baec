// A graph on disk: a folder, or what stands for one, with offsets.npy, edges.npy, perhaps weights.npy, and graph.json. Opening
// reads the offsets and checks everything that does not need the edges; the edges stay on storage. Immutable once open, so any
// thread may use it.
#pragma once

#include "libs/graph/file.hpp"
#include "libs/graph/graph_json.hpp"
#include "libs/graph/parallel.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace penstock::graph {

/// Where an array's bytes lie; all that the storage layer needs.
struct array_place {
  std::string path;
  u64 data_offset = 0;  ///< bytes from the start of the file; a multiple of 4096 in folders that we wrote
  char kind = 'i';      ///< NumPy's dtype.kind
  u32 item_bytes = 4;
  u64 count = 0;
  std::shared_ptr<stored_bytes const> stored{};  ///< where it is no file of a file system; `path` is its name then

  byte_input open() const;
};

/// The files of a graph that is in no folder, by their names there; nullptr for one that there is not.
using file_finder = std::function<std::shared_ptr<stored_bytes const>(std::string const& name)>;

class graph_folder {
 public:
  /// Errors: bad_input when a file is malformed, truncated, of a wrong dtype or shape, or when counts disagree or offsets do
  /// not
  ///         start at 0, go backwards or end elsewhere than at the number of edges; world when a file is missing or unreadable.
  static graph_folder open(std::string const& path);
  /// The same of files that lie elsewhere; `name` is what it is called. They are kept as long as the graph.
  static graph_folder open(std::string const& name, file_finder const& find);

  std::string const& path() const { return path_; }
  u64 vertices() const { return facts_.vertices; }
  u64 edges() const { return facts_.edges; }
  bool directed() const { return facts_.directed; }
  std::string const& source() const { return facts_.source; }
  std::string const& reading() const { return facts_.reading; }
  bool has_names() const { return !facts_.names.empty(); }
  /// All of the file of names, wherever it lies. REQUIRES: has_names().
  std::string names_text() const;
  /// Empty where the vertices have no names, or not in a file system.
  std::string names_path() const { return facts_.names.empty() || find_ ? std::string() : path_ + "/" + facts_.names; }

  std::span<u64 const> offsets() const { return {offsets_.get(), vertices() + 1}; }
  array_place const& edges_place() const { return edges_; }
  std::optional<array_place> const& weights_place() const { return weights_; }

  /// Reads all edges once and checks that each is a vertex; holds a few MiB.
  /// Errors: bad_input naming the first position (by file order) that a thread met, and its value; world.
  void validate_edges(unsigned threads, progress_meter& meter) const;

 private:
  void read_all();
  void read_offsets();
  void check_offsets() const;
  bool has(std::string const& file) const;
  byte_input input(std::string const& file) const;
  array_place find_array(std::string const& file, std::string const& kinds, u32 item_low, u32 item_high,
                         std::string const& dtypes, std::string const& shape) const;
  graph_facts read_facts() const;

  std::string path_;
  file_finder find_;  ///< empty: files of the folder
  graph_facts facts_;
  array_place edges_;
  std::optional<array_place> weights_;
  std::unique_ptr<u64[]> offsets_;
};

/// The edges of an open folder, or their weights, read piece by piece through a buffer. For one thread.
template <class Id>
class edge_reader {
 public:
  /// REQUIRES: sizeof(Id) == place.item_bytes.
  explicit edge_reader(array_place const& place);
  explicit edge_reader(graph_folder const& graph) : edge_reader(graph.edges_place()) {}

  /// Edges [first, last). The span is valid until the next call. With `ahead`, what follows is read, too: for sweeps.
  std::span<Id const> read(u64 first, u64 last, bool ahead);

 private:
  static constexpr u64 window = u64{1} << 17;  ///< edges

  byte_input file_;
  u64 data_offset_;
  u64 count_;
  u64 begin_ = 0, end_ = 0;  ///< edges in the buffer
  u64 capacity_ = 0;
  std::unique_ptr<Id[]> buffer_;
};

extern template class edge_reader<std::int32_t>;
extern template class edge_reader<std::int64_t>;
extern template class edge_reader<float>;

}  // namespace penstock::graph
