// What a command asks for, checked against what the controller has; and the answers to Identify. The same for every controller.
#pragma once

#include "pieces.hpp"

#include "penstock/controller/controller.hpp"

#include <string>
#include <vector>

namespace penstock::controllers {

struct namespace_shape {
  u64 bytes = 0;  ///< the last block may be incomplete
  u32 block_bytes = 512;
  bool read_only = false;

  u64 blocks() const { return (bytes + block_bytes - 1) / block_bytes; }
};

enum class action : u8 { read, write, flush, identify };

struct decoded_command {
  u16 status = nvme::code::success;  ///< not success: the command ends with it
  action what = action::read;
  u32 index = 0;   ///< of the namespace, counted from 0
  u64 offset = 0;  ///< in the namespace, bytes
  u64 bytes = 0;
};

/// `queue` 0 is the admin queue and knows Identify only.
decoded_command decode(nvme::submission_entry const& command, u16 queue, std::vector<namespace_shape> const& namespaces,
                       u64 transfer_bytes);

/// Serves a Read or Write from or to the memory of a namespace: `memory` is where the command's offset lies.
void move_memory(decoded_command const& request, namespace_shape const& shape, std::byte* memory, pieces const& data);

/// Answers an Identify command into its buffer and returns its status.
u16 answer_identify(nvme::submission_entry const& command, std::vector<namespace_shape> const& namespaces,
                    controller_limits const& limits, std::string const& model_name);

/// Throws bad_input unless `block_bytes` and `bytes` make a namespace. `object` is what the message names.
void check_shape(std::string const& object, u64 bytes, u32 block_bytes, u64 transfer_bytes);

/// Throws bad_input unless the rings are complete and within the limits.
void check_rings(queue_rings const& rings, controller_limits const& limits);

}  // namespace penstock::controllers
