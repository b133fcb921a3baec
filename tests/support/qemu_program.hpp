// The QEMU that tests run: the installed one, or PENSTOCK_QEMU.
#pragma once

#include "penstock/core/config.hpp"

#include <set>
#include <string>

namespace penstock::test_support {

char const* qemu_program();

/// Why QEMU cannot be had here, or nothing.
std::string reason_without_qemu();

/// The first number of its version; 0: it does not say.
u32 qemu_version();

/// Names of the options of its drives (-device nvme), as "mdts".
std::set<std::string> const& qemu_drive_options();

}  // namespace penstock::test_support
