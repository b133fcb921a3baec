#include "admin_stand_in.hpp"

#include "../controller/pieces.hpp"
#include "../controller/prp_reader.hpp"

#include "penstock/core/backoff.hpp"

namespace penstock::pcie {
namespace {

/// What a status is on the wire. Failures of ours have no code there: to this queue's user the controller failed within.
u16 wire_status(status s) {
  if (s.ok()) return nvme::code::success;
  if (s.domain != status_domain::nvme) return nvme::code::internal_error;
  return static_cast<u16>(s.number() | (s.retry_is_vain() ? nvme::do_not_retry : 0));
}

}  // namespace

bool admin_stand_in::serve() {
  if (ring_.drain()) return true;
  if (!busy_) return !ring_.congested() && begin();
  if (!asked_.has_value()) {
    auto command = nvme::identify_command(nvme::identify_structure::controller, command_.namespace_id,
                                          reinterpret_cast<u64>(page_.data()));
    command.dword10 = command_.dword10;
    command.dword11 = command_.dword11;
    asked_ = admin_.start(command);
    if (!asked_.has_value() && admin_.failed()) answer({make_status(failure::controller_failed), 0});
    return asked_.has_value();
  }
  return take();
}

bool admin_stand_in::take() {
  const auto answered = admin_.take(*asked_);
  if (!answered.has_value()) return false;
  asked_.reset();
  answer(*answered);
  const status s = answered->outcome;
  if (s == make_status(failure::deadline) || s == make_status(failure::controller_failed)) {
    lives_.retire(std::move(page_));
    page_ = {function_.memory(), memory_kind::shared, nvme::page_bytes};
  }
  return true;
}

bool admin_stand_in::begin() {
  if (!ring_.fetch(command_)) return false;
  busy_ = true;
  if (command_.opcode != static_cast<u8>(nvme::admin_opcode::identify)) {
    answer({{status_domain::nvme, nvme::code::invalid_opcode}, 0});
  }
  return true;
}

void admin_stand_in::answer(admin_answer const& with) {
  busy_ = false;
  u16 code = wire_status(with.outcome);
  if (code == nvme::code::success) {
    controllers::pieces target;
    code = controllers::read_prps(command_, nvme::page_bytes, target);
    if (code == nvme::code::success) controllers::copy_to_pieces(target, page_.data(), nvme::page_bytes, nvme::page_bytes);
  }
  ring_.complete(command_.command_id, code, with.result);
}

bool admin_stand_in::quiesce(u64 deadline_ns) {
  backoff wait(deadline_ns > now_ns() ? deadline_ns - now_ns() : 0);
  while (asked_.has_value() && !take()) {
    if (!wait.pause()) return false;
  }
  return true;
}

}  // namespace penstock::pcie
