#include "support/qemu_program.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

namespace penstock::test_support {
namespace {

/// What QEMU prints when it is only asked something.
std::string answer_of_program(std::string const& question) {
  std::string all;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((qemu_program() + (" " + question)).c_str(), "r"), pclose);
  char buffer[4096];
  while (pipe != nullptr && std::fgets(buffer, sizeof buffer, pipe.get()) != nullptr) all += buffer;
  return all;
}

}  // namespace

char const* qemu_program() {
  char const* other = std::getenv("PENSTOCK_QEMU");
  return other != nullptr ? other : "qemu-system-x86_64";
}

u32 qemu_version() {
  static const u32 version = [] {
    const std::string said = answer_of_program("--version"), before = "version ";
    const u64 at = said.find(before);
    return at == std::string::npos ? 0 : static_cast<u32>(std::strtoul(said.c_str() + at + before.size(), nullptr, 10));
  }();
  return version;
}

std::set<std::string> const& qemu_drive_options() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    std::istringstream said(answer_of_program("-device nvme,help"));
    for (std::string line; std::getline(said, line);) {
      const u64 end = line.find('=');
      if (line.rfind("  ", 0) == 0 && end != std::string::npos) all.insert(line.substr(2, end - 2));
    }
    return all;
  }();
  return names;
}

std::string reason_without_qemu() {
  static const std::string reason = [] {
    const std::string ask = std::string(qemu_program()) + " -device nvme,help >/dev/null 2>&1";
    return std::system(ask.c_str()) == 0 ? std::string()
                                         : std::string(qemu_program()) + " does not run: install qemu-system-x86";
  }();
  return reason;
}

}  // namespace penstock::test_support
