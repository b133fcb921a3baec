// Graph folders for Python: functions of penstock._native whose names start with graph_; penstock.graph wraps them. All of them
// release the interpreter while they work, and a callback or Ctrl-C can stop them between two reports of progress.
#include "libs/graph/array_edges.hpp"
#include "libs/graph/bfs_reference.hpp"
#include "libs/graph/folder_edges.hpp"
#include "libs/graph/folder_writer.hpp"
#include "libs/graph/generator.hpp"
#include "libs/graph/graph_file.hpp"
#include "libs/graph/incoming.hpp"
#include "libs/volume/volume_graph.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace penstock::graph {
namespace {

namespace nb = nanobind;
using namespace nanobind::literals;

template <class T>
using array_1d = nb::ndarray<T const, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Calls `callback(done, total)` if there is one and lets Python handle signals; a Python exception stops the work.
done_fn progress_of(nb::object const& callback) {
  return [callback = callback.ptr()](u64 done, u64 total) {
    nb::gil_scoped_acquire const gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (callback != Py_None) nb::borrow(callback)(done, total);
  };
}

/// memory: its limit in bytes, or 0. of: what errors say is converted; the folder that is made, if empty.
build_options options_of(bool symmetrise, bool unique, bool simple, unsigned threads, u64 memory, std::string const& of = {}) {
  build_options options;
  if (!of.empty()) options.operation = "convert", options.target = of;
  options.symmetrise = symmetrise;
  options.drop_duplicates = unique || simple;
  options.drop_self_loops = simple;
  options.threads = threads;
  options.budget_bytes = roomy_budget();
  options.memory_limit = memory;
  return options;
}

void generate(std::string const& target, std::string const& text, u64 seed, bool weighted, unsigned threads, u64 memory,
              std::string const& of, nb::object const& progress) {
  generator_spec spec = parse_generator(text);
  spec.seed = seed;
  spec.weighted = weighted;
  progress_meter meter(progress_of(progress));
  nb::gil_scoped_release const released;
  graph_origin const origin{.directed = false, .source = to_string(spec)};
  write_graph(generator(spec), target, origin, options_of(true, true, true, threads, memory, of), meter);
}

renumbering renumbering_of(std::string const& name) {
  if (name == "always") return renumbering::always;
  return name == "never" ? renumbering::never : renumbering::sparse;
}

/// What the file said that was wrong and could be put right, in one sentence; else empty.
/// undirected: each edge is taken both ways, equal ones once. name: what the input is called; its path, if empty. columns to
/// renumber: text_layout. of: as options_of has it.
std::string convert(std::string const& target, std::string const& input, std::string const& format, std::string const& name,
                    bool undirected, bool simple, std::vector<std::string> const& columns, std::string const& separator,
                    bool header, u64 first_id, std::string const& renumber, unsigned threads, u64 memory, std::string const& of,
                    nb::object const& progress) {
  progress_meter meter(progress_of(progress));
  nb::gil_scoped_release const released;
  text_layout const layout{first_id, separator.empty() ? '\0' : separator[0], header, columns, renumbering_of(renumber)};
  graph_file const opened = open_graph_file(input, format, threads, meter, name, layout);
  graph_origin const origin{.directed = opened.directed && !undirected,
                            .source = name.empty() ? input : name,
                            .names = opened.names,
                            .reading = opened.reading};
  bool const both = undirected || opened.symmetrise;
  build_options options = options_of(both, both, simple, threads, memory, of);
  options.wide_ids = opened.wide_ids;
  write_graph(*opened.edges, target, origin, options, meter, opened.done_per_mille);
  return opened.remark;
}

template <class Id>
void build(std::string const& target, u64 vertices, array_1d<Id> const& from, array_1d<Id> const& to, nb::object const& weights,
           std::vector<std::string> const& names, bool directed, bool symmetrise, bool unique, bool simple,
           std::string const& source, std::string const& reading, unsigned threads, u64 memory, std::string const& of,
           nb::object const& progress) {
  std::span<u32 const> weight_bytes;
  weight_type type = weight_type::none;
  auto const take = [&](auto const& array, weight_type kind) {
    weight_bytes = {reinterpret_cast<u32 const*>(array.data()), array.size()};
    type = kind;
  };
  if (array_1d<std::int32_t> ints; !weights.is_none() && nb::try_cast(weights, ints, false))
    take(ints, weight_type::int32);
  else if (array_1d<float> reals; !weights.is_none() && nb::try_cast(weights, reals, false))
    take(reals, weight_type::float32);
  else if (!weights.is_none())
    throw_bad_input("create", target, "weights are no contiguous int32 or float32 array: convert them");
  if (from.size() != to.size() || (type != weight_type::none && weight_bytes.size() != from.size()))
    throw_bad_input("create", target, "the arrays of edges differ in length: give one value of each per edge");
  progress_meter meter(progress_of(progress));
  nb::gil_scoped_release const released;
  array_edges<Id> const edges(vertices, {from.data(), from.size()}, {to.data(), to.size()}, weight_bytes, type, source);
  graph_origin const origin{.directed = directed, .source = source, .names = names, .reading = reading};
  write_graph(edges, target, origin, options_of(symmetrise, unique, simple, threads, memory, of), meter);
}

nb::dict describe_place(array_place const& place) {
  nb::dict d;
  d["path"] = place.path;
  d["data_offset"] = place.data_offset;
  d["dtype"] = std::string(place.kind == 'f' ? "float" : "int") + std::to_string(place.item_bytes * 8);
  d["count"] = place.count;
  return d;
}

nb::dict open(std::string const& path, bool validate_edges, unsigned threads, nb::object const& progress) {
  progress_meter meter(progress_of(progress));
  graph_folder const graph = [&] {
    nb::gil_scoped_release const released;
    graph_folder opened = volumes::open_graph(path);
    if (validate_edges) {
      opened.validate_edges(threads, meter);
      check_both_ways(opened, threads, meter);
    }
    return opened;
  }();
  nb::dict d;
  d["path"] = graph.path();
  d["vertices"] = graph.vertices();
  d["edges"] = graph.edges();
  d["directed"] = graph.directed();
  d["source"] = graph.source();
  d["reading"] = graph.reading();
  d["has_names"] = graph.has_names();
  d["names_path"] = graph.names_path();
  d["edges_place"] = describe_place(graph.edges_place());
  d["weights_place"] = graph.weights_place() ? nb::object(describe_place(*graph.weights_place())) : nb::none();
  return d;
}

/// The file of the vertices' names, whole; empty without one.
nb::bytes names(std::string const& path) {
  std::string const text = [&] {
    nb::gil_scoped_release const released;
    graph_folder const graph = volumes::open_graph(path);
    return graph.has_names() ? graph.names_text() : std::string();
  }();
  return nb::bytes(text.data(), text.size());
}

void incoming(std::string const& path, unsigned threads, u64 memory, nb::object const& progress) {
  progress_meter meter(progress_of(progress));
  nb::gil_scoped_release const released;
  write_incoming(volumes::open_graph(path), options_of(false, false, false, threads, memory), meter);
}

nb::ndarray<nb::numpy, std::int32_t, nb::ndim<1>> depths(std::string const& path, u64 source, nb::object const& progress) {
  progress_meter meter(progress_of(progress));
  auto found = [&] {
    nb::gil_scoped_release const released;
    return std::make_unique<std::vector<std::int32_t>>(bfs_depths(volumes::open_graph(path), source, meter));
  }();
  auto* const owned = found.release();
  nb::capsule const owner(owned, [](void* p) noexcept { delete static_cast<std::vector<std::int32_t>*>(p); });
  return {owned->data(), {owned->size()}, owner};
}

template <class Parent>
std::string verify(std::string const& path, u64 source, array_1d<Parent> const& parents, nb::object const& progress) {
  progress_meter meter(progress_of(progress));
  nb::gil_scoped_release const released;
  return verify_bfs(volumes::open_graph(path), source, std::span<Parent const>(parents.data(), parents.size()), meter);
}

template <class Id>
void bind_arrays(nb::module_& m) {
  m.def("graph_build", &build<Id>, "target"_a, "vertices"_a, "from_"_a.noconvert(), "to"_a.noconvert(), "weights"_a.none(),
        "names"_a, "directed"_a, "symmetrise"_a, "unique"_a, "simple"_a, "source"_a, "reading"_a = "", "threads"_a = 0,
        "memory"_a = 0, "of"_a = "", "progress"_a = nb::none());
  m.def("graph_verify_bfs", &verify<Id>, "path"_a, "source"_a, "parents"_a.noconvert(), "progress"_a = nb::none());
}

}  // namespace

