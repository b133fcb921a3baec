#include "controller_registers.hpp"

#include "penstock/core/backoff.hpp"
#include "penstock/host/error.hpp"
#include "penstock/nvme/prp.hpp"

#include <algorithm>
#include <cerrno>

namespace penstock::pcie {
namespace {

namespace csts = nvme::controller_status;

}  // namespace

controller_registers::controller_registers(pci_function& function, u64 least_ready_ns)
    : function_(function), least_ready_ns_(least_ready_ns) {
  if (function.register_bytes() < nvme::at::doorbells) {
    refuse("open", ENODEV, "BAR 0 of " + std::to_string(function.register_bytes()) + " bytes is no NVMe controller's");
  }
  capabilities_.word = read64(nvme::at::capabilities);
  if (capabilities_.gone())
    refuse("open", ENODEV, "its registers read as all ones: see that it is there and its memory space on");
  version_ = function_.read(nvme::at::version);
  if (!capabilities_.nvm_commands()) refuse("open", ENOTSUP, "it does not know the NVM command set: Penstock drives no other");
  if (capabilities_.queue_entries() < 2) refuse("open", EPROTO, "it says that its queues have one entry: no controller's do");
  if (nvme::page_bytes >> capabilities_.least_page_shift() == 0) {
    refuse("open", ENOTSUP,
           "its memory pages have " + std::to_string(1u << capabilities_.least_page_shift()) +
               " bytes at least: Penstock's have " + std::to_string(nvme::page_bytes));
  }
}

u64 controller_registers::read64(u64 offset) {
  const u64 low = function_.read(offset);
  return static_cast<u64>(function_.read(offset + 4)) << 32 | low;
}

void controller_registers::write64(u64 offset, u64 value) {
  function_.write(offset, static_cast<u32>(value));
  function_.write(offset + 4, static_cast<u32>(value >> 32));
}

u64 controller_registers::timeout_ns() const { return std::max(least_ready_ns_, capabilities_.timeout_ns()); }

life controller_registers::look() { return look(function_.read(nvme::at::status)); }

life controller_registers::look(u32 status) {
  if (status == nvme::all_ones) return life::gone;
  if ((status & csts::fatal) != 0) return life::fatal;
  const bool enabled = (function_.read(nvme::at::configuration) & nvme::configuration::enable) != 0;
  const bool ready = (status & csts::ready) != 0;
  return enabled != ready ? life::starting : ready ? life::ready : life::disabled;
}

/// Ends early where what is wanted cannot come any more.
bool controller_registers::wait_until(life wanted, u64 timeout_ns) {
  backoff wait(timeout_ns);
  for (bool in_time = true; in_time; in_time = wait.pause()) {
    const life now = look();
    if (now == wanted) return true;
    if (now == life::gone || (now == life::fatal && wanted == life::ready)) return false;
  }
  return look() == wanted;
}

void controller_registers::disable() {
  life now = look();
  if (now == life::gone) return;
  const u32 configured = function_.read(nvme::at::configuration);
  if ((configured & nvme::configuration::enable) != 0) {
    // Who is still starting up must not be turned off (3.5.3); one that failed at it never gets ready.
    if (now == life::starting) wait_until(life::ready, timeout_ns());
    function_.write(nvme::at::configuration, configured & ~(nvme::configuration::enable | nvme::configuration::shutdown_mask));
  }
  backoff wait(timeout_ns());
  for (bool in_time = true; in_time; in_time = wait.pause()) {
    const u32 status = function_.read(nvme::at::status);
    if (status == nvme::all_ones || (status & csts::ready) == 0) return;
  }
  refuse("disable", ETIMEDOUT, "it is still ready after CAP.TO: reset the function");
}

void controller_registers::enable(u64 submission_ring, u64 completion_ring, u32 entries) {
  function_.write(nvme::at::admin_entries, (entries - 1) << 16 | (entries - 1));
  write64(nvme::at::admin_submission, submission_ring);
  write64(nvme::at::admin_completion, completion_ring);
  function_.write(nvme::at::configuration, nvme::configuration::ours | nvme::configuration::enable);
  if (wait_until(life::ready, timeout_ns())) return;
  switch (look()) {
    case life::gone: refuse("enable", ENODEV, "its registers read as all ones: it was unplugged");
    case life::fatal: refuse("enable", EIO, "it says that it has failed (CSTS.CFS): reset the function, or replace the drive");
    default: refuse("enable", ETIMEDOUT, "it is not ready after CAP.TO: reset the function");
  }
}

bool controller_registers::shut_down(u64 timeout_ns) noexcept {
  bool complete = false;
  try {
    const u32 configured = function_.read(nvme::at::configuration);
    if (configured == nvme::all_ones) return false;
    function_.write(nvme::at::configuration,
                    (configured & ~nvme::configuration::shutdown_mask) | nvme::configuration::normal_shutdown);
    backoff wait(timeout_ns);
    for (bool in_time = true; in_time && !complete; in_time = wait.pause()) {
      const u32 status = function_.read(nvme::at::status);
      if (status == nvme::all_ones || (status & csts::fatal) != 0) break;
      complete = (status & csts::shutdown_mask) == csts::shutdown_complete;
    }
    disable();
  } catch (error const&) {
    return false;
  }
  return complete;
}

void controller_registers::refuse(std::string const& operation, int code, std::string const& remedy) const {
  throw_os_error(operation, "NVMe controller " + name(), code, remedy);
}

}  // namespace penstock::pcie
