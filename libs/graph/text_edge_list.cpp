#include "libs/graph/text_edge_list.hpp"

#include "libs/graph/distinct_ids.hpp"
#include "libs/graph/text_fields.hpp"
#include "libs/graph/text_weight.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cmath>
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

constexpr char of_networkx[] =
    "the attributes of an edge as NetworkX writes them: write its weight as a number (networkx.write_weighted_edgelist), to a "
    ".wel file";
/// Offsets of as many vertices cost nothing, gaps or not.
constexpr u64 wide_range = 1024;
constexpr u64 longest_line = u64{1} << 20;
/// Of a vertex whose number its id is: more than any machine has memory for, and all sizes stay far from overflow.
constexpr u64 highest_number = (u64{1} << 40) - 1;
/// Of a vertex that gets a number: as for integers in tables.
constexpr u64 highest_id = (u64{1} << 63) - 1;

template <class Rules>
std::string id_range(Rules const& rules) {
  std::string last = std::to_string(rules.last_id);
  if (rules.last_id == highest_number) last = "2^40 - 1 (renumber takes larger ones)";
  if (rules.last_id == highest_id) last = "2^63 - 1";
  return "from " + std::to_string(rules.first_id) + " to " + last;
}

template <class Rules>
[[gnu::always_inline]] inline bool take_id(line_fields& fields, Rules const& rules, u64& id, line_fault& bad) {
  line_fields const before = fields;
  if (fields.take(id) && id >= rules.first_id && id <= rules.last_id) {
    id -= rules.first_id;
    return true;
  }
  bool const word = std::isalpha(static_cast<unsigned char>(before.front())) != 0;
  bad = {before.at(), before.empty() ? "two vertex numbers are needed"
                                     : before.quoted() + " is no vertex number " + id_range(rules) +
                                           (word ? " (titles of columns need header, names of vertices a .csv file)" : "")};
  return false;
}

/// Says what is wrong with a weight that is neither an int32 nor a float32.
std::string weight_problem(line_fields const& field, bool arc, char const* misfit) {
  if (field.empty())
    return arc ? "a weight is needed after the two vertex numbers" : "a third field, the weight, is needed in a .wel file";
  if (arc) return field.quoted() + " is no int32 weight";
  if (field.front() == '{') return std::string(of_networkx);
  if (field.has_digits_alone())
    return field.quoted() + " does not fit int32: scale the weights, or write them with a fraction for float32";
  if (misfit != nullptr) return field.quoted() + " " + misfit + ": scale the weights";
  return field.quoted() + " is no int32 or float32 weight";
}

/// A weight that is no int32.
bool take_real_weight(line_fields& fields, bool arc, weight_value& weight, line_fault& bad) {
  line_fields const before = fields;
  char const* misfit = nullptr;
  bool const number = !arc && !fields.has_digits_alone();
  if (double value = 0; number && fields.take(value)) {
    misfit = float32_misfit(value);
    weight.real_value = static_cast<float>(value);
    if (misfit == nullptr) return true;
    if (!std::isfinite(value)) misfit = nullptr;  // nan is a word, not a number
  } else if (number && before.out_of_range<double>()) {
    misfit = "does not fit float32";
  }
  bad = {before.at(), weight_problem(before, arc, misfit)};
  return false;
}

[[gnu::always_inline]] inline bool take_weight(line_fields& fields, bool arc, weight_value& weight, line_fault& bad) {
  weight.whole = fields.take(weight.whole_value);
  if (!weight.whole) return take_real_weight(fields, arc, weight, bad);
  weight.real_value = static_cast<float>(weight.whole_value);
  return true;
}

/// What more than the expected fields is, and what to do about it.
std::string surplus(line_fields const& fields, text_dialect dialect) {
  std::string const quoted = fields.quoted() + " after the last field: ";
  if (dialect == text_dialect::gr)
    return quoted + "an arc is 'a', two vertex numbers and a weight, an edge 'e' and two numbers";
  if (fields.front() == '{') return std::string(of_networkx);
  if (dialect == text_dialect::wel) return quoted + "a .wel line has three fields; with more, choose some (columns)";
  return quoted + "a line has two fields; with weights, three, it is of format wel; with more, choose some (columns)";
}

