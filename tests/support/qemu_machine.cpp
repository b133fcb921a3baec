#include "support/qemu_machine.hpp"

#include "penstock/core/backoff.hpp"
#include "support/qemu_slots.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace penstock::test_support {
namespace {

using namespace qemu;

constexpr u64 mebibyte = u64{1} << 20;
/// What of the machine's memory is ours.
struct memory_place {
  u64 machine_bytes;
  u64 file_offset;
  u64 bus_address;
  u64 bytes;
};

memory_place place_of(qemu_memory where) {
  // What is below 16 MiB belongs to a PC's firmware. A machine of 3 GiB has two of them there, and the rest from 4 GiB on.
  if (where == qemu_memory::low) return {128 * mebibyte, 16 * mebibyte, 16 * mebibyte, 112 * mebibyte};
  return {3072 * mebibyte, 2048 * mebibyte, 4096 * mebibyte, 256 * mebibyte};
}

constexpr u64 patience_ns = 20 * one_second_ns;

std::string backend_of(qemu_namespace const& space, std::string const& file) {
  if (space.bad_sectors.empty()) return ",format=raw,file=" + file + space.backend;
  std::string all = ",driver=raw,file.driver=blkdebug,file.image.driver=file,file.image.filename=" + file + space.backend;
  for (u64 k = 0; k < space.bad_sectors.size(); ++k) {
    const std::string rule = ",file.inject-error." + std::to_string(k);
    all += rule + ".event=none" + rule + ".iotype=read" + rule + ".errno=5" + rule +
           ".sector=" + std::to_string(space.bad_sectors[k]);
  }
  return all;
}

/// `own`, and of the options in an environment variable (",mdts=1,max_ioqpairs=2") those that it does not have: the tests run
/// on drives of another geometry, but for what a test itself asks for.
std::string with_options_of(char const* variable, std::string const& own) {
  char const* const value = std::getenv(variable);
  std::string all = own;
  std::istringstream more(value == nullptr ? "" : value);
  for (std::string option; std::getline(more, option, ',');) {
    const std::string name = "," + option.substr(0, option.find('=')) + "=";
    if (!option.empty() && own.find(name) == std::string::npos) all += "," + option;
  }
  return all;
}

std::vector<std::string> arguments_of(std::vector<qemu_drive> const& drives, std::filesystem::path const& folder,
                                      std::string const& memory_file, u64 memory_bytes) {
  const std::string at = folder.string();
  std::vector<std::string> all = {
      qemu_program(),
      "-accel",
      "tcg",
      "-S",
      "-M",
      "q35,memory-backend=ram",
      "-m",
      std::to_string(memory_bytes / mebibyte) + "M",
      "-object",
      "memory-backend-file,id=ram,size=" + std::to_string(memory_bytes) + ",mem-path=" + memory_file + ",share=on",
      "-nodefaults",
      "-display",
      "none",
      "-qtest",
      "unix:" + at + "/qtest,server=on,wait=off",
      "-qtest-log",
      "none",
      "-monitor",
      "unix:" + at + "/monitor,server=on,wait=off",
      "-trace",
      "pci_nvme_ub_*",
      "-trace",
      "pci_nvme_create_sq",
      "-D",
      at + "/notes"};
  for (u64 d = 0; d < drives.size(); ++d) {
    const std::string drive = std::to_string(d);
    const std::string subsystem = "subsystem" + drive;
    if (drives[d].subsystem) all.insert(all.end(), {"-device", "nvme-subsys,id=" + subsystem + ",nqn=" + subsystem});
    all.insert(all.end(),
               {"-device", "nvme,id=nvme" + drive + ",serial=PENSTOCK" + drive + ",addr=" + std::to_string(first_slot + d) +
                               with_options_of("PENSTOCK_QEMU_DRIVE", drives[d].options) +
                               (drives[d].subsystem ? ",subsys=" + subsystem : "")});
    for (u64 n = 0; n < drives[d].namespaces.size(); ++n) {
      qemu_namespace const& space = drives[d].namespaces[n];
      const std::string id = "d" + drive + "n" + std::to_string(n + 1), bytes = std::to_string(space.block_bytes);
      all.insert(all.end(), {"-drive", "id=" + id + ",if=none,cache=unsafe" + backend_of(space, at + "/" + id)});
      all.insert(all.end(), {"-device", "nvme-ns,drive=" + id + ",bus=nvme" + drive + ",nsid=" + std::to_string(n + 1) +
                                            ",logical_block_size=" + bytes + ",physical_block_size=" + bytes +
                                            with_options_of("PENSTOCK_QEMU_NAMESPACE", space.options)});
    }
  }
  return all;
}

pid_t spawn(std::vector<std::string> const& arguments, std::string const& log) {
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (auto const& each : arguments) words.push_back(const_cast<char*>(each.c_str()));
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) fail(std::strerror(errno));
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int out = open(log.c_str(), O_CREAT | O_WRONLY, 0600);
  dup2(out, 1);
  dup2(out, 2);
  execvp(words[0], words.data());
  _exit(127);
}

