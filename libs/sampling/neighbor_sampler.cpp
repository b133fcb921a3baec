#include "libs/sampling/neighbor_sampler.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace penstock::sampling {
namespace {

constexpr auto local = memory_kind::local;

/// Edges of a whole sample up to which its memory is taken ahead, so that nobody reads_sizes in between how many there are.
constexpr u64 max_unread_edges = u64{1} << 23;
constexpr u64 max_edges = u64{1} << 31;
constexpr u64 max_sampled_nodes = u64{1} << 30;

/// Memory that is taken once and used again; larger, it is another.
template <class T>
class room {
 public:
  T* of(executor& on, u64 count) {
    if (held_.size() < count) {
      held_ = {};  // first, so that both need not fit
      held_ = {on.memory(), local, std::max(count, std::min(count + count / 2, count + (u64{1} << 26)))};
    }
    return held_.data();
  }
  /// Keeps what `kept` elements held.
  T* grown(step_place const& to, u64 count, u64 kept) {
    if (held_.size() >= count) return held_.data();
    buffer<T> larger(to.on->memory(), local, count + count / 2);
    run_rows(to, kept, copy_numbers<T>{held_.data(), larger.data(), kept});
    finish(to);
    held_ = std::move(larger);
    return held_.data();
  }

 private:
  buffer<T> held_;
};

struct hop_edges {
  room<u64> edges;
  room<u32> targets, rows;
  u64 count = 0;
};

std::string number_in(u64 word) { return std::to_string(word & ((u64{1} << problem_shift) - 1)); }

class lending {
 public:
  lending(std::vector<edge_type> const& types, std::vector<u64> const& nodes, void* stream,
          std::function<void(std::vector<edge_lists> const&)> const& launch)
      : stream_(stream), launch_(launch) {
    for (edge_type const& type : types) {
      lists_.emplace_back();
      lists_.back().targets = nodes[type.target];
      lists_.back().sources = nodes[type.source];
    }
    for (std::size_t t = 0; t < types.size(); ++t) {
      add(types[t].pointers, lists_[t].pointers);
      add(types[t].neighbors, lists_[t].neighbors);
      add(types[t].weights, lists_[t].weights);
      add(types[t].edge_times, lists_[t].edge_times);
      add(types[t].node_times, lists_[t].node_times);
    }
  }

  void run() {
    lend_from(0);
    for (row_call& call : calls_) call.wait();
  }

 private:
  struct one {
    row_array* array;
    u32 width;
    array_descriptor* to;
  };

  template <class Numbers>
  void add(number_array const& from, Numbers& to) {
    to.width = from.width;
    if (from.array != nullptr) arrays_.push_back({from.array, from.width, &to.array});
  }

  void lend_from(std::size_t k) {
    if (k == arrays_.size()) return launch_(lists_);
    one const& each = arrays_[k];
    calls_.push_back(each.array->lend(*each.to, each.width, false, stream_, [&] { lend_from(k + 1); }));
  }

  void* stream_;
  std::function<void(std::vector<edge_lists> const&)> const& launch_;
  std::vector<edge_lists> lists_;
  std::vector<one> arrays_;
  std::vector<row_call> calls_;
};

}  // namespace

void with_lists(std::vector<edge_type> const& types, std::vector<u64> const& nodes, void* stream,
                std::function<void(std::vector<edge_lists> const&)> const& launch) {
  lending(types, nodes, stream, launch).run();
}

void throw_problem(u64 word, std::string const& operation) {
  if (word == no_problem) return;
  const std::string where = number_in(word);
  switch (static_cast<problem>(word >> problem_shift)) {
    case problem::seed: throw_bad_input(operation, "seed " + where, "it is no node: give numbers of nodes");
    case problem::list:
      throw_bad_input(operation, "the list of node " + where, "its pointers lead beyond the edges: write the graph anew");
    case problem::neighbor: throw_bad_input(operation, "edge " + where, "its neighbour is no node: write the graph anew");
    case problem::weight:
      throw_bad_input(operation, "edge " + where, "its weight is negative or no number: give weights from 0 on");
  }
}

