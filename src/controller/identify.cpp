#include "penstock/host/identify.hpp"

#include "penstock/group/lone_thread.hpp"
#include "penstock/host/error.hpp"
#include "penstock/host/memory.hpp"
#include "penstock/host/queue_pair.hpp"
#include "penstock/queue/result_sink.hpp"

#include <algorithm>
#include <cerrno>

namespace penstock {
namespace {

constexpr u16 admin_queue = 0;
constexpr u32 least_block_shift = 9, most_block_shift = 20;
constexpr u64 admin_timeout_ns = 5 * one_second_ns;

template <class Structure>
Structure identify(controller& owner, nvme::identify_structure what, u32 namespace_id) {
  queue_options options;
  options.depth = 2;
  options.timeout_ns = admin_timeout_ns;
  buffer<u8> page(cpu_memory(), memory_kind::shared, nvme::page_bytes);
  queue_pair<result_sink> queue(cpu_memory(), owner, admin_queue, options);

  u32 result = 0;
  transfer command;
  command.command = nvme::identify_command(what, namespace_id, reinterpret_cast<u64>(page.data()));
  const std::string object = "namespace " + std::to_string(namespace_id) + " of the " + owner.engine() + " controller";
  const lone_thread g;
  const result_sink::target to{&result, nullptr};
  status outcome = queue.view().submit(g, true, command, to);
  if (outcome.ok()) outcome = wait_for(g, queue.view(), true, to);
  if (!outcome.ok()) throw_status("identify", object, outcome);
  Structure answer;
  page.read({reinterpret_cast<u8*>(&answer), sizeof answer});
  return answer;
}

}  // namespace

nvme::identify_namespace namespace_structure(controller& owner, u32 namespace_id) {
  return identify<nvme::identify_namespace>(owner, nvme::identify_structure::name_space, namespace_id);
}

namespace_facts identify_namespace(controller& owner, u32 namespace_id) {
  const nvme::identify_namespace answer = namespace_structure(owner, namespace_id);
  const u32 shift = answer.formats[answer.formatted & 15u].block_shift;
  const std::string object = "namespace " + std::to_string(namespace_id) + " of the " + owner.engine() + " controller";
  // One that is not there is all zeros (base specification, "Identify Namespace data structure").
  if (answer.blocks == 0) throw_status("identify", object, {status_domain::nvme, nvme::code::invalid_namespace});
  if (shift < least_block_shift || shift > most_block_shift || answer.blocks >> (63 - shift) != 0) {
    throw_os_error("identify", object, EPROTO,
                   "it says that it has " + std::to_string(answer.blocks) + " blocks of 2^" + std::to_string(shift) +
                       " bytes: no namespace does, look at the drive");
  }
  return {answer.blocks, 1u << shift, (answer.attributes & 1u) != 0};
}

clear_limits identify_clear_limits(controller& owner, u32 block_bytes) {
  constexpr u32 most_zero_blocks = 65536, most_discard_blocks = 0xffffffffu;  // what the commands' fields hold
  const u16 offered = identify_controller(owner).optional_commands;
  const bool zeroes = (offered & nvme::optional_command::write_zeroes) != 0;
  const bool discards = (offered & nvme::optional_command::dataset_management) != 0;
  if (!zeroes && !discards) return {};
  nvme::command_set_limits told;
  try {
    told = identify<nvme::command_set_limits>(owner, nvme::identify_structure::command_set_limits, 0);
  } catch (error const&) {
    told = {};  // one of before 1.4, which has none
  }
  clear_limits most{zeroes ? most_zero_blocks : 0, discards ? most_discard_blocks : 0};
  if (zeroes && told.write_zeroes != 0 && told.write_zeroes < 20) {
    most.zero_blocks =
        std::max(1u, std::min(most.zero_blocks, (static_cast<u32>(nvme::page_bytes) << told.write_zeroes) / block_bytes));
  }
  if (discards && told.range_blocks != 0) most.discard_blocks = told.range_blocks;
  if (discards && told.all_blocks != 0)
    most.discard_blocks = static_cast<u32>(std::min<u64>(most.discard_blocks, told.all_blocks));
  return most;
}

nvme::identify_controller identify_controller(controller& owner) {
  return identify<nvme::identify_controller>(owner, nvme::identify_structure::controller, 0);
}

}  // namespace penstock
