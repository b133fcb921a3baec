// Neighbour sampling for Python: classes of penstock._native that penstock.sampling wraps. Addresses are numbers; Python keeps
// what lies there alive.
#include "libs/kernels/shared_executor.hpp"
#include "libs/sampling/neighbor_sampler.hpp"
#include "libs/sampling/node_scores.hpp"
#include "without_lock.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

PENSTOCK_DESTROY_WITHOUT_LOCK(penstock::sampling::neighbor_sampler)
PENSTOCK_DESTROY_WITHOUT_LOCK(penstock::sampling::node_scores)

namespace penstock::sampling {
namespace {

namespace nb = nanobind;
using namespace nanobind::literals;
using released = nb::call_guard<nb::gil_scoped_release>;
using node_numbers = nb::ndarray<std::int64_t const, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

number_array numbers_of(nb::handle given) {
  if (given.is_none()) return {};
  const auto pair = nb::cast<nb::tuple>(given);
  return {nb::cast<row_array*>(pair[0]), nb::cast<u32>(pair[1])};
}

edge_type type_of(nb::dict const& given) {
  edge_type type;
  type.target = nb::cast<u32>(given["target"]);
  type.source = nb::cast<u32>(given["source"]);
  type.pointers = numbers_of(given["pointers"]);
  type.neighbors = numbers_of(given["neighbors"]);
  type.weights = numbers_of(given["weights"]);
  type.edge_times = numbers_of(given["edge_times"]);
  type.node_times = numbers_of(given["node_times"]);
  return type;
}

/// `seeds`: of each node type an address of int64 and how many there are.
sample_request request_of(std::vector<std::pair<u64, u64>> const& seeds, nb::dict const& options) {
  sample_request request;
  for (auto const& [address, count] : seeds) {
    request.seeds.push_back({reinterpret_cast<std::int64_t const*>(address), count});
  }
  request.seed_times = reinterpret_cast<std::int64_t const*>(nb::cast<u64>(options["seed_times"]));
  for (auto const& hops : nb::cast<std::vector<std::vector<std::int64_t>>>(options["fanouts"])) {
    auto& to = request.fanouts.emplace_back();
    for (const std::int64_t each : hops) to.push_back(each < 0 ? all_neighbors : static_cast<u32>(each));
  }
  request.replace = nb::cast<bool>(options["replace"]);
  request.disjoint = nb::cast<bool>(options["disjoint"]);
  request.latest = nb::cast<bool>(options["latest"]);
  request.induced = nb::cast<bool>(options["induced"]);
  request.seed = nb::cast<u64>(options["seed"]);
  request.call = nb::cast<u64>(options["call"]);
  request.stream = reinterpret_cast<void*>(nb::cast<u64>(options["stream"]));
  request.units = nb::cast<u32>(options["sms"]);
  return request;
}

nb::object doubles(std::vector<double> values) {
  auto* const owned = new std::vector<double>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, double, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

template <class Call>
auto unlocked(Call const& call) {
  const nb::gil_scoped_release without;
  return call();
}

}  // namespace

void bind_sampling(nb::module_& m) {
  nb::class_<neighbor_sampler>(m, "NeighborSampler")
      .def(
          "__init__",
          [](neighbor_sampler* self, shared_executor& on, std::vector<u64> nodes, std::vector<nb::dict> const& types) {
            std::vector<edge_type> all;
            all.reserve(types.size());
            for (nb::dict const& each : types) all.push_back(type_of(each));
            new (self) neighbor_sampler(*on.on, std::move(nodes), std::move(all));
          },
          "executor"_a, "nodes"_a, "types"_a, nb::keep_alive<1, 2>())
      .def(
          "sample",
          [](neighbor_sampler& self, std::vector<std::pair<u64, u64>> const& seeds, nb::dict const& options) {
            const sample_request request = request_of(seeds, options);
            sample_sizes sizes = unlocked([&] { return self.sample(request); });
            return std::pair(std::move(sizes.nodes), std::move(sizes.edges));
          },
          "seeds"_a, "options"_a)
      .def(
          "take_nodes",
          [](neighbor_sampler& self, u32 type, u64 nodes, u64 trees) {
            self.take_nodes(type, reinterpret_cast<std::int64_t*>(nodes), reinterpret_cast<std::int64_t*>(trees));
          },
          "type"_a, "nodes"_a, "trees"_a, released())
      .def(
          "take_edges",
          [](neighbor_sampler& self, u32 type, u64 rows, u64 columns, u64 edges) {
            self.take_edges(type, reinterpret_cast<std::int64_t*>(rows), reinterpret_cast<std::int64_t*>(columns),
                            reinterpret_cast<std::int64_t*>(edges));
          },
          "type"_a, "rows"_a, "columns"_a, "edges"_a, released());
  nb::class_<node_scores>(m, "NodeScores")
      .def(
          "__init__",
          [](node_scores* self, shared_executor& on, u64 nodes, nb::dict const& lists) {
            new (self) node_scores(*on.on, nodes, type_of(lists));
          },
          "executor"_a, "nodes"_a, "lists"_a, nb::keep_alive<1, 2>())
      .def("count_out_degrees", [](node_scores& self) { return doubles(unlocked([&] { return self.count_out_degrees(); })); })
      .def(
          "start", [](node_scores& self, node_numbers const& weighted) { self.start({weighted.data(), weighted.shape(0)}); },
          "weighted"_a)
      .def("step", &node_scores::step, "damping"_a, released())
      .def("values", [](node_scores const& self) { return doubles(unlocked([&] { return self.values(); })); });
}

}  // namespace penstock::sampling
