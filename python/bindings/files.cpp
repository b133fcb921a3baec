// Searches of files for Python: functions of penstock._native whose names start with files_; penstock.fs wraps them.
#include "libs/files/tree_search.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace penstock::files {
namespace {

namespace nb = nanobind;
using namespace nanobind::literals;

nb::object path_of(std::string const& text) {
  return nb::steal(PyUnicode_DecodeFSDefaultAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

nb::list listed(std::span<searched_file const> files) {
  nb::list all;
  for (searched_file const& file : files) {
    nb::list lines;
    for (found_line const& line : file.lines) {
      lines.append(nb::make_tuple(line.number, nb::bytes(line.text.data(), line.text.size())));
    }
    all.append(nb::make_tuple(path_of(file.path), file.bytes, file.binary, file.error, lines));
  }
  return all;
}

nb::dict search(std::string const& folder, nb::bytes const& pattern, bool ignore_case, std::string const& executor, u64 cache,
                u64 line, u32 threads, nb::object const& progress, nb::object const& searched) {
  search_options options;
  options.executor = executor;
  options.ignore_case = ignore_case;
  options.cache_bytes = cache;
  options.line_bytes = line;
  options.threads = threads;
  // Also where nobody watches: Ctrl-C stops between two launches.
  options.progress = [progress](std::string const& what, u64 done, u64 total) {
    nb::gil_scoped_acquire const gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(what, done, total);
  };
  if (!searched.is_none()) {
    options.searched = [searched](std::span<searched_file const> files) {
      nb::gil_scoped_acquire const gil;
      searched(listed(files));
    };
  }
  const std::string text(pattern.c_str(), pattern.size());
  const search_result result = [&] {
    nb::gil_scoped_release const released;
    return search_tree(folder, text, options);
  }();
  nb::dict d;
  d["files"] = listed(result.files);
  d["folders"] = result.folders;
  d["bytes"] = result.bytes;
  d["seconds"] = result.seconds;
  d["executor"] = result.executor;
  d["device"] = result.device;
  d["hits"] = result.hits;
  d["misses"] = result.misses;
  d["bytes_moved"] = result.bytes_moved;
  d["host_calls"] = result.host_calls;
  return d;
}

}  // namespace

void bind_files(nb::module_& m) {
  m.def("files_search", &search, "folder"_a, "pattern"_a, "ignore_case"_a, "executor"_a, "cache"_a, "line"_a, "threads"_a,
        "progress"_a = nb::none(), "searched"_a = nb::none());
}

}  // namespace penstock::files
