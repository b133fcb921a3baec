// A virtual function of a drive (SR-IOV) is driven as any other, once its physical function has given it queues.
#include "support/host_driver.hpp"
#include "support/qemu_machine.hpp"

#include "penstock/host/error.hpp"
#include "penstock/pcie/pcie_controller.hpp"

#include "src/pcie/admin_queue.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace penstock::test_support {
namespace {

constexpr u64 media_bytes = u64{4} << 20;

/// The drive as the kernel's driver has it: enabled, with an admin queue, and commands of the Virtualization Management.
class physical_function {
 public:
  enum action : u32 { leave_none = 1, assign = 8, online = 9 };
  enum resource : u32 { queues = 0, interrupts = 1 };

  explicit physical_function(pci_function& function)
      : registers_(function, one_second_ns), admin_(function, registers_, 5 * one_second_ns) {
    restart();
  }
  ~physical_function() { registers_.shut_down(one_second_ns); }

  void restart() {
    registers_.disable();
    admin_.start_over();
    registers_.enable(admin_.submission_ring(), admin_.completion_ring(), pcie::admin_queue::entries);
  }

  void manage(action what, u16 controller, resource of = queues, u32 number = 0) {
    auto command = nvme::admin_command(static_cast<nvme::admin_opcode>(0x1c));
    command.dword10 = static_cast<u32>(controller) << 16 | static_cast<u32>(of) << 8 | what;
    command.dword11 = number;
    EXPECT_EQ(admin_.run(command).outcome, status{}) << what << " " << of;
  }

 private:
  pcie::controller_registers registers_;
  pcie::admin_queue admin_;
};

TEST(virtual_function, is_driven_as_any_other_once_it_is_online) {
  if (const std::string reason = reason_without_qemu(); !reason.empty()) GTEST_SKIP() << reason;
  qemu_machine machine({{{{media_bytes, 512, "", {}, ",shared=on"}},
                         ",sriov_max_vfs=2,sriov_vq_flexible=6,sriov_vi_flexible=2,max_ioqpairs=8,msix_qsize=9,cmb_size_mb=0",
                         true}});
  memory_under_test() = &machine.memory();
  {
    physical_function owner(machine.function(0));
    // What is flexible belongs to the physical function until it is reset.
    owner.manage(physical_function::leave_none, 0, physical_function::interrupts);
    owner.manage(physical_function::leave_none, 0, physical_function::queues);
    owner.restart();
    qemu_function& function = machine.enable_virtual_functions(0, 2);
    EXPECT_EQ(function.name(), "qemu:00:04.1");
    try {
      pcie_controller drive(function);
      ADD_FAILURE() << "one that is offline was brought up";
    } catch (error const& e) {
      EXPECT_NE(std::string(e.what()).find("qemu:00:04.1"), std::string::npos) << e.what();
    }
    owner.manage(physical_function::assign, 1, physical_function::interrupts, 1);
    owner.manage(physical_function::assign, 1, physical_function::queues, 3);
    owner.manage(physical_function::online, 1);

    pcie_controller drive(function);
    EXPECT_EQ(drive.limits().queues, 2u) << "three pairs, of which one is the admin queue's";
    EXPECT_EQ(drive.facts().controller.controller_id, 1u);
    EXPECT_EQ(drive.facts().namespaces, (std::vector<u32>{1})) << "which it shares";
    host_queue queue(drive, 2, 16, 16);
    data_buffer buffer(4096);
    for (u64 k = 0; k < buffer.bytes(); ++k) buffer.data()[k] = static_cast<std::byte>(k * 7);
    ASSERT_EQ(queue.run(buffer.write(1, 24)), nvme::code::success);
    std::ifstream in(machine.file(0, 1), std::ios::binary);
    std::vector<char> stored(buffer.bytes());
    in.seekg(24 * 512);
    in.read(stored.data(), static_cast<std::streamsize>(stored.size()));
    EXPECT_EQ(std::memcmp(stored.data(), buffer.data(), stored.size()), 0);
    for (u64 k = 0; k < 100; ++k) ASSERT_EQ(queue.run(buffer.read(1, 8 * k)), nvme::code::success);
    EXPECT_EQ(queue.strays(), 0u);
    EXPECT_GT(drive.health().temperature[1], 0);
  }
  memory_under_test() = nullptr;
  for (std::string const& complaint : machine.complaints()) ADD_FAILURE() << "the controller notes: " << complaint;
}

}  // namespace
}  // namespace penstock::test_support
