// Asks a controller what it is, through its admin queue.
#pragma once

#include "penstock/host/controller.hpp"

namespace penstock {

struct namespace_facts {
  u64 blocks = 0;
  u32 block_bytes = 0;
  bool write_protected = false;
};

/// Identify Namespace (CNS 00h). Throws penstock::error when the controller refuses or does not answer within five seconds.
/// Not while another thread asks the same controller.
namespace_facts identify_namespace(controller& owner, u32 namespace_id);

/// Most blocks of one command that moves no data; 0: the controller does not offer it.
struct clear_limits {
  u32 zero_blocks = 0;     ///< Write Zeroes
  u32 discard_blocks = 0;  ///< Dataset Management, deallocate: of its one range
};

/// From ONCS, and from the limits that controllers tell since NVMe 1.4 (CNS 06h). Throws likewise.
clear_limits identify_clear_limits(controller& owner, u32 block_bytes);

/// All that it answers; likewise.
nvme::identify_namespace namespace_structure(controller& owner, u32 namespace_id);

/// Identify Controller (CNS 01h); likewise.
nvme::identify_controller identify_controller(controller& owner);

}  // namespace penstock
