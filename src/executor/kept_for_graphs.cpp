// What CUDA graphs keep, from the destruction of the last of them until something may be freed again.
#include "kept_for_graphs.hpp"

#include "penstock/executor/kept_for_graphs.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace penstock {
namespace {

struct kept_list {
  std::mutex mutex;
  std::vector<std::shared_ptr<void>> kept;  ///< under mutex
};

/// Never destroyed: at the end of the process CUDA may be gone before what it would have to free.
kept_list& list() {
  static kept_list& the_list = *new kept_list;
  return the_list;
}

}  // namespace

void hand_to_drop(void* owned) {
  std::unique_ptr<std::shared_ptr<void>> const mine(static_cast<std::shared_ptr<void>*>(owned));
  const std::lock_guard lock(list().mutex);
  list().kept.push_back(std::move(*mine));
}

void drop_kept() {
  std::vector<std::shared_ptr<void>> dropped;
  {
    const std::lock_guard lock(list().mutex);
    dropped.swap(list().kept);
  }
}

}  // namespace penstock
