#include "penstock/host/error.hpp"

#include "penstock/nvme/wire.hpp"

#include <cstdio>
#include <cstring>

namespace penstock {
namespace {

char const* nvme_name(u16 code) {
  switch (code) {
    case nvme::code::invalid_opcode: return "invalid command opcode";
    case nvme::code::invalid_field: return "invalid field in command";
    case nvme::code::data_transfer_error: return "data transfer error";
    case nvme::code::power_loss: return "aborted: power loss";
    case nvme::code::internal_error: return "internal error";
    case nvme::code::abort_requested: return "aborted as asked";
    case nvme::code::queue_deleted: return "aborted: its queue was deleted";
    case nvme::code::invalid_namespace: return "invalid namespace or format";
    case nvme::code::invalid_prp_offset: return "invalid PRP offset";
    case nvme::code::write_protected: return "namespace is write protected";
    case nvme::code::lba_out_of_range: return "LBA out of range";
    case nvme::code::capacity_exceeded: return "capacity exceeded";
    case nvme::code::namespace_not_ready: return "namespace not ready";
    case nvme::code::completion_queue_invalid: return "no such completion queue";
    case nvme::code::invalid_queue_identifier: return "invalid queue identifier";
    case nvme::code::invalid_queue_size: return "invalid queue size";
    case nvme::code::abort_limit_exceeded: return "too many aborts at once";
    case nvme::code::event_limit_exceeded: return "too many requests for events at once";
    case nvme::code::invalid_log_page: return "no such log page";
    case nvme::code::invalid_queue_deletion: return "its submission queues must be deleted first";
    case nvme::code::write_fault: return "write fault";
    case nvme::code::unrecovered_read_error: return "unrecovered read error";
    default: return nullptr;
  }
}

std::string describe_failure(u16 code) {
  switch (static_cast<failure>(code)) {
    case failure::deadline: return "no answer before the deadline";
    case failure::no_frame: return "no free frame before the deadline: all that could take the line are pinned or in flight";
    case failure::controller_failed: return "the controller has failed and takes no more commands";
    case failure::resetting: return "the queue is being reset";
    case failure::pin_limit: return "the line has as many pins as can be counted";
    case failure::out_of_range: return "the line lies outside of the dataset";
  }
  return "unknown failure " + std::to_string(code);
}

}  // namespace

std::string describe(status s) {
  switch (s.domain) {
    case status_domain::ok: return "success";
    case status_domain::os: return std::strerror(s.code);
    case status_domain::penstock: return describe_failure(s.code);
    case status_domain::nvme: break;
  }
  char number[32];
  std::snprintf(number, sizeof number, "NVMe status 0x%03x", s.number());
  char const* name = nvme_name(s.number());
  return name == nullptr ? std::string(number) : std::string(number) + " (" + name + ")";
}

void throw_bad_input(std::string const& operation, std::string const& object, std::string const& problem) {
  throw error(error_kind::bad_input, operation + " " + object + ": " + problem);
}

void throw_os_error(std::string const& operation, std::string const& object, int code, std::string const& remedy) {
  throw error(error_kind::world, operation + " " + object + ": " + std::strerror(code) + ": " + remedy, code);
}

void throw_status(std::string const& operation, std::string const& object, status s) {
  throw error(error_kind::world, operation + " " + object + ": " + describe(s),
              s.domain == status_domain::os ? s.code : 5 /* EIO */);
}

}  // namespace penstock
