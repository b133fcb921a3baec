// What is never given back, because a device or a system call that does not come back may still write where it points. Kept
// where it can be found, so that it is no leak by mistake.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace penstock::controllers {

/// Thread-safe.
inline void keep_for_ever(std::shared_ptr<void> what) {
  static std::mutex mutex;
  static auto* const all = new std::vector<std::shared_ptr<void>>;
  const std::lock_guard lock(mutex);
  all->push_back(std::move(what));
}

}  // namespace penstock::controllers
