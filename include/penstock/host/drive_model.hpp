// What a modelled drive takes for a command, and named drives and links whose figures were published.
#pragma once

#include "penstock/core/config.hpp"

#include <string>
#include <vector>

namespace penstock {

/// First come, first served over all queues of a drive. A command starts when the ones before it have had their share of the
/// IOPS limits and a unit is free, and is done `service_time_ns` later. So with depth n in flight a drive answers
/// min(n / service time, units / service time, IOPS limit) commands/s, as Little's law has it.
struct drive_timing {
  u64 service_time_ns = 0;
  u32 units = 0;  ///< that serve at once; 0: no limit
  // Commands/s; 0: no limit. Between 512 bytes and 4 KiB the cost of a command is linear in its bytes, beyond proportional: the
  // figures at 4 KiB are a limit of bytes/s, too. Reads and writes share the drive. One of a pair alone holds for all sizes.
  double read_iops_512 = 0;
  double read_iops_4k = 0;
  double write_iops_512 = 0;
  double write_iops_4k = 0;

  bool limits_anything() const {
    return service_time_ns != 0 || read_iops_512 > 0 || read_iops_4k > 0 || write_iops_512 > 0 || write_iops_4k > 0;
  }
};

/// The names that `drive_preset` knows.
std::vector<std::string> drive_preset_names();

/// Throws penstock::error (bad_input) for a name that it does not know.
///   p5800x  Intel Optane P5800X   measured in the BaM dissertation, Table 5.3
///   pm1735  Samsung PM1735        likewise (Z-NAND)
///   980pro  Samsung 980 PRO       likewise (consumer flash)
///   gen5    a Gen5 x4 TLC drive   of data sheets, not measured
///   none    no limits
drive_timing drive_preset(std::string const& name);

/// Bytes/s that random 512-byte to 4 KiB reads get over a link: "gen4x16" (26 GB/s, measured in the BaM dissertation, §4.3),
/// "gen5x16" (51 GB/s, our reference machine's zero-copy reads), "none" (0, no limit). Throws likewise.
double link_preset(std::string const& name);

}  // namespace penstock