struct neighbor_sampler::state {
  state(executor& executor, std::vector<u64> counts, std::vector<edge_type> given)
      : on(executor), nodes(std::move(counts)), types(std::move(given)), lists_of_type(nodes.size()),
        host_words(on.memory(), memory_kind::shared, 0) {}

  struct type_room {
    room<u64> nodes, keys;
    room<u32> trees, values;
    node_list list;
    u64 slots = 0;
  };

  executor& on;
  std::vector<u64> nodes;
  std::vector<edge_type> types;
  std::vector<type_room> lists_of_type;
  std::vector<std::vector<hop_edges>> drawn;  ///< [edge type][hop]
  room<u64> words;                            ///< a problem, counts
  buffer<u64> host_words;                     ///< the same for the host
  room<edge_list> lists;
  room<u64> offsets, found, ranks, keys, other_keys;
  room<u32> slots, places, order, other_order;
  scan_room scanning;
  step_place last;
  std::mutex mutex;
  sample_sizes sizes;

  // The words of a sample on the device
  u64 type_count() const { return nodes.size(); }
  u64* word_of_problem() { return words_; }
  u64* numbered(u64 type) { return words_ + 1 + type; }
  u64* start(u64 hop, u64 type) { return words_ + 1 + (1 + hop) * type_count() + type; }
  u64* edges_of(u64 type, u64 hop) { return start(hops + 2, 0) + type * hops + hop; }
  u64 index_of(u64 const* word) const { return static_cast<u64>(word - words_); }
  u64 word_count() { return index_of(edges_of(types.size(), 0)) + 1; }

  u64* words_ = nullptr;
  u64 hops = 0;

  void begin(sample_request const& request);
  void hop_of(sample_request const& request, std::vector<edge_lists> const& lent, u64 hop_number, bool reads_sizes);
  u64 draw(hop const& step, hop_edges& into, u64 most_edges_of_hop);
  void number(hop const& step, hop_edges& into, u64 most_edges_of_hop, u64 type, u64 hop_number);
  void add_induced(std::vector<edge_lists> const& lent);
  std::vector<u64> read_words();
  void make_table(type_room& of, u64 bound, u64 known, bool disjoint);
  u64 read_word(u64 const* word);
  u32 const* order_of(hop const& step, edge_type const& type, u64 const* edges, u64 bound);
};

namespace {

u64 sum_of(std::vector<u64> const& numbers) { return std::accumulate(numbers.begin(), numbers.end(), u64{0}); }

u64 capped_product(u64 a, u64 b) { return a != 0 && b > max_edges / a ? max_edges : a * b; }

/// Nodes of each type that there may be after each hop, and edges in all: what a sample needs room for.
struct sample_bounds {
  std::vector<std::vector<u64>> frontier;  ///< [hop][type], nodes that a hop begins at
  std::vector<u64> numbered;               ///< [type]
  u64 edges = 0;
};

sample_bounds bounds_of(sample_request const& request, std::vector<edge_type> const& types, std::vector<u64> const& nodes,
                        u64 hops) {
  sample_bounds bounds;
  std::vector<u64> fresh;
  fresh.reserve(request.seeds.size());
  for (node_seeds const& each : request.seeds) fresh.push_back(each.count);
  bounds.numbered = fresh;
  for (u64 h = 0; h < hops; ++h) {
    bounds.frontier.push_back(fresh);
    std::vector<u64> next(nodes.size(), 0);
    for (std::size_t t = 0; t < types.size(); ++t) {
      const u64 edges = capped_product(fresh[types[t].target], request.fanouts[t][h]);
      bounds.edges = std::min(max_edges, bounds.edges + edges);
      next[types[t].source] = std::min(max_edges, next[types[t].source] + edges);
    }
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      if (!request.disjoint) next[k] = std::min(next[k], nodes[k]);
      bounds.numbered[k] += next[k];
    }
    fresh = next;
  }
  return bounds;
}

}  // namespace

