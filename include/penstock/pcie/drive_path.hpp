// How the threads of an executor and a drive come together: which memory both reach, and what notifies the drive of new
// commands.
//
//   auto function = open_pci_function("0000:01:00.0");
//   drive_path path(*function, "cuda");
//   pcie_controller drive(*function, path.options());
//   line_cache cache(path.on(), {{"data", bytes, {.members = {{&drive, 1}}}}}, {});
//
// Tiers, best first. The last always works.
//   peer_memory  rings and frames in the GPU's memory, which is mapped for the drive (dma-buf); doorbells as below.
//   registers    rings and bounce buffers in host memory that both reach; kernels store to the drive's doorbells themselves.
//   forwarded    the same memory; kernels store to words of it, and a thread of the controller's forwards them.
//   polled       threads of a CPU: the waiter for a command forwards what there is.
#pragma once

#include "penstock/executor/executor.hpp"
#include "penstock/pcie/pci_function.hpp"
#include "penstock/pcie/pcie_controller.hpp"

#include <memory>
#include <string>

namespace penstock {

enum class drive_tier { peer_memory, registers, forwarded, polled };

char const* name_of(drive_tier tier);

class drive_path {
 public:
  /// Opens an executor over the function's memory, by name as open_executor_over has it, and maps its doorbells for kernels
  /// where that can be. `forward`: they are forwarded, whatever could be. REQUIRES: the function outlives it; it outlives the
  /// controller and whatever is made with the executor.
  drive_path(pci_function& function, std::string const& executor_name, bool forward = false, u32 threads = 0,
             bool has_kernels = PENSTOCK_COMPILED_BY_NVCC != 0);
  drive_path(drive_path const&) = delete;
  drive_path& operator=(drive_path const&) = delete;
  ~drive_path();

  executor& on() { return *on_; }
  drive_tier tier() const { return tier_; }
  /// Why it is not a better one; a sentence's part. Empty for the best.
  std::string const& reason() const { return reason_; }

  /// What the controller must be opened with; the rest as in `others`.
  pcie_options options(pcie_options others = {}) const;

 private:
  void map_doorbells(pci_function& function);

  std::unique_ptr<executor> on_;
  drive_tier tier_ = drive_tier::polled;
  std::string reason_;
  void* mapped_ = nullptr;          ///< from the doorbells on, as this process has it
  std::byte* registers_ = nullptr;  ///< BAR 0 as kernels would see it
};

}  // namespace penstock
