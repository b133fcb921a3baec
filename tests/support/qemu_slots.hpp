// What a machine of QEMU and its functions share: where the functions are, and how both fail.
#pragma once

#include "penstock/core/config.hpp"

#include <stdexcept>
#include <string>

namespace penstock::test_support::qemu {

inline constexpr u32 first_slot = 4;

[[noreturn]] inline void fail(std::string const& what) { throw std::runtime_error("QEMU: " + what); }

}  // namespace penstock::test_support::qemu
