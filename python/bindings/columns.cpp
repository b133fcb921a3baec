// Columns and queries for Python: names of penstock._native that start with Column; penstock.columns wraps them.
#include "libs/columns/column_table.hpp"
#include "penstock/host/error.hpp"
#include "without_lock.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

PENSTOCK_DESTROY_WITHOUT_LOCK(penstock::columns::column_table)

namespace penstock::columns {
namespace {

namespace nb = nanobind;
using namespace nanobind::literals;

template <class T>
using numbers = nb::ndarray<T const, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::vector<T> values_of(numbers<T> const& from) {
  return {from.data(), from.data() + from.size()};
}

template <class T>
nb::object rows_of(std::vector<T> values, u64 columns, u64 rows) {
  auto* const owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(owned->data(), {columns, rows}, owner));
}

nb::object words_of(buffer<u64> words, u64 columns, u64 rows) {
  auto* const owned = new buffer<u64>(std::move(words));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<buffer<u64>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, u64, nb::ndim<2>>(owned->data(), {columns, rows}, owner));
}

template <class T>
T at(nb::dict const& from, char const* name) {
  return nb::cast<T>(from[name]);
}

std::vector<instruction> code_of(nb::bytes const& given) {
  std::vector<instruction> code(given.size() / sizeof(instruction));
  std::memcpy(static_cast<void*>(code.data()), given.c_str(), code.size() * sizeof(instruction));
  return code;
}

query_program program_of(nb::dict const& given) {
  query_program program;
  program.dense = code_of(at<nb::bytes>(given, "dense"));
  program.sparse = code_of(at<nb::bytes>(given, "sparse"));
  program.constants = at<u32>(given, "constants");
  program.filter = at<u32>(given, "filter");
  program.sparse_filter = at<u32>(given, "sparse_filter");
  program.condition = at<u32>(given, "condition");
  program.scanned = at<std::vector<u16>>(given, "scanned");
  const auto bounds_of = [&](char const* name, std::vector<zone_bound>& to) {
    for (nb::handle each : at<nb::list>(given, name)) {
      to.push_back({nb::cast<u32>(each[0]), nb::cast<std::int64_t>(each[1]), nb::cast<std::int64_t>(each[2])});
    }
  };
  bounds_of("bounds", program.bounds);
  bounds_of("ranges", program.ranges);
  program.residual = code_of(at<nb::bytes>(given, "residual"));
  program.residual_condition = at<u32>(given, "residual_condition");
  for (nb::handle each : at<nb::list>(given, "notes")) {
    program.notes.push_back({nb::cast<u16>(each[0]), nb::cast<u8>(each[1]), nb::cast<bool>(each[2])});
  }
  for (nb::handle each : at<nb::list>(given, "tables")) {
    if (nb::isinstance<kept_lookup>(each)) {
      program.tables.push_back({{}, {}, nb::cast<std::shared_ptr<kept_lookup>>(each)});
    } else {
      program.tables.push_back({values_of(nb::cast<numbers<u64>>(each[0])), values_of(nb::cast<numbers<u8>>(each[1])), {}});
    }
  }
  return program;
}

piece_place piece_of(nb::handle given) {
  piece_place place;
  place.extent = nb::cast<u32>(given[0]);
  place.offset = nb::cast<u64>(given[1]);
  place.first_bit = nb::cast<u32>(given[2]);
  if (given[3].is_none()) return place;
  place.nullable = true;
  place.validity_extent = nb::cast<u32>(given[3]);
  place.validity_offset = nb::cast<u64>(given[4]);
  place.validity_first_bit = nb::cast<u32>(given[5]);
  return place;
}

table_layout layout_of(nb::list const& extents, std::vector<u64> const& pieces, nb::list const& columns) {
  table_layout layout;
  layout.pieces = pieces;
  for (nb::handle each : extents) {
    layout.extents.push_back({nb::cast<std::string>(each[0]), nb::cast<u64>(each[1]), nb::cast<u64>(each[2]),
                              nb::cast<std::shared_ptr<volumes::volume_file>>(each[3])});
  }
  for (nb::handle each : columns) {
    column_layout column;
    column.name = nb::cast<std::string>(each[0]);
    column.how = static_cast<encoding>(nb::cast<u32>(each[1]));
    column.packed_bits = nb::cast<u32>(each[2]);
    column.base = nb::cast<u64>(each[3]);
    column.divisor = nb::cast<double>(each[5]);
    for (nb::handle piece : nb::cast<nb::list>(each[4])) column.pieces.push_back(piece_of(piece));
    layout.columns.push_back(std::move(column));
  }
  return layout;
}

