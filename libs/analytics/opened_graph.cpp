#include "libs/analytics/opened_graph.hpp"

#include "libs/graph/incoming.hpp"

#include <algorithm>

namespace penstock::analytics {
namespace {

u64 cache_share(graph_options const& options, bool weighted) {
  return weighted ? options.cache_bytes / 2 : options.cache_bytes;
}

std::unique_ptr<media::shared_media> make_media(graph_options const& options, graph::graph_folder const& graph, executor& on,
                                                bool weighted) {
  if (weighted && options.drive) throw_bad_input("open", graph.path(), "weights do not lie on the drive: search without them");
  std::vector<graph::array_place const*> arrays{&graph.edges_place()};
  if (weighted) arrays.push_back(&weights_of(graph));
  if (graph.edges_place().stored != nullptr) {
    if (options.media == "file" && options.placement == "storage")
      return std::make_unique<media::volume_media>(on, arrays, options);
    throw_bad_input("open", graph.path(),
                    "media " + options.media + " at placement " + options.placement +
                        ": a graph on a volume is read where it lies, through a cache; choose placement storage, or export it");
  }
  if (options.media == "file" || options.placement != "storage") {
    if (options.media == "file") return nullptr;
    throw_bad_input("open", graph.path(),
                    "media " + options.media + " at placement " + options.placement +
                        ": modelled drives are storage; choose placement storage");
  }
  return std::make_unique<media::modelled_media>(on, arrays, options);
}

}  // namespace

incoming_lists::incoming_lists(executor& on, graph::graph_folder const& of, graph_options const& options)
    : graph(graph::open_incoming(of)), edges(on, graph.edges_place(), options, 0) {
  if (on.kind() == executor_kind::cpu) return;
  copied_offsets = {on.memory(), memory_kind::local, graph.vertices() + 1};
  copied_offsets.write(graph.offsets());
}

template <class Id>
opened_graph<Id>::opened_graph(graph_options const& options, graph::graph_folder const& folder, executor& on, bool weighted)
    : options_(options), folder_(folder), on_(on), media_(make_media(options, folder, on, weighted)),
      edges_(media_ ? media::placed_array(*media_, 0)
                    : media::placed_array(on, folder.edges_place(), options, cache_share(options, weighted))) {
  if (weighted && media_) weights_.emplace(*media_, 1);
  if (weighted && !media_) weights_.emplace(on, weights_of(folder), options, cache_share(options, true));
  if (options.placement == "subgraph") copies_.emplace(on, folder, options, edges_, weights_ ? &*weights_ : nullptr);
  for (media::placed_array const* array : arrays()) {
    if (array->cache() == nullptr) continue;
    array->cache()->check_pins(is_cpu() ? on.units() : cuda_block_threads / list_group_width, is_cpu() ? 1 : pins_per_group);
  }
  if (!is_cpu()) {
    offsets_ = {on.memory(), memory_kind::local, vertices() + 1};
    offsets_.write(folder.offsets());
  }
  auto const offsets = folder.offsets();
  for (u64 v = 0; v < vertices(); ++v) longest_list_ = std::max(longest_list_, offsets[v + 1] - offsets[v]);
}

template <class Id>
bool opened_graph<Id>::reads_single_edges() const {
  if (is_resident()) return true;
  line_cache_view const& view = edges_.cache()->view();
  u64 bytes = folder_.edges() * sizeof(Id);
  if (media_ && weights_) bytes += folder_.edges() * sizeof(u32);  // drives have one cache
  return u64{view.frames} << view.line_shift >= bytes;
}

template <class Id>
std::vector<media::placed_array const*> opened_graph<Id>::arrays() const {
  std::vector<media::placed_array const*> all{&edges_};
  if (weights_) all.push_back(&*weights_);
  return all;
}

template <class Id>
std::string opened_graph<Id>::engine() const {
  return copies_ ? "lists put together by " + std::to_string(copies_->threads()) + " threads" : edges_.engine();
}

template <class Id>
launch_limits opened_graph<Id>::limits(u64 lines_each) const {
  launch_limits most;
  if (media_) most.units = media_->units_left();
  for (media::placed_array const* array : arrays()) {
    if (array->cache() == nullptr) continue;
    const u64 sharing = media_ ? arrays().size() : 1;
    const u64 room = std::max<u64>(1, array->cache()->view().frames / (lines_each * sharing));
    most.groups = most.groups == 0 ? room : std::min(most.groups, room);
  }
  return most;
}

template <class Id>
void opened_graph<Id>::check_faults() {
  edges_.check();
  if (weights_) weights_->check();
  if (incoming_) incoming_->edges.check();
}

template <class Id>
void opened_graph<Id>::reset() {
  edges_.reset();
  if (weights_) weights_->reset();
  if (incoming_) incoming_->edges.reset();
}

template class opened_graph<std::int32_t>;
template class opened_graph<std::int64_t>;

}  // namespace penstock::analytics
