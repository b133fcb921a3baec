// Mounted folders for Python: the class _native.MountedFolder; penstock.fs wraps it. Errors are errnos.
#include "libs/files/mounted_folder.hpp"
#include "without_lock.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

PENSTOCK_DESTROY_WITHOUT_LOCK(penstock::file_descriptor)
PENSTOCK_DESTROY_WITHOUT_LOCK(penstock::files::mounted_folder)

namespace penstock::files {
namespace {

namespace nb = nanobind;
using kernels::folder_answer;
using kernels::folder_op;
using namespace nanobind::literals;

/// A name of bytes that need be no UTF-8.
nb::object name_object_of(std::string const& text) {
  return nb::steal(PyUnicode_DecodeFSDefaultAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

std::string text_of(nb::bytes const& bytes) { return {bytes.c_str(), bytes.size()}; }

template <class Call>
auto released(Call const& call) {
  nb::gil_scoped_release const without;
  return call();
}

nb::tuple open(mounted_folder& folder, nb::bytes const& path, u32 flags) {
  const std::string name = text_of(path);
  const folder_answer got = released([&] { return folder.call({.op = folder_op::open, .flags = flags}, name); });
  return nb::make_tuple(got.error, kernels::descriptor_of(got.file));
}

folder_answer with_file(mounted_folder& folder, folder_op op, file_descriptor const& file, u64 size = 0) {
  return released([&] { return folder.call({.op = op, .file = kernels::words_of(file), .offset = size}); });
}

nb::tuple read_into(mounted_folder& folder, file_descriptor const& file, std::uintptr_t to, u64 count, u64 offset) {
  const file_result got = released([&] { return folder.pread(file, {reinterpret_cast<char*>(to), count}, offset); });
  return nb::make_tuple(got.error, got.value);
}

nb::tuple write_from(mounted_folder& folder, file_descriptor const& file, std::uintptr_t from, u64 count, u64 offset) {
  const file_result got = released([&] { return folder.pwrite(file, {reinterpret_cast<char const*>(from), count}, offset); });
  return nb::make_tuple(got.error, got.value);
}

nb::tuple stat(mounted_folder& folder, nb::bytes const& path) {
  const std::string name = text_of(path);
  const folder_answer got = released([&] { return folder.call({.op = folder_op::stat}, name); });
  return nb::make_tuple(got.error, got.value, got.time, got.kind);
}

nb::tuple list(mounted_folder& folder, nb::bytes const& path) {
  const std::string name = text_of(path);
  u32 error = 0;
  const auto names = released([&] { return folder.list(name, error); });
  nb::list all;
  for (auto const& [each, kind] : names) all.append(nb::make_tuple(name_object_of(each), kind));
  return nb::make_tuple(error, all);
}

nb::list stage(mounted_folder& folder, std::vector<nb::bytes> const& paths) {
  std::vector<std::string> names;
  for (nb::bytes const& path : paths) names.push_back(text_of(path));
  const auto staged = released([&] { return folder.stage(names); });
  nb::list all;
  for (staged_file const& each : staged) all.append(nb::make_tuple(each.error, each.bytes));
  return all;
}

nb::dict inspect(mounted_folder const& folder) {
  const mount_facts facts = folder.facts();
  nb::dict d;
  d["executor"] = facts.executor;
  d["device"] = facts.device;
  d["cache_bytes"] = facts.cache_bytes;
  d["line_bytes"] = facts.line_bytes;
  d["open_files"] = facts.open_files;
  d["versions"] = facts.versions;
  d["host_calls"] = facts.host_calls;
  d["hits"] = facts.cache.hits;
  d["misses"] = facts.cache.misses;
  d["evictions"] = facts.cache.evictions;
  d["bytes_moved"] = facts.cache.bytes_moved;
  d["bytes_written"] = facts.cache.bytes_written;
  return d;
}

void make(mounted_folder* self, std::string const& root, bool writable, std::string const& executor, u64 cache, u64 line,
          u32 threads, u32 max_files) {
  mount_options options;
  options.executor = executor;
  options.writable = writable;
  options.cache_bytes = cache;
  options.line_bytes = line;
  options.threads = threads;
  options.max_files = max_files;
  new (self) mounted_folder(root, options);
}

}  // namespace

void bind_mounts(nb::module_& m) {
  nb::class_<file_descriptor>(m, "FileDescriptor").def_ro("range_bytes", &file_descriptor::range_bytes);
  nb::class_<mounted_folder>(m, "MountedFolder")
      .def("__init__", &make, "root"_a, "writable"_a, "executor"_a, "cache"_a, "line"_a, "threads"_a, "max_files"_a)
      .def("open", &open, "path"_a, "flags"_a)
      .def("close", [](mounted_folder& f, file_descriptor const& file) { return with_file(f, folder_op::close, file).error; })
      .def("sync", [](mounted_folder& f, file_descriptor const& file) { return with_file(f, folder_op::sync, file).error; })
      .def("truncate", [](mounted_folder& f, file_descriptor const& file,
                          u64 size) { return with_file(f, folder_op::truncate, file, size).error; })
      .def("size_of",
           [](mounted_folder& f, file_descriptor const& file) {
             const folder_answer got = with_file(f, folder_op::size_of, file);
             return nb::make_tuple(got.error, got.value);
           })
      .def("read_into", &read_into, "file"_a, "address"_a, "count"_a, "offset"_a)
      .def("write_from", &write_from, "file"_a, "address"_a, "count"_a, "offset"_a)
      .def("stat", &stat, "path"_a)
      .def("unlink",
           [](mounted_folder& f, nb::bytes const& path) {
             const std::string name = text_of(path);
             return released([&] { return f.call({.op = folder_op::unlink}, name).error; });
           })
      .def("rename",
           [](mounted_folder& f, nb::bytes const& from, nb::bytes const& to) {
             const std::string name = text_of(from), other = text_of(to);
             return released([&] { return f.call({.op = folder_op::rename}, name, other).error; });
           })
      .def("list_names", &list, "path"_a)
      .def("stage", &stage, "paths"_a)
      .def("flush", &mounted_folder::flush, nb::call_guard<nb::gil_scoped_release>())
      .def("inspect", &inspect)
      .def_prop_ro("view_address", [](mounted_folder const& f) { return reinterpret_cast<std::uintptr_t>(&f.view()); })
      .def_prop_ro("kernel_address", [](mounted_folder const& f) { return reinterpret_cast<std::uintptr_t>(f.local_view()); })
      .def_prop_ro("cuda", [](mounted_folder const& f) { return f.on().kind() == executor_kind::cuda; })
      .def_prop_ro("gpu", [](mounted_folder const& f) { return f.on().gpu(); })
      .def_prop_ro("view_bytes", [](mounted_folder const&) { return sizeof(folder_view); });
}

}  // namespace penstock::files