void send_line(int to, std::string const& line) {
  const std::string all = line + "\n";
  for (u64 sent = 0; sent < all.size();) {
    const ssize_t n = write(to, all.data() + sent, all.size() - sent);
    if (n <= 0) fail("the socket is closed");
    sent += static_cast<u64>(n);
  }
}

/// What comes until `end`, which is taken off; what follows stays in `pending`.
std::string receive_until(int from, std::string const& end, std::string& pending) {
  for (;;) {
    if (const u64 at = pending.find(end); at != std::string::npos) {
      std::string line = pending.substr(0, at);
      pending.erase(0, at + end.size());
      return line;
    }
    pollfd ready{from, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(patience_ns / one_millisecond_ns)) <= 0) fail("no answer");
    char buffer[4096];
    const ssize_t n = read(from, buffer, sizeof buffer);
    if (n <= 0) fail("the socket is closed");
    pending.append(buffer, static_cast<u64>(n));
  }
}

}  // namespace

qemu_machine::qemu_machine(std::vector<qemu_drive> const& drives, qemu_memory where) : where_(where) {
  std::string pattern = (std::filesystem::temp_directory_path() / "penstock_qemu_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) fail(std::strerror(errno));
  folder_ = pattern;
  memory_file_ = "/dev/shm/" + folder_.filename().string();
  try {
    start(drives);
    map_memory();
    connect();
    for (u32 d = 0; d < drives.size(); ++d) functions_.push_back(std::make_unique<qemu_function>(*this, first_slot + d));
  } catch (std::runtime_error const& e) {
    const std::string all = e.what() + words_of_qemu();
    end();
    throw std::runtime_error(all);
  }
}

qemu_machine::~qemu_machine() { end(); }

void qemu_machine::end() noexcept {
  virtual_functions_.clear();
  functions_.clear();
  for (const int each : {socket_, monitor_}) {
    if (each >= 0) close(each);
  }
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  if (mapped_ != nullptr) munmap(mapped_, place_of(where_).bytes);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
  std::filesystem::remove(memory_file_, ignored);
}

void qemu_machine::start(std::vector<qemu_drive> const& drives) {
  for (u64 d = 0; d < drives.size(); ++d) {
    for (u64 n = 0; n < drives[d].namespaces.size(); ++n) {
      std::ofstream(file(d, n + 1)).close();
      std::filesystem::resize_file(file(d, n + 1), drives[d].namespaces[n].bytes);
    }
  }
  std::ofstream(memory_file_).close();
  const u64 bytes = place_of(where_).machine_bytes;
  std::filesystem::resize_file(memory_file_, bytes);  // it takes memory where it is touched
  process_ = spawn(arguments_of(drives, folder_, memory_file_, bytes), (folder_ / "words").string());
}

/// At the addresses that the device has for it, which no program of ours is linked to or loaded at.
void qemu_machine::map_memory() {
  const int file = open(memory_file_.c_str(), O_RDWR);
  const memory_place place = place_of(where_);
  mapped_ = mmap(reinterpret_cast<void*>(place.bus_address), place.bytes, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED_NOREPLACE, file, static_cast<off_t>(place.file_offset));
  close(file);
  if (mapped_ == MAP_FAILED) {
    mapped_ = nullptr;
    fail("its memory cannot be mapped at its own addresses: " + std::string(std::strerror(errno)));
  }
  arena_ = std::make_unique<pcie::dma_arena>(std::vector{std::span(static_cast<std::byte*>(mapped_), place.bytes)}, "QEMU");
}

int qemu_machine::open_socket(std::string const& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder_ / name).c_str(), sizeof address.sun_path - 1);
  backoff wait(patience_ns);
  do {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0) return fd;
    close(fd);
    if (waitpid(process_, nullptr, WNOHANG) != 0) {
      process_ = -1;
      fail("it ended at once");
    }
    usleep(1000);
  } while (wait.pause());
  fail("it does not listen");
}

