// What only a kernel can show of the driver: run by a Linux guest with QEMU's drives (scripts/nvme_guest), it takes them from
// the kernel, drives them through the IOMMU (or, where there is none, through huge pages), and gives them back. One line per
// check; ends with 0 if all of them hold.
#include "penstock/group/lone_thread.hpp"
#include "penstock/host/error.hpp"
#include "penstock/pcie/pci_device.hpp"
#include "penstock/pcie/pcie_controller.hpp"
#include "penstock/runtime/block_device.hpp"
#include "penstock/runtime/identify.hpp"
#include "penstock/runtime/line_cache.hpp"
#include "src/host/owned_file.hpp"
#include "src/pcie/dma_arena.hpp"

#include <linux/memfd.h>
#include <linux/udmabuf.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <grp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace penstock {
namespace {

constexpr u64 mebibyte = u64{1} << 20;
constexpr u64 data_bytes = 4 * mebibyte, words = data_bytes / sizeof(u64);
constexpr u32 some_user = 1000;
int failed = 0;

void check(bool holds, std::string const& what) {
  std::printf("%s %s\n", holds ? "ok  " : "FAIL", what.c_str());
  std::fflush(stdout);
  failed += !holds;
}

std::string refusal(std::function<void()> const& call) {
  try {
    call();
  } catch (error const& e) {
    return e.what();
  }
  return "";
}

bool says(std::string const& sentence, std::string const& part) {
  if (sentence.find(part) != std::string::npos) return true;
  std::printf("     it says: %s\n", sentence.c_str());
  return false;
}

/// Writes through a cache, and reads everything back through another one.
bool data_survives(pcie_controller& drive, memory_resource& memory, u32 name_space, u64 seed) {
  const auto on = open_cpu_executor(memory, 1);
  volume_spec volume;
  volume.members = {{&drive, name_space}};
  const std::vector<dataset_spec> data = {{"data", data_bytes, volume, true}};
  const cache_options options{.bytes = mebibyte, .line_bytes = 16384, .queues = 1, .queue_depth = 64};
  {
    line_cache cache(*on, data, options);
    const auto view = cache.writable<u64>(0, 0, words);
    for (u64 k = 0; k < words; ++k) view.write(lone_thread(), true, k, seed + k);
    cache.flush();
  }
  line_cache cache(*on, data, options);
  const auto view = cache.array<u64>(0, 0, words);
  u64 wrong = 0;
  for (u64 k = 0; k < words; ++k) wrong += view[k] != seed + k;
  cache.check_faults();
  return wrong == 0;
}

void try_drive(pci_function& function, u64 seed) {
  pcie_controller drive(function, {.queues = 4});
  check(!drive.facts().namespaces.empty(), function.name() + " has namespaces");
  for (const u32 name_space : drive.facts().namespaces) {
    check(data_survives(drive, function.memory(), name_space, seed + name_space),
          function.name() + ": what is written to namespace " + std::to_string(name_space) + " is read back");
  }
  drive.reset();
  check(data_survives(drive, function.memory(), drive.facts().namespaces.front(), seed + 7),
        function.name() + " serves after a reset");
  function.reset();
  check(data_survives(drive, function.memory(), drive.facts().namespaces.front(), seed),
        function.name() + " serves after its function's reset");
}

/// Other ways to tell of commands: doorbells in memory and rings in the drive's; and threads that store to its registers
/// themselves, as kernels do that reach them.
void try_other_ways(pci_function& function, u64 seed) {
  {
    pcie_controller drive(function, {.queues = 4, .submission_in_controller = true, .shadow_doorbells = true});
    check(drive.facts().shadow_doorbells && drive.facts().controller_memory == mebibyte,
          function.name() + " reads doorbells in memory, and has memory for rings");
    check(
        data_survives(drive, function.memory(), drive.facts().namespaces.front(), seed) && drive.counts().spared_doorbells != 0,
        function.name() + " is served over both");
  }
  pcie_controller drive(function, {.queues = 4, .registers_for_kernels = function.register_window().data()});
  check(data_survives(drive, function.memory(), drive.facts().namespaces.front(), seed + 1) && drive.counts().doorbells == 0,
        function.name() + " is told by those who submit");
}

/// One read of the drive's first page to `address`.
status read_page(pcie_controller& drive, memory_resource& memory, void* address) {
  const auto on = open_cpu_executor(memory, 1);
  block_device device(*on, drive, 1, {.queues = 1, .queue_depth = 16, .timeout_ns = 5 * one_second_ns, .transfer_bytes = 4096});
  buffer<block_request> request(on->memory(), memory_kind::local, 1);
  return read_blocks(lone_thread(), device.view(), true, *request.data(), lba{0}, 4096 >> device.view().block_shift,
                     reinterpret_cast<u64>(address));
}

bool all_are(void const* page, u8 value) {
  u32 others = 0;
  for (u64 k = 0; k < 4096; ++k) others += static_cast<u8 const*>(page)[k] != value;
  return others == 0;
}

/// A buffer that nobody mapped for the device: the IOMMU lets nothing through, and the kernel notes it (which the script looks
/// for). QEMU's controller does not notice, and answers with success.
void try_to_reach_more(pci_function& function) {
  pcie_controller drive(function, {.queues = 1});
  void* secret = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(secret, 0x5a, 4096);
  const status outcome = read_page(drive, function.memory(), secret);
  check(all_are(secret, 0x5a),
        "memory that was not mapped is out of the device's reach; the controller says " + describe(outcome));
}

/// Memory that is the process's as little as a GPU's is: pages of a file, told of by a dma-buf.
class foreign_memory {
 public:
  /// `address`: where it is to lie here; null: where the system likes.
  explicit foreign_memory(u64 bytes, void* address = nullptr)
      : bytes_(bytes), file_(memfd_create("foreign", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) throw std::runtime_error("no memory of a file");
    fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK);
    const int place = address == nullptr ? 0 : MAP_FIXED_NOREPLACE;
    address_ = mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE | place, file_.get(), 0);
    if (address_ == MAP_FAILED) throw std::runtime_error("a file cannot be mapped");
    const owned_file maker(open("/dev/udmabuf", O_RDWR | O_CLOEXEC));
    udmabuf_create wanted = {};
    wanted.memfd = static_cast<u32>(file_.get());
    wanted.flags = UDMABUF_FLAGS_CLOEXEC;
    wanted.size = bytes;
    buffer_ = owned_file(ioctl(maker.get(), UDMABUF_CREATE, &wanted));
    if (!buffer_.valid()) throw std::runtime_error("no dma-buf of a file's memory");
  }
  foreign_memory(foreign_memory const&) = delete;
  foreign_memory& operator=(foreign_memory const&) = delete;
  ~foreign_memory() { munmap(address_, bytes_); }

  void* address() const { return address_; }
  u64 bytes() const { return bytes_; }
  int dma_buf() const { return buffer_.get(); }
  int file() const { return file_.get(); }

 private:
  u64 bytes_;
  owned_file file_;
  void* address_ = nullptr;
  owned_file buffer_;
};

