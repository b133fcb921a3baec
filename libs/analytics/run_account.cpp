#include "libs/analytics/run_account.hpp"

#include "libs/media/names.hpp"

#include <utility>

namespace penstock::analytics {

template <class Id>
void run_account<Id>::begin_round(graph_cost& cost, std::string const& what, u64 size, u64 done, u64 of) {
  cost.level_sizes.push_back(size);
  if (graph_.options().progress) graph_.options().progress(what + " " + std::to_string(cost.level_sizes.size()), done, of);
  round_begun_ns_ = now_ns();
}

/// So far in the trial.
template <class Id>
u64 run_account<Id>::moved_bytes() const {
  if (graph_.copies() != nullptr) return graph_.copies()->bytes_copied() - copied_before_;
  if (graph_.is_resident()) return walks_.count(walk_count::sectors) * sector_bytes;
  u64 bytes = 0;
  for (media::placed_array const* array : graph_.arrays()) bytes += array->stats().bytes_moved;
  for (cache_stats const& before : before_) bytes -= before.bytes_moved;
  return bytes;
}

template <class Id>
void run_account<Id>::end_round(graph_cost& cost, char const* how) {
  cost.level_seconds.push_back(seconds_since(round_begun_ns_));
  cost.level_strategies.emplace_back(how != nullptr ? how : name_of(walks_.last()));
  if (!graph_.options().level_traffic || (graph_.is_resident() && graph_.is_cpu() && graph_.copies() == nullptr)) return;
  const u64 moved = moved_bytes();
  cost.level_bytes.push_back(moved - std::exchange(moved_before_, moved));
}

template <class Id>
void run_account<Id>::begin_trial(graph_cost& cost) {
  cost.level_sizes.clear();
  cost.level_seconds.clear();
  cost.level_strategies.clear();
  cost.level_bytes.clear();
  moved_before_ = 0;
  before_.clear();
  for (media::placed_array const* array : graph_.arrays()) {
    if (array->cache() != nullptr) before_.push_back(array->stats());
  }
  walks_.reset();
  copied_before_ = graph_.copies() != nullptr ? graph_.copies()->bytes_copied() : 0;
  graph_.reset();
  if (graph_.media() != nullptr) graph_.media()->start();
  trial_begun_ns_ = now_ns();
}

/// What the caches did in the trial, and how large they are.
template <class Id>
void run_account<Id>::add_caches(graph_cost& cost) const {
  cost.hits = cost.misses = cost.joins = cost.fills = cost.prefetches = cost.evictions = cost.retries = cost.errors = 0;
  cost.bytes_asked = cost.bytes_moved = cost.frames = cost.metadata_bytes = 0;
  bool is_first = true;
  auto before = before_.begin();
  for (media::placed_array const* array : graph_.arrays()) {
    if (array->cache() == nullptr) continue;
    line_cache const& cache = *array->cache();
    const cache_stats now = array->stats(), was = *before++;
    cost.hits += now.hits - was.hits;
    cost.misses += now.misses - was.misses;
    cost.joins += now.joins - was.joins;
    cost.fills += now.fills - was.fills;
    cost.prefetches += now.prefetches - was.prefetches;
    cost.evictions += now.evictions - was.evictions;
    cost.retries += now.retries - was.retries;
    cost.errors += now.errors - was.errors;
    cost.bytes_asked += now.bytes_asked - was.bytes_asked;
    cost.bytes_moved += now.bytes_moved - was.bytes_moved;
    if (graph_.media() == nullptr || is_first) {  // drives have one cache
      cost.frames += cache.view().frames;
      cost.metadata_bytes += cache.metadata_bytes();
    }
    is_first = false;
    cost.directory = media::name_of(cache.directory());
    cost.directory_bytes_per_tib = cache.directory_bytes_per_tib();
  }
}

template <class Id>
void run_account<Id>::end_trial(graph_cost& cost) {
  graph_.on().synchronize();
  cost.seconds = seconds_since(trial_begun_ns_);
  media::shared_media* const media = graph_.media();
  if (media != nullptr) media->stop();
  cost.trial_seconds.push_back(cost.seconds);
  walks_.read_counts();
  cost.edges_traversed = walks_.count(walk_count::traversed);
  cost.teps = static_cast<double>(cost.edges_traversed) / cost.seconds;
  cost.engine = graph_.engine();
  add_caches(cost);
  const u64 bytes_of_an_edge = sizeof(Id) + (graph_.is_weighted() ? sizeof(u32) : 0);
  cost.edge_bytes = graph_.folder().edges() * (bytes_of_an_edge + (graph_.incoming() != nullptr ? sizeof(Id) : 0));
  if (graph_.is_resident()) {  // each edge that is looked at is read where it lies
    cost.bytes_asked = cost.edges_traversed * bytes_of_an_edge;
    (graph_.copies() != nullptr ? cost.bytes_moved : cost.sector_bytes) = moved_bytes();
    cost.directory = "none";
  }
  cost.amplification =
      cost.bytes_asked == 0 ? 0 : static_cast<double>(cost.bytes_moved) / static_cast<double>(cost.bytes_asked);
  cost.line_bytes = graph_.options().line_bytes;
  cost.cache_bytes = cost.frames * graph_.options().line_bytes;
  cost.offset_bytes = (graph_.vertices() + 1) * sizeof(u64);
  cost.vertex_bytes = std::exchange(vertex_bytes_, 0);
  cost.strategy = graph_.options().strategy;
  cost.media = graph_.options().media;
  cost.drives = media != nullptr ? media->modelled_drives() : 0;
  cost.media_bytes_per_second = media != nullptr ? media->bytes_per_second() : 0;
  cost.tile_bytes = walks_.tile_bytes();
  cost.tile_seconds = walks_.tile_seconds();
}

template class run_account<std::int32_t>;
template class run_account<std::int64_t>;

}  // namespace penstock::analytics
