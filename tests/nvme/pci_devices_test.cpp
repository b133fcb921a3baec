// Drives as sysfs tells of them, and how they change hands: on a tree of files. What only a kernel can show is in tests/guest.
#include "penstock/host/error.hpp"
#include "penstock/nvme/registers.hpp"
#include "penstock/pcie/pci_device.hpp"

#include "src/pcie/mapped_registers.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr char const* address = "0000:01:00.0";

class pci_devices_test : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("penstock_sysfs_" + std::to_string(getpid()));
    add(address, "0x010802");
    put("proc/self/mounts", "proc /proc proc rw 0 0\n");
    put("bus/pci/drivers_probe", "");
    add_driver("nvme");
    bind("nvme");
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path pci() const { return root_ / "bus/pci"; }
  fs::path device() const { return pci() / "devices" / address; }
  std::string sysfs() const { return root_.string(); }
  std::string proc() const { return (root_ / "proc").string(); }

  void put(fs::path const& file, std::string const& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  std::string got(fs::path const& file) const {
    std::ifstream in(root_ / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void add(std::string const& name, std::string const& class_code) {
    const fs::path folder = fs::path("bus/pci/devices") / name;
    put(folder / "class", class_code + "\n");
    put(folder / "vendor", "0x144d\n");
    put(folder / "device", "0xa80a\n");
    put(folder / "driver_override", "(null)\n");
  }
  void add_driver(std::string const& name) { put(fs::path("bus/pci/drivers") / name / "unbind", ""); }
  void bind(std::string const& driver) {
    fs::remove(device() / "driver");
    fs::create_directory_symlink(pci() / "drivers" / driver, device() / "driver");
  }
  void set_iommu_group(std::string const& number, std::vector<std::string> const& members) {
    const fs::path group = root_ / "kernel/iommu_groups" / number;
    for (auto const& each : members) fs::create_directories(group / "devices" / each);
    fs::create_directory_symlink(group, device() / "iommu_group");
  }
  void add_block(std::string const& name) {
    fs::create_directories(device() / "nvme/nvme0" / name);
    fs::create_directories(root_ / "class/block" / name);
  }

  template <class Call>
  static std::string refusal(Call const& call) {
    try {
      call();
    } catch (error const& e) {
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
      return e.what();
    }
    return "";
  }

  fs::path root_;
};

// Of a drive with several controllers the kernel shows paths ("nvme0c1n2"); what people mount has another name.
TEST_F(pci_devices_test, a_drive_of_several_controllers_that_is_mounted_is_in_use) {
  fs::create_directories(device() / "nvme/nvme0/nvme0c1n2");
  fs::create_directories(root_ / "class/block/nvme0n2");
  put("proc/self/mounts", "/dev/nvme0n2 /home ext4 rw 0 0\n");
  const pci_device drive = find_nvme_device(address, sysfs(), proc());
  EXPECT_EQ(drive.block_devices, std::vector<std::string>{"nvme0n2"});
  EXPECT_EQ(drive.uses, std::vector<std::string>{"nvme0n2 is mounted on /home"});
  EXPECT_THROW(give_to_vfio(address, false, sysfs(), proc()), error);
}

TEST_F(pci_devices_test, are_told_as_they_are) {
  add("0000:00:1f.2", "0x010601");
  set_iommu_group("17", {address, "0000:01:00.1"});
  put(device() / "current_link_speed", "8.0 GT/s PCIe\n");
  put(device() / "current_link_width", "2\n");
  put(device() / "max_link_speed", "16.0 GT/s PCIe\n");
  put(device() / "max_link_width", "4\n");
  put(device() / "numa_node", "1\n");
  const auto all = list_nvme_devices(sysfs(), proc());
  ASSERT_EQ(all.size(), 1u) << "what is no NVMe controller is not told of";
  pci_device const& found = all.front();
  EXPECT_EQ(found.address, address);
  EXPECT_EQ(found.vendor, 0x144du);
  EXPECT_EQ(found.device, 0xa80au);
  EXPECT_EQ(found.driver, "nvme");
  EXPECT_EQ(found.iommu_group, "17");
  EXPECT_EQ(found.group_others, (std::vector<std::string>{"0000:01:00.1"}));
  EXPECT_EQ(found.link, "8.0 GT/s PCIe x2 of 16.0 GT/s PCIe x4");
  EXPECT_EQ(found.numa_node, 1);
  EXPECT_TRUE(found.uses.empty());
}

TEST_F(pci_devices_test, are_found_with_little_told) {
  const pci_device found = find_nvme_device(address, sysfs(), proc());
  EXPECT_EQ(found.link, "");
  EXPECT_EQ(found.numa_node, -1);
  EXPECT_EQ(found.iommu_group, "");
  EXPECT_TRUE(list_nvme_devices((root_ / "none").string(), proc()).empty());
}

TEST_F(pci_devices_test, in_use_say_what_for) {
  add_block("nvme0n1");
  add_block("nvme0n2");
  fs::create_directories(device() / "nvme/nvme0/power");
  fs::create_directories(root_ / "class/block/nvme0n1/nvme0n1p1/holders/dm-0");
  fs::create_directories(root_ / "class/block/nvme0n1/queue");
  put("proc/self/mounts", "/dev/nvme0n1p1 /home ext4 rw 0 0\n/dev/sda1 / ext4 rw 0 0\n/dev/nvme0n2 /data xfs rw 0 0\n");
  const pci_device found = find_nvme_device(address, sysfs(), proc());
  EXPECT_EQ(found.block_devices, (std::vector<std::string>{"nvme0n1", "nvme0n2"}));
  EXPECT_EQ(found.uses, (std::vector<std::string>{"nvme0n1 has partition nvme0n1p1", "nvme0n1p1 is mounted on /home",
                                                  "nvme0n1p1 is part of dm-0", "nvme0n2 is mounted on /data"}));
  set_iommu_group("3", {address});
  add_driver("vfio-pci");
  EXPECT_NE(refusal([&] { give_to_vfio(address, false, sysfs(), proc()); }).find("has partition"), std::string::npos);
  EXPECT_NE(refusal([&] { give_to_vfio(address, true, sysfs(), proc()); }).find("did not take it"), std::string::npos)
      << "forced, but this kernel does nothing";
  EXPECT_EQ(got(device() / "driver_override"), "vfio-pci\n");
  EXPECT_EQ(got(pci() / "drivers/nvme/unbind"), address);
  EXPECT_EQ(got(pci() / "drivers_probe"), address);
}

TEST_F(pci_devices_test, that_cannot_be_are_refused) {
  add("0000:00:1f.2", "0x010601");
  const auto find = [&](std::string const& name) { return refusal([&] { find_nvme_device(name, sysfs(), proc()); }); };
  EXPECT_NE(find("0000:09:00.0").find("there is none"), std::string::npos);
  EXPECT_NE(find("").find("there is none"), std::string::npos);
  EXPECT_NE(find("../devices/" + std::string(address)).find("there is none"), std::string::npos);
  EXPECT_NE(find("0000:00:1f.2").find("no NVMe controller"), std::string::npos);
  const auto give = [&] { return refusal([&] { give_to_vfio(address, false, sysfs(), proc()); }); };
  EXPECT_NE(give().find("no IOMMU"), std::string::npos);
  set_iommu_group("3", {address});
  EXPECT_NE(give().find("modprobe vfio-pci"), std::string::npos);
  add_driver("vfio-pci");
  fs::remove(pci() / "drivers/nvme/unbind");
  fs::create_directory(pci() / "drivers/nvme/unbind");
  EXPECT_NE(give().find("needs root"), std::string::npos) << "what cannot be written";
  EXPECT_NE(refusal([&] { open_pci_function("ffff:ff:1f.7"); }).find("there is none"), std::string::npos);
}

// The kernel's half: who is unbound loses the device, and who is asked for gets it.
TEST_F(pci_devices_test, change_hands_and_stay_where_they_should_be) {
  set_iommu_group("3", {address});
  add_driver("vfio-pci");
  for (fs::path const& file : {pci() / "drivers/nvme/unbind", pci() / "drivers_probe"}) {
    fs::remove(file);
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  }
  std::thread kernel([&] {
    EXPECT_EQ(got(pci() / "drivers/nvme/unbind"), address);
    bind("vfio-pci");
    EXPECT_EQ(got(pci() / "drivers_probe"), address);
  });
  EXPECT_EQ(refusal([&] { give_to_vfio(address, false, sysfs(), proc()); }), "");
  kernel.join();
  EXPECT_EQ(find_nvme_device(address, sysfs(), proc()).driver, "vfio-pci");
  give_to_vfio(address, false, sysfs(), proc());  // has it: nothing is written, or this would wait for a reader
  fs::remove(pci() / "drivers_probe");
  put(pci() / "drivers_probe", "");
  give_to_kernel(address, sysfs());
  EXPECT_EQ(got(device() / "driver_override"), "\n");
  EXPECT_EQ(got(pci() / "drivers/vfio-pci/unbind"), address);
  bind("nvme");
  put(device() / "driver_override", "untouched");
  give_to_kernel(address, sysfs());
  EXPECT_EQ(got(device() / "driver_override"), "untouched") << "the kernel has it";
}

TEST(mapped_registers, read_as_all_ones_when_their_memory_is_gone) {
#if defined(PENSTOCK_TSAN)
  GTEST_SKIP() << "an atomic load that faults leaves a lock of ThreadSanitizer's own locked";
#endif
  const std::string path = (fs::temp_directory_path() / ("penstock_bar_" + std::to_string(getpid()))).string();
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  ASSERT_GE(file, 0);
  unlink(path.c_str());
  ASSERT_EQ(ftruncate(file, 8192), 0);
  {
    pcie::mapped_registers registers(file, 0, 8192, "a file");
    EXPECT_EQ(registers.bytes(), 8192u);
    registers.write(0x14, 0x460001);
    EXPECT_EQ(registers.read(0x14), 0x460001u);
    u32 stored = 0;
    ASSERT_EQ(pread(file, &stored, sizeof stored, 0x14), 4);
    EXPECT_EQ(stored, 0x460001u);
    ASSERT_EQ(ftruncate(file, 0), 0);
    EXPECT_EQ(registers.read(0x14), nvme::all_ones);
    registers.write(0x14, 1);  // is lost
    EXPECT_EQ(registers.read(0x14), nvme::all_ones);
  }
  close(file);
  EXPECT_THROW(pcie::mapped_registers(-1, 0, 4096, "nothing"), error);
}

}  // namespace
}  // namespace penstock
