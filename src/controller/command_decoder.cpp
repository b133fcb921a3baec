#include "command_decoder.hpp"

#include "prp_reader.hpp"

#include "penstock/host/error.hpp"
#include "penstock/nvme/command.hpp"

#include <algorithm>
#include <cstring>

namespace penstock::controllers {
namespace {

using nvme::code::invalid_field;

decoded_command refuse(u16 status) {
  decoded_command result;
  result.status = status;
  return result;
}

bool find_action(nvme::submission_entry const& command, u16 queue, action& what) {
  if (queue == 0) {
    what = action::identify;
    return command.opcode == static_cast<u8>(nvme::admin_opcode::identify);
  }
  switch (static_cast<nvme::opcode>(command.opcode)) {
    case nvme::opcode::flush: what = action::flush; return true;
    case nvme::opcode::write: what = action::write; return true;
    case nvme::opcode::read: what = action::read; return true;
    default: return false;
  }
}

void put_text(char* field, u64 bytes, std::string const& text) {
  std::memset(field, ' ', bytes);  // NVMe pads its strings with spaces
  std::memcpy(field, text.data(), std::min<u64>(bytes, text.size()));
}

void describe_controller(nvme::identify_controller& page, u64 namespaces, controller_limits const& limits,
                         std::string const& model_name) {
  put_text(page.serial_number, sizeof page.serial_number, "0");
  put_text(page.model_number, sizeof page.model_number, model_name);
  put_text(page.firmware_revision, sizeof page.firmware_revision, "1");
  page.max_transfer = static_cast<u8>(ceil_log2(std::max<u64>(1, limits.transfer_bytes / nvme::page_bytes)));
  page.submission_entry_size = 0x66;
  page.completion_entry_size = 0x44;
  page.max_commands = static_cast<u16>(std::min<u32>(limits.queue_entries, 0xffff));
  page.namespaces = static_cast<u32>(namespaces);
  page.volatile_write_cache = 1;
}

void describe_namespace(nvme::identify_namespace& page, namespace_shape const& shape) {
  page.blocks = page.capacity = page.utilization = shape.blocks();
  page.formats[0].block_shift = static_cast<u8>(ceil_log2(shape.block_bytes));
  page.attributes = shape.read_only ? 1 : 0;
}

u16 fill_identify_page(nvme::submission_entry const& command, std::vector<namespace_shape> const& namespaces,
                       controller_limits const& limits, std::string const& model_name, void* page) {
  const u32 id = command.namespace_id;
  switch (static_cast<nvme::identify_structure>(command.dword10 & 0xffu)) {
    case nvme::identify_structure::controller:
      describe_controller(*new (page) nvme::identify_controller, namespaces.size(), limits, model_name);
      return nvme::code::success;
    case nvme::identify_structure::name_space:
      if (id == 0 || id > namespaces.size()) return nvme::code::invalid_namespace;
      describe_namespace(*new (page) nvme::identify_namespace, namespaces[id - 1]);
      return nvme::code::success;
    case nvme::identify_structure::active_namespaces: {
      if (id >= 0xfffffffeu) return nvme::code::invalid_namespace;
      // All identifiers greater than the one in the command, at most 1024 of them.
      auto* ids = static_cast<u32*>(page);
      for (u64 next = u64{id} + 1; next <= namespaces.size() && next <= u64{id} + 1024; ++next) *ids++ = static_cast<u32>(next);
      return nvme::code::success;
    }
    default: return invalid_field;
  }
}

}  // namespace

decoded_command decode(nvme::submission_entry const& command, u16 queue, std::vector<namespace_shape> const& namespaces,
                       u64 transfer_bytes) {
  decoded_command result;
  if (!find_action(command, queue, result.what)) return refuse(nvme::code::invalid_opcode);
  if (command.flags != 0) return refuse(invalid_field);  // no fused commands, no SGLs
  if (result.what == action::identify) return result;
  if (command.namespace_id == 0 || command.namespace_id > namespaces.size()) return refuse(nvme::code::invalid_namespace);
  result.index = command.namespace_id - 1;
  if (result.what == action::flush) return result;

  namespace_shape const& shape = namespaces[result.index];
  const u64 start = value(nvme::starting_lba(command));
  const u64 blocks = nvme::block_count(command);
  if (start >= shape.blocks() || blocks > shape.blocks() - start) return refuse(nvme::code::lba_out_of_range);
  if (result.what == action::write && shape.read_only) return refuse(nvme::code::write_protected);
  result.offset = start * shape.block_bytes;
  result.bytes = blocks * shape.block_bytes;
  return result.bytes > transfer_bytes ? refuse(invalid_field) : result;
}

void move_memory(decoded_command const& request, namespace_shape const& shape, std::byte* memory, pieces const& data) {
  const u64 valid = std::min(request.bytes, shape.bytes - request.offset);
  if (request.what == action::read) return copy_to_pieces(data, memory, valid, request.bytes);
  const u64 whole = valid - valid % 8;
  copy_from_pieces(memory, data, whole);
  if (whole == valid) return;
  pieces last;
  cut_pieces(data, whole, 8, last);
  std::byte word[8];
  copy_from_pieces(word, last, sizeof word);
  std::copy_n(word, valid - whole, memory + whole);
}

u16 answer_identify(nvme::submission_entry const& command, std::vector<namespace_shape> const& namespaces,
                    controller_limits const& limits, std::string const& model_name) {
  alignas(4096) std::byte page[nvme::page_bytes] = {};
  pieces target;
  if (const u16 status = read_prps(command, sizeof page, target); status != nvme::code::success) return status;
  const u16 status = fill_identify_page(command, namespaces, limits, model_name, page);
  if (status == nvme::code::success) copy_to_pieces(target, page, sizeof page, sizeof page);
  return status;
}

void check_shape(std::string const& object, u64 bytes, u32 block_bytes, u64 transfer_bytes) {
  if (!is_power_of_two(block_bytes) || block_bytes < 512 || block_bytes > transfer_bytes) {
    throw_bad_input(
        "open namespace", object,
        "block size " + std::to_string(block_bytes) + ": ask for a power of two from 512 to " + std::to_string(transfer_bytes));
  }
  if (bytes == 0) throw_bad_input("open namespace", object, "it is empty: a namespace needs at least one byte");
}

void check_rings(queue_rings const& rings, controller_limits const& limits) {
  const std::string object = "queue " + std::to_string(rings.id);
  if (rings.id > limits.queues) {
    throw_bad_input("attach", object, "identifiers go up to " + std::to_string(limits.queues) + ": use fewer queues");
  }
  for (const u32 entries : {rings.sq_entries, rings.cq_entries}) {
    if (entries < 2 || entries > limits.queue_entries) {
      throw_bad_input(
          "attach", object,
          "a ring of " + std::to_string(entries) + " entries: ask for 2 to " + std::to_string(limits.queue_entries));
    }
  }
  if (rings.sq == nullptr || rings.cq == nullptr || rings.sq_doorbell == nullptr || rings.cq_doorbell == nullptr) {
    throw_bad_input("attach", object, "a ring or doorbell is missing: allocate all four before");
  }
}

}  // namespace penstock::controllers
