// Kernels of the user's own: classes of penstock._native that penstock.kernel wraps.
#include "libs/kernels/shared_executor.hpp"
#include "libs/kernels/user_kernel.hpp"
#include "penstock/core/atomic.hpp"
#include "penstock/executor/kept_for_graphs.hpp"
#include "penstock/host/error.hpp"
#include "without_lock.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <tuple>

PENSTOCK_DESTROY_WITHOUT_LOCK(penstock::kernels::launch_end)
PENSTOCK_DESTROY_WITHOUT_LOCK(penstock::kernels::user_kernel)

namespace penstock::kernels {
namespace {

namespace nb = nanobind;
using namespace nanobind::literals;
using sizes = std::tuple<u32, u32, u32>;

std::vector<std::byte> bytes_of(nb::bytes const& given) {
  auto const* const first = static_cast<std::byte const*>(given.data());
  return {first, first + given.size()};
}

/// The parameters of one launch, in their order.
struct kernel_arguments {
  std::vector<kernel_argument> all;
};

extent extent_of(sizes const& s) { return {std::get<0>(s), std::get<1>(s), std::get<2>(s)}; }

std::unique_ptr<user_kernel> load_cuda([[maybe_unused]] shared_executor& on, [[maybe_unused]] std::string const& name,
                                       [[maybe_unused]] nb::bytes const& cubin) {
#if defined(PENSTOCK_HAS_CUDA)
  return load_cuda_kernel(*on.on, name, {static_cast<std::byte const*>(cubin.data()), cubin.size()});
#else
  throw_bad_input("load", "the kernel " + name, "this build has no CUDA: build with PENSTOCK_CUDA=ON, or use the CPU");
#endif
}

/// 90 for compute capability 9.0.
u32 architecture_of([[maybe_unused]] shared_executor const& on) {
#if defined(PENSTOCK_HAS_CUDA)
  return gpu_architecture(*on.on);
#else
  return 0;
#endif
}

/// What replays of a captured launch need, the graph keeps.
void keep_if_captured([[maybe_unused]] user_kernel& kernel, [[maybe_unused]] void* stream, [[maybe_unused]] nb::handle needed) {
#if defined(PENSTOCK_HAS_CUDA)
  if (kernel.on().kind() != executor_kind::cuda || !is_captured(kernel.on().gpu(), stream)) return;
  const nb::gil_scoped_acquire locked;
  keep_for_graph(kernel.on().gpu(), stream, std::shared_ptr<PyObject>(needed.inc_ref().ptr(), [](PyObject* object) {
                   const nb::gil_scoped_acquire held;
                   Py_DECREF(object);
                 }));
#endif
}

nb::dict facts_of(user_kernel const& kernel, u32 block_threads, u32 shared_bytes) {
  const launch_facts f = kernel.facts(block_threads, shared_bytes);
  nb::dict d;
  d["registers"] = f.registers;
  d["local_bytes"] = f.local_bytes;
  d["shared_bytes"] = f.shared_bytes;
  d["max_block_threads"] = f.max_block_threads;
  d["blocks_per_unit"] = f.blocks_per_unit;
  d["units"] = f.units;
  d["unit_threads"] = f.unit_threads;
  return d;
}

}  // namespace

void bind_kernels(nb::module_& m) {
  m.def("gpu_architecture", &architecture_of, "executor"_a);
  m.def("host_calls", [] { return reinterpret_cast<u64>(&calls_of_host()); });
  nb::class_<kernel_arguments>(m, "KernelArguments")
      .def(nb::init<>())
      .def(
          "add_bytes",
          [](kernel_arguments& to, nb::bytes const& value) { to.all.push_back({bytes_of(value), nullptr, 0, false, {}}); },
          "value"_a)
      .def(
          "add_address",
          [](kernel_arguments& to, u64 value) {
            auto const* const first = reinterpret_cast<std::byte const*>(&value);
            to.all.push_back({{first, first + sizeof value}, nullptr, 0, false, {}});
          },
          "value"_a)
      .def(
          "add_array",
          [](kernel_arguments& to, row_array& array, u64 element_bytes, bool stores, std::vector<u64> shape) {
            to.all.push_back({{}, &array, element_bytes, stores, std::move(shape)});
          },
          "array"_a, "element_bytes"_a, "stores"_a, "shape"_a, nb::keep_alive<1, 2>());
  nb::class_<launch_end>(m, "LaunchEnd")
      .def_prop_ro("done", &launch_end::is_reached)
      .def("wait", &launch_end::wait, nb::call_guard<nb::gil_scoped_release>());
  nb::class_<user_kernel>(m, "UserKernel")
      .def_static("load_cuda", &load_cuda, "executor"_a, "name"_a, "cubin"_a, nb::keep_alive<0, 1>())
      .def_static(
          "load_host",
          [](shared_executor& on, std::string const& name, std::string const& library) {
            return load_host_kernel(*on.on, name, library);
          },
          "executor"_a, "name"_a, "library"_a, nb::keep_alive<0, 1>())
      .def("facts", &facts_of, "block_threads"_a, "shared_bytes"_a)
      .def("set_stopped", &user_kernel::set_stopped, "stopped"_a)
      .def(
          "launch",
          [](user_kernel& kernel, kernel_arguments& arguments, sizes const& grid, sizes const& block, u32 shared_bytes,
             u64 stream, u64 timeout_ns, nb::handle needed) {
            launch_shape shape{extent_of(grid), extent_of(block), shared_bytes, reinterpret_cast<void*>(stream), timeout_ns};
            // Ctrl-C, and whatever else Python handles.
            shape.check = [] {
              const nb::gil_scoped_acquire locked;
              if (PyErr_CheckSignals() != 0) throw nb::python_error();
            };
            keep_if_captured(kernel, shape.stream, needed);
            started_launch started = launch(kernel, arguments.all, shape);
            return std::tuple(std::move(started.calls), std::move(started.end), started.in_time);
          },
          "arguments"_a, "grid"_a, "block"_a, "shared_bytes"_a, "stream"_a, "timeout_ns"_a, "needed"_a,
          nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace penstock::kernels