void qemu_machine::connect() {
  socket_ = open_socket("qtest");
  monitor_ = open_socket("monitor");
  std::string greeting;
  receive_until(monitor_, "(qemu) ", greeting);
}

std::string qemu_machine::words_of_qemu() const {
  std::ifstream in(folder_ / "words");
  std::stringstream all;
  all << in.rdbuf();
  return all.str().empty() ? "" : ": " + all.str();
}

std::string qemu_machine::file(u64 drive, u64 name_space) const {
  return (folder_ / ("d" + std::to_string(drive) + "n" + std::to_string(name_space))).string();
}

std::vector<std::string> qemu_machine::noted(std::string const& event) const {
  std::vector<std::string> all;
  std::ifstream in(folder_ / "notes");
  for (std::string line; std::getline(in, line);) {
    if (line.find(event) != std::string::npos) all.push_back(line);
  }
  return all;
}

std::vector<std::string> qemu_machine::complaints() const { return noted("pci_nvme_ub_"); }

u64 qemu_machine::queues_made() const { return noted("pci_nvme_create_sq").size(); }

qemu_function& qemu_machine::enable_virtual_functions(u64 drive, u32 count) {
  // The host bridge's window to all 4096 bytes of each configuration space, and the SR-IOV capability behind the first 256.
  constexpr u64 window = 0xb0000000, bar = 0xe0800000;
  constexpr u32 window_register = 0x60, sr_iov = 0x10;
  const auto set_bridge = [&](u32 offset, u64 value) {
    qtest("outl 0xcf8 " + std::to_string(0x80000000u | offset));
    qtest("outl 0xcfc " + std::to_string(value));
  };
  set_bridge(window_register + 4, 0);
  set_bridge(window_register, window | 1);
  const u32 slot = first_slot + static_cast<u32>(drive);
  const u64 config = window + (u64{slot} << 15);
  const auto read = [&](u64 offset) { return static_cast<u32>(qtest("readl " + std::to_string(config + offset))); };
  const auto write = [&](u64 offset, u64 value) {
    qtest("writel " + std::to_string(config + offset) + " " + std::to_string(value));
  };
  u64 at = 0x100;
  while (at != 0 && (read(at) & 0xffffu) != sr_iov) at = read(at) >> 20;
  if (at == 0) fail("the drive has no virtual functions");
  write(at + 0x24, bar);
  write(at + 0x28, 0);
  write(at + 0x10, count);
  write(at + 0x08, read(at + 0x08) | 1u | 8u);  // VF Enable, memory space
  const u32 first = read(at + 0x14) & 0xffffu;
  virtual_functions_.push_back(std::make_unique<qemu_function>(*this, slot, first, bar, function(drive).register_bytes()));
  return *virtual_functions_.back();
}

u64 qemu_machine::qtest(std::string const& command) {
  const std::lock_guard lock(mutex_);
  send_line(socket_, command);
  const std::string answer = receive_until(socket_, "\n", pending_);
  if (answer.rfind("OK", 0) != 0) fail(command + ": " + answer);
  return answer.size() > 3 ? std::stoull(answer.substr(3), nullptr, 0) : 0;
}

void qemu_machine::resynchronize() {
  const std::lock_guard lock(mutex_);
  send_line(socket_, "endianness");
  while (receive_until(socket_, "\n", pending_) != "OK little") {}
}

std::string qemu_machine::monitor(std::string const& command) {
  const std::lock_guard lock(mutex_);
  send_line(monitor_, command);
  std::string rest;
  return receive_until(monitor_, "(qemu) ", rest);
}

}  // namespace penstock::test_support