media::media_options options_of(nb::dict const& given) {
  media::media_options options;
  options.executor = at<std::string>(given, "executor");
  options.placement = at<std::string>(given, "placement");
  options.cache_bytes = at<u64>(given, "cache");
  options.line_bytes = at<u64>(given, "line");
  options.threads = at<u32>(given, "threads");
  options.media = at<std::string>(given, "media");
  options.drives = at<u32>(given, "drives");
  options.direct = at<bool>(given, "direct");
  return options;
}

nb::dict account_of(query_account const& a) {
  nb::dict d;
  d["set_up_seconds"] = a.set_up_seconds;
  d["run_seconds"] = a.run_seconds;
  d["seconds"] = a.seconds;
  d["zones"] = a.zones;
  d["zones_skipped"] = a.zones_skipped;
  d["rows_met"] = a.rows_met;
  d["errors"] = a.errors;
  d["bytes_moved"] = a.bytes_moved;
  nb::list passes;
  for (pass_account const& each : a.passes) passes.append(nb::make_tuple(each.what, each.is_compiled, each.seconds));
  d["passes"] = passes;
  return d;
}

/// An object with `compiled`, `interpreted` and `refused` (penstock.columns.compiling).
class python_compiler final : public query_compiler {
 public:
  explicit python_compiler(nb::object of) : of_(std::move(of)) {}
  python_compiler(python_compiler const&) = delete;
  python_compiler& operator=(python_compiler const&) = delete;
  ~python_compiler() override {
    nb::gil_scoped_acquire const with;
    of_.reset();
  }

  std::vector<std::byte> compiled(std::string const& source, bool is_resident) override {
    nb::gil_scoped_acquire const with;
    const nb::object image = of_.attr("compiled")(source, is_resident);
    if (image.is_none()) return {};
    const auto bytes = nb::cast<nb::bytes>(image);
    auto const* const first = static_cast<std::byte const*>(bytes.data());
    return {first, first + bytes.size()};
  }
  void interpreted(std::string const& source, bool is_resident, double seconds) override {
    nb::gil_scoped_acquire const with;
    of_.attr("interpreted")(source, is_resident, seconds);
  }
  void refused(std::string const& source, std::string const& why) override {
    nb::gil_scoped_acquire const with;
    of_.attr("refused")(source, why);
  }

 private:
  nb::object of_;
};

template <class Call>
auto unlocked(Call const& call) {
  nb::gil_scoped_release const without;
  return call();
}

/// For Python, which gives it back holding its lock.
template <class T>
std::shared_ptr<T> lent(std::shared_ptr<T> kept) {
  T* const at = kept.get();
  return {at, [kept = std::move(kept)](T*) mutable {
            nb::gil_scoped_release const without;
            kept.reset();
          }};
}

void compile_with(column_table& table, nb::object compiler, double least_seconds) {
  auto made = std::make_shared<python_compiler>(std::move(compiler));
  unlocked([&] { table.compile_with(std::move(made), least_seconds); });
}

nb::tuple aggregate_rows(column_table& table, nb::dict const& given, std::vector<std::vector<u32>> const& wanted, u32 groups,
                         std::optional<u32> key, bool line_aware) {
  const query_program program = program_of(given);
  std::vector<aggregate> list;
  for (auto const& each : wanted) list.push_back({static_cast<aggregate_kind>(each[0]), static_cast<u8>(each[1])});
  const aggregates found = unlocked([&] { return table.aggregate_rows(program, list, groups, key, line_aware); });
  std::vector<u64> words;
  for (accumulator const& each : found.values) words.insert(words.end(), {each.low, each.high, each.count});
  return nb::make_tuple(rows_of(std::move(words), u64{groups} * list.size(), 3), account_of(found.account));
}

nb::tuple group_rows(column_table& table, nb::dict const& given, std::vector<std::vector<u32>> const& wanted,
                     std::vector<u8> const& keys, nb::list const& given_ranges, bool line_aware) {
  const query_program program = program_of(given);
  std::vector<slot_range> ranges;
  for (nb::handle each : given_ranges) {
    ranges.push_back({nb::cast<u32>(each[0]), nb::cast<u32>(each[1]), nb::cast<u32>(each[2]), nb::cast<std::int64_t>(each[3]),
                      nb::cast<std::int64_t>(each[4])});
  }
  std::vector<counted_aggregate> list;
  for (auto const& each : wanted) {
    list.push_back({{static_cast<aggregate_kind>(each[0]), static_cast<u8>(each[1])}, each[2] != 0});
  }
  key_groups found = unlocked([&] { return table.group_rows(program, list, keys, ranges, line_aware); });
  return nb::make_tuple(words_of(std::move(found.words), found.stride, found.groups), found.slots, account_of(found.account));
}

