// Reading a mapped file that someone truncates raises SIGBUS; here that becomes a false, or a mark, instead of the end of the
// process.
#pragma once

#include "penstock/core/config.hpp"

namespace penstock::controllers {

/// Installs the handler, once per process. Bus errors that are not ours go on to the handler that was there before.
void install_fault_guard();

/// Runs body(argument). False if it was cut short by a bus error on an address in [begin, begin + bytes).
/// REQUIRES: the body holds no lock and owns nothing that a destructor would have to free.
bool run_guarded(void const* begin, u64 bytes, void (*body)(void*), void* argument);

/// A mapping that any thread may read at any time. Where its file was cut short they read zeros from then on, and `was_cut`
/// says so: whoever read has to ask. Costs nothing until then.
class watched_mapping {
 public:
  /// Of a page that is cut short all of it becomes zeros. REQUIRES: mapped for as long as this lives.
  watched_mapping(void const* begin, u64 bytes, bool writable);
  watched_mapping(watched_mapping const&) = delete;
  watched_mapping& operator=(watched_mapping const&) = delete;
  ~watched_mapping();

  bool was_cut() const;

 private:
  struct watched_range* range_;
};

}  // namespace penstock::controllers
