// How classes whose objects hold memory of a GPU are destroyed.
#pragma once

#include <nanobind/nanobind.h>
#include <memory>

namespace penstock {

/// A T that has threads, which a forked process does not have, says by is_inherited() that it is of another one: there its
/// memory stays as it is.
template <class T>
void destroy_here(T& object) noexcept {
  if constexpr (requires { object.is_inherited(); }) {
    if (object.is_inherited()) return;
  }
  const nanobind::gil_scoped_release without;
  std::destroy_at(&object);
}

}  // namespace penstock

/// Frees a T without Python's lock. Memory of a GPU is freed when its kernels have ended, and these may wait for what another
/// thread of Python does. Before the class is bound, at namespace scope; members of T that are Python's take the lock.
#define PENSTOCK_DESTROY_WITHOUT_LOCK(T)                                  \
  template <>                                                             \
  inline void nanobind::detail::wrap_destruct<T>(void* object) noexcept { \
    penstock::destroy_here(*static_cast<T*>(object));                     \
  }
