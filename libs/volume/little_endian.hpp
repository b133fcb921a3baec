// Numbers in the byte order of what is stored, whatever the machine's.
#pragma once

#include "penstock/core/config.hpp"

#include <cstddef>
#include <span>
#include <type_traits>

namespace penstock::volumes {

/// Writes fields one after the other. REQUIRES: they fit.
class field_writer {
 public:
  explicit field_writer(std::span<std::byte> to) : to_(to) {}

  template <class Number>
  void put(Number value) {
    static_assert(std::is_unsigned_v<Number>);
    for (u64 k = 0; k < sizeof value; ++k) to_[at_++] = static_cast<std::byte>(u64{value} >> 8 * k);
  }
  void put(std::span<u8 const> bytes) {
    for (const u8 each : bytes) put(each);
  }
  void skip(u64 bytes) { at_ += bytes; }

 private:
  std::span<std::byte> to_;
  u64 at_ = 0;
};

/// Reads them back. REQUIRES: they are there.
class field_reader {
 public:
  explicit field_reader(std::span<std::byte const> from) : from_(from) {}

  template <class Number>
  Number take() {
    static_assert(std::is_unsigned_v<Number>);
    u64 value = 0;
    for (u64 k = 0; k < sizeof(Number); ++k) value |= static_cast<u64>(from_[at_++]) << 8 * k;
    return static_cast<Number>(value);
  }
  void take(std::span<u8> to) {
    for (u8& each : to) each = take<u8>();
  }
  void skip(u64 bytes) { at_ += bytes; }

 private:
  std::span<std::byte const> from_;
  u64 at_ = 0;
};

}  // namespace penstock::volumes
