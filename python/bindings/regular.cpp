// The regular workloads for Python: functions of penstock._native whose names start with regular_; penstock.regular wraps them.
#include "libs/regular/regular.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace penstock::regular {
namespace {

namespace nb = nanobind;
using namespace nanobind::literals;

/// The names of penstock.regular's options; it gives all of them.
regular_options options_of(nb::dict const& given, nb::object const& progress) {
  regular_options options;
  const auto take = [&]<class T>(char const* name, T& into) { into = nb::cast<T>(given[name]); };
  take("executor", options.executor);
  take("media", options.media);
  take("drives", options.drives);
  take("place", options.place);
  take("engine", options.engine);
  take("direct", options.direct);
  take("raw", options.raw);
  take("access", options.access);
  take("directory", options.directory);
  take("cache", options.cache_bytes);
  take("line", options.line_bytes);
  take("tile", options.tile_bytes);
  take("in_flight", options.in_flight);
  take("threads", options.threads);
  take("server_sms", options.server_sms);
  take("repeats", options.repeats);
  // Also where nobody watches: Ctrl-C stops between two runs.
  options.progress = [progress](std::string const& what, u64 done, u64 total) {
    nb::gil_scoped_acquire const gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(what, done, total);
  };
  return options;
}

nb::list lines_of(std::vector<bench::measurement> const& measured) {
  const nb::object parse = nb::module_::import_("json").attr("loads");
  nb::list all;
  for (bench::measurement const& each : measured) all.append(parse(bench::to_json(each)));
  return all;
}

nb::object sum_of_result(reduce_result const& result) {
  if (result.type.starts_with("float")) return nb::float_(result.number);
  if (result.type.starts_with("uint")) return nb::int_(result.word);
  return nb::int_(static_cast<std::int64_t>(result.word));
}

nb::dict reduce(std::string const& path, bool columns, nb::dict const& given, nb::object const& progress) {
  const regular_options options = options_of(given, progress);
  const reduce_result result = [&] {
    nb::gil_scoped_release const released;
    return run_reduce(path, columns, options);
  }();
  nb::dict d;
  d["dtype"] = result.type;
  d["shape"] = result.shape;
  d["sum"] = columns ? nb::object(nb::none()) : sum_of_result(result);
  d["means"] = columns ? nb::cast(result.means) : nb::object(nb::none());
  d["measurements"] = lines_of(result.measurements);
  return d;
}

nb::dict vectoradd(std::string const& a, std::string const& b, std::string const& out, bool replace, nb::dict const& given,
                   nb::object const& progress) {
  const regular_options options = options_of(given, progress);
  const vectoradd_result result = [&] {
    nb::gil_scoped_release const released;
    return run_vectoradd(a, b, out, replace, options);
  }();
  nb::dict d;
  d["dtype"] = result.type;
  d["shape"] = result.shape;
  d["measurements"] = lines_of(result.measurements);
  return d;
}

}  // namespace

void bind_regular(nb::module_& m) {
  m.def("regular_reduce", &reduce, "path"_a, "columns"_a, "options"_a, "progress"_a = nb::none());
  m.def("regular_vectoradd", &vectoradd, "a"_a, "b"_a, "out"_a, "replace"_a, "options"_a, "progress"_a = nb::none());
}

}  // namespace penstock::regular
