#include "libs/analytics/subgraph_copies.hpp"

#include "libs/analytics/graph_choices.hpp"
#include "libs/graph/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <type_traits>

namespace penstock::analytics {
namespace {

/// What a thread takes at once: enough that starting threads is little of it.
constexpr u64 edges_at_once = 1 << 16;
constexpr u64 lists_at_once = 1 << 15;
constexpr u64 least_part = 64;  // edges

void in_pieces(u64 count, u64 piece, unsigned threads, std::function<void(u64, u64)> const& body) {
  graph::progress_meter silent;
  graph::parallel_for(ceil_div(count, piece), threads, silent,
                      [&](u64 k) { body(k * piece, std::min(count, (k + 1) * piece)); });
}

template <class T, class Is>
u64 find_first(array_view<T> const& values, unsigned threads, Is const& is) {
  std::atomic<u64> found = ~u64{0};
  in_pieces(values.size(), edges_at_once, threads, [&](u64 first, u64 last) {
    for (u64 k = first; k < last; ++k) {
      if (!is(values.resident()[k])) continue;
      for (u64 seen = found.load(); k < seen && !found.compare_exchange_weak(seen, k);) {}
      return;
    }
  });
  return found + 1;
}

}  // namespace

template <class Id>
subgraph_copies<Id>::subgraph_copies(executor& on, graph::graph_folder const& graph, graph_options const& options,
                                     media::placed_array const& edges, media::placed_array const* weights)
    : on_(on), graph_(graph), threads_(graph::worker_count(options.threads)), placed_edges_(edges), placed_weights_(weights) {
  if (options.strategy != "auto") {
    throw_bad_input("walk", "strategy '" + options.strategy + "'",
                    "placement subgraph copies lists and walks the copies in tiles: leave strategy auto");
  }
  const u64 each = sizeof(Id) + sizeof(u64) + (weights != nullptr ? sizeof(u32) : 0);
  capacity_ = std::clamp<u64>(options.cache_bytes / each, least_part, std::max(least_part, graph.edges() + graph.vertices()));
  const auto both = [&](auto& local, auto& staged, u64 count) {
    local = {on.memory(), memory_kind::local, count};
    staged = {on.memory(), memory_kind::shared, count};
  };
  both(edges_, staged_edges_, capacity_);
  both(offsets_, staged_offsets_, capacity_ + 1);
  if (weights != nullptr) both(weights_, staged_weights_, capacity_);
}

template <class Id>
void subgraph_copies<Id>::take(Id const* vertices, u64 count) {
  all_ = vertices == nullptr;
  lists_ = all_ ? graph_.vertices() : count;
  done_ = list_ = 0;
  if (all_) {
    edges_count_ = graph_.edges();
    return;
  }
  chosen_.resize(count);
  on_.memory().read(chosen_.data(), vertices, count * sizeof(Id));
  ends_.resize(count + 1);
  auto const offsets = graph_.offsets();
  std::vector<u64> sums(ceil_div(count, lists_at_once) + 1, 0);
  in_pieces(count, lists_at_once, threads_, [&](u64 first, u64 last) {
    u64 sum = 0;
    for (u64 k = first; k < last; ++k) {
      ends_[k] = sum;
      const auto v = static_cast<u64>(chosen_[k]);
      sum += offsets[v + 1] - offsets[v];
    }
    sums[first / lists_at_once + 1] = sum;
  });
  for (u64 piece = 1; piece < sums.size(); ++piece) sums[piece] += sums[piece - 1];
  in_pieces(count, lists_at_once, threads_, [&](u64 first, u64 last) {
    for (u64 k = first; k < last; ++k) ends_[k] += sums[first / lists_at_once];
  });
  ends_[count] = edges_count_ = sums.back();
}

template <class Id>
std::optional<typename subgraph_copies<Id>::part> subgraph_copies<Id>::next() {
  if (done_ == edges_count_) return std::nullopt;
  u64 const* const begins = all_ ? graph_.offsets().data() : ends_.data();
  list_ = static_cast<u64>(std::upper_bound(begins + list_, begins + lists_ + 1, done_) - begins) - 1;
  const u64 last_list = std::min(lists_, list_ + capacity_);
  const u64 end = std::min(done_ + capacity_, begins[last_list]);
  const u64 lists = static_cast<u64>(std::lower_bound(begins + list_ + 1, begins + last_list, end) - begins) - list_;
  in_pieces(lists + 1, lists_at_once, threads_, [&](u64 first, u64 last) {
    for (u64 k = first; k < last; ++k) staged_offsets_.data()[k] = std::clamp(begins[list_ + k], done_, end) - done_;
  });
  const part made{offsets_.data(), list_, lists, end - done_};
  if (!all_) collect(done_, end);
  copy(edges_, all_ ? placed_edges_.view<Id>().resident() + done_ : staged_edges_.data(), made.edges);
  if (placed_weights_ != nullptr) {
    copy(weights_, all_ ? placed_weights_->view<u32>().resident() + done_ : staged_weights_.data(), made.edges);
  }
  copy(offsets_, staged_offsets_.data(), lists + 1);
  done_ = end;
  return made;
}

/// Edges [begin, end) of those that were taken, side by side.
template <class Id>
void subgraph_copies<Id>::collect(u64 begin, u64 end) {
  Id const* const edges = placed_edges_.view<Id>().resident();
  u32 const* const weights = placed_weights_ != nullptr ? placed_weights_->view<u32>().resident() : nullptr;
  in_pieces(end - begin, edges_at_once, threads_, [&](u64 first, u64 last) {
    u64 k = static_cast<u64>(std::upper_bound(ends_.begin(), ends_.end(), begin + first) - ends_.begin()) - 1;
    for (u64 at = begin + first; at < begin + last; ++k) {
      const u64 stop = std::min(ends_[k + 1], begin + last);
      const u64 from = graph_.offsets()[static_cast<u64>(chosen_[k])] + (at - ends_[k]);
      std::memcpy(staged_edges_.data() + (at - begin), edges + from, (stop - at) * sizeof(Id));
      if (weights != nullptr) std::memcpy(staged_weights_.data() + (at - begin), weights + from, (stop - at) * sizeof(u32));
      at = stop;
    }
  });
}

template <class Id>
template <class T>
void subgraph_copies<Id>::copy(buffer<T> const& to, T const* from, u64 count) {
  on_.memory().write(to.data(), from, count * sizeof(T));
  bytes_copied_ += count * sizeof(T);
}

template <class Id>
u64 subgraph_copies<Id>::find_bad_edge() const {
  return find_first(placed_edges_.view<Id>(), threads_,
                    [this](Id to) { return static_cast<std::make_unsigned_t<Id>>(to) >= graph_.vertices(); });
}

template class subgraph_copies<std::int32_t>;
template class subgraph_copies<std::int64_t>;

}  // namespace penstock::analytics
