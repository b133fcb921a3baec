// Arrays for Python: classes of penstock._native that penstock.array wraps. Addresses are numbers; Python keeps what lies there
// alive.
#include "libs/kernels/shared_executor.hpp"
#include "libs/media/names.hpp"
#include "libs/volume/volume_entry.hpp"
#include "penstock/host/error.hpp"
#include "penstock/host/npy.hpp"
#include "penstock/host/watched_mapping.hpp"
#include "penstock/rows/row_array.hpp"
#include "without_lock.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <algorithm>
#include <memory>

PENSTOCK_DESTROY_WITHOUT_LOCK(penstock::shared_executor)
PENSTOCK_DESTROY_WITHOUT_LOCK(penstock::row_array)
PENSTOCK_DESTROY_WITHOUT_LOCK(penstock::row_call)

namespace penstock {
namespace {

namespace nb = nanobind;
using namespace nanobind::literals;

gather_order order_named(std::string const& name) {
  if (name == "auto") return gather_order::automatic;
  if (name == "as-asked") return gather_order::as_asked;
  if (name == "by-address") return gather_order::by_address;
  if (name == "copy-engine") return gather_order::copy_engine;
  throw_bad_input("gather", "rows", "there is no order " + name + ": choose auto, as-asked, by-address or copy-engine");
}

number_kind kind_named(std::string const& dtype) {
  if (dtype == "int32") return number_kind::int32;
  if (dtype == "int64") return number_kind::int64;
  if (dtype == "uint32") return number_kind::uint32;
  if (dtype == "uint64") return number_kind::uint64;
  if (dtype == "float32") return number_kind::float32;
  if (dtype == "float64") return number_kind::float64;
  throw_bad_input("add to", "rows of " + dtype, "only 4- and 8-byte numbers can be added: store whole rows instead");
}

/// Memory next to the kernels that a result lies in.
struct row_buffer {
  shared_executor* owner;
  buffer<std::byte> memory;

  row_buffer(shared_executor& on, u64 bytes) : owner(&on), memory(on.on->memory(), memory_kind::local, bytes) {}
};

/// Memory of an argument while Python reads it.
class watched_memory {
 public:
  watched_memory(u64 address, u64 bytes) { watch_.emplace(reinterpret_cast<void*>(address), bytes, true, mapping_of::caller); }
  bool is_cut() const { return watch_ && watch_->is_cut(); }
  void close() { watch_.reset(); }

 private:
  std::optional<watched_mapping> watch_;
};

row_array_options options_of(nb::dict const& given) {
  row_array_options options;
  options.where = media::parse_placement(nb::cast<std::string>(given["placement"]));
  options.writable = nb::cast<bool>(given["writable"]);
  options.cache.bytes = nb::cast<u64>(given["cache"]);
  options.cache.line_bytes = nb::cast<u64>(given["line"]);
  options.cache.directory = media::parse_directory(nb::cast<std::string>(given["directory"]));
  options.engine = media::parse_engine(nb::cast<std::string>(given["engine"]));
  options.direct = nb::cast<bool>(given["direct"]);
  options.controller_threads = nb::cast<u32>(given["threads"]);
  options.gather_threads = nb::cast<u32>(given["gather_threads"]);
  if (given.contains("parts")) {
    options.copied = {nb::cast<std::vector<int>>(given["parts"]), nb::cast<u32>(given["processes"]),
                      nb::cast<u32>(given["own"])};
  }
  return options;
}

row_source source_of(std::string const& path, u64 offset, u64 address) {
  row_source source;
  source.path = path;
  source.offset = offset;
  source.memory = reinterpret_cast<void*>(address);
  return source;
}

/// The bytes of a file on a volume from `offset` on. Throws bad_input for one on drives: a GPU, and other arrays, do not share
/// their memory.
row_source source_on(std::shared_ptr<volumes::volume_file> file, std::string const& name, u64 offset) {
  volumes::volume const& all = file->from().all;
  volumes::geometry const& shape = all.shape();
  file_volume spread{shape.layout, shape.stripe_bytes, {}, shape.member_bytes, file->file().sums_begin};
  for (u32 m = 0; m < all.members(); ++m) {
    const volumes::namespace_place place = all.place_of(m);
    if (place.drive != nullptr) {
      throw_bad_input(
          "open", name,
          "its volume is on NVMe drives, and arrays are read from members that are files or block devices: export it");
    }
    spread.members.push_back(place.path);
  }
  row_source source;
  source.path = name;
  source.offset = file->file().file_begin + offset;
  source.volume = std::move(spread);
  source.owner = std::move(file);
  return source;
}

/// A reference to a Python object for those that know no Python; given back on any thread.
std::shared_ptr<void> owner_of(nb::object const& object) {
  if (object.is_none()) return nullptr;
  return {object.inc_ref().ptr(), [](void* held) {
            if (!nb::is_alive()) return;  // the interpreter has ended, and its objects with it
            const nb::gil_scoped_acquire locked;
            nb::handle(static_cast<PyObject*>(held)).dec_ref();
          }};
}

/// Rows by the address of their numbers, or as a grid, and where a call for them goes.
struct rows_at {
  row_list rows;
  u64 stream = 0;
  u32 sms = 0;

