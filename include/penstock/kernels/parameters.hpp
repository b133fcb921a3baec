// What the compiler says a kernel's parameters are: compared with what was read from the source's text, so that a name that
// stands for another type than it seems is an error of the compiler and no wrong result.
#pragma once

#include "penstock/kernels/array.hpp"
#include "penstock/kernels/files.hpp"

namespace penstock::kernels {

enum parameter_kind : u32 { array_parameter, pointer_parameter, files_parameter, value_parameter };
enum number_type : u32 { no_number, signed_number, unsigned_number, floating_number };

template <class T>
inline constexpr bool is_void = false;
template <>
inline constexpr bool is_void<void> = true;
template <class T>
inline constexpr bool is_pointer = false;
template <class T>
inline constexpr bool is_pointer<T*> = true;

template <class T>
struct without_volatile {
  using type = T;
};
template <class T>
struct without_volatile<T volatile> {
  using type = T;
};

template <class T>
constexpr number_type number_of() {
  if constexpr (is_floating<T>) {
    return floating_number;
  } else if constexpr (is_void<T> || __is_class(T) || __is_union(T) || __is_enum(T) || is_pointer<T>) {
    return no_number;
  } else {
    return T(-1) < T(0) ? signed_number : unsigned_number;
  }
}

template <class T>
struct parameter {
  using element = typename without_const<T>::type;
  static constexpr parameter_kind kind = value_parameter;
};
template <class T>
struct parameter<array<T>> {
  using element = typename without_const<T>::type;
  static constexpr parameter_kind kind = array_parameter;
};
template <class T>
struct parameter<T*> {
  using element = typename without_volatile<typename without_const<T>::type>::type;
  static constexpr parameter_kind kind = pointer_parameter;
};

template <>
struct parameter<files> {
  using element = files;
  static constexpr parameter_kind kind = files_parameter;
};

template <class T>
constexpr u32 bytes_of() {
  if constexpr (is_void<T>) {
    return 0;
  } else {
    return static_cast<u32>(sizeof(T));
  }
}

/// Whether parameter `index` of a kernel is passed by its bytes.
template <class... Of>
constexpr bool parameter_is_value(void (*)(Of...), u32 index) {
  const parameter_kind kinds[] = {parameter<Of>::kind...};
  return index < sizeof...(Of) && kinds[index] == value_parameter;
}

/// Whether parameter `index` of a kernel is one of that kind, with elements of so many bytes that are such numbers.
template <class... Of>
constexpr bool parameter_is(void (*)(Of...), u32 index, parameter_kind kind, u32 bytes, number_type number) {
  const parameter_kind kinds[] = {parameter<Of>::kind...};
  const u32 sizes[] = {bytes_of<typename parameter<Of>::element>()...};
  const number_type numbers[] = {number_of<typename parameter<Of>::element>()...};
  return index < sizeof...(Of) && kinds[index] == kind && sizes[index] == bytes && numbers[index] == number;
}

}  // namespace penstock::kernels
