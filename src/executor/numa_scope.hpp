// Where pages of host memory are taken from.
#pragma once

namespace penstock {

/// As long as this lives, pages that this thread allocates come from one NUMA node while that has room, then from others. Does
/// nothing for node -1, or where the system refuses (a container without CAP_SYS_NICE may): pages come from the node of the
/// thread's CPU then.
class numa_scope {
 public:
  explicit numa_scope(int node) noexcept;
  numa_scope(numa_scope const&) = delete;
  numa_scope& operator=(numa_scope const&) = delete;
  ~numa_scope();

 private:
  static constexpr unsigned long most_nodes = 1024;
  static constexpr unsigned long words = most_nodes / (8 * sizeof(unsigned long));

  int mode_before_ = 0;
  unsigned long nodes_before_[words] = {};
  bool set_ = false;
};

}  // namespace penstock
