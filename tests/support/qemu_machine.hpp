// QEMU's NVMe controller, without a guest: its CPU never runs, its memory is a file that this process maps, and its registers
// are reached through the qtest socket. A controller that we did not write, driven by the driver under test as it is,
// sanitizers and all.
#pragma once

#include "penstock/pcie/pci_function.hpp"

#include "src/pcie/dma_arena.hpp"
#include "support/qemu_program.hpp"

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <sys/types.h>

namespace penstock::test_support {

struct qemu_namespace {
  u64 bytes = u64{4} << 20;
  u32 block_bytes = 512;
  std::string backend{};           ///< more of -drive, as ",throttling.iops-total=20"
  std::vector<u64> bad_sectors{};  ///< of 512 bytes: reading them is a media error
  std::string options{};           ///< more of -device nvme-ns, as ",detached=on"
};

struct qemu_drive {
  std::vector<qemu_namespace> namespaces{{}};
  std::string options{};   ///< more of -device nvme, as ",mdts=1"
  bool subsystem = false;  ///< it is a controller of an NVM subsystem, whose namespaces come and go
};

/// One NVMe function of the machine.
class qemu_function final : public pci_function {
 public:
  qemu_function(class qemu_machine& machine, u32 slot);
  /// A virtual one, whose registers its physical function has placed.
  qemu_function(class qemu_machine& machine, u32 slot, u32 function, u64 bar, u64 bar_bytes);

  std::string name() const override { return "qemu:00:0" + std::to_string(devfn_ >> 3) + "." + std::to_string(devfn_ & 7); }
  u64 register_bytes() const override { return bar_bytes_; }
  u32 read(u64 offset) override;
  void write(u64 offset, u32 value) override;
  memory_resource& memory() override;
  bool reaches(void const* address, u64 bytes) const override;
  void reset() override;
  bool write_memory(u32 bar, u64 offset, void const* from, u64 bytes) override;

  /// Turns the decoding of BAR 0 off, as when the function is gone. Reads are all ones then, as on a bus (QEMU itself, asked
  /// for what nobody decodes, says 0).
  void set_memory_space(bool on);
  u32 config(u32 offset);
  void set_config(u32 offset, u32 value);

 private:
  void place();
  u64 memory_bar() const;

  class qemu_machine& machine_;
  u32 devfn_;
  u64 bar_ = 0;
  u64 bar_bytes_ = 0;
  std::atomic<bool> decodes_{true};
};

/// Where the machine's memory lies for the device, and so for this process. A GPU may have something of its own at one of them.
enum class qemu_memory {
  low,         ///< from 16 MiB on
  above_4gib,  ///< from 4 GiB on
};

/// Started in the constructor, which throws std::runtime_error with QEMU's words; ended in the destructor. Thread-safe.
class qemu_machine {
 public:
  explicit qemu_machine(std::vector<qemu_drive> const& drives, qemu_memory where = qemu_memory::low);
  qemu_machine(qemu_machine const&) = delete;
  qemu_machine& operator=(qemu_machine const&) = delete;
  ~qemu_machine();

  /// Turns the virtual functions of a drive on (",sriov_max_vfs=2" and what belongs to it), as the kernel does, and gives the
  /// first of them. What it may use is its physical function's business.
  qemu_function& enable_virtual_functions(u64 drive, u32 count);

  qemu_function& function(u64 drive) { return *functions_.at(drive); }

  /// The file of a namespace, to look at behind the controller's back.
  std::string file(u64 drive, u64 name_space) const;

  /// What the driver did that the specification leaves undefined, as the controller noted it: one line each.
  std::vector<std::string> complaints() const;

  /// Submission queues that drivers have made so far, the admin queue's aside.
  u64 queues_made() const;

  /// A command of the monitor, and its answer.
  std::string monitor(std::string const& command);

  u64 qtest(std::string const& command);

  /// After a process that shared the sockets was killed: what it was to be answered is read and forgotten.
  void resynchronize();
  pcie::dma_arena& memory() { return *arena_; }

 private:
  void start(std::vector<qemu_drive> const& drives);
  void end() noexcept;
  void map_memory();
  void connect();
  int open_socket(std::string const& name);
  std::string words_of_qemu() const;
  std::vector<std::string> noted(std::string const& event) const;

  qemu_memory where_;
  std::filesystem::path folder_;
  std::string memory_file_;
  pid_t process_ = -1;
  int socket_ = -1;
  int monitor_ = -1;
  std::mutex mutex_;  ///< of both sockets
  std::string pending_;
  void* mapped_ = nullptr;
  std::unique_ptr<pcie::dma_arena> arena_;
  std::vector<std::unique_ptr<qemu_function>> functions_, virtual_functions_;
};

}  // namespace penstock::test_support
