// Volumes for Python: functions of penstock._native whose names start with volume_; penstock.volume wraps them. Members are
// named as a user does (drive_member.hpp).
#include "libs/volume/drive_member.hpp"
#include "libs/volume/import.hpp"
#include "libs/volume/make.hpp"
#include "libs/volume/verify.hpp"
#include "libs/volume/volume_entry.hpp"
#include "penstock/host/error.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace penstock::volumes {
namespace {

namespace nb = nanobind;
using namespace nanobind::literals;

using name_list = std::vector<std::string>;

/// Also where nobody watches: Ctrl-C stops the work.
progress_fn progress_of(nb::object const& callback) {
  return [callback = callback.ptr()](std::string const& what, u64 done, u64 total) {
    nb::gil_scoped_acquire const gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (callback != Py_None) nb::borrow(callback)(what, done, total);
  };
}

volume open(name_list const& names, access how) { return volume::open(open_members(names, how)); }

nb::dict dict_of(stored_file const& file) {
  nb::list shape;
  for (const u64 each : file.array.shape) shape.append(each);
  nb::dict d;
  d["name"] = file.name;
  d["entry"] = file.entry();
  d["of_folder"] = file.of_folder;
  d["dtype"] = file.array.kind == 0 ? nb::object(nb::none())
                                    : nb::object(nb::str((file.array.kind + std::to_string(file.array.item_bytes)).c_str()));
  d["shape"] = file.array.kind == 0 ? nb::object(nb::none()) : nb::object(shape);
  d["bytes"] = file.file_bytes;
  d["address"] = file.file_begin;
  return d;
}

nb::dict dict_of(volume const& all) {
  geometry const& shape = all.shape();
  nb::list members, files;
  for (u32 m = 0; m < all.members(); ++m) members.append(all.name_of(m));
  for (stored_file const& each : all.table().files) files.append(dict_of(each));
  nb::dict d;
  d["id"] = to_text(all.id());
  d["version"] = format_version;
  d["layout"] = to_text(shape.layout);
  d["stripe_bytes"] = shape.layout == volume_layout::striped ? nb::object(nb::int_(shape.stripe_bytes)) : nb::none();
  d["chunk_bytes"] = shape.chunk_bytes();
  d["generation"] = all.generation();
  d["bytes"] = shape.end() - shape.first();
  d["free_bytes"] = free_bytes(all.table(), shape);
  d["member_bytes"] = shape.member_bytes;
  d["members"] = members;
  d["files"] = files;
  return d;
}

nb::dict dict_of(moved const& done) {
  nb::dict d;
  d["files"] = done.files;
  d["bytes"] = done.bytes;
  d["seconds"] = done.seconds;
  return d;
}

nb::list probe_all(name_list const& names) {
  std::vector<probed_member> found;
  {
    nb::gil_scoped_release const released;
    found = probe_members(names);
  }
  nb::list all;
  for (probed_member const& each : found) {
    nb::dict d;
    d["name"] = each.name;
    d["bytes"] = each.bytes;
    d["holds"] = each.found.holds;
    d["blank"] = each.found.blank;
    all.append(d);
  }
  return all;
}

nb::dict create(name_list const& names, std::string const& layout, u64 stripe_bytes, u64 file_bytes, bool overwrite_unknown,
                bool overwrite_known) {
  const auto make = [&] {
    nb::gil_scoped_release const released;
    return make_volume(names, {parse_layout(layout), stripe_bytes, file_bytes, overwrite_unknown, overwrite_known});
  };
  return dict_of(make());
}

nb::dict facts(name_list const& names) {
  const auto look = [&] {
    nb::gil_scoped_release const released;
    return open(names, access::read);
  };
  return dict_of(look());
}

nb::dict import_into(name_list const& names, std::string const& name, std::string const& path, nb::object const& progress) {
  const progress_fn report = progress_of(progress);
  const auto work = [&] {
    nb::gil_scoped_release const released;
    volume to = open(names, access::write);
    return import_entry(to, name, path, report);
  };
  return dict_of(work());
}

nb::dict export_from(name_list const& names, std::string const& name, std::string const& path, bool replace,
                     nb::object const& progress) {
  const progress_fn report = progress_of(progress);
  const auto work = [&] {
    nb::gil_scoped_release const released;
    volume from = open(names, access::read);
    return export_entry(from, name, path, replace, report);
  };
  return dict_of(work());
}

void remove_from(name_list const& names, std::string const& name) {
  nb::gil_scoped_release const released;
  volume from = open(names, access::write);
  remove_entry(from, name);
}

nb::dict verify_all(name_list const& names, nb::object const& progress) {
  const progress_fn report = progress_of(progress);
  name_list members;
  verdict found;
  {
    nb::gil_scoped_release const released;
    volume all = open(names, access::read);
    for (u32 m = 0; m < all.members(); ++m) members.push_back(all.name_of(m));
    found = verify(all, report);
  }
  nb::list findings;
  for (finding const& each : found.findings) {
    nb::dict d;
    d["file"] = each.file.empty() ? nb::object(nb::none()) : nb::object(nb::str(each.file.c_str()));
    d["member"] = each.member;
    d["name"] = members[each.member];
    d["offset"] = each.offset;
    d["bytes"] = each.bytes;
    d["what"] = each.what;
    findings.append(d);
  }
  nb::dict d;
  d["bytes"] = found.bytes;
  d["problems"] = found.problems;
  d["findings"] = findings;
  d["seconds"] = found.seconds;
  return d;
}

/// The files of the entry that is named by their names in its folder (of one file: by an empty name), or the one that is named.
entry_files named_files(std::shared_ptr<shared_volume> const& from, volume_name const& parts, std::string const& name) {
  entry_files files = files_of(from, parts.entry);
  if (parts.file.empty()) return files;
  const auto found = files.find(parts.file);
  if (found == files.end()) {
    throw_bad_input("open", name, parts.entry + " has no file " + parts.file + ": name one of its files");
  }
  return {{"", found->second}};
}

nb::dict dict_of(entry_files const& files) {
  nb::dict d;
  for (auto const& [file, stored] : files) d[file.c_str()] = std::const_pointer_cast<volume_file>(stored);
  return d;
}

/// Of names of what is on volumes named_files, each volume opened once.
nb::list open_entries(name_list const& names) {
  std::vector<entry_files> all;
  {
    nb::gil_scoped_release const released;
    std::map<name_list, std::shared_ptr<shared_volume>> volumes;
    for (std::string const& name : names) {
      const volume_name parts = parse_volume_name(name);
      name_list members = parts.members;
      std::ranges::sort(members);
      std::shared_ptr<shared_volume>& from = volumes[members];
      if (from == nullptr) from = open_shared(parts);
      all.push_back(named_files(from, parts, name));
    }
  }
  nb::list list;
  for (entry_files const& each : all) list.append(dict_of(each));
  return list;
}

nb::bytes bytes_of(volume_file const& file, u64 offset, u64 bytes) {
  const u64 first = std::min(offset, file.size());
  std::vector<std::byte> read(std::min(bytes, file.size() - first));
  {
    nb::gil_scoped_release const released;
    file.read(first, read);
  }
  return nb::bytes(read.data(), read.size());
}

/// What it is on this machine: its volume, by the first bytes of the UUID, and its place there, which change when another takes
/// its name.
nb::tuple identity_of(volume_file const& file) {
  volume const& all = file.from().all;
  u64 id = 0;
  std::memcpy(&id, all.id().data(), sizeof id);
  return nb::make_tuple(id >> 1, all.generation(), file.file().file_begin);
}

nb::list members_of(volume_file const& file) {
  volume const& all = file.from().all;
  nb::list names;
  for (u32 m = 0; m < all.members(); ++m) names.append(all.name_of(m));
  return names;
}

}  // namespace

void bind_volume(nb::module_& m) {
  nb::class_<volume_file>(m, "VolumeFile")
      .def_prop_ro("size", &volume_file::size)
      .def_prop_ro("identity", &identity_of)
      .def_prop_ro("members", &members_of)
      .def("read", &bytes_of, "offset"_a, "bytes"_a);
  m.def("volume_open", &open_entries, "names"_a);
  m.def("volume_absolute", [](std::string const& name) { return to_text(absolute(parse_volume_name(name))); }, "name"_a);
  m.def("volume_probe", &probe_all, "members"_a);
  m.def("volume_create", &create, "members"_a, "layout"_a, "stripe_bytes"_a, "file_bytes"_a, "overwrite_unknown"_a,
        "overwrite_known"_a);
  m.def("volume_facts", &facts, "members"_a);
  m.def("volume_import", &import_into, "members"_a, "name"_a, "path"_a, "progress"_a = nb::none());
  m.def("volume_export", &export_from, "members"_a, "name"_a, "path"_a, "replace"_a, "progress"_a = nb::none());
  m.def("volume_remove", &remove_from, "members"_a, "name"_a);
  m.def("volume_verify", &verify_all, "members"_a, "progress"_a = nb::none());
}

}  // namespace penstock::volumes