void bind_graph(nb::module_& m) {
  m.def("graph_normalise_generator", [](std::string const& text) { return to_string(parse_generator(text)); }, "text"_a);
  m.def("graph_generate", &generate, "target"_a, "spec"_a, "seed"_a = 1, "weighted"_a = false, "threads"_a = 0, "memory"_a = 0,
        "of"_a = "", "progress"_a = nb::none());
  m.def("graph_convert", &convert, "target"_a, "input"_a, "format"_a, "name"_a = "", "undirected"_a = false, "simple"_a = false,
        "columns"_a = std::vector<std::string>(), "separator"_a = "", "header"_a = false, "first_id"_a = 0,
        "renumber"_a = "sparse", "threads"_a = 0, "memory"_a = 0, "of"_a = "", "progress"_a = nb::none());
  m.def("graph_names", &names, "path"_a);
  m.def("graph_open", &open, "path"_a, "validate_edges"_a = false, "threads"_a = 0, "progress"_a = nb::none());
  m.def("graph_write_incoming", &incoming, "path"_a, "threads"_a = 0, "memory"_a = 0, "progress"_a = nb::none());
  m.def("graph_bfs_depths", &depths, "path"_a, "source"_a, "progress"_a = nb::none());
  bind_arrays<std::int32_t>(m);
  bind_arrays<std::int64_t>(m);
}

}  // namespace penstock::graph
