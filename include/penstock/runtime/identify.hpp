// Asks a controller what it is, through its admin queue.
#pragma once

#include "penstock/controller/controller.hpp"

#include <string>

namespace penstock {

struct namespace_facts {
  u64 blocks = 0;
  u32 block_bytes = 0;
  bool write_protected = false;
};

/// What a namespace is, whether Penstock can use it or not.
struct namespace_report {
  u8 command_set = 0;                    ///< CSI: 0 NVM, 1 key value, 2 zoned
  nvme::identify_namespace structure{};  ///< of the NVM command set; zeros for any other
  std::string problem{};                 ///< why it cannot be used, with the remedy; a sentence's part. Empty: it can
};

/// Asks for all that changes what a Read or a Write of the namespace means: its command set (CNS 03h), format, metadata,
/// protection information and attributes (CNS 00h), and whether it is ready (CNS 08h). Throws penstock::error when the
/// controller refuses or does not answer within five seconds, and for a namespace that is not there.
/// Not while another thread asks the same controller.
namespace_report examine_namespace(controller& owner, u32 namespace_id);

/// Likewise, of one that is to be used: throws penstock::error (bad_input) for one that cannot be. Before any queue is made.
namespace_facts identify_namespace(controller& owner, u32 namespace_id);

/// Most blocks of one command that moves no data; 0: the controller does not offer it.
struct clear_limits {
  u32 zero_blocks = 0;     ///< Write Zeroes
  u32 discard_blocks = 0;  ///< Dataset Management, deallocate: of its one range
};

/// From ONCS, and from the limits that controllers report since NVMe 1.4 (CNS 06h). Throws likewise.
clear_limits identify_clear_limits(controller& owner, u32 block_bytes);

/// Identify Controller (CNS 01h); likewise.
nvme::identify_controller identify_controller(controller& owner);

}  // namespace penstock
