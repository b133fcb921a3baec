#include "libs/graph/binary_csr.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace penstock::graph {
namespace {

template <class T>
T load(std::byte const* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

binary_csr::binary_csr(csr_layout layout) : layout_(std::move(layout)) {
  read_offsets();
  check_offsets();
}

void binary_csr::read_offsets() {
  u64 const stored = stored_offsets();
  csr_column const& column = layout_.offsets;
  offsets_.resize(vertices() + 1, edges());
  constexpr u64 step = u64{1} << 20;
  for (u64 begin = 0; begin < stored; begin += step) {
    u64 const end = std::min(begin + step, stored);
    std::vector<std::byte> const bytes = read_items(column, begin, end);
    for (u64 i = begin; i < end; ++i) {
      std::byte const* const at = bytes.data() + (i - begin) * column.stride;
      offsets_[i] = column.type == item_type::uint64 ? load<u64>(at) : load<u32>(at);
    }
  }
}

void binary_csr::check_offsets() const {
  std::string const& name = name_of(layout_.offsets);
  if (offsets_.front() != 0)
    throw_bad_input("read", name, "offset 0 is " + std::to_string(offsets_.front()) + ", not 0: the file is damaged");
  for (u64 v = 0; v + 1 < stored_offsets(); ++v)
    if (offsets_[v + 1] < offsets_[v])
      throw_bad_input("read", name,
                      "offsets go backwards from vertex " + std::to_string(v) + " (" + std::to_string(offsets_[v]) +
                          ") to the next (" + std::to_string(offsets_[v + 1]) + "): the file is damaged");
  u64 const last = stored_offsets() == 0 ? 0 : offsets_[stored_offsets() - 1];
  if (layout_.closing_offset ? last != edges() : last > edges())
    throw_bad_input("read", name,
                    "the last offset is " + std::to_string(last) + ", there are " + std::to_string(edges()) +
                        " edges: the file is damaged");
}

/// The bytes from item `begin` to item `end`, with whatever lies between items.
std::vector<std::byte> binary_csr::read_items(csr_column const& column, u64 begin, u64 end) const {
  u64 const gap = column.stride - bytes_of(column.type);
  std::vector<std::byte> bytes((end - begin) * column.stride - gap);
  layout_.inputs[column.input].read(column.begin + begin * column.stride, bytes);
  return bytes;
}

u64 binary_csr::checked_target(std::byte const* at, u64 position) const {
  item_type const type = layout_.targets.type;
  u64 const id = type == item_type::uint64 ? load<u64>(at) : load<u32>(at);
  if (id < vertices()) return id;
  // As it is written: -5, not 4294967291. No format with int32 ids has more vertices than those count.
  std::string const written = type == item_type::int32 ? std::to_string(load<std::int32_t>(at)) : std::to_string(id);
  throw_bad_input("read", name_of(layout_.targets),
                  "edge " + std::to_string(position) + " points to vertex " + written + ", the graph has " +
                      std::to_string(vertices()) + ": the file is damaged");
}

u32 binary_csr::checked_weight(std::byte const* at, u64 position) const {
  u32 const weight = load<u32>(at);
  if (layout_.unsigned_weights && weight >> 31 != 0)
    throw_bad_input("read", name_of(layout_.weight_values),
                    "edge " + std::to_string(position) + " has weight " + std::to_string(weight) +
                        ", which does not fit int32: scale the weights");
  if (layout_.weights == weight_type::float32 && !std::isfinite(std::bit_cast<float>(weight)))
    throw_bad_input("read", name_of(layout_.weight_values),
                    "the weight of edge " + std::to_string(position) + " is no finite number: correct or remove it");
  return weight;
}

void binary_csr::produce(u64 block, edge_sink const& sink) const {
  u64 const begin = block * block_edges, end = std::min(begin + block_edges, edges());
  bool const weighted = weights() != weight_type::none;
  csr_column const &targets = layout_.targets, &values = layout_.weight_values;
  std::vector<std::byte> const ids = read_items(targets, begin, end);
  std::vector<std::byte> const weights = weighted ? read_items(values, begin, end) : std::vector<std::byte>();
  // The last vertex whose list starts at or before `begin`; empty lists before it are skipped below.
  u64 from = static_cast<u64>(std::upper_bound(offsets_.begin(), offsets_.end(), begin) - offsets_.begin()) - 1;
  std::vector<edge> batch;
  for (u64 position = begin; position < end; ++position) {
    while (offsets_[from + 1] <= position) ++from;
    u64 const i = position - begin;
    u64 const to = checked_target(ids.data() + i * targets.stride, position);
    batch.push_back({from, to, weighted ? checked_weight(weights.data() + i * values.stride, position) : 0});
    if (batch.size() == 2048) sink(batch), batch.clear();
  }
  if (!batch.empty()) sink(batch);
}

}  // namespace penstock::graph
