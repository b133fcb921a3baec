#include "libs/graph/graph_folder.hpp"

#include "penstock/host/error.hpp"
#include "penstock/host/npy.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

namespace penstock::graph {
namespace {

constexpr char convert_again[] = "convert the graph again";

npy_header read_header(byte_input const& in) {
  std::vector<std::byte> head(std::min(in.size(), npy_longest_start));
  in.read(0, head);
  return parse_npy_header(head, in.size(), in.name());
}

bool exists(std::string const& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) == 0) return true;
  if (errno != ENOENT) throw_os_error("open", path, errno, "check the path and its permissions");
  return false;
}

void check_count(array_place const& place, u64 expected, std::string const& what) {
  if (place.count != expected)
    throw_bad_input("open", place.path,
                    "has " + std::to_string(place.count) + " values, " + what + " need " + std::to_string(expected) +
                        ": save it with shape (" + std::to_string(expected) + ",) or correct graph.json");
}

/// The first position in `ids` that is no vertex, or ids.size().
template <class Id>
u64 first_bad(std::span<Id const> ids, u64 vertices) {
  using unsigned_id = std::make_unsigned_t<Id>;
  auto const bad = [&](Id id) { return static_cast<unsigned_id>(id) >= vertices; };
  return static_cast<u64>(std::find_if(ids.begin(), ids.end(), bad) - ids.begin());
}

template <class Id>
void validate(graph_folder const& graph, unsigned threads, progress_meter& meter) {
  constexpr u64 piece = u64{1} << 18;
  array_place const& place = graph.edges_place();
  byte_input const in = place.open();
  parallel_for((place.count + piece - 1) / piece, threads, meter, [&](u64 i) {
    std::vector<Id> ids(std::min(piece, place.count - i * piece));
    in.read(place.data_offset + i * piece * sizeof(Id), std::as_writable_bytes(std::span(ids)));
    u64 const at = first_bad(std::span<Id const>(ids), graph.vertices());
    if (at != ids.size())
      throw_bad_input("open", place.path,
                      "edge " + std::to_string(i * piece + at) + " points to vertex " + std::to_string(ids[at]) +
                          ", the graph has " + std::to_string(graph.vertices()) + ": " + convert_again);
  });
}

}  // namespace

byte_input array_place::open() const { return stored ? byte_input(stored, path) : byte_input(file::open(path)); }

graph_folder graph_folder::open(std::string const& path) {
  graph_folder graph;
  graph.path_ = path;
  while (graph.path_.size() > 1 && graph.path_.back() == '/') graph.path_.pop_back();
  graph.read_all();
  return graph;
}

graph_folder graph_folder::open(std::string const& name, file_finder const& find) {
  graph_folder graph;
  graph.path_ = name;
  graph.find_ = find;
  graph.read_all();
  return graph;
}

bool graph_folder::has(std::string const& file) const { return find_ ? find_(file) != nullptr : exists(path_ + "/" + file); }

byte_input graph_folder::input(std::string const& file) const {
  if (!find_) return byte_input(file::open(path_ + "/" + file));
  auto stored = find_(file);
  if (stored == nullptr) throw_bad_input("open", path_, "it has no " + file + ": it is no graph");
  return byte_input(std::move(stored), path_ + "/" + file);
}

