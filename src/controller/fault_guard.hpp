// Reading a mapped file that someone truncates raises SIGBUS; here that becomes a false, or a mark (watched_mapping), instead
// of the end of the process.
#pragma once

#include "penstock/host/watched_mapping.hpp"

namespace penstock::controllers {

/// Installs the handler, once in each process, also in one that was forked: others put theirs in its place there. Bus errors
/// that are not ours go on to the handler that was there before.
void install_fault_guard();

/// Runs body(argument). False if it was cut short by a bus error on an address in [begin, begin + bytes).
/// REQUIRES: the body holds no lock and owns nothing that a destructor would have to free.
bool run_guarded(void const* begin, u64 bytes, void (*body)(void*), void* argument);

}  // namespace penstock::controllers
