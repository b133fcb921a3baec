#include "file_stamp.hpp"

#include "penstock/core/clock.hpp"

#include <cstdlib>
#include <ctime>
#include <iterator>

#include <linux/magic.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

namespace penstock::controllers {
namespace {

bool has_multigrain_kernel() {
  static const bool has = [] {
    utsname system;
    if (uname(&system) != 0) return false;
    char* rest = nullptr;
    const unsigned long major = std::strtoul(system.release, &rest, 10);
    const unsigned long minor = *rest == '.' ? std::strtoul(rest + 1, nullptr, 10) : 0;
    return major > 6 || (major == 6 && minor >= 13);
  }();
  return has;
}

}  // namespace

u64 nanoseconds(timespec const& t) { return static_cast<u64>(t.tv_sec) * one_second_ns + static_cast<u64>(t.tv_nsec); }

bool has_fine_times(int file) {
  if (!has_multigrain_kernel()) return false;
  constexpr unsigned long systems[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC};
  struct statfs about;
  if (fstatfs(file, &about) != 0) return false;
  for (unsigned long system : systems) {
    if (static_cast<unsigned long>(about.f_type) == system) return true;
  }
  return false;
}

file_stamp stamp_of(struct stat const& about, int file) {
  constexpr u64 coarse_ns = 20'000'000;  // two ticks of a timer at 100 Hz
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const u64 changed = nanoseconds(about.st_ctim);
  const bool settled = changed + coarse_ns < nanoseconds(now) || has_fine_times(file);
  return {static_cast<u64>(about.st_size), nanoseconds(about.st_mtim), changed, settled};
}

}  // namespace penstock::controllers