  rows_at(u64 address, u64 count, u32 item_bytes, u64 to, u32 units, bool negative_indices, row_part const& part = {})
      : rows{reinterpret_cast<void const*>(address), count, item_bytes, negative_indices, {}, part}, stream(to), sms(units) {}

  /// loops: step and count, the outermost first.
  static rows_at grid(u64 first, std::vector<std::pair<std::int64_t, u64>> const& loops, u64 pitch, u64 bytes, u64 to,
                      u32 units) {
    std::vector<row_grid::loop> levels;
    for (auto const& [step, count] : loops) levels.push_back({step, count});
    rows_at made(0, 0, 8, to, units, true);
    made.rows = row_list::over(first, levels, {pitch, 0, bytes});
    return made;
  }

  row_list const& list() const { return rows; }
  row_call_options how(std::string const& order = "auto") const {
    return {reinterpret_cast<void*>(stream), sms, order_named(order)};
  }
};

nb::dict stats_of(cache_stats const& s) {
  nb::dict d;
  d["hits"] = s.hits;
  d["misses"] = s.misses;
  d["joins"] = s.joins;
  d["fills"] = s.fills;
  d["prefetches"] = s.prefetches;
  d["evictions"] = s.evictions;
  d["retries"] = s.retries;
  d["errors"] = s.errors;
  d["bytes_moved"] = s.bytes_moved;
  d["writes"] = s.writes;
  d["write_backs"] = s.write_backs;
  d["write_commands"] = s.write_commands;
  d["frame_waits"] = s.frame_waits;
  d["bytes_changed"] = s.bytes_changed;
  d["bytes_written"] = s.bytes_written;
  return d;
}

/// Memory for those who take DLPack; `owner` lives as long as they have it. code, bits: of DLPack's DLDataType; device: its
/// DLDeviceType and a number.
nb::object dlpack_memory(nb::object const& owner, u64 address, std::vector<std::size_t> const& shape, u8 code, u8 bits,
                         std::pair<int, int> device, bool read_only) {
  const nb::dlpack::dtype type{code, bits, 1};
  auto* const data = reinterpret_cast<void*>(address);
  if (read_only) {
    return nb::cast(nb::ndarray<nb::array_api, nb::ro>(data, shape.size(), shape.data(), owner, nullptr, type, device.first,
                                                       device.second));
  }
  return nb::cast(
      nb::ndarray<nb::array_api>(data, shape.size(), shape.data(), owner, nullptr, type, device.first, device.second));
}

nb::dict plan(shared_executor const& on, u64 rows, u64 row_bytes, std::string const& path, nb::dict const& given) {
  row_source source = source_of(path, 0, 0);
  if (volumes::is_volume_name(path)) source.volume.emplace();
  const row_array_plan p = plan_rows(*on.on, {rows, row_bytes}, source, options_of(given));
  nb::dict d;
  d["hbm_bytes"] = p.hbm_bytes;
  d["host_bytes"] = p.host_bytes;
  d["storage_bytes"] = p.storage_bytes;
  d["metadata_bytes"] = p.metadata_bytes;
  d["transit_bytes"] = p.transit_bytes;
  d["mapping_bytes"] = p.mapping_bytes;
  return d;
}

/// Calls `callback("copy", done, total)` if there is one and lets Python handle signals; a Python exception stops the copy.
row_progress progress_of(nb::object const& callback) {
  return [callback = callback.ptr()](u64 done, u64 total) {
    const nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (callback != Py_None) nb::borrow(callback)("copy", done, total);
  };
}

u64 number_of(void const* address) { return reinterpret_cast<u64>(address); }

nb::class_<row_array> bind_calls(nb::module_& m) {
  using released = nb::call_guard<nb::gil_scoped_release>;
  return nb::class_<row_array>(m, "RowArray")
      .def(
          "__init__",
          [](row_array* self, shared_executor& on, u64 rows, u64 row_bytes, std::string const& path, u64 offset, u64 address,
             nb::object const& memory, nb::dict const& given, nb::object const& progress,
             std::shared_ptr<volumes::volume_file> const& stored) {
            const row_array_options options = options_of(given);
            row_source source = stored ? source_on(stored, path, offset) : source_of(path, offset, address);
            if (!stored) source.owner = owner_of(memory);
            const row_progress watch = progress_of(progress);
            const nb::gil_scoped_release unlocked;
            new (self) row_array(*on.on, {rows, row_bytes}, source, options, watch);
          },
          "executor"_a, "rows"_a, "row_bytes"_a, "path"_a, "offset"_a, "address"_a, "memory"_a.none(), "options"_a,
          "progress"_a.none(), "stored"_a.none() = nb::none(), nb::keep_alive<1, 2>())
      .def(
          "gather",
          [](row_array& a, rows_at const& rows, u64 out, std::string const& order) {
            return a.gather(rows.list(), reinterpret_cast<void*>(out), rows.how(order));
          },
          released(), nb::keep_alive<0, 1>())
      .def(
          "gather_now",
          [](row_array& a, u64 address, u64 count, u32 item_bytes, u64 stream, u32 sms, u64 out, std::string const& order,
             bool negative_indices) {
            const row_call_options how{reinterpret_cast<void*>(stream), sms, order_named(order)};
            const row_list rows{reinterpret_cast<void const*>(address), count, item_bytes, negative_indices};
            return a.gather_now(rows, reinterpret_cast<void*>(out), how);
          },
          "address"_a, "count"_a, "item_bytes"_a, "stream"_a, "sms"_a, "out"_a, "order"_a, "negative_indices"_a = true,
          released())
      .def(
          "gather_rows",
          [](row_array& a, rows_at const& rows, u64 out, std::string const& order) {
            return a.gather_now(rows.list(), reinterpret_cast<void*>(out), rows.how(order));
          },
          released())
      .def(
          "prefetch", [](row_array& a, rows_at const& rows) { return a.prefetch(rows.list(), rows.how()); }, released(),
          nb::keep_alive<0, 1>())
      .def(
          "scatter",
          [](row_array& a, rows_at const& rows, u64 values) {
            return a.scatter(rows.list(), reinterpret_cast<void const*>(values), rows.how());
          },
          released(), nb::keep_alive<0, 1>())
      .def(
          "add",
          [](row_array& a, rows_at const& rows, std::string const& dtype, u64 values) {
            return a.add(rows.list(), kind_named(dtype), reinterpret_cast<void const*>(values), rows.how());
          },
          released(), nb::keep_alive<0, 1>())
      .def_static(
          "gather_all",
          [](std::vector<row_array*> const& arrays, std::vector<rows_at> const& rows, std::vector<u64> const& out) {
            std::vector<row_gather> gathers;
            for (std::size_t k = 0; k < arrays.size(); ++k) {
              gathers.push_back({arrays[k], rows.at(k).list(), reinterpret_cast<void*>(out.at(k))});
            }
            const row_call_options how = rows.empty() ? row_call_options{} : rows.front().how();
            const nb::gil_scoped_release unlocked;
            return gather_all(gathers, how);
          },
          "arrays"_a, "rows"_a, "out"_a);
}

void bind_array(nb::module_& m) {
  using released = nb::call_guard<nb::gil_scoped_release>;
  bind_calls(m)
      .def("adds_in_place", [](row_array const& a, std::string const& dtype) { return a.adds_in_place(kind_named(dtype)); })
      .def(
          "check_replays", [](row_array& a, u64 stream) { return a.check_replays(reinterpret_cast<void*>(stream)); },
          released(), "stream"_a)
      .def(
          "lend_for_good",
          [](row_array& a, u64 element_bytes, bool stores, std::vector<u64> const& shape) {
            kernels::array_descriptor lent{};
            lent.dimensions = static_cast<u32>(std::min<u64>(shape.size(), kernels::max_dimensions));
            std::copy_n(shape.begin(), lent.dimensions, lent.shape);
            a.lend_for_good(lent, element_bytes, stores);
            return nb::bytes(reinterpret_cast<char const*>(&lent), sizeof lent);
          },
          "element_bytes"_a, "stores"_a, "shape"_a)
      .def(
          "keep_rows",
          [](row_array& a, nb::ndarray<std::int64_t const, nb::ndim<1>, nb::c_contig, nb::device::cpu> const& rows,
             nb::object const& progress) {
            const row_progress watch = progress_of(progress);
            const nb::gil_scoped_release unlocked;
            a.keep_rows({rows.data(), rows.shape(0)}, watch);
          },
          "rows"_a, "progress"_a.none())
      .def("share_kept_rows", &row_array::share_kept_rows, released(), "rows"_a, "processes"_a, "everywhere"_a)
      .def(
          "keep_rows_together",
          [](row_array& a, nb::ndarray<std::int64_t const, nb::ndim<1>, nb::c_contig, nb::device::cpu> const& rows,
             std::vector<int> const& parts, u32 own, u64 everywhere, nb::object const& progress) {
            const row_progress watch = progress_of(progress);
            const nb::gil_scoped_release unlocked;
            a.keep_rows_together({rows.data(), rows.shape(0)}, {parts, own, everywhere}, watch);
          },
          "rows"_a, "parts"_a, "own"_a, "everywhere"_a, "progress"_a.none())
      .def(
          "kept_rows_taken",
          [](row_array const& a, u64 stream) {
            const kept_reads taken = [&] {
              const nb::gil_scoped_release unlocked;
              return a.kept_rows_taken(reinterpret_cast<void*>(stream));
            }();
            return std::pair(taken.own, taken.peers);
          },
          "stream"_a)
      .def("flush", &row_array::flush, released())
      .def("check_file", &row_array::check_file, released())
      .def("give_up_writing", &row_array::give_up_writing)
      .def(
          "move_memory", [](row_array& a, u64 to) { a.move_memory(reinterpret_cast<void*>(to)); }, released(), "to"_a)
      .def("stats",
           [](row_array const& a) {
             const auto s = a.stats();
             nb::dict counts = s ? stats_of(*s) : nb::dict();
             counts["bytes_requested"] = a.bytes_requested();
             return counts;
           })
      .def_prop_ro("host_address", [](row_array const& a) { return number_of(a.host_address()); })
      .def_prop_ro("storable_address", [](row_array const& a) { return number_of(a.storable_address()); })
      .def_prop_ro("kernel_address", [](row_array const& a) { return number_of(a.kernel_address()); });
}

}  // namespace
}  // namespace penstock

