// Packing of columns for Python: names of penstock._native that start with column_ or ColumnPacker; penstock.columns wraps
// them. Arrays are NumPy's, in the caller's memory; the interpreter runs on meanwhile.
#include "libs/columns/packing.hpp"
#include "libs/columns/text_codes.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>

namespace penstock::columns {
namespace {

namespace nb = nanobind;
using namespace nanobind::literals;

using any_values = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using any_room = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using array_in = nb::ndarray<T const, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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

template <class T>
nb::object array_of(std::vector<T> values) {
  auto* const owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
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

std::vector<double> divisors_of(array_in<double> const& values, std::vector<double> divisors) {
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

void unpack_into(array_in<u64> const& words, u32 bits, u64 base, double divisor, any_room const& room) {
  if (words.shape(0) * 64 < room.shape(0) * bits + 64) throw nb::value_error("words end before the values do");
  visit(room, [&](auto span) {
    nb::gil_scoped_release const without;
    unpack({bits, base, divisor}, words.data(), span);
  });
}

nb::object encode(text_codes& codes, array_in<std::int64_t> const& offsets, array_in<u8> const& bytes,
                  std::optional<array_in<bool>> const& valid, bool words) {
  const u64 ends = offsets.shape(0);
  if (ends == 0 || (valid && valid->shape(0) != ends - 1)) throw nb::value_error("give an end of each text");
  const text_rows texts{{offsets.data(), ends},
                        {reinterpret_cast<char const*>(bytes.data()), bytes.shape(0)},
                        valid ? valid->data() : nullptr,
                        words};
  std::vector<std::int64_t> found(texts.size());
  {
    nb::gil_scoped_release const without;
    codes.encode(texts, found);
  }
  return array_of(std::move(found));
}

nb::list texts_of(text_codes const& codes) {
  nb::list texts;
  for (u32 code = 0; code < codes.size(); ++code) {
    const std::string_view text = codes.text(code);
    texts.append(codes.is_null(code) ? nb::object(nb::none()) : nb::object(nb::str(text.data(), text.size())));
  }
  return texts;
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
  nb::class_<text_codes>(m, "ColumnTexts")
      .def(nb::init<>())
      .def("encode", &encode, "offsets"_a, "bytes"_a, "valid"_a.none(), "words"_a)
      .def("texts", &texts_of);
  m.def("column_range", &range, "values"_a);
  m.def("column_divisors", &divisors_of, "values"_a, "divisors"_a);
  m.def("column_unpack", &unpack_into, "words"_a, "bits"_a, "base"_a, "divisor"_a, "room"_a);
}

}  // namespace penstock::columns
