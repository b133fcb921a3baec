#include "apps/graph/text_edge_list.hpp"

#include "apps/graph/text_fields.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <vector>

namespace penstock::graph {
namespace {

constexpr u64 longest_line = u64{1} << 20;
/// More vertices than any machine has memory for; keeps id + 1 and all sizes far from overflow.
constexpr u64 highest_id = (u64{1} << 40) - 1;

/// A parsed weight: an integer, or a number with a fraction.
struct weight_value {
  bool whole = true;
  int whole_value = 0;
  float real_value = 0;
};

/// Which lines a file may have.
struct line_rules {
  text_dialect dialect;
  u64 first_id;
  u64 last_id;
};

std::string id_range(line_rules const& rules) {
  std::string const last = rules.last_id == highest_id ? "2^40 - 1" : std::to_string(rules.last_id);
  return "from " + std::to_string(rules.first_id) + " to " + last;
}

bool take_id(line_fields& fields, line_rules const& rules, u64& id, line_fault& bad) {
  line_fields const before = fields;
  if (fields.take(id) && id >= rules.first_id && id <= rules.last_id) {
    id -= rules.first_id;
    return true;
  }
  bad = {before.at(),
         before.empty() ? "two vertex numbers are needed" : before.quoted() + " is no vertex number " + id_range(rules)};
  return false;
}

bool take_weight(line_fields& fields, line_rules const& rules, weight_value& weight, line_fault& bad) {
  weight.whole = fields.take(weight.whole_value);
  if (weight.whole) {
    weight.real_value = static_cast<float>(weight.whole_value);
    return true;
  }
  bool const arc = rules.dialect == text_dialect::gr;
  line_fields const before = fields;
  if (!arc && !fields.has_digits_alone() && fields.take(weight.real_value) && std::isfinite(weight.real_value)) return true;
  if (before.empty())
    bad = {before.at(),
           arc ? "a weight is needed after the two vertex numbers" : "a third field, the weight, is needed in a .wel file"};
  else
    bad = {before.at(), before.quoted() + (arc                         ? " is no int32 weight"
                                           : before.has_digits_alone() ? " does not fit int32: scale the weights, or write "
                                                                         "them with a fraction for float32"
                                                                       : " is no int32 or float32 weight")};
  return false;
}

char const* fields_of(text_dialect dialect) {
  if (dialect == text_dialect::gr) return "an arc is 'a', two vertex numbers and a weight";
  return dialect == text_dialect::wel ? "a .wel line has three fields"
                                      : "a line has two fields; with weights, three, it is of format wel";
}

/// Whether the line is a comment, or empty.
bool says_nothing(line_fields const& fields, text_dialect dialect) {
  if (dialect == text_dialect::gr) return fields.empty() || fields.front() == 'c';
  return fields.empty() || fields.front() == '#' || fields.front() == '%';
}

/// False for lines that say nothing and for those that `bad` then describes.
bool parse_line(line_fields fields, line_rules const& rules, edge& e, weight_value& weight, line_fault& bad) {
  if (says_nothing(fields, rules.dialect)) return false;
  if (line_fields const before = fields; rules.dialect == text_dialect::gr && fields.take_word() != "a") {
    bad = {before.at(),
           before.front() == 'p' ? "a second p line" : before.quoted() + " begins no line of a .gr file: c, p and a do"};
    return false;
  }
  if (!take_id(fields, rules, e.from, bad) || !take_id(fields, rules, e.to, bad)) return false;
  if (rules.dialect != text_dialect::el && !take_weight(fields, rules, weight, bad)) return false;
  if (!fields.empty()) bad = {fields.at(), fields.quoted() + " after the last field: " + fields_of(rules.dialect)};
  return fields.empty();
}

/// The p line of a .gr file. False when it is none.
bool parse_header(line_fields fields, u64& vertices, u64& arcs) {
  if (fields.take_word() != "p") return false;
  std::string_view const kind = fields.take_word();
  return (kind == "sp" || kind == "edge") && fields.take(vertices) && fields.take(arcs) && fields.empty() &&
         (vertices != 0 || arcs == 0) && vertices <= highest_id + 1;
}

}  // namespace

/// What the first pass learns; each block has its own and merges it once.
struct text_edge_list::findings {
  u64 edges = 0;
  u64 highest = 0;
  bool fractions = false;
};

text_edge_list::text_edge_list(byte_input input, text_dialect dialect, unsigned threads, progress_meter& meter, u64 block_bytes)
    : blocks_(std::move(input), block_bytes, longest_line), dialect_(dialect), last_id_(highest_id) {
  if (dialect == text_dialect::gr) find_header();
  findings const all = look_at_all(threads, meter);
  if (dialect == text_dialect::gr) {
    check_arcs(all.edges);
  } else {
    if (all.edges == 0) throw_bad_input("read", blocks_.name(), "has no edges: write one 'u v' per line");
    vertices_ = all.highest + 1;
  }
  if (dialect != text_dialect::el) weights_ = all.fractions ? weight_type::float32 : weight_type::int32;
}

/// The p line is the first one that says something.
void text_edge_list::find_header() {
  bool found = false;
  for (u64 block = 0; block < blocks_.count() && !found; ++block) {
    block_lines const lines = blocks_.read(block);
    each_line(lines.text, [&](char const* at, char const* end) {
      line_fields const fields(at, end);
      if (found || says_nothing(fields, dialect_)) return;
      if (!parse_header(fields, vertices_, arcs_))
        blocks_.fail(lines, at, fields.quoted() + " begins no line 'p sp VERTICES ARCS', which comes first");
      found = true;
      header_block_ = block;
      header_at_ = lines.begin + static_cast<u64>(at - lines.text.data());
    });
  }
  if (!found) throw_bad_input("read", blocks_.name(), "has no line 'p sp VERTICES ARCS': add it before the arcs");
  first_id_ = 1;
  last_id_ = vertices_;
}

text_edge_list::findings text_edge_list::look_at_all(unsigned threads, progress_meter& meter) const {
  findings all;
  std::mutex mutex;
  parallel_for(blocks(), threads, meter, [&](u64 block) {
    findings found;
    parse_block(block, &found, nullptr);
    std::lock_guard const lock(mutex);
    all.edges += found.edges;
    all.highest = std::max(all.highest, found.highest);
    all.fractions |= found.fractions;
  });
  return all;
}

void text_edge_list::check_arcs(u64 found) const {
  if (found == arcs_) return;
  block_lines const lines = blocks_.read(header_block_);
  blocks_.fail(lines, lines.text.data() + (header_at_ - lines.begin),
               "it says " + std::to_string(arcs_) + " arcs, the file has " + std::to_string(found));
}

void text_edge_list::parse_block(u64 block, findings* found, edge_sink const* sink) const {
  block_lines const lines = blocks_.read(block);
  line_rules const rules{dialect_, first_id_, last_id_};
  constexpr std::size_t batch_edges = 2048;
  std::vector<edge> batch;
  batch.reserve(batch_edges);
  char const* const header =
      first_id_ != 0 && block == header_block_ ? lines.text.data() + (header_at_ - lines.begin) : nullptr;
  each_line(lines.text, [&](char const* at, char const* end) {
    if (at == header) return;
    edge e;
    weight_value weight;
    line_fault bad;
    if (!parse_line(line_fields(at, end), rules, e, weight, bad)) {
      if (bad.at != nullptr) blocks_.fail(lines, bad.at, bad.problem);
    } else if (found != nullptr) {
      ++found->edges;
      found->highest = std::max({found->highest, e.from, e.to});
      found->fractions |= !weight.whole;
    } else {
      e.weight =
          weights_ == weight_type::float32 ? std::bit_cast<u32>(weight.real_value) : static_cast<u32>(weight.whole_value);
      batch.push_back(e);
      if (batch.size() == batch_edges) (*sink)(batch), batch.clear();
    }
  });
  if (sink != nullptr && !batch.empty()) (*sink)(batch);
}

void text_edge_list::produce(u64 block, edge_sink const& sink) const { parse_block(block, nullptr, &sink); }

}  // namespace penstock::graph