nb::tuple answer_of(results found, u64 columns) {
  return nb::make_tuple(rows_of(std::move(found.values), columns, found.rows),
                        rows_of(std::move(found.valid), columns, found.rows), account_of(found.account));
}

nb::tuple select_rows(column_table& table, nb::dict const& given, std::vector<u8> const& registers) {
  const query_program program = program_of(given);
  return answer_of(unlocked([&] { return table.select_rows(program, registers); }), registers.size());
}

nb::list kept_rows_of(column_table& table, nb::dict const& given, std::vector<u8> const& registers) {
  const query_program program = program_of(given);
  nb::list found;
  for (auto& each : unlocked([&] { return table.select_kept(program, registers); })) found.append(lent(std::move(each)));
  return found;
}

nb::tuple take_rows_of(column_table& table, nb::dict const& given, std::vector<u8> const& registers, numbers<u64> const& rows) {
  const query_program program = program_of(given);
  const std::vector<u64> list = values_of(rows);
  return answer_of(unlocked([&] { return table.take_numbered(program, registers, list); }), registers.size());
}

}  // namespace

void bind_columns(nb::module_& m) {
  nb::class_<kept_lookup>(m, "ColumnLookup");
  nb::class_<kept_rows>(m, "ColumnRows").def_ro("rows", &kept_rows::rows);
  nb::class_<kept_keys>(m, "ColumnKeys")
      .def_ro("in_order", &kept_keys::by_value)
      .def_ro("low", &kept_keys::low)
      .def_ro("again", &kept_keys::again);
  nb::class_<column_table>(m, "ColumnTable")
      .def(
          "__init__",
          [](column_table* self, nb::list const& extents, std::vector<u64> const& pieces, nb::list const& columns,
             nb::dict const& options) {
            table_layout layout = layout_of(extents, pieces, columns);
            const media::media_options with = options_of(options);
            nb::gil_scoped_release const without;
            new (self) column_table(std::move(layout), with);
          },
          "extents"_a, "pieces"_a, "columns"_a, "options"_a)
      .def_prop_ro("rows", &column_table::rows)
      .def_prop_ro("executor", &column_table::executor_name)
      .def_prop_ro("device", &column_table::device)
      // The thread that has the turn may wait for the GIL, to compile.
      .def("has_zone_map", &column_table::has_zone_map, "column"_a, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("architecture", &column_table::architecture)
      .def("compile_with", &compile_with, "compiler"_a, "least_seconds"_a)
      .def("aggregate", &aggregate_rows, "program"_a, "wanted"_a, "groups"_a, "key"_a.none(), "line_aware"_a)
      .def("group", &group_rows, "program"_a, "wanted"_a, "keys"_a, "ranges"_a, "line_aware"_a)
      .def("select", &select_rows, "program"_a, "registers"_a)
      .def("select_kept", &kept_rows_of, "program"_a, "registers"_a)
      .def(
          "upload",
          [](column_table& table, numbers<u64> const& values, numbers<u8> const& valid) {
            if (values.size() != valid.size()) throw_bad_input("join", "a column", "give as many values as marks");
            return lent(unlocked([&] { return table.upload({values.data(), values.size()}, {valid.data(), valid.size()}); }));
          },
          "values"_a, "valid"_a)
      .def(
          "place",
          [](column_table& table, std::shared_ptr<kept_rows> rows) {
            return lent(unlocked([&] { return table.place(rows); }));
          },
          "rows"_a)
      .def(
          "place_at",
          [](column_table& table, numbers<u64> const& places, u64 count) {
            return lent(unlocked([&] { return table.place_at({places.data(), places.size()}, count); }));
          },
          "places"_a, "count"_a)
      .def(
          "lookup",
          [](column_table& table, std::shared_ptr<kept_keys> keys, std::shared_ptr<kept_rows> rows) {
            return lent(unlocked([&] { return table.lookup(keys, rows); }));
          },
          "keys"_a, "rows"_a)
      .def(
          "extremes",
          [](column_table& table, std::shared_ptr<kept_lookup> lookup) {
            return unlocked([&] { return table.extremes(lookup); });
          },
          "lookup"_a)
      .def(
          "touched",
          [](column_table& table, nb::dict const& given, std::vector<u32> const& columns, u64 line_bytes) {
            const query_program program = program_of(given);
            nb::list found;
            for (column_touch const& each : unlocked([&] { return table.touched(program, columns, line_bytes); })) {
              found.append(nb::make_tuple(each.least_bytes, each.sectors, each.lines));
            }
            return found;
          },
          "program"_a, "columns"_a, "line_bytes"_a)
      .def("take", &take_rows_of, "program"_a, "registers"_a, "rows"_a);
}

}  // namespace penstock::columns