/// What the way to a GPU's memory takes of the kernel: the module maps what a dma-buf stands for, and takes it away again. The
/// IOMMU here has 39 bits.
void try_peer_memory(pci_function& function, u64 seed) {
  constexpr u64 bytes = 16 * mebibyte;
  const auto refused = [&](foreign_memory const& from, int dma_buf) {
    return refusal([&] { function.map_peer(from.address(), from.bytes(), dma_buf); });
  };
  const foreign_memory beyond(mebibyte);
  check(says(refused(beyond, beyond.dma_buf()), "the IOMMU does not reach"), "addresses beyond the IOMMU's are refused");
  const foreign_memory lent(bytes, reinterpret_cast<void*>(u64{1} << 37));
  check(says(refused(lent, lent.file()), "does not let the device in"), "a file that is no dma-buf is refused");
  check(!function.reaches(lent.address(), bytes), "what was refused is not reached");
  function.map_peer(lent.address(), bytes, lent.dma_buf());
  check(function.reaches(lent.address(), bytes), "memory of a dma-buf is mapped for " + function.name());
  check(says(refused(lent, lent.dma_buf()), "lies at that address"), "twice is refused");
  void* const own = function.memory().allocate(memory_kind::shared, 4096);
  check(says(refusal([&] { function.map_peer(own, 4096, lent.dma_buf()); }), "lies at that address"),
        "so is where memory of the process lies");
  function.memory().deallocate(memory_kind::shared, own, 4096);
  {
    pcie_controller drive(function,
                          {.queues = 4, .registers_for_kernels = function.register_window().data(), .reaches_local = true});
    check(drive.limits().reaches_local, "the drive says that it reaches it");
    pcie::dma_arena arena({{static_cast<std::byte*>(lent.address()), bytes}}, "lent memory");
    for (const u32 name_space : drive.facts().namespaces) {
      check(data_survives(drive, arena, name_space, seed + name_space),
            "rings and frames lie there, and what is written to namespace " + std::to_string(name_space) + " is read back");
    }
    std::memset(lent.address(), 0x5a, 4096);
    const status reached = read_page(drive, function.memory(), lent.address());
    check(reached.ok() && !all_are(lent.address(), 0x5a), "the drive writes there");
    function.unmap_peer(lent.address());
    std::memset(lent.address(), 0x5a, 4096);
    read_page(drive, function.memory(), lent.address());
    check(all_are(lent.address(), 0x5a), "and no more once it is unmapped");
  }
  check(!function.reaches(lent.address(), 4096), "nor is it said to");
  function.map_peer(lent.address(), bytes, lent.dma_buf());  // and left: the end of the process takes it away
}

