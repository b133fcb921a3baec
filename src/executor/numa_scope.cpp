#include "numa_scope.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace penstock {

// By system calls: libnuma has nothing more to give.
numa_scope::numa_scope(int node) noexcept {
  if (node < 0 || static_cast<unsigned long>(node) >= most_nodes) return;
  if (syscall(SYS_get_mempolicy, &mode_before_, nodes_before_, most_nodes, nullptr, 0) != 0) return;
  constexpr unsigned long bits = 8 * sizeof(unsigned long);
  unsigned long wanted[words] = {};
  wanted[static_cast<unsigned long>(node) / bits] = 1ul << (static_cast<unsigned long>(node) % bits);
  set_ = syscall(SYS_set_mempolicy, MPOL_PREFERRED, wanted, most_nodes) == 0;
}

numa_scope::~numa_scope() {
  if (set_) syscall(SYS_set_mempolicy, mode_before_, nodes_before_, most_nodes);
}

}  // namespace penstock
