// What a kernel compiled for the CPU exports; appended to its source (python/penstock/kernels/host_compiler.py).
#pragma once

#include "penstock/kernels/host_calls.hpp"

#include <type_traits>
#include <utility>

namespace penstock::kernels {

inline constexpr u32 entry_version = 3;  ///< of host_calls, host_thread and array_descriptor

inline constexpr u32 max_parameters = 64;

struct parameter_sizes {
  u64 count;
  u64 bytes[max_parameters];
};

/// `penstock_entry` of the library.
struct host_entry {
  u32 version;      ///< entry_version of the headers that it was compiled with
  bool spins;       ///< whether its threads may wait for memory that others change, in ways that the library does not see
  bool (*waits)();  ///< whether threads of a block wait for each other
  void (*bind)(host_calls const*);
  void (*enter)(host_thread const*);  ///< the thread that goes on from here
  void (*run)(void** parameters);     ///< that thread, from its beginning
  parameter_sizes sizes;
};

template <class... Of>
constexpr parameter_sizes sizes_of(void (*)(Of...)) {
  parameter_sizes sizes{};
  ((sizes.bytes[sizes.count++] = sizeof(std::remove_cv_t<std::remove_reference_t<Of>>)), ...);
  return sizes;
}

template <class... Of, std::size_t... K>
void call_kernel(void (*kernel)(Of...), void** parameters, std::index_sequence<K...>) {
  kernel(*static_cast<std::remove_cv_t<std::remove_reference_t<Of>>*>(parameters[K])...);
}
template <class... Of>
void call_kernel(void (*kernel)(Of...), void** parameters) {
  call_kernel(kernel, parameters, std::index_sequence_for<Of...>());
}

}  // namespace penstock::kernels
