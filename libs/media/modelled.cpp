#include "libs/media/modelled.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <unistd.h>

namespace penstock::media {

void check_block(u64 bytes) {
  if (is_power_of_two(bytes) && bytes >= 512 && bytes <= 65536) return;
  throw_bad_input("measure", "commands of " + std::to_string(bytes) + " bytes",
                  "a queue takes less at once, or blocks are smaller: choose a power of two from 512 B to 64 KiB");
}

// What a GPU has is found out by asking it for the memory, also before anything is launched.
void check_memory(executor const& on, memory_kind kind, u64 bytes) {
  if (on.kind() == executor_kind::cuda && kind == memory_kind::local) return;
  const u64 all = static_cast<u64>(sysconf(_SC_PHYS_PAGES)) * static_cast<u64>(sysconf(_SC_PAGESIZE));
  if (bytes <= all / 8 * 7) return;
  throw_bad_input("measure", std::to_string(bytes >> 20) + " MiB of data and queues",
                  "this machine has " + std::to_string(all >> 20) + " MiB of memory: ask for less");
}

u32 client_units(executor const& on, model_server const& server, u32 asked) {
  if (on.kind() == executor_kind::cpu) return 0;
  const u32 left = on.units() - server.units_taken();
  if (asked <= left) return asked != 0 ? asked : left;
  throw_bad_input("measure",
                  std::to_string(asked) + " SMs that ask beside " + std::to_string(server.units_taken()) + " that serve",
                  "the GPU has " + std::to_string(on.units()) + ": ask for at most " + std::to_string(left));
}

}  // namespace penstock::media
