// The benchmarks for Python: functions of penstock._native whose names start with bench_; penstock.bench wraps them.
#include "libs/bench/topics.hpp"

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

/// Results as what their JSON lines hold, as the program without Python writes them; `found` gets each measurement as soon as
/// it is there.
nb::list run(std::string const& name, option_texts const& options, nb::object const& progress, nb::object const& found) {
  // Also where nobody watches: Ctrl-C stops a topic between two reports of progress.
  const progress_fn report = [&](std::string const& what, u64 done, u64 total) {
    nb::gil_scoped_acquire const gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(what, done, total);
  };
  const nb::object parse = nb::module_::import_("json").attr("loads");
  found_fn keep;
  if (!found.is_none()) {
    keep = [&](measurement const& m) {
      nb::gil_scoped_acquire const gil;
      found(parse(to_json(m)));
    };
  }
  std::vector<measurement> results;
  {
    nb::gil_scoped_release const released;
    results = run_topic(name, options, report, keep);
  }
  nb::list all;
  for (measurement const& m : results) all.append(parse(to_json(m)));
  return all;
}

}  // namespace

void bind_bench(nb::module_& m) {
  m.def("bench_topics", &list_topics);
  m.def("bench_run", &run, "topic"_a, "options"_a, "progress"_a = nb::none(), "found"_a = nb::none());
}

}  // namespace penstock::bench
