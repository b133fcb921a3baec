// Drives of this machine for Python: functions of penstock._native whose names start with nvme_; penstock.nvme wraps them.
#include "libs/drive/copy_blocks.hpp"
#include "libs/drive/drive_facts.hpp"
#include "libs/drive/take_drive.hpp"
#include "penstock/pcie/drive_path.hpp"
#include "penstock/pcie/pci_device.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace penstock::drive {
namespace {

namespace nb = nanobind;
using namespace nanobind::literals;

nb::dict dict_of(pci_device const& device) {
  nb::dict d;
  d["address"] = device.address;
  d["vendor"] = device.vendor;
  d["device"] = device.device;
  d["driver"] = device.driver;
  d["iommu_group"] = device.iommu_group;
  d["group_others"] = device.group_others;
  d["link"] = device.link;
  d["numa_node"] = device.numa_node;
  d["block_devices"] = device.block_devices;
  d["uses"] = device.uses;
  return d;
}

nb::list list(std::string const& sysfs, std::string const& proc) {
  nb::list all;
  for (pci_device const& each : list_nvme_devices(sysfs, proc)) all.append(dict_of(each));
  return all;
}

void bind(std::string const& address, bool force, std::string const& sysfs, std::string const& proc) {
  nb::gil_scoped_release const released;
  take_drive(address, force, {sysfs, proc});
}

void unbind(std::string const& address, std::string const& sysfs) {
  nb::gil_scoped_release const released;
  give_to_kernel(address, sysfs);
}

/// What `work` makes of a drive while it is open.
template <class Work>
auto with_drive(std::string const& address, Work const& work) {
  nb::gil_scoped_release const released;
  const auto function = open_pci_function(address);
  return work(*function);
}

/// The tier of a GPU's threads, and why it is not a better one.
std::pair<std::string, std::string> gpu_path(std::string const& address) {
  return with_drive(address, [](pci_function& function) {
    const drive_path path(function, "cuda");
    return std::pair<std::string, std::string>(name_of(path.tier()), path.reason());
  });
}

nb::dict dict_of(namespace_description const& described) {
  nb::list formats;
  for (block_format const& each : described.formats) {
    nb::dict f;
    f["block_bytes"] = each.block_bytes;
    f["metadata_bytes"] = each.metadata_bytes;
    f["relative_performance"] = each.relative_performance;
    f["in_use"] = each.in_use;
    formats.append(f);
  }
  nb::dict d;
  d["id"] = described.id;
  d["blocks"] = described.blocks;
  d["block_bytes"] = described.block_bytes;
  d["bytes"] = described.blocks * described.block_bytes;
  d["used_blocks"] = described.used_blocks;
  d["write_protected"] = described.write_protected;
  d["problem"] = described.problem.empty() ? nb::object(nb::none()) : nb::object(nb::str(described.problem.c_str()));
  d["formats"] = formats;
  return d;
}

nb::dict identify(std::string const& address) {
  const drive_description told = with_drive(address, describe_drive);
  nb::list namespaces;
  for (namespace_description const& each : told.namespaces) namespaces.append(dict_of(each));
  nb::dict d;
  d["address"] = address;
  d["model"] = told.model;
  d["serial"] = told.serial;
  d["firmware"] = told.firmware;
  d["version"] = told.version;
  d["vendor"] = told.vendor;
  d["queue_entries"] = told.queue_entries;
  d["timeout_ms"] = told.timeout_ms;
  d["doorbell_stride"] = told.doorbell_stride;
  d["least_page_bytes"] = told.least_page_bytes;
  d["most_page_bytes"] = told.most_page_bytes;
  d["transfer_bytes"] = told.transfer_bytes == 0 ? nb::object(nb::none()) : nb::object(nb::int_(told.transfer_bytes));
  d["queues_asked"] = told.queues_asked;
  d["queues_granted"] = told.queues_granted;
  d["atomic_write_blocks"] = told.atomic_write_blocks;
  d["atomic_power_fail_blocks"] = told.atomic_power_fail_blocks;
  d["volatile_write_cache"] = told.volatile_write_cache;
  d["namespaces"] = namespaces;
  return d;
}

nb::object number(wide_counter const& counter) { return (nb::int_(counter[1]) << nb::int_(64)) | nb::int_(counter[0]); }

nb::dict smart(std::string const& address) {
  const drive_health health = with_drive(address, read_health);
  const nb::int_ unit(data_unit_bytes);
  nb::dict d;
  d["address"] = address;
  d["warnings"] = health.warnings;
  d["temperature_celsius"] = health.temperature_celsius;
  d["available_spare_percent"] = health.available_spare_percent;
  d["spare_threshold_percent"] = health.spare_threshold_percent;
  d["percentage_used"] = health.percentage_used;
  d["bytes_read"] = number(health.data_units_read) * unit;
  d["bytes_written"] = number(health.data_units_written) * unit;
  d["host_reads"] = number(health.host_reads);
  d["host_writes"] = number(health.host_writes);
  d["busy_minutes"] = number(health.busy_minutes);
  d["power_cycles"] = number(health.power_cycles);
  d["power_on_hours"] = number(health.power_on_hours);
  d["unsafe_shutdowns"] = number(health.unsafe_shutdowns);
  d["media_errors"] = number(health.media_errors);
  d["error_log_entries"] = number(health.error_log_entries);
  return d;
}

/// Also where nobody watches: Ctrl-C stops a copy.
progress_fn progress_of(nb::object const& callback) {
  return [callback = callback.ptr()](std::string const& what, u64 done, u64 total) {
    nb::gil_scoped_acquire const gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (callback != Py_None) nb::borrow(callback)(what, done, total);
  };
}

nb::dict dict_of(copied const& done) {
  nb::dict d;
  d["blocks"] = done.blocks;
  d["bytes"] = done.bytes;
  d["commands"] = done.commands;
  d["seconds"] = done.seconds;
  return d;
}

nb::dict read(std::string const& address, u32 namespace_id, u64 start, u64 blocks, std::string const& path, bool replace,
              nb::object const& progress) {
  const progress_fn report = progress_of(progress);
  return dict_of(with_drive(address, [&](pci_function& function) {
    return read_to_file(function, {namespace_id, start, blocks}, path, replace, report);
  }));
}

nb::dict write(std::string const& address, u32 namespace_id, u64 start, u64 blocks, std::string const& path,
               nb::object const& progress) {
  const progress_fn report = progress_of(progress);
  return dict_of(with_drive(
      address, [&](pci_function& function) { return write_from_file(function, {namespace_id, start, blocks}, path, report); }));
}

template <class Clear>
nb::dict clear(std::string const& address, u32 namespace_id, u64 start, u64 blocks, nb::object const& progress,
               Clear const& with) {
  const progress_fn report = progress_of(progress);
  return dict_of(
      with_drive(address, [&](pci_function& function) { return with(function, {namespace_id, start, blocks}, report); }));
}

nb::dict zero(std::string const& address, u32 namespace_id, u64 start, u64 blocks, nb::object const& progress) {
  return clear(address, namespace_id, start, blocks, progress, zero_blocks);
}

nb::dict discard(std::string const& address, u32 namespace_id, u64 start, u64 blocks, nb::object const& progress) {
  return clear(address, namespace_id, start, blocks, progress, discard_blocks);
}

}  // namespace

