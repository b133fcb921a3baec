#include "penstock/pcie/drive_path.hpp"

#include "penstock/nvme/registers.hpp"

namespace penstock {

char const* name_of(drive_tier tier) {
  switch (tier) {
    case drive_tier::peer_memory: return "data straight to the GPU, doorbells rung by kernels";
    case drive_tier::registers: return "doorbells rung by kernels";
    case drive_tier::forwarded: return "doorbells forwarded by a host thread";
    case drive_tier::polled: break;
  }
  return "doorbells forwarded by who waits";
}

drive_path::drive_path(pci_function& function, std::string const& executor_name, bool forward, u32 threads, bool has_kernels)
    : on_(open_executor_over(function.memory(), executor_name, threads, has_kernels)) {
  tier_ = on_->kind() == executor_kind::cuda ? drive_tier::forwarded : drive_tier::polled;
  if (forward) {
    reason_ = "it was asked for";
  } else {
    map_doorbells(function);
  }
}

/// The page of the controller's other registers stays out of kernels' reach.
void drive_path::map_doorbells(pci_function& function) {
  const std::span<std::byte> all = function.register_window();
  if (all.size() <= nvme::at::doorbells) {
    reason_ = "the drive's registers are no memory of this process";
    return;
  }
  std::byte* const first = all.data() + nvme::at::doorbells;
  const auto mapped = on_->memory().map_registers(first, all.size() - nvme::at::doorbells);
  if (mapped.address == nullptr) {
    reason_ = mapped.reason;
    return;
  }
  mapped_ = first;
  registers_ = mapped.address - nvme::at::doorbells;
  tier_ = drive_tier::registers;
  reason_ = on_->memory().open_to(function);
  if (reason_.empty()) tier_ = drive_tier::peer_memory;
}

drive_path::~drive_path() {
  if (mapped_ != nullptr) on_->memory().unmap_registers(mapped_);
}

pcie_options drive_path::options(pcie_options others) const {
  others.registers_for_kernels = registers_;
  others.reaches_local = tier_ == drive_tier::peer_memory;
  if (tier_ == drive_tier::forwarded && others.threads == 0) others.threads = 1;
  return others;
}

}  // namespace penstock
