// What a call reads or fills in memory of the caller's, beside the array.
#pragma once

#include "penstock/host/error.hpp"
#include "penstock/host/watched_mapping.hpp"

#include <cerrno>
#include <optional>
#include <string>

namespace penstock::rows {

/// Memory of the caller's that a call reads or fills beside the row numbers.
struct argument {
  char const* name = "";
  void const* memory = nullptr;
  u64 bytes = 0;
};

/// Memory of the caller's while threads of the CPU use it: it may be a mapped file, which others cut short.
class watched_argument {
 public:
  watched_argument(bool on_cpu, argument const& what) : name_(what.name) {
    if (on_cpu && what.bytes != 0) watch_.emplace(what.memory, what.bytes, true, mapping_of::caller);
  }
  /// Throws as `check`, before anything is read or stored there.
  void look(char const* operation) const {
    if (watch_) static_cast<void>(watch_->is_cut());
    check(operation);
  }
  /// Throws penstock::error (world) if it was cut short: zeros were read there, or what was stored is lost.
  void check(char const* operation) const {
    if (!watch_ || !watch_->was_cut()) return;
    throw error(
        error_kind::world,
        std::string(operation) + " rows: the memory of " + name_ + " maps a file that was cut short: write that file anew",
        EIO);
  }

 private:
  char const* name_;
  std::optional<watched_mapping> watch_;
};

}  // namespace penstock::rows
