// The benchmarks for Python: functions of penstock._native whose names start with bench_; penstock.bench wraps them.
#include "apps/bench/topics.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

namespace penstock::bench {
namespace {

namespace nb = nanobind;
using namespace nanobind::literals;

nb::list list_topics() {
  nb::list all;
  for (topic const& t : topics()) {
    nb::dict d;
    d["name"] = t.name;
    d["what"] = t.what;
    d["options"] = t.options;
    all.append(d);
  }
  return all;
}

/// Each measurement as what its JSON line holds, so that Python and the program without Python tell the same.
nb::list run(std::string const& name, option_texts const& options, nb::object const& progress) {
  // Also where nobody watches: Ctrl-C stops a topic between two reports of progress.
  const progress_fn report = [&](std::string const& what, u64 done, u64 total) {
    nb::gil_scoped_acquire const gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(what, done, total);
  };
  const std::vector<measurement> found = [&] {
    nb::gil_scoped_release const released;
    return run_topic(name, options, report);
  }();
  const nb::object parse = nb::module_::import_("json").attr("loads");
  nb::list all;
  for (measurement const& m : found) all.append(parse(to_json(m)));
  return all;
}

}  // namespace

void bind_bench(nb::module_& m) {
  m.def("bench_topics", &list_topics);
  m.def("bench_run", &run, "topic"_a, "options"_a, "progress"_a = nb::none());
}

}  // namespace penstock::bench
