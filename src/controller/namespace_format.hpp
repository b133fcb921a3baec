// What of a namespace changes the meaning of a Read or a Write, so that Penstock's would move other bytes than it has room for,
// or none: found before a queue is made, from the structures that the controller answers Identify with.
#pragma once

#include "penstock/nvme/identify.hpp"

#include <string>

namespace penstock::controllers {

/// Each: empty, or what is wrong and what to do about it, as the end of a sentence about the namespace.

std::string problem_of_command_set(u8 csi);

/// `transfer_bytes`: most of one command (MDTS).
std::string problem_of_format(nvme::identify_namespace const& space, u64 transfer_bytes);

/// Zeros: the controller does not report it.
std::string problem_of_state(nvme::independent_namespace const& space);

}  // namespace penstock::controllers
