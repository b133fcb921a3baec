// Packing of columns for Python: names of penstock._native that start with column_ or ColumnPacker; penstock.columns wraps
// them. Arrays are NumPy's, in the caller's memory; the interpreter runs on meanwhile.
#include "libs/columns/packing.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cstdint>

namespace penstock::columns {
namespace {

namespace nb = nanobind;
using namespace nanobind::literals;

using any_values = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using any_room = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using words_in = nb::ndarray<u64 const, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T, class Array>
auto span_of(Array const& array) {
  using element = std::conditional_t<std::is_same_v<Array, any_values>, T const, T>;
  return std::span<element>{static_cast<element*>(array.data()), array.shape(0)};
}

template <class Array, class Call, class... T>
void visit_types(Array const& array, Call const& call) {
  const bool found = ((array.dtype() == nb::dtype<T>() ? (call(span_of<T>(array)), true) : false) || ...);
  if (!found) throw nb::type_error("values to pack are integers or float64");
}

/// Calls with a span of the array's type.
template <class Array, class Call>
void visit(Array const& array, Call const& call) {
  visit_types<Array, Call, std::int8_t, std::int16_t, std::int32_t, std::int64_t, u8, u16, u32, u64, double>(array, call);
}

nb::object array_of(std::vector<u64> words) {
  auto* const owned = new std::vector<u64>(std::move(words));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<u64>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, u64, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

nb::tuple range(any_values const& values) {
  nb::tuple result;
  visit(values, [&](auto span) {
    if (span.empty()) throw nb::value_error("the range of no values");
    const auto found = [&] {
      nb::gil_scoped_release const without;
      return range_of(span);
    }();
    result = nb::make_tuple(found.low, found.high);
  });
  return result;
}

std::vector<double> divisors_of(nb::ndarray<double const, nb::ndim<1>, nb::c_contig, nb::device::cpu> const& values,
                                std::vector<double> divisors) {
  nb::gil_scoped_release const without;
  return exact_divisors({values.data(), values.shape(0)}, std::move(divisors));
}

nb::object append(bit_packer& packer, any_values const& values) {
  std::vector<u64> words;
  visit(values, [&](auto span) {
    nb::gil_scoped_release const without;
    packer.append(span, words);
  });
  return array_of(std::move(words));
}

nb::object finish(bit_packer& packer) {
  std::vector<u64> words;
  packer.finish(words);
  return array_of(std::move(words));
}

void unpack_into(words_in const& words, u32 bits, u64 base, double divisor, any_room const& room) {
  if (words.shape(0) * 64 < room.shape(0) * bits + 64) throw nb::value_error("words end before the values do");
  visit(room, [&](auto span) {
    nb::gil_scoped_release const without;
    unpack({bits, base, divisor}, words.data(), span);
  });
}

}  // namespace

void bind_packing(nb::module_& m) {
  nb::class_<bit_packer>(m, "ColumnPacker")
      .def(
          "__init__",
          [](bit_packer* self, u32 bits, u64 base, double divisor) {
            if (bits > 57) throw nb::value_error("packed values have up to 57 bits");
            new (self) bit_packer({bits, base, divisor});
          },
          "bits"_a, "base"_a, "divisor"_a)
      .def("append", &append, "values"_a)
      .def("finish", &finish);
  m.def("column_range", &range, "values"_a);
  m.def("column_divisors", &divisors_of, "values"_a, "divisors"_a);
  m.def("column_unpack", &unpack_into, "words"_a, "bits"_a, "base"_a, "divisor"_a, "room"_a);
}

}  // namespace penstock::columns