std::string graph_folder::names_text() const {
  byte_input const in = input(facts_.names);
  std::string text(in.size(), '\0');
  in.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

array_place graph_folder::find_array(std::string const& file, std::string const& kinds, u32 item_low, u32 item_high,
                                     std::string const& dtypes, std::string const& shape) const {
  std::string const name = path_ + "/" + file;
  npy_header const header = find_ ? read_header(input(file)) : read_npy_header(name);
  bool const type =
      kinds.find(header.kind) != std::string::npos && header.item_bytes >= item_low && header.item_bytes <= item_high;
  if (!type || header.shape.size() != 1)
    throw_bad_input(
        "open", name,
        header.describe() + ": one dimension of " + dtypes + " is needed: save it as " + dtypes + ", shape " + shape);
  return {name, header.data_offset, header.kind, header.item_bytes, header.shape[0], find_ ? find_(file) : nullptr};
}

graph_facts graph_folder::read_facts() const {
  constexpr u64 longest = u64{1} << 20;
  byte_input const in = input("graph.json");
  if (in.size() > longest) throw_bad_input("open", in.name(), std::to_string(in.size()) + " bytes: this is no graph.json");
  std::string text(in.size(), '\0');
  in.read(0, std::as_writable_bytes(std::span(text)));
  return parse_graph_json(text, in.name());
}

void graph_folder::read_all() {
  facts_ = read_facts();
  read_offsets();
  edges_ = find_array("edges.npy", "i", 4, 8, "int32 or int64", "(edges,)");
  check_count(edges_, edges(), "the edges in graph.json");
  check_offsets();
  if (has("weights.npy")) {
    weights_ = find_array("weights.npy", "if", 4, 4, "int32 or float32", "(edges,)");
    check_count(*weights_, edges(), "the edges");
  }
  if (!facts_.names.empty() && !has(facts_.names))
    throw_bad_input("open", path_ + "/" + facts_.names,
                    std::string("graph.json names this file, but it is missing: ") + convert_again);
}

void graph_folder::read_offsets() {
  array_place const place = find_array("offsets.npy", "ui", 8, 8, "uint64", "(vertices + 1,)");
  if (facts_.vertices == ~u64{0})
    throw_bad_input("open", path_ + "/graph.json", std::string("impossible number of vertices: ") + convert_again);
  check_count(place, facts_.vertices + 1, "the vertices in graph.json and the end of the last");
  offsets_ = std::make_unique_for_overwrite<u64[]>(place.count);
  place.open().read(place.data_offset, std::as_writable_bytes(std::span(offsets_.get(), place.count)));
  // int64 has the same bytes, as long as nothing is negative.
  auto const negative = [](u64 offset) { return offset >> 63 != 0; };
  if (place.kind == 'i' && std::any_of(offsets_.get(), offsets_.get() + place.count, negative))
    throw_bad_input("open", place.path, "has a negative value: save it as uint64, starting at 0 and never falling");
}

void graph_folder::check_offsets() const {
  std::string const name = path_ + "/offsets.npy";
  if (offsets_[0] != 0)
    throw_bad_input("open", name, "starts at " + std::to_string(offsets_[0]) + ", not at 0: " + convert_again);
  for (u64 v = 0; v < vertices(); ++v)
    if (offsets_[v + 1] < offsets_[v])
      throw_bad_input("open", name,
                      "goes backwards from vertex " + std::to_string(v) + " (" + std::to_string(offsets_[v]) +
                          ") to the next (" + std::to_string(offsets_[v + 1]) + "): " + convert_again);
  if (offsets_[vertices()] != edges())
    throw_bad_input("open", name,
                    "ends at " + std::to_string(offsets_[vertices()]) + ", edges.npy has " + std::to_string(edges()) +
                        " edges: " + convert_again);
}

void graph_folder::validate_edges(unsigned threads, progress_meter& meter) const {
  unsigned const workers = worker_count(threads);
  edges_.item_bytes == 4 ? validate<std::int32_t>(*this, workers, meter) : validate<std::int64_t>(*this, workers, meter);
}

template <class Id>
edge_reader<Id>::edge_reader(array_place const& place)
    : file_(place.open()), data_offset_(place.data_offset), count_(place.count) {}

template <class Id>
std::span<Id const> edge_reader<Id>::read(u64 first, u64 last, bool ahead) {
  if (first < begin_ || last > end_) {
    u64 const until = ahead ? std::min(std::max(last, first + window), count_) : last;
    if (until - first > capacity_) {
      capacity_ = std::max(until - first, window);
      buffer_ = std::make_unique_for_overwrite<Id[]>(capacity_);
    }
    begin_ = end_ = 0;  // nothing, should the read fail
    file_.read(data_offset_ + first * sizeof(Id), std::as_writable_bytes(std::span(buffer_.get(), until - first)));
    begin_ = first;
    end_ = until;
  }
  return {buffer_.get() + (first - begin_), last - first};
}

template class edge_reader<std::int32_t>;
template class edge_reader<std::int64_t>;
template class edge_reader<float>;

}  // namespace penstock::graph
