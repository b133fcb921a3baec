// Namespaces of an NVMe drive that this process drives itself, as members of a volume.
#pragma once

#include "libs/volume/running_drive.hpp"

#include <optional>
#include <string>
#include <vector>

namespace penstock::volumes {

/// A namespace of it, through a queue pair that is the member's alone. Throws bad_input for a namespace that there is not, that
/// is in use or write protected, or whose blocks a volume cannot use, and where the drive has no queue left.
std::unique_ptr<member> open_drive_member(std::shared_ptr<running_drive> const& drive, u32 namespace_id, access how);

/// What a user calls a namespace: "0000:01:00.0/2", or "01:00.0" for namespace 1 of the drive there.
struct drive_place {
  std::string address;
  u32 namespace_id = 1;
};

/// Nothing for what does not look so.
std::optional<drive_place> parse_drive_place(std::string const& name);

/// Opens members in the order that they are named: namespaces of drives, files, block devices. Throws penstock::error, for one
/// that is named twice, too.
member_list open_members(std::vector<std::string> const& names, access how);

}  // namespace penstock::volumes
