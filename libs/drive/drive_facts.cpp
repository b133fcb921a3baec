#include "libs/drive/drive_facts.hpp"

#include "penstock/pcie/pcie_controller.hpp"
#include "penstock/runtime/identify.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace penstock::drive {
namespace {

constexpr u32 queues_asked = 1024;  // more than a machine has a use for
constexpr int zero_celsius_kelvin = 273;

constexpr std::array<char const*, 6> warning_words = {
    "the spare capacity is below its threshold",    "the temperature is out of its range",
    "reliability is degraded by media errors",      "the media are read-only",
    "the backup of its volatile memory has failed", "the persistent memory region is read-only or unreliable"};

/// A field of Identify: padded with blanks.
template <u64 Bytes>
std::string text(char const (&field)[Bytes]) {
  const std::string_view all(field, Bytes);
  const u64 end = all.find_last_not_of(std::string_view(" \0", 2));
  return std::string(all.substr(0, end == std::string_view::npos ? 0 : end + 1));
}

std::string version_text(u32 word) {
  return std::to_string(word >> 16) + "." + std::to_string(word >> 8 & 0xff) + "." + std::to_string(word & 0xff);
}

namespace_description describe_namespace(controller& drive, u32 id) {
  namespace_report report = examine_namespace(drive, id);
  nvme::identify_namespace const& found = report.structure;
  const u32 formatted = found.format_index();
  namespace_description described;
  described.id = id;
  described.problem = std::move(report.problem);
  described.blocks = found.blocks;
  described.used_blocks = found.utilization;
  described.write_protected = (found.attributes & 1u) != 0;
  for (u32 k = 0; k < found.formats_count(); ++k) {
    nvme::lba_format const& format = found.formats[k];
    if (format.block_shift == 0 || format.block_shift > 63) continue;  // not available, or nonsense
    described.formats.push_back(
        {u64{1} << format.block_shift, format.metadata_bytes, format.relative_performance & 3u, k == formatted});
    if (k == formatted) described.block_bytes = u64{1} << format.block_shift;
  }
  return described;
}

wide_counter wide(u64 const (&counter)[2]) { return {counter[0], counter[1]}; }

}  // namespace

drive_description describe_drive(pci_function& function) {
  pcie_controller drive(function, {.queues = queues_asked});
  pcie_facts const& facts = drive.facts();
  nvme::identify_controller const& about = facts.controller;
  drive_description told;
  told.model = text(about.model_number);
  told.serial = text(about.serial_number);
  told.firmware = text(about.firmware_revision);
  told.version = version_text(facts.version);
  told.vendor = about.vendor_id;
  told.queue_entries = facts.capabilities.queue_entries();
  told.timeout_ms = facts.capabilities.timeout_ns() / one_millisecond_ns;
  told.doorbell_stride = facts.capabilities.doorbell_stride();
  told.least_page_bytes = u64{1} << facts.capabilities.least_page_shift();
  told.most_page_bytes = u64{1} << facts.capabilities.most_page_shift();
  told.transfer_bytes = about.max_transfer == 0 || about.max_transfer > 40 ? 0 : told.least_page_bytes << about.max_transfer;
  told.queues_asked = queues_asked;
  told.queues_granted = facts.granted_queues;
  told.atomic_write_blocks = u32{about.atomic_write_unit} + 1;
  told.atomic_power_fail_blocks = u32{about.atomic_power_fail_unit} + 1;
  told.volatile_write_cache = (about.volatile_write_cache & 1u) != 0;
  for (const u32 id : facts.namespaces) told.namespaces.push_back(describe_namespace(drive, id));
  return told;
}

drive_health read_health(pci_function& function) {
  pcie_controller drive(function, {.queues = 1});
  const nvme::health_log log = drive.health();
  drive_health told;
  for (u64 k = 0; k < warning_words.size(); ++k) {
    if ((log.critical_warning >> k & 1u) != 0) told.warnings.emplace_back(warning_words[k]);
  }
  told.temperature_celsius = log.temperature[1] * 256 + log.temperature[0] - zero_celsius_kelvin;
  told.available_spare_percent = log.available_spare;
  told.spare_threshold_percent = log.spare_threshold;
  told.percentage_used = log.percentage_used;
  told.data_units_read = wide(log.data_units_read);
  told.data_units_written = wide(log.data_units_written);
  told.host_reads = wide(log.host_reads);
  told.host_writes = wide(log.host_writes);
  told.busy_minutes = wide(log.busy_minutes);
  told.power_cycles = wide(log.power_cycles);
  told.power_on_hours = wide(log.power_on_hours);
  told.unsafe_shutdowns = wide(log.unsafe_shutdowns);
  told.media_errors = wide(log.media_errors);
  told.error_log_entries = wide(log.error_log_entries);
  return told;
}

}  // namespace penstock::drive