/// A table for up to `bound` nodes that has the `known` first ones.
void neighbor_sampler::state::make_table(type_room& of, u64 bound, u64 known, bool disjoint) {
  if (bound > max_sampled_nodes) {
    throw_bad_input("sample neighbours", "a batch", "it may have more than 2^30 nodes: take fewer seeds, or smaller fan-outs");
  }
  constexpr u64 least_slots = 64;
  of.slots = std::bit_ceil(std::max<u64>(2 * bound, least_slots));
  const u64 room = of.slots / 2;  // a table that is large enough means that there is room for its nodes
  of.list.nodes = of.nodes.grown(last, room, known);
  of.list.trees = disjoint ? of.trees.grown(last, room, known) : nullptr;
  of.list.table = {of.keys.of(on, of.slots), of.values.of(on, of.slots), of.slots};
  run_rows(last, of.slots, clear_table{of.list.table});
  if (known != 0) run_rows(last, known, fill_table{of.list, known});
}

void neighbor_sampler::state::begin(sample_request const& request) {
  hops = request.fanouts.empty() ? 0 : request.fanouts.front().size();
  words_ = nullptr;
  const u64 count = word_count();
  words_ = words.of(on, count);
  if (host_words.size() < count) host_words = {on.memory(), memory_kind::shared, count};
  run_rows(last, count, reset_words{words_, count});
  drawn.resize(types.size());
  for (auto& each : drawn) each.resize(hops);
}

std::vector<u64> neighbor_sampler::state::read_words() {
  const u64 count = word_count();
  run_rows(last, count, copy_numbers<u64>{words_, host_words.data(), count});
  finish(last);
  std::vector<u64> all(host_words.data(), host_words.data() + count);
  throw_problem(all[0], "sample neighbours");
  return all;
}

u64 neighbor_sampler::state::read_word(u64 const* word) {
  run_rows(last, 1, copy_numbers<u64>{word, host_words.data(), 1});
  finish(last);
  return host_words.data()[0];
}

/// Draws a hop's edges of one type. Returns how many there are at most.
u64 neighbor_sampler::state::draw(hop const& step, hop_edges& into, u64 bound) {
  u64 const* const taken = step.offsets + step.from.bound;
  if (step.is_scanned()) {
    run(last, step.from.bound + 1, count_eligible{step});
  } else {
    run_rows(last, step.from.bound + 1, count_lists{step});
  }
  scan(last, step.offsets, step.from.bound + 1, scanning);
  if (bound == max_edges) bound = read_word(taken);
  if (bound >= max_edges) {
    throw_bad_input("sample neighbours", "a batch", "a hop has 2^31 edges or more: take fewer seeds, or smaller fan-outs");
  }
  drawn_edges to{into.edges.of(on, bound), into.targets.of(on, bound), nullptr};
  into.rows.of(on, bound);
  if (bound == 0) return 0;
  if (!step.is_scanned() && (step.fanout <= max_drawn_by_lane || (step.replace && step.fanout != all_neighbors))) {
    run_rows(last, step.from.bound, choose_in_lane{step, to});
  } else {
    to.ranks = ranks.of(on, bound);
    run(last, step.from.bound, choose_scanned{step, to});
  }
  return bound;
}

/// The order in which edges are looked up. Over the link it is by address, page by page: a GPU that reads 4 bytes of as many
/// pages waits for their translations. Null: as they are.
u32 const* neighbor_sampler::state::order_of(hop const& step, edge_type const& type, u64 const* edges, u64 bound) {
  if constexpr (has_kernels) {
    constexpr u64 few_edges = 4096;
    if (on.kind() == executor_kind::cpu || bound < few_edges || type.neighbors.array->where() == placement::hbm) return nullptr;
    u64* const key = keys.of(on, bound);
    u32* const first = order.of(on, bound);
    run_rows(last, bound, list_positions{bound, step.offsets + step.from.bound, edges, key, first});
    const u32 end = static_cast<u32>(std::bit_width(step.lists.neighbors.size()));
    const u32 page = static_cast<u32>(std::countr_zero(u64{4096} / type.neighbors.width));
    return sort_cuda(last, key, other_keys.of(on, bound), first, other_order.of(on, bound), bound, std::min(page, end),
                     std::max(end, page), scanning);
  }
  return nullptr;
}