/// Whether the line is a comment, or empty.
bool says_nothing(line_fields const& fields, text_dialect dialect) {
  if (dialect == text_dialect::gr) return fields.empty() || fields.front() == 'c';
  return fields.empty() || fields.front() == '#' || fields.front() == '%';
}

/// Whether what is left says nothing of the edge: a dictionary of NetworkX without entries.
bool no_more(line_fields const& fields, text_dialect dialect) {
  if (fields.empty()) return true;
  if (dialect == text_dialect::gr || fields.front() != '{') return false;
  std::string_view rest = fields.rest();
  rest = rest.substr(0, rest.find_last_not_of(" \t\r") + 1);
  return rest == "{}";
}

line_fields field_at(line_fields fields, u64 place) {
  for (; place > 0 && !fields.empty(); --place) fields.take_word();
  return fields;
}

/// Takes what begins a line of a .gr file. False for what `bad` then describes, and for a line that is dropped.
bool take_letter(line_fields& fields, bool edges_alone, line_fault& bad) {
  line_fields const before = fields;
  std::string_view const letter = fields.take_word();
  if (letter == (edges_alone ? "e" : "a")) return true;
  if (edges_alone && letter == "n") return false;
  if (before.front() == 'p')
    bad = {before.at(), "a second p line"};
  else if (letter == "e")
    bad = {before.at(),
           "'e' begins no line of a .gr file of shortest paths: after 'p edge' edges are 'e u v', after 'p sp' "
           "arcs are 'a u v w'"};
  else
    bad = {before.at(), before.quoted() + " begins no line of a .gr file: c, p and " + (edges_alone ? "e" : "a") + " do"};
  return false;
}

/// False for lines that say nothing and for those that `bad` then describes. Inline in each of its loops: a call for each line
/// is a tenth of the time.
template <class Rules>
[[gnu::always_inline]] inline bool parse_line(line_fields fields, Rules const& rules, edge& e, weight_value& weight,
                                              line_fault& bad) {
  if (says_nothing(fields, rules.dialect)) return false;
  bool const gr = rules.dialect == text_dialect::gr;
  if (gr && !take_letter(fields, rules.edges_alone, bad)) return false;
  if (rules.chosen) {
    line_fields from = field_at(fields, rules.places.from), to = field_at(fields, rules.places.to);
    if (!take_id(from, rules, e.from, bad) || !take_id(to, rules, e.to, bad)) return false;
    line_fields third = rules.weighted() ? field_at(fields, rules.places.weight) : fields;
    return !rules.weighted() || take_weight(third, false, weight, bad);
  }
  if (!take_id(fields, rules, e.from, bad) || !take_id(fields, rules, e.to, bad)) return false;
  if (rules.weighted() && !take_weight(fields, gr, weight, bad)) return false;
  if (no_more(fields, rules.dialect)) return true;
  bad = {fields.at(), surplus(fields, rules.dialect)};
  return false;
}

/// The p line of a .gr file. An empty problem: it is one.
std::string parse_header(line_fields fields, u64& vertices, u64& arcs, bool& edges) {
  std::string const shown = fields.quoted();
  std::string const no_header = shown + " begins no line 'p sp VERTICES ARCS', which comes first";
  if (fields.take_word() != "p") return no_header;
  std::string const kind_shown = fields.quoted();
  std::string_view const kind = fields.take_word();
  edges = kind == "edge" || kind == "col";
  bool const numbers = fields.take(vertices) && fields.take(arcs) && fields.empty() && (vertices != 0 || arcs == 0) &&
                       vertices <= highest_number + 1;
  if (numbers && !edges && kind != "sp")
    return "p " + kind_shown +
           " is of another problem: graphs are 'p sp' (arcs 'a u v w'), 'p edge' or 'p col' (edges 'e u v')";
  return numbers ? std::string() : no_header;
}

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
