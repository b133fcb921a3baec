#include "libs/graph/weights.hpp"

#include "libs/graph/number_text.hpp"
#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace penstock::graph {
namespace {

/// Weights that a thread reads at once.
constexpr u64 piece = u64{1} << 18;

/// What was found of a file of weights that has not changed since: device, file, bytes, time of the last change in ns.
using file_state = std::tuple<u64, u64, u64, u64>;

struct checked_files {
  std::mutex lock;
  std::map<file_state, double> largest;
};

checked_files& checked() {
  static checked_files files;
  return files;
}

/// Nothing where the weights are in no file of a file system.
std::optional<file_state> state_of(array_place const& place) {
  struct stat about{};
  if (place.stored != nullptr || ::stat(place.path.c_str(), &about) != 0) return std::nullopt;
  auto const changed = static_cast<u64>(about.st_ctim.tv_sec) * 1'000'000'000 + static_cast<u64>(about.st_ctim.tv_nsec);
  return file_state{about.st_dev, about.st_ino, static_cast<u64>(about.st_size), changed};
}

template <class Weight>
bool is_good(Weight weight) {
  if constexpr (std::is_floating_point_v<Weight>) return weight >= 0 && std::isfinite(weight);
  return weight >= 0;
}

template <class T>
void lower(std::atomic<T>& to, T value) {
  for (T seen = to.load(); value < seen && !to.compare_exchange_weak(seen, value);) {}
}

/// The position of the first weight that is not good, or their number; and the largest.
template <class Weight>
std::pair<u64, double> scan(array_place const& place, progress_meter& meter) {
  std::atomic<u64> first = place.count;
  std::atomic<double> minus_largest = 0;
  byte_input const in = place.open();
  parallel_for(ceil_div(place.count, piece), worker_count(0), meter, [&](u64 k) {
    if (k * piece > first.load()) return;
    std::vector<Weight> weights(std::min(piece, place.count - k * piece));
    in.read(place.data_offset + k * piece * sizeof(Weight), std::as_writable_bytes(std::span(weights)));
    auto const bad = std::find_if(weights.begin(), weights.end(), [](Weight w) { return !is_good(w); });
    if (bad != weights.end()) return lower(first, k * piece + static_cast<u64>(bad - weights.begin()));
    lower(minus_largest, -static_cast<double>(*std::max_element(weights.begin(), weights.end())));
  });
  return {first.load(), -minus_largest.load()};
}

template <class Id>
u64 end_of(graph_folder const& graph, u64 edge) {
  return static_cast<u64>(edge_reader<Id>(graph).read(edge, edge + 1, false)[0]);
}

template <class Weight>
[[noreturn]] void refuse(graph_folder const& graph, std::string const& operation, u64 edge) {
  array_place const& place = *graph.weights_place();
  const Weight weight = edge_reader<Weight>(place).read(edge, edge + 1, false)[0];
  auto const offsets = graph.offsets();
  const u64 from = static_cast<u64>(std::upper_bound(offsets.begin(), offsets.end(), edge) - offsets.begin()) - 1;
  const u64 to = graph.edges_place().item_bytes == 4 ? end_of<std::int32_t>(graph, edge) : end_of<std::int64_t>(graph, edge);
  const std::string ends = std::to_string(from) + " -> " + std::to_string(to);
  throw_bad_input(operation, place.path,
                  "the weight of edge " + std::to_string(edge) + ", " + ends + ", is " + number_text(weight) +
                      ": give finite weights of 0 or more");
}

template <class Weight>
double check(graph_folder const& graph, std::string const& operation, progress_meter& meter) {
  auto const [first, largest] = scan<Weight>(*graph.weights_place(), meter);
  if (first != graph.weights_place()->count) refuse<Weight>(graph, operation, first);
  return largest;
}

}  // namespace

double check_weights(graph_folder const& graph, std::string const& operation, progress_meter& meter) {
  array_place const& place = *graph.weights_place();
  auto const state = state_of(place);
  if (state) {
    std::lock_guard const held(checked().lock);
    if (auto const known = checked().largest.find(*state); known != checked().largest.end()) return known->second;
  }
  const double largest =
      place.kind == 'f' ? check<float>(graph, operation, meter) : check<std::int32_t>(graph, operation, meter);
  if (state && state_of(place) == state) {
    std::lock_guard const held(checked().lock);
    checked().largest.emplace(*state, largest);
  }
  return largest;
}

bool sums_fit(double largest, u64 vertices) { return vertices == 0 || largest * static_cast<double>(vertices - 1) < 0x1p63; }

}  // namespace penstock::graph
