// How classes whose objects hold memory of a GPU are destroyed.
#pragma once

#include <nanobind/nanobind.h>
#include <memory>

/// Frees a T without Python's lock. Memory of a GPU is freed when its kernels have ended, and these may wait for what another
/// thread of Python does. Before the class is bound, at namespace scope; members of T that are Python's take the lock.
#define PENSTOCK_DESTROY_WITHOUT_LOCK(T)                                  \
  template <>                                                             \
  inline void nanobind::detail::wrap_destruct<T>(void* object) noexcept { \
    const nanobind::gil_scoped_release without;                           \
    std::destroy_at(static_cast<T*>(object));                             \
  }
