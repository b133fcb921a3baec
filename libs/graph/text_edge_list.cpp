#include "libs/graph/text_edge_list.hpp"

#include "libs/graph/distinct_ids.hpp"
#include "libs/graph/text_line.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <mutex>
#include <optional>
#include <vector>

namespace penstock::graph {

/// Which lines a file may have.
struct text_edge_list::rules {
  text_dialect dialect;
  bool edges_alone;  ///< of .gr: lines "e u v", not "a u v w"
  bool chosen;
  char separator;
  column_places places;
  u64 first_id;
  u64 last_id;

  bool weighted() const { return places.weight != column_places::none; }
};

namespace {

/// Offsets of as many vertices cost nothing, gaps or not.
constexpr u64 wide_range = 1024;
constexpr u64 longest_line = u64{1} << 20;

}  // namespace

/// What the first pass learns; each block has its own and merges it once.
struct text_edge_list::findings {
  u64 edges = 0;
  u64 highest = 0;
  bool fractions = false;
  std::optional<u64> inexact{};  ///< byte in the file of the first line with an integer that float32 cannot hold
  u64 inexact_block = 0;

  void merge(findings const& other) {
    edges += other.edges;
    highest = std::max(highest, other.highest);
    fractions |= other.fractions;
    if (other.inexact && (!inexact || *other.inexact < *inexact)) inexact = other.inexact, inexact_block = other.inexact_block;
  }
};

text_edge_list::text_edge_list(byte_input input, text_dialect dialect, unsigned threads, progress_meter& meter, u64 block_bytes,
                               text_layout const& layout)
    : blocks_(std::move(input), block_bytes, longest_line), dialect_(dialect), separator_(layout.separator),
      first_id_(layout.first_id), last_id_(layout.renumber == renumbering::never ? highest_number : highest_id) {
  bool const gr = dialect == text_dialect::gr;
  if (gr || layout.header) find_header(layout);
  find_columns(layout);
  meter.phase(0, looked_at_per_mille);
  findings const all = look_at_all(threads, meter);
  edges_ = all.edges;
  check_weights(all);
  if (places_.weight != column_places::none) weights_ = all.fractions ? weight_type::float32 : weight_type::int32;
  if (gr) {
    check_arcs(all.edges);
    return;
  }
  if (all.edges == 0) throw_bad_input("read", blocks_.name(), "has no edges: write one 'u v' per line");
  vertices_ = all.highest + 1;
  bool const sparse = vertices_ > wide_range && (vertices_ / 8 > edges_ || vertices_ - 1 > highest_number);
  if (layout.renumber == renumbering::always || (layout.renumber == renumbering::sparse && sparse)) number_ids(threads, meter);
}

/// The first line that says something.
void text_edge_list::find_header(text_layout const& layout) {
  for (u64 block = 0; block < blocks_.count() && !header_; ++block) {
    block_lines const lines = blocks_.read(block);
    each_line(lines.text, [&](char const* at, char const* end) {
      if (!header_ && !says_nothing(line_fields(at, end), dialect_)) take_header(lines, at, end, layout);
    });
  }
  if (dialect_ != text_dialect::gr) {
    if (!header_) throw_bad_input("read", blocks_.name(), "has no edges: write one 'u v' per line");
    return;
  }
  if (!header_) throw_bad_input("read", blocks_.name(), "has no line 'p sp VERTICES ARCS': add it before the arcs");
  first_id_ = 1;
  last_id_ = vertices_;
}

void text_edge_list::take_header(block_lines const& lines, char const* at, char const* end, text_layout const& layout) {
  line_fields fields(at, end, layout.separator);
  header_ = true;
  header_block_ = lines.block;
  header_at_ = lines.begin + static_cast<u64>(at - lines.text.data());
  if (dialect_ != text_dialect::gr) {
    while (!fields.empty()) titles_.emplace_back(fields.take_word());
    return;
  }
  bool edges = false;
  if (std::string const problem = parse_header(fields, vertices_, arcs_, edges); !problem.empty())
    blocks_.fail(lines, at, problem);
  if (!edges) return;
  // "p edge" stands before arcs with weights, too: what the first of them begins with decides.
  undirected_ = true;
  for (u64 block = lines.block; block < blocks_.count(); ++block) {
    block_lines const following = blocks_.read(block);
    std::optional<bool> arcs;
    each_line(following.text, [&](char const* from, char const* to) {
      line_fields const first(from, to);
      u64 const place = following.begin + static_cast<u64>(from - following.text.data());
      if (arcs || place <= header_at_ || says_nothing(first, dialect_) || first.front() == 'n') return;
      arcs = first.front() == 'a';
    });
    if (!arcs) continue;
    undirected_ = !*arcs;
    return;
  }
}

void text_edge_list::find_columns(text_layout const& layout) {
  bool const weighted = dialect_ == text_dialect::wel || (dialect_ == text_dialect::gr && !undirected_);
  if (weighted) places_.weight = 2;
  if (layout.columns.empty()) return;
  chosen_ = true;
  auto const place_of = [&](std::string const& name) -> u64 {
    auto const found = std::find(titles_.begin(), titles_.end(), name);
    if (found != titles_.end()) return static_cast<u64>(found - titles_.begin());
    u64 place = 0;
    line_fields number(name.data(), name.data() + name.size());
    if (number.take(place) && number.empty() && place < longest_line) return place;
    std::string known;
    for (std::string const& title : titles_) known += (known.empty() ? "" : ", ") + title;
    throw_bad_input("read", blocks_.name(),
                    "has no column '" + name + "'" + (known.empty() ? "" : " among " + known) +
                        ": name columns by their number from 0" +
                        (known.empty() ? ", or say that there is a header" : ", or as these"));
  };
  places_ = {place_of(layout.columns[0]), place_of(layout.columns[1]), column_places::none};
  if (layout.columns.size() > 2) places_.weight = place_of(layout.columns[2]);
}

text_edge_list::rules text_edge_list::line_rules() const {
  return {dialect_, undirected_, chosen_, separator_, places_, first_id_, last_id_};
}

/// Calls f(edge, weight, at) for each edge; ids are less first_id_.
template <class F>
void text_edge_list::each_edge(block_lines const& lines, F const& f) const {
  rules const allowed = line_rules();
  char const* const header = header_ && lines.block == header_block_ ? lines.text.data() + (header_at_ - lines.begin) : nullptr;
  each_line(lines.text, [&](char const* at, char const* end) {
    if (at == header) return;
    edge e;
    weight_value weight;
    line_fault bad;
    if (parse_line(line_fields(at, end, separator_), allowed, e, weight, bad))
      f(e, weight, at);
    else if (bad.at != nullptr)
      blocks_.fail(lines, bad.at, bad.problem);
  });
}

text_edge_list::findings text_edge_list::look_at_all(unsigned threads, progress_meter& meter) const {
  findings all;
  std::mutex mutex;
  parallel_for(blocks(), threads, meter, [&](u64 block) {
    findings found;
    block_lines const lines = blocks_.read(block);
    each_edge(lines, [&](edge const& e, weight_value const& weight, char const* at) {
      ++found.edges;
      found.highest = std::max({found.highest, e.from, e.to});
      found.fractions |= !weight.whole;
      if (!weight.whole || fits_float32(weight.whole_value) || found.inexact) return;
      found.inexact = lines.begin + static_cast<u64>(at - lines.text.data());
      found.inexact_block = block;
    });
    std::lock_guard const lock(mutex);
    all.merge(found);
  });
  return all;
}

void text_edge_list::check_arcs(u64 found) const {
  // Edges of an undirected graph are counted once or twice, and listed once or twice, whatever DIMACS says.
  if (found == arcs_ || (undirected_ && (found == 2 * arcs_ || 2 * found == arcs_))) return;
  block_lines const lines = blocks_.read(header_block_);
  blocks_.fail(
      lines, lines.text.data() + (header_at_ - lines.begin),
      "it says " + std::to_string(arcs_) + (undirected_ ? " edges" : " arcs") + ", the file has " + std::to_string(found));
}

void text_edge_list::check_weights(findings const& found) const {
  if (!found.fractions || !found.inexact) return;
  block_lines const lines = blocks_.read(found.inexact_block);
  blocks_.fail(lines, lines.text.data() + (*found.inexact - lines.begin),
               "its weight is an integer that float32 cannot hold exactly, and other weights have fractions: scale them");
}

void text_edge_list::number_ids(unsigned threads, progress_meter& meter) {
  distinct_ids collected;
  meter.phase(looked_at_per_mille, 2 * looked_at_per_mille);
  parallel_for(blocks(), threads, meter, [&](u64 block) {
    std::vector<u64> ids;
    block_lines const lines = blocks_.read(block);
    each_edge(lines, [&](edge const& e, weight_value const&, char const*) { ids.insert(ids.end(), {e.from, e.to}); });
    collected.add(std::move(ids));
  });
  std::vector<u64> ids = collected.take();
  if (ids.size() == vertices_) return;  // without gaps
  ids_ = std::move(ids);
  vertices_ = ids_.size();
}

u64 text_edge_list::vertex_of(u64 id) const {
  if (ids_.empty()) return id;
  auto const found = std::lower_bound(ids_.begin(), ids_.end(), id);
  if (found == ids_.end() || *found != id)
    throw_os_error("read", blocks_.name(), EIO, "it changed while it was read; start again");
  return static_cast<u64>(found - ids_.begin());
}

void text_edge_list::produce(u64 block, edge_sink const& sink) const {
  constexpr std::size_t batch_edges = 2048;
  std::vector<edge> batch;
  batch.reserve(batch_edges);
  each_edge(blocks_.read(block), [&](edge e, weight_value const& weight, char const*) {
    e.from = vertex_of(e.from), e.to = vertex_of(e.to);
    e.weight = weights_ == weight_type::float32 ? std::bit_cast<u32>(weight.real_value) : static_cast<u32>(weight.whole_value);
    batch.push_back(e);
    if (batch.size() == batch_edges) sink(batch), batch.clear();
  });
  if (!batch.empty()) sink(batch);
}

std::vector<std::string> text_edge_list::names() const {
  std::vector<std::string> all;
  all.reserve(ids_.size());
  for (u64 const id : ids_) all.push_back(std::to_string(id + first_id_));
  return all;
}

std::string text_edge_list::column(u64 place) const {
  return place < titles_.size() ? "'" + titles_[place] + "'" : "column " + std::to_string(place);
}

std::string text_edge_list::reading() const {
  std::string text = std::to_string(edges_) + (edges_ == 1 ? " row" : " rows");
  if (dialect_ == text_dialect::gr) return text + (undirected_ ? " 'e u v'" : " 'a u v w'");
  text += ": source " + column(places_.from) + ", target " + column(places_.to);
  if (weights_ != weight_type::none)
    text += ", weight " + column(places_.weight) + (weights_ == weight_type::int32 ? " (int32)" : " (float32)");
  else
    text += ", no weight";
  if (first_id_ != 0) text += "; first id " + std::to_string(first_id_);
  if (!ids_.empty()) text += "; ids renumbered, and kept as names";
  return text;
}

}  // namespace penstock::graph