/// Numbers what the edges led to.
void neighbor_sampler::state::number(hop const& step, hop_edges& into, u64 bound, u64 type, u64 hop_number) {
  node_list const& sources = lists_of_type[types[type].source].list;
  u64 const* const taken = step.offsets + step.from.bound;
  u64* const edges = into.edges.of(on, bound);
  u32* const targets = into.targets.of(on, bound);
  u64* const nodes_found = found.of(on, bound);
  u32 *const slot = slots.of(on, bound), *const place = places.of(on, bound + 1);
  run_rows(last, bound, look_up{step, edges, targets, order_of(step, types[type], edges, bound), sources, nodes_found, slot});
  run_rows(last, bound + 1, mark_new{bound, taken, sources.table, slot, place});
  scan(last, place, bound + 1, scanning);
  run_rows(last, bound, number_new{step, taken, place, nodes_found, targets, slot, sources});
  run_rows(last, bound,
           finish_edges{taken, place + bound, sources.table, slot, into.rows.of(on, bound), edges_of(type, hop_number),
                        sources.numbered});
}

void neighbor_sampler::state::hop_of(sample_request const& request, std::vector<edge_lists> const& lent, u64 hop_number,
                                     bool reads_sizes) {
  const sample_bounds bounds = bounds_of(request, types, nodes, hops);
  for (u64 t = 0; t < types.size(); ++t) {
    edge_type const& type = types[t];
    hop step;
    step.lists = lent[t];
    step.targets = lists_of_type[type.target].list;
    step.from = {start(hop_number, type.target), start(hop_number + 1, type.target), bounds.frontier[hop_number][type.target]};
    step.fanout = request.fanouts[t][hop_number];
    step.replace = request.replace;
    step.latest = request.latest;
    step.key = draw_pair(request.seed, {}, request.call).first;
    step.stage = static_cast<u32>(hop_number * types.size() + t);
    step.seed_times = request.seed_times;
    step.found_problem = word_of_problem();
    std::vector<u64> known;
    if (reads_sizes) {
      known = read_words();
      step.from.bound = known[index_of(start(hop_number + 1, type.target))] - known[index_of(start(hop_number, type.target))];
    }
    if (step.from.bound == 0 || step.fanout == 0) continue;
    step.list = lists.of(on, step.from.bound);
    step.offsets = offsets.of(on, step.from.bound + 1);
    hop_edges& into = drawn[t][hop_number];
    const u64 edges = draw(step, into, reads_sizes ? max_edges : capped_product(step.from.bound, step.fanout));
    if (edges == 0) continue;
    if (reads_sizes) {
      state::type_room& sources = lists_of_type[type.source];
      const u64 numbered_now = known[index_of(numbered(type.source))];
      u64 may_be = numbered_now + edges;
      if (!request.disjoint) may_be = std::min(may_be, numbered_now + nodes[type.source]);
      if (2 * may_be > sources.slots) {
        make_table(sources, may_be + may_be / 2, numbered_now, request.disjoint);
        if (type.source == type.target) step.targets = sources.list;
      }
    }
    number(step, into, edges, t, hop_number);
  }
  run_rows(last, type_count(), copy_numbers<u64>{numbered(0), start(hop_number + 2, 0), type_count()});
}

void neighbor_sampler::state::add_induced(std::vector<edge_lists> const& lent) {
  const std::vector<u64> known = read_words();
  for (u64 t = 0; t < types.size(); ++t) {
    hop_edges& into = drawn[t][0];
    for (hop_edges& each : drawn[t]) each.count = 0;
    const u64 count = known[index_of(numbered(types[t].target))];
    induced_edges step{lent[t], lists_of_type[types[t].target].list, lists_of_type[types[t].source].list,
                       count,   offsets.of(on, count + 1),           word_of_problem()};
    run(last, count + 1, step);
    scan(last, step.offsets, count + 1, scanning);
    const u64 bound = read_word(step.offsets + count);
    if (bound >= max_edges) throw_bad_input("sample neighbours", "a batch", "it has 2^31 edges or more: take fewer seeds");
    step.edges = into.edges.of(on, bound);
    step.edge_targets = into.targets.of(on, bound);
    step.rows = into.rows.of(on, bound);
    if (bound != 0) run(last, count, step);
    into.count = bound;
  }
}

neighbor_sampler::neighbor_sampler(executor& on, std::vector<u64> nodes, std::vector<edge_type> types)
    : state_(std::make_unique<state>(on, std::move(nodes), std::move(types))) {}
neighbor_sampler::~neighbor_sampler() = default;

