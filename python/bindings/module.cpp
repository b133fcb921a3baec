// penstock._native: what Python needs of the C++.
#include "apps/bfs/bfs.hpp"
#include "penstock/host/error.hpp"
#include "penstock/host/executor.hpp"
#include "penstock/host/software_controller.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

namespace nb = nanobind;

namespace penstock {
void bind_rows(nb::module_& m);
}
namespace penstock::bench {
void bind_bench(nb::module_& m);
}
namespace penstock::drive {
void bind_nvme(nb::module_& m);
}
namespace penstock::graph {
void bind_graph(nb::module_& m);
}

namespace penstock::regular {
void bind_regular(nb::module_& m);
}

namespace {

// bad_input becomes ValueError; world becomes penstock.Error, an OSError with errno.
void translate(std::exception_ptr const& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (penstock::error const& e) {
    if (e.kind() == penstock::error_kind::bad_input) {
      PyErr_SetString(PyExc_ValueError, e.what());
      return;
    }
    nb::object type = nb::module_::import_("penstock.errors").attr("Error");
    nb::object value = type(std::string(e.what()), e.code());
    PyErr_SetObject(type.ptr(), value.ptr());
  }
}

nb::dict to_dict(penstock::apps::bfs_result const& r) {
  nb::dict d;
  d["source"] = r.source;
  d["reached"] = r.reached;
  d["levels"] = r.levels;
  d["edges_traversed"] = r.edges_traversed;
  d["seconds"] = r.seconds;
  d["teps"] = r.teps;
  d["verified"] = r.verified ? nb::object(nb::bool_(*r.verified)) : nb::object(nb::none());
  d["violation"] = r.violation;
  d["executor"] = r.executor;
  d["device"] = r.device;
  d["engine"] = r.engine;
  d["hits"] = r.hits;
  d["misses"] = r.misses;
  d["joins"] = r.joins;
  d["fills"] = r.fills;
  d["prefetches"] = r.prefetches;
  d["evictions"] = r.evictions;
  d["retries"] = r.retries;
  d["errors"] = r.errors;
  d["bytes_asked"] = r.bytes_asked;
  d["bytes_moved"] = r.bytes_moved;
  d["amplification"] = r.amplification;
  d["frames"] = r.frames;
  d["line_bytes"] = r.line_bytes;
  d["cache_bytes"] = r.cache_bytes;
  d["metadata_bytes"] = r.metadata_bytes;
  d["directory"] = r.directory;
  d["directory_bytes_per_tib"] = r.directory_bytes_per_tib;
  d["edge_bytes"] = r.edge_bytes;
  d["offset_bytes"] = r.offset_bytes;
  d["vertex_bytes"] = r.vertex_bytes;
  d["load_seconds"] = r.load_seconds;
  d["verify_seconds"] = r.verify_seconds;
  d["level_sizes"] = r.level_sizes;
  d["level_seconds"] = r.level_seconds;
  d["peak_rss_bytes"] = r.peak_rss_bytes;
  d["file_rss_bytes"] = r.file_rss_bytes;
  return d;
}

penstock::apps::bfs_options to_options(std::string path, std::int64_t source, penstock::u64 cache_bytes,
                                       penstock::u64 line_bytes, std::string directory, std::string executor,
                                       std::string engine, bool direct, penstock::u32 threads, penstock::u32 queue_depth,
                                       bool verify) {
  penstock::apps::bfs_options options;
  options.graph = std::move(path);
  if (source >= 0) options.source = static_cast<penstock::u64>(source);
  options.cache_bytes = cache_bytes;
  options.line_bytes = line_bytes;
  options.directory = std::move(directory);
  options.executor = std::move(executor);
  options.engine = std::move(engine);
  options.direct = direct;
  options.threads = threads;
  options.queue_depth = queue_depth;
  options.verify = verify;
  return options;
}

nb::dict bfs(std::string path, std::int64_t source, penstock::u64 cache_bytes, penstock::u64 line_bytes, std::string directory,
             std::string executor, std::string engine, bool direct, penstock::u32 threads, penstock::u32 queue_depth,
             bool verify, nb::object progress) {
  auto options = to_options(std::move(path), source, cache_bytes, line_bytes, std::move(directory), std::move(executor),
                            std::move(engine), direct, threads, queue_depth, verify);
  // Also where nobody watches: Ctrl-C stops a search between levels.
  options.progress = [&](std::string const& what, penstock::u64 done, penstock::u64 total) {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(what, done, total);
  };
  penstock::apps::bfs_result result;
  {
    nb::gil_scoped_release unlocked;
    result = penstock::apps::run_bfs(options);
  }
  return to_dict(result);
}

}  // namespace

NB_MODULE(_native, m) {
  nb::register_exception_translator(translate);
  m.attr("version") = PENSTOCK_VERSION;
#if defined(PENSTOCK_HAS_CUDA)
  m.attr("cuda_version") = PENSTOCK_CUDA_VERSION;
#else
  m.attr("cuda_version") = nb::none();
#endif
  m.def("io_uring_usable", [] {
    std::string reason;
    const bool usable = penstock::io_uring_usable(&reason);
    return std::make_tuple(usable, reason);
  });
  m.def("cuda_usable", [] {
    std::string reason;
    const bool usable = penstock::cuda_usable(&reason);
    return std::make_tuple(usable, reason);
  });
  m.def("bfs", &bfs, nb::arg("path"), nb::arg("source"), nb::arg("cache_bytes"), nb::arg("line_bytes"), nb::arg("directory"),
        nb::arg("executor"), nb::arg("engine"), nb::arg("direct"), nb::arg("threads"), nb::arg("queue_depth"),
        nb::arg("verify"), nb::arg("progress").none());
  penstock::graph::bind_graph(m);
  penstock::bench::bind_bench(m);
  penstock::regular::bind_regular(m);
  penstock::drive::bind_nvme(m);
  penstock::bind_rows(m);
}
