#include "libs/analytics/process_memory.hpp"

#include <fstream>
#include <string>

namespace penstock::analytics {

process_memory read_process_memory() {
  process_memory memory;
  std::ifstream file("/proc/self/status");
  std::string field;
  u64 kib = 0;
  while (file >> field) {
    if (field == "VmHWM:" && file >> kib) memory.peak_bytes = kib << 10;
    if (field == "RssFile:" && file >> kib) memory.file_bytes = kib << 10;
  }
  return memory;
}

void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace penstock::analytics