sample_sizes neighbor_sampler::sample(sample_request const& request) {
  state& s = *state_;
  const std::lock_guard lock(s.mutex);
  for (auto const& hops : request.fanouts) {
    if (hops.empty()) throw_bad_input("sample neighbours", "fan-outs", "there is no hop: give one for each");
  }
  if (s.last.on != nullptr && s.last.stream != request.stream) finish(s.last);  // it still reads what is replaced
  s.last = {&s.on, request.stream, request.units};
  s.begin(request);
  const sample_bounds bounds = bounds_of(request, s.types, s.nodes, s.hops);
  const bool reads_sizes = bounds.edges > max_unread_edges || s.on.kind() == executor_kind::cpu;
  u64 seeds = 0;
  for (u64 k = 0; k < s.type_count(); ++k) {
    state::type_room& room = s.lists_of_type[k];
    const u64 count = request.seeds[k].count;
    if (count != 0 && s.nodes[k] == 0) throw_bad_input("sample neighbours", "seeds", "there are no nodes of their type");
    s.make_table(room, std::max<u64>(reads_sizes ? count : bounds.numbered[k], 1), 0, request.disjoint);
    room.list.numbered = s.numbered(k);
    if (count != 0) {
      run_rows(s.last, count, take_seeds{request.seeds[k].nodes, count, s.nodes[k], seeds, room.list, s.word_of_problem()});
    }
    seeds += count;
  }
  if (request.disjoint && seeds > max_trees)
    throw_bad_input("sample neighbours", "a disjoint batch", "it has 2^24 seeds or more");
  run_rows(s.last, s.type_count(), copy_numbers<u64>{s.numbered(0), s.start(1, 0), s.type_count()});
  std::vector<u64> words;
  with_lists(s.types, s.nodes, request.stream, [&](std::vector<edge_lists> const& lent) {
    for (u64 h = 0; h < s.hops; ++h) s.hop_of(request, lent, h, reads_sizes);
    words = s.read_words();
    s.sizes = {};
    for (u64 t = 0; t < s.types.size(); ++t) {
      for (u64 h = 0; h < s.hops; ++h) s.drawn[t][h].count = words[s.index_of(s.edges_of(t, h))];
    }
    if (request.induced) {
      s.add_induced(lent);
      s.read_words();
    }
  });
  for (u64 k = 0; k < s.type_count(); ++k) {
    auto& of_hop = s.sizes.nodes.emplace_back();
    for (u64 h = 0; h <= s.hops; ++h) of_hop.push_back(words[s.index_of(s.start(h + 1, k))] - words[s.index_of(s.start(h, k))]);
  }
  for (auto const& type : s.drawn) {
    auto& of_hop = s.sizes.edges.emplace_back();
    for (u64 h = 0; h < s.hops; ++h) of_hop.push_back(type[h].count);
  }
  return s.sizes;
}

void neighbor_sampler::take_nodes(u32 type, std::int64_t* nodes, std::int64_t* trees) {
  state& s = *state_;
  const std::lock_guard lock(s.mutex);
  const node_list& from = s.lists_of_type[type].list;
  const u64 count = sum_of(s.sizes.nodes[type]);
  run_rows(s.last, count, sampling::take_nodes{from.nodes, from.trees, count, nodes, trees});
}

void neighbor_sampler::take_edges(u32 type, std::int64_t* rows, std::int64_t* columns, std::int64_t* edges) {
  state& s = *state_;
  const std::lock_guard lock(s.mutex);
  sampling::take_edges some{};
  u32 parts = 0;
  const auto take = [&] {
    run_rows(s.last, some.count, some);
    some.rows += some.count;
    some.columns += some.count;
    some.edges += some.count;
    some.count = parts = 0;
  };
  some.rows = rows;
  some.columns = columns;
  some.edges = edges;
  for (hop_edges& each : s.drawn[type]) {
    const u64 count = each.count;
    if (count == 0) continue;
    some.count += count;
    some.parts[parts++] = {each.rows.of(s.on, count), each.targets.of(s.on, count), each.edges.of(s.on, count), some.count};
    if (parts == sampling::take_edges::max_hops) take();
  }
  take();
}

}  // namespace penstock::sampling
