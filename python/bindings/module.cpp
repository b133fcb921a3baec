// penstock._native: what Python needs of the C++.
#include "penstock/controller/software_controller.hpp"
#include "penstock/executor/executor.hpp"
#include "penstock/executor/sm_share.hpp"
#include "penstock/host/error.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <tuple>

namespace nb = nanobind;

namespace penstock {
void bind_rows(nb::module_& m);
}
namespace penstock::analytics {
void bind_analytics(nb::module_& m);
}
namespace penstock::bench {
void bind_bench(nb::module_& m);
}
namespace penstock::drive {
void bind_nvme(nb::module_& m);
}
namespace penstock::files {
void bind_files(nb::module_& m);
void bind_mounts(nb::module_& m);
}  // namespace penstock::files
namespace penstock::graph {
void bind_graph(nb::module_& m);
}
namespace penstock::columns {
void bind_columns(nb::module_& m);
void bind_packing(nb::module_& m);
}  // namespace penstock::columns
namespace penstock::kernels {
void bind_kernels(nb::module_& m);
}
namespace penstock::lsh {
void bind_lsh(nb::module_& m);
}
namespace penstock::regular {
void bind_regular(nb::module_& m);
}
namespace penstock::sampling {
void bind_sampling(nb::module_& m);
}
namespace penstock::volumes {
void bind_volume(nb::module_& m);
}

namespace {

/// What it says may quote a file or name a path, in which any byte may be.
nb::object sentence(penstock::error const& e) {
  std::string const text = e.what();
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

// bad_input becomes ValueError; world becomes penstock.Error, an OSError with errno.
void translate(std::exception_ptr const& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (penstock::error const& e) {
    if (e.kind() == penstock::error_kind::bad_input) {
      PyErr_SetObject(PyExc_ValueError, sentence(e).ptr());
      return;
    }
    nb::object type = nb::module_::import_("penstock.errors").attr("Error");
    nb::object value = type(sentence(e), e.code());
    PyErr_SetObject(type.ptr(), value.ptr());
  }
}

void bind_sm_shares(nb::module_& m) {
  using penstock::sm_share;
  using released = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<sm_share>(m, "SmShare")
      .def_static("of", &penstock::share_of_sms, nb::rv_policy::reference, released(), nb::arg("gpu"), nb::arg("sms"))
      .def_prop_ro("sms", &sm_share::units)
      .def_prop_ro("rest", &sm_share::rest)
      .def(
          "open_stream",
          [](sm_share const& share, int priority) { return reinterpret_cast<std::uintptr_t>(share.open_stream(priority)); },
          released(), nb::arg("priority"))
      .def(
          "open_stream_in_rest",
          [](sm_share const& share, int priority) {
            return reinterpret_cast<std::uintptr_t>(share.open_stream_in_rest(priority));
          },
          released(), nb::arg("priority"));
}

}  // namespace

NB_MODULE(_native, m) {
  // A tensor over an array's memory may live as long as the process: twenty lines about that at its end help no user.
  nb::set_leak_warnings(false);
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
  bind_sm_shares(m);
  penstock::analytics::bind_analytics(m);
  penstock::graph::bind_graph(m);
  penstock::bench::bind_bench(m);
  penstock::regular::bind_regular(m);
  penstock::drive::bind_nvme(m);
  penstock::volumes::bind_volume(m);
  penstock::files::bind_files(m);
  penstock::files::bind_mounts(m);
  penstock::lsh::bind_lsh(m);
  penstock::columns::bind_columns(m);
  penstock::columns::bind_packing(m);
  penstock::bind_rows(m);
  penstock::kernels::bind_kernels(m);
  penstock::sampling::bind_sampling(m);
}
