// What a modelled drive takes for a command, and named drives and links whose figures were published.
#pragma once

#include "penstock/core/bits.hpp"

#include <string>
#include <vector>

namespace penstock {

/// First come, first served over all queues of a drive. A command starts when the ones before it have had their share of the
/// IOPS limits and a unit is free, and is done `service_time_ns` later. So with depth n in flight a drive answers
/// min(n / service time, units / service time, IOPS limit) commands/s, as Little's law has it.
///
/// A model_server keeps these times on the average over a drive's commands: serving takes some time by itself, so each drive
/// learns a lead, by which commands are begun before they are due. One that is served faster than most is early by as much as
/// others are late. Where serving takes longer than the service time, it takes what it takes.
struct drive_timing {
  u64 service_time_ns = 0;
  u32 units = 0;  ///< that serve at once, in each direction of a duplex drive; 0: no limit
  // Commands/s; 0: no limit. Between 512 bytes and 4 KiB the cost of a command is linear in its bytes, beyond proportional: the
  // figures at 4 KiB are a limit of bytes/s, too. One of a pair alone holds for all sizes.
  double read_iops_512 = 0;
  double read_iops_4k = 0;
  double write_iops_512 = 0;
  double write_iops_4k = 0;
  /// Reads and writes each have their rate, whatever the other does. Else they share the drive: a write takes from the reads
  /// what it costs. Drives lie between: the data sheet of the P5800X has 1.8 M/s of 4 KiB, 70 % of them reads, where sharing
  /// gives 1.5.
  bool duplex = false;

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
/// Each of the four also as NAME-duplex: reads and writes at their rates at once.
drive_timing drive_preset(std::string const& name);

/// Bytes of such a drive, whatever lies behind the model: of the first three what the dissertation had (Table 5.2), of gen5 a
/// common size; 0 for none. Throws likewise.
double drive_capacity(std::string const& name);

/// What a command that moves `bytes` takes of its direction of a PCIe link, in bytes: packets carry 256 at most, each behind a
/// header of 24, and its completion entry has 16 and a header.
PENSTOCK_FN constexpr u64 link_bytes(u64 bytes) { return bytes + 24 * ceil_div(bytes, 256) + 40; }

/// Bytes/s of a link in each direction, headers and all (see link_bytes). Throws likewise.
///   gen4x16  26.9e9: fitted to the ten P5800X of the BaM dissertation, 45.8 M/s of 512 bytes (Fig. 5.6; this gives 44.8)
///            and 24 GB/s of 4 KiB blocks (Fig. 5.9; this gives 24.4)
///   gen5x16  58e9: fitted to 51 GB/s, the zero-copy reads of our reference machine (this gives 49.5 with commands of 512
///            bytes, 52.6 with 4 KiB)
///   none     0: no limit
double link_preset(std::string const& name);

}  // namespace penstock
