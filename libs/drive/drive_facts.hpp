// What a drive says of itself, in the units that people use: `penstock nvme identify` and `penstock nvme smart`. Each call
// brings the controller up and shuts it down again.
#pragma once

#include "penstock/pcie/pci_function.hpp"

#include <array>
#include <string>
#include <vector>

namespace penstock::drive {

struct block_format {
  u64 block_bytes = 0;
  u32 metadata_bytes = 0;
  u32 relative_performance = 0;  ///< 0 best to 3 degraded
  bool in_use = false;
};

struct namespace_description {
  u32 id = 0;
  u64 blocks = 0;
  u64 block_bytes = 0;
  u64 used_blocks = 0;
  bool write_protected = false;
  std::string problem;  ///< why Penstock does not read or write it, with the remedy; empty: it does
  std::vector<block_format> formats;
};

struct drive_description {
  std::string model, serial, firmware;
  std::string version;  ///< of the specification: "1.4.0"
  u32 vendor = 0;
  u32 queue_entries = 0;  ///< most of one queue (CAP.MQES)
  u64 timeout_ms = 0;     ///< until it is ready, at most (CAP.TO)
  u64 doorbell_stride = 0;
  u64 least_page_bytes = 0, most_page_bytes = 0;
  u64 transfer_bytes = 0;  ///< most of one command (MDTS); 0: it has no limit
  u32 queues_asked = 0, queues_granted = 0;
  u32 atomic_write_blocks = 0;       ///< AWUN: blocks that are written as a whole beside other commands
  u32 atomic_power_fail_blocks = 0;  ///< AWUPF: and when power fails
  bool volatile_write_cache = false;
  std::vector<namespace_description> namespaces;
};

/// Throws penstock::error where the controller does not come up or does not answer.
drive_description describe_drive(pci_function& function);

/// A counter of 128 bits, the lower half first.
using wide_counter = std::array<u64, 2>;

struct drive_health {
  std::vector<std::string> warnings;  ///< critical ones, in words
  int temperature_celsius = 0;
  u32 available_spare_percent = 0, spare_threshold_percent = 0;
  u32 percentage_used = 0;                               ///< of its life; may exceed 100
  wide_counter data_units_read{}, data_units_written{};  ///< of data_unit_bytes
  wide_counter host_reads{}, host_writes{};              ///< commands
  wide_counter busy_minutes{}, power_cycles{}, power_on_hours{}, unsafe_shutdowns{}, media_errors{}, error_log_entries{};
};

inline constexpr u64 data_unit_bytes = 512'000;

/// Throws likewise.
drive_health read_health(pci_function& function);

}  // namespace penstock::drive
