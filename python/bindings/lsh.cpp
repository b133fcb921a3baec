// Nearest neighbours and colour histograms for Python: names of penstock._native that start with lsh_; penstock.lsh and
// penstock.collages wrap them.
#include "libs/lsh/block_histograms.hpp"
#include "libs/lsh/build_index.hpp"
#include "libs/lsh/find_within.hpp"
#include "without_lock.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

PENSTOCK_DESTROY_WITHOUT_LOCK(penstock::lsh::lsh_index)

namespace penstock::lsh {
namespace {

namespace nb = nanobind;
using namespace nanobind::literals;

using vectors = nb::ndarray<float const, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using picture = nb::ndarray<u8 const, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

std::span<float const> numbers_of(vectors const& given) { return {given.data(), given.shape(0) * given.shape(1)}; }

template <class T>
nb::object array_of(std::vector<T> values, u64 rows, u64 columns) {
  auto* const owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(owned->data(), {rows, columns}, owner));
}

/// Also where nobody watches: Ctrl-C stops between two launches.
progress_fn watched_by(nb::object const& progress) {
  return [progress](std::string const& what, u64 done, u64 total) {
    nb::gil_scoped_acquire const gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(what, done, total);
  };
}

template <class Call>
auto unlocked(Call const& call) {
  nb::gil_scoped_release const without;
  return call();
}

nb::dict header_of(index_header const& h) {
  nb::dict d;
  d["records"] = h.records;
  d["dimensions"] = h.dimensions;
  d["record_bytes"] = h.record_bytes;
  d["tables"] = h.tables;
  d["projections"] = h.projections_per_table;
  d["width"] = h.width;
  d["index_bytes"] = h.file_bytes();
  return d;
}

nb::dict facts_of(lsh_index const& index) {
  const index_facts facts = index.facts();
  nb::dict d = header_of(facts.header);
  d["executor"] = facts.executor;
  d["device"] = facts.device;
  d["cache_bytes"] = facts.cache_bytes;
  d["hits"] = facts.cache.hits;
  d["misses"] = facts.cache.misses;
  d["evictions"] = facts.cache.evictions;
  d["bytes_moved"] = facts.cache.bytes_moved;
  return d;
}

nb::dict answer_of(query_result result, u64 queries, u32 nearest) {
  nb::dict d;
  d["ids"] = array_of(std::move(result.ids), queries, nearest);
  d["distances"] = array_of(std::move(result.distances), queries, nearest);
  d["candidates"] = result.candidates;
  d["cut"] = result.cut;
  d["seconds"] = result.seconds;
  return d;
}

nb::dict query(lsh_index& index, vectors const& queries, u32 nearest, bool all, nb::object const& progress) {
  const progress_fn watched = watched_by(progress);
  query_result result = unlocked([&] {
    return all ? index.query_all(numbers_of(queries), nearest, watched) : index.query(numbers_of(queries), nearest, watched);
  });
  return answer_of(std::move(result), queries.shape(0), nearest);
}

nb::dict build(std::string const& folder, nb::dict const& given, nb::object const& progress) {
  build_options options;
  options.executor = nb::cast<std::string>(given["executor"]);
  options.dimensions = nb::cast<u32>(given["dimensions"]);
  options.record_bytes = nb::cast<u64>(given["record_bytes"]);
  options.tables = nb::cast<u32>(given["tables"]);
  options.projections_per_table = nb::cast<u32>(given["projections"]);
  options.width = nb::cast<float>(given["width"]);
  options.candidates = nb::cast<double>(given["candidates"]);
  options.seed = nb::cast<u64>(given["seed"]);
  options.memory_bytes = nb::cast<u64>(given["memory"]);
  options.threads = nb::cast<u32>(given["threads"]);
  options.progress = watched_by(progress);
  return header_of(unlocked([&] { return build_index(folder, options); }));
}

nb::object histograms(picture const& pixels, std::string const& executor, u32 threads) {
  const u64 rows = pixels.shape(0), columns = pixels.shape(1);
  if (pixels.shape(2) != channels) throw nb::value_error("a picture has red, green and blue");
  std::vector<float> counted =
      unlocked([&] { return histograms_of(executor, threads, {pixels.data(), rows * columns * channels}, rows, columns); });
  const u64 blocks = counted.size() / histogram_bins;
  return array_of(std::move(counted), blocks, histogram_bins);
}

void synthesize(std::string const& path, u64 records, u64 seed, u32 threads, nb::object const& progress) {
  const progress_fn watched = watched_by(progress);
  unlocked([&] {
    write_synthetic_histograms(path, records, seed, threads,
                               [&](u64 done, u64 total) { watched("drawing histograms", done, total); });
  });
}

nb::object draw_picture(u64 rows, u64 columns, u64 seed) {
  return array_of(unlocked([&] { return synthetic_picture(rows, columns, seed); }), rows, columns * channels);
}

nb::dict within(std::string const& folder, std::vector<std::string> const& sets, u64 record_bytes, vectors const& queries,
                float distance, std::string const& executor, u64 cache, u64 line, u32 threads) {
  within_result result = unlocked([&] {
    return find_within(folder, sets, record_bytes, static_cast<u32>(queries.shape(1)), numbers_of(queries), distance,
                       {executor, cache, line, threads});
  });
  nb::dict d;
  d["found"] = array_of(std::move(result.found), queries.shape(0), 1);
  d["seconds"] = result.seconds;
  d["hits"] = result.cache.hits;
  d["misses"] = result.cache.misses;
  d["bytes_moved"] = result.cache.bytes_moved;
  return d;
}

}  // namespace

void bind_lsh(nb::module_& m) {
  nb::class_<lsh_index>(m, "LshIndex")
      .def(
          "__init__",
          [](lsh_index* self, std::string const& folder, std::string const& executor, u64 cache, u64 line, u32 threads,
             u32 max_candidates, u32 fallback) {
            nb::gil_scoped_release const without;
            new (self) lsh_index(folder, {executor, cache, line, threads, max_candidates, fallback});
          },
          "folder"_a, "executor"_a, "cache"_a, "line"_a, "threads"_a, "max_candidates"_a, "fallback"_a)
      .def("query", &query, "queries"_a, "nearest"_a, "all"_a, "progress"_a = nb::none())
      .def("facts", &facts_of);
  m.def("lsh_build", &build, "folder"_a, "options"_a, "progress"_a = nb::none());
  m.def("lsh_histograms", &histograms, "pixels"_a, "executor"_a, "threads"_a);
  m.def("lsh_synthetic_histograms", &synthesize, "path"_a, "records"_a, "seed"_a, "threads"_a, "progress"_a = nb::none());
  m.def("lsh_synthetic_picture", &draw_picture, "rows"_a, "columns"_a, "seed"_a);
  m.def("lsh_find_within", &within, "folder"_a, "sets"_a, "record_bytes"_a, "queries"_a, "distance"_a, "executor"_a, "cache"_a,
        "line"_a, "threads"_a);
}

}  // namespace penstock::lsh