void bind_nvme(nb::module_& m) {
  m.def("nvme_list", &list, "sysfs"_a, "proc"_a);
  m.def(
      "nvme_find",
      [](std::string const& address, std::string const& sysfs, std::string const& proc) {
        return dict_of(find_nvme_device(address, sysfs, proc));
      },
      "address"_a, "sysfs"_a, "proc"_a);
  m.def("nvme_bind", &bind, "address"_a, "force"_a, "sysfs"_a, "proc"_a);
  m.def("nvme_unbind", &unbind, "address"_a, "sysfs"_a);
  m.def("nvme_gpu_path", &gpu_path, "address"_a);
  m.def("nvme_identify", &identify, "address"_a);
  m.def("nvme_smart", &smart, "address"_a);
  m.def("nvme_read", &read, "address"_a, "namespace_id"_a, "start"_a, "blocks"_a, "path"_a, "replace"_a,
        "progress"_a = nb::none());
  m.def("nvme_zero", &zero, "address"_a, "namespace_id"_a, "start"_a, "blocks"_a, "progress"_a = nb::none());
  m.def("nvme_discard", &discard, "address"_a, "namespace_id"_a, "start"_a, "blocks"_a, "progress"_a = nb::none());
  m.def("nvme_write", &write, "address"_a, "namespace_id"_a, "start"_a, "blocks"_a, "path"_a, "progress"_a = nb::none());
}

}  // namespace penstock::drive
