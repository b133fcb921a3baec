// What the ways to a PCI device share: calls of its kernel driver, and errors that name the device.
#pragma once

#include "../host/owned_file.hpp"

#include "penstock/host/error.hpp"
#include "penstock/pcie/pci_device.hpp"

#include <string>

#include <sys/ioctl.h>

namespace penstock::pcie {

[[noreturn]] inline void refuse_device(pci_device const& device, std::string const& problem) {
  throw_bad_input("open", "PCI device " + device.address, problem);
}

[[noreturn]] inline void fail_device(pci_device const& device, int code, std::string const& remedy) {
  throw_os_error("open", "PCI device " + device.address, code, remedy);
}

/// Whether the ioctl succeeded; else errno says why not.
template <class Argument>
bool ask(owned_file const& of, unsigned long what, Argument argument) {
  return ioctl(of.get(), what, argument) == 0;
}

}  // namespace penstock::pcie
