#include "penstock/runtime/identify.hpp"

#include "../controller/namespace_format.hpp"

#include "penstock/core/retry_policy.hpp"
#include "penstock/executor/memory.hpp"
#include "penstock/group/lone_thread.hpp"
#include "penstock/host/error.hpp"
#include "penstock/queue/result_sink.hpp"
#include "penstock/runtime/queue_pair.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace penstock {
namespace {

constexpr u16 admin_queue_id = 0;
constexpr u64 admin_timeout_ns = 5 * one_second_ns;
constexpr u32 version_1_3 = 0x00010300, version_2_0 = 0x00020000;  // from which CNS 03h and 08h are there

/// Identify commands, one after another.
class identifier {
 public:
  identifier(controller& owner, std::string object)
      : object_(std::move(object)), page_(cpu_memory(), memory_kind::shared, nvme::page_bytes),
        queue_(cpu_memory(), owner, admin_queue_id, options()) {}

  template <class Structure>
  status try_ask(nvme::identify_structure what, u32 namespace_id, Structure& answer) {
    for (u32 attempts = 1;; ++attempts) {
      const status outcome = ask_once(what, namespace_id, answer);
      if (outcome.ok() || !admin_retries.retries(outcome, attempts)) return outcome;
      std::this_thread::sleep_for(std::chrono::nanoseconds(admin_retries.wait_ns(attempts)));
    }
  }

  template <class Structure>
  status ask_once(nvme::identify_structure what, u32 namespace_id, Structure& answer) {
    static_assert(sizeof answer == nvme::page_bytes);
    u32 result = 0;
    transfer command;
    command.command = nvme::identify_command(what, namespace_id, reinterpret_cast<u64>(page_.data()));
    const lone_thread g;
    const result_sink::target to{&result, nullptr};
    status outcome = queue_.view().submit(g, true, command, to);
    if (outcome.ok()) outcome = wait_for(g, queue_.view(), true, to);
    if (outcome.ok()) page_.read({reinterpret_cast<u8*>(&answer), sizeof answer});
    return outcome;
  }

  template <class Structure>
  Structure ask(nvme::identify_structure what, u32 namespace_id) {
    Structure answer;
    if (const status outcome = try_ask(what, namespace_id, answer); !outcome.ok()) throw_status("identify", object_, outcome);
    return answer;
  }

  /// Of a structure that not every controller has: as it begins where the controller refuses it.
  template <class Structure>
  Structure ask_if_there(nvme::identify_structure what, u32 namespace_id) {
    Structure answer;
    const status outcome = try_ask(what, namespace_id, answer);
    if (outcome.ok()) return answer;
    if (!says_not_there(outcome)) throw_status("identify", object_, outcome);
    return Structure{};
  }

 private:
  /// Of a structure that a controller does not have; any other failure says nothing about it.
  static bool says_not_there(status outcome) {
    const u16 code = outcome.number();
    return outcome.domain == status_domain::nvme &&
           (code == nvme::code::invalid_opcode || code == nvme::code::invalid_field || code == nvme::code::invalid_namespace);
  }

  static queue_options options() {
    queue_options options;
    options.depth = 2;
    options.timeout_ns = admin_timeout_ns;
    return options;
  }

  std::string object_;
  buffer<u8> page_;
  queue_pair<result_sink> queue_;
};

std::string name_of(controller const& owner, u32 namespace_id) {
  return "namespace " + std::to_string(namespace_id) + " of " + owner.name();
}

}  // namespace

namespace_report examine_namespace(controller& owner, u32 namespace_id) {
  using what = nvme::identify_structure;
  identifier from(owner, name_of(owner, namespace_id));
  const u32 version = from.ask<nvme::identify_controller>(what::controller, 0).version;
  namespace_report found;
  if (version >= version_1_3) {
    found.command_set = from.ask_if_there<nvme::namespace_descriptors>(what::namespace_descriptors, namespace_id).csi();
  }
  found.problem = controllers::problem_of_command_set(found.command_set);
  if (!found.problem.empty()) return found;
  found.structure = from.ask<nvme::identify_namespace>(what::name_space, namespace_id);
  // One that is not there is all zeros (base specification, "Identify Namespace data structure").
  if (found.structure.blocks == 0) {
    throw_status("identify", name_of(owner, namespace_id), {status_domain::nvme, nvme::code::invalid_namespace});
  }
  found.problem = controllers::problem_of_format(found.structure, owner.limits().transfer_bytes);
  if (!found.problem.empty() || version < version_2_0 || !owner.limits().ready_without_media) return found;
  found.problem =
      controllers::problem_of_state(from.ask_if_there<nvme::independent_namespace>(what::independent_namespace, namespace_id));
  return found;
}

namespace_facts identify_namespace(controller& owner, u32 namespace_id) {
  const namespace_report found = examine_namespace(owner, namespace_id);
  if (!found.problem.empty()) throw_bad_input("open", name_of(owner, namespace_id), found.problem);
  const u32 shift = found.structure.formats[found.structure.format_index()].block_shift;
  return {found.structure.blocks, 1u << shift, (found.structure.attributes & 1u) != 0};
}

clear_limits identify_clear_limits(controller& owner, u32 block_bytes) {
  constexpr u32 most_zero_blocks = 65536, most_discard_blocks = 0xffffffffu;  // what the commands' fields hold
  identifier from(owner, owner.name());
  const u16 offered = from.ask<nvme::identify_controller>(nvme::identify_structure::controller, 0).optional_commands;
  const bool zeroes = (offered & nvme::optional_command::write_zeroes) != 0;
  const bool discards = (offered & nvme::optional_command::dataset_management) != 0;
  if (!zeroes && !discards) return {};
  // One of before 1.4 has none.
  const auto limits = from.ask_if_there<nvme::command_set_limits>(nvme::identify_structure::command_set_limits, 0);
  clear_limits most{zeroes ? most_zero_blocks : 0, discards ? most_discard_blocks : 0};
  if (zeroes && limits.write_zeroes != 0 && limits.write_zeroes < 20) {
    most.zero_blocks =
        std::max(1u, std::min(most.zero_blocks, (static_cast<u32>(nvme::page_bytes) << limits.write_zeroes) / block_bytes));
  }
  if (discards && limits.range_blocks != 0) most.discard_blocks = limits.range_blocks;
  if (discards && limits.all_blocks != 0)
    most.discard_blocks = static_cast<u32>(std::min<u64>(most.discard_blocks, limits.all_blocks));
  return most;
}

nvme::identify_controller identify_controller(controller& owner) {
  return identifier(owner, owner.name()).ask<nvme::identify_controller>(nvme::identify_structure::controller, 0);
}

}  // namespace penstock