PENSTOCK_DESTROY_WITHOUT_LOCK(penstock::row_buffer)

namespace penstock {

void bind_rows(nb::module_& m) {
  using released = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<shared_executor>(m, "Executor")
      .def_static("open", &shared_executor::open, "name"_a, "threads"_a)
      .def_prop_ro("cuda", [](shared_executor const& e) { return e.on->kind() == executor_kind::cuda; })
      .def_prop_ro("device", [](shared_executor const& e) { return e.on->device(); })
      .def_prop_ro("gpu", [](shared_executor const& e) { return e.on->gpu(); })
      .def(
          "share_copy", [](shared_executor const& e, u64 bytes, u32 processes) { return share_copy(*e.on, bytes, processes); },
          released(), "bytes"_a, "processes"_a)
      .def_prop_ro("place", [](shared_executor const& e) { return e.on->memory().place(); })
      .def(
          "no_fast_link_to",
          [](shared_executor const& e, std::string const& place) { return e.on->memory().no_fast_link_to(place); }, "place"_a)
      .def_prop_ro("free_bytes", [](shared_executor const& e) { return e.on->memory().free_bytes(); })
      .def_prop_ro("stream", [](shared_executor const& e) { return number_of(e.on->stream()); });
  nb::class_<row_buffer>(m, "RowBuffer")
      .def(nb::init<shared_executor&, u64>(), "executor"_a, "bytes"_a, nb::keep_alive<1, 2>())
      .def_prop_ro("address", [](row_buffer const& b) { return number_of(b.memory.data()); })
      .def(
          "write",
          [](row_buffer& b, u64 from, u64 bytes) {
            b.owner->on->memory().write(b.memory.data(), reinterpret_cast<void const*>(from), bytes);
          },
          released())
      .def(
          "read",
          [](row_buffer const& b, u64 to, u64 bytes) {
            b.owner->on->memory().read(reinterpret_cast<void*>(to), b.memory.data(), bytes);
          },
          released());
  nb::class_<watched_memory>(m, "WatchedMemory")
      .def(nb::init<u64, u64>(), "address"_a, "bytes"_a)
      .def("is_cut", &watched_memory::is_cut)
      .def("close", &watched_memory::close);
  nb::class_<row_call>(m, "RowCall")
      .def("wait", &row_call::wait, released())
      .def_prop_ro("done", &row_call::is_done)
      .def("order_before", [](row_call& c, u64 stream) { c.order_before(reinterpret_cast<void*>(stream)); });
  nb::class_<rows_at>(m, "RowsAt")
      .def(nb::init<u64, u64, u32, u64, u32, bool>(), "address"_a, "count"_a, "item_bytes"_a, "stream"_a, "sms"_a,
           "negative_indices"_a)
      .def_static(
          "parts",
          [](u64 address, u64 count, u32 item_bytes, u64 stream, u32 sms, u64 pitch, u64 offset, u64 bytes) {
            return rows_at(address, count, item_bytes, stream, sms, true, {pitch, offset, bytes});
          },
          "address"_a, "count"_a, "item_bytes"_a, "stream"_a, "sms"_a, "pitch"_a, "offset"_a, "bytes"_a)
      .def_static("grid", &rows_at::grid, "first"_a, "loops"_a, "pitch"_a, "bytes"_a, "stream"_a, "sms"_a);
  bind_array(m);
  m.def(
      "npy_header",
      [](std::string const& kind, u32 item_bytes, std::vector<u64> const& shape) {
        const std::string header = make_npy_header(kind.at(0), item_bytes, shape);
        return nb::bytes(header.data(), header.size());
      },
      "kind"_a, "item_bytes"_a, "shape"_a);
  m.def("dlpack_memory", &dlpack_memory, "owner"_a, "address"_a, "shape"_a, "code"_a, "bits"_a, "device"_a, "read_only"_a);
  m.def("plan_rows", &plan, "executor"_a, "rows"_a, "row_bytes"_a, "path"_a, "options"_a);
}

}  // namespace penstock