std::vector<u64> file_words(std::string const& path) {
  std::vector<u64> all(words);
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(all.data()), data_bytes);
  return all;
}

constexpr char const* nowhere = "/dev/null";

/// The kernel's file for a namespace, once it has one. It looks for several at once: their names are in no order.
std::string block_device_of(std::string const& address, u32 namespace_id) {
  for (u32 k = 0; k < 2000; ++k, usleep(10'000)) {
    for (std::string const& name : find_nvme_device(address).block_devices) {
      u32 id = 0;
      std::ifstream("/sys/class/block/" + name + "/nsid") >> id;
      const std::string file = "/dev/" + name;
      if (id == namespace_id && access(file.c_str(), R_OK) == 0) return file;
    }
  }
  return nowhere;
}

void check_kernel_reads(std::string const& address) {
  const std::vector<u64> seen = file_words(block_device_of(address, 1));
  u64 wrong = 0;
  for (u64 k = 0; k < words; ++k) wrong += seen[k] != 1'000'000 + k;
  check(wrong == 0, "the kernel reads what we wrote");
}

/// Everything below runs as a user who may do nothing but open these files.
void as_some_user(std::vector<std::string> const& files, std::function<void()> const& work) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    failed = 0;  // here
    for (std::string const& file : files) {
      if (chown(file.c_str(), some_user, some_user) != 0) _exit(100);
    }
    if (setgroups(0, nullptr) != 0 || setgid(some_user) != 0 || setuid(some_user) != 0) _exit(101);
    try {
      work();
    } catch (error const& e) {
      check(false, e.what());
    }
    std::fflush(stdout);
    _exit(failed);
  }
  int status = 0;
  waitpid(child, &status, 0);
  check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the unprivileged process ends well");
}

/// The driver is unbound under us, as an unplug does it: the kernel asks for the device, and waits until it is let go of.
void give_back_when_asked(std::string const& address) {
  std::atomic<bool> gone{false};
  auto function = open_pci_function(address);
  auto drive = std::make_unique<pcie_controller>(*function, pcie_options{.queues = 2});
  check(!drive->removal_requested(), "nobody asks for the drive");
  std::thread kernel([&] {
    std::ofstream("/sys/bus/pci/drivers/vfio-pci/unbind") << address << std::flush;
    gone = true;
  });
  for (u32 k = 0; k < 2000 && !drive->removal_requested(); ++k) usleep(10'000);
  check(drive->removal_requested(), "the kernel asks for it, and is reported");
  const auto on = open_cpu_executor(function->memory(), 1);
  check(says(refusal([&] { block_device(*on, *drive, 1, {.queues = 1, .queue_depth = 16}); }), "asks for the device back"),
        "no queue is attached any more");
  check(!gone, "the kernel waits for us");
  drive.reset();
  function.reset();
  kernel.join();
  check(gone, "it has it back");
}

void run_with_iommu() {
  std::vector<pci_device> drives = list_nvme_devices();
  check(drives.size() == 2, "both drives are found");
  if (drives.size() != 2) return;
  const pci_device first = drives.front();
  check(first.driver == "nvme" && block_device_of(first.address, 1) != nowhere && block_device_of(first.address, 2) != nowhere,
        "the kernel has the first one, and its namespaces are known by their names there");
  check(says(refusal([&] { open_pci_function(first.address); }), "penstock nvme bind"),
        "it is not taken from the kernel unasked");
  check(says(refusal([&] { open_pci_function("0000:00:00.0"); }), "no NVMe controller"), "a bridge is no drive");
  check(says(refusal([&] { open_pci_function("0000:09:00.0"); }), "there is none"), "nor is what is not there");
  for (pci_device const& each : drives) give_to_vfio(each.address, false);
  drives = list_nvme_devices();
  check(drives.front().driver == "vfio-pci" && !drives.front().iommu_group.empty(), "vfio-pci has it");
  const std::vector<std::string> files = {"/dev/vfio/" + first.iommu_group, "/dev/udmabuf"};
  as_some_user(files, [&] {
    check(says(refusal([&] { open_pci_function(drives.back().address); }), "let this user"),
          "the other one is not for this user");
    const auto function = open_pci_function(first.address);
    check(says(refusal([&] { open_pci_function(first.address); }), "another process"), "nor is one that is open already");
    const rlimit few = {mebibyte, mebibyte};
    setrlimit(RLIMIT_MEMLOCK, &few);
    check(says(refusal([&] { function->memory().allocate(memory_kind::shared, 4 * mebibyte); }), "ulimit -l"),
          "more memory than this user may lock is refused with the remedy");
    // What was lowered may not be raised again: the rest is done by another process.
  });
  as_some_user(files, [&] {
    const auto function = open_pci_function(first.address);
    try_other_ways(*function, 500'000);
    try_drive(*function, 1'000'000);
    try_to_reach_more(*function);
    try_peer_memory(*function, 999'999);  // so that namespace 1 ends with what is looked for below
  });
  check(syscall(SYS_delete_module, "penstock_p2p", O_NONBLOCK) == 0, "nothing is left with the module: it can be unloaded");
  {
    const auto function = open_pci_function(drives.back().address);
    pcie_controller drive(*function, {.queues = 64});
    check(drive.limits().queues == 8 && drive.limits().transfer_bytes == 8192,
          "few queues and small transfers are what it grants");
  }
  give_back_when_asked(drives.back().address);
  give_to_kernel(first.address);
  check_kernel_reads(first.address);
}

/// A kernel that has no containers: what is opened is opened by iommufd.
void run_with_iommufd() {
  check(access("/dev/vfio/vfio", F_OK) != 0 && access("/dev/iommu", F_OK) == 0, "the kernel has iommufd, and no containers");
  const std::vector<pci_device> drives = list_nvme_devices();
  check(drives.size() == 2, "both drives are found");
  if (drives.size() != 2) return;
  for (pci_device const& each : drives) give_to_vfio(each.address, false);
  std::string const& address = drives.front().address;
  std::string file = "/dev/vfio/devices/";
  for (auto const& each : std::filesystem::directory_iterator("/sys/bus/pci/devices/" + address + "/vfio-dev"))
    file += each.path().filename().string();
  as_some_user({}, [&] {
    check(says(refusal([&] { open_pci_function(address); }), "let this user read and write /dev/iommu and " + file),
          "who may not open its files is told which");
  });
  as_some_user({"/dev/iommu", file, "/dev/udmabuf"}, [&] {
    const auto function = open_pci_function(address);
    check(says(refusal([&] { open_pci_function(address); }), "another process"), "what is open already is refused");
    try_other_ways(*function, 500'000);
    try_drive(*function, 1'000'000);
    try_to_reach_more(*function);
    const foreign_memory lent(mebibyte, reinterpret_cast<void*>(u64{1} << 37));
    check(says(refusal([&] { function->map_peer(lent.address(), lent.bytes(), lent.dma_buf()); }), "penstock_p2p"),
          "memory of a dma-buf is refused, with the remedy");
    const rlimit few = {mebibyte, mebibyte};
    setrlimit(RLIMIT_MEMLOCK, &few);
    check(says(refusal([&] { function->memory().allocate(memory_kind::shared, 4 * mebibyte); }), "ulimit -l"),
          "more memory than this user may lock is refused with the remedy");
  });
  give_back_when_asked(drives.back().address);
  give_to_kernel(address);
  check_kernel_reads(address);
}

void run_without_iommu() {
  const std::vector<pci_device> drives = list_nvme_devices();
  check(drives.size() == 2 && drives.front().iommu_group.empty(), "there is no IOMMU");
  if (drives.size() != 2) return;
  std::string const& address = drives.front().address;
  check(says(refusal([&] { give_to_vfio(address, false); }), "no IOMMU"), "vfio-pci is refused without one");
  std::ofstream("/sys/bus/pci/devices/" + address + "/driver/unbind") << address << std::flush;
  check(says(refusal([&] { open_pci_function(address, 1ull << 40); }), "nr_hugepages"), "more huge pages than there are");
  const auto function = open_pci_function(address, 32 * mebibyte);
  try_other_ways(*function, 500'000);
  try_drive(*function, 2'000'000);
}

}  // namespace
}  // namespace penstock

int main(int, char** arguments) {
  try {
    const std::string kind = arguments[1];
    if (kind == "iommu") penstock::run_with_iommu();
    if (kind == "iommufd") penstock::run_with_iommufd();
    if (kind == "hugepages") penstock::run_without_iommu();
  } catch (std::exception const& e) {
    penstock::check(false, e.what());
  }
  std::printf("nvme_guest: %s\n", penstock::failed == 0 ? "passed" : "FAILED");
  return penstock::failed;
}
