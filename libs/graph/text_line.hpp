// One line of a text edge list: what its fields must be, and the sentence for a line that is wrong.
#pragma once

#include "libs/graph/edge_source.hpp"
#include "libs/graph/text_fields.hpp"
#include "libs/graph/text_layout.hpp"
#include "libs/graph/text_weight.hpp"

#include <cctype>
#include <cmath>
#include <string>
#include <string_view>

namespace penstock::graph {

inline constexpr char of_networkx[] =
    "the attributes of an edge as NetworkX writes them: write its weight as a number (networkx.write_weighted_edgelist), to a "
    ".wel file";
/// Of a vertex whose number its id is: more than any machine has memory for, and all sizes stay far from overflow.
inline constexpr u64 highest_number = (u64{1} << 40) - 1;
/// Of a vertex that gets a number: as for integers in tables.
inline constexpr u64 highest_id = (u64{1} << 63) - 1;

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
inline std::string weight_problem(line_fields const& field, bool arc, char const* misfit) {
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
inline bool take_real_weight(line_fields& fields, bool arc, weight_value& weight, line_fault& bad) {
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
inline std::string surplus(line_fields const& fields, text_dialect dialect) {
  std::string const quoted = fields.quoted() + " after the last field: ";
  if (dialect == text_dialect::gr)
    return quoted + "an arc is 'a', two vertex numbers and a weight, an edge 'e' and two numbers";
  if (fields.front() == '{') return std::string(of_networkx);
  if (dialect == text_dialect::wel) return quoted + "a .wel line has three fields; with more, choose some (columns)";
  return quoted + "a line has two fields; with weights, three, it is of format wel; with more, choose some (columns)";
}

/// Whether the line is a comment, or empty.
inline bool says_nothing(line_fields const& fields, text_dialect dialect) {
  if (dialect == text_dialect::gr) return fields.empty() || fields.front() == 'c';
  return fields.empty() || fields.front() == '#' || fields.front() == '%';
}

/// Whether what is left says nothing of the edge: a dictionary of NetworkX without entries.
inline bool no_more(line_fields const& fields, text_dialect dialect) {
  if (fields.empty()) return true;
  if (dialect == text_dialect::gr || fields.front() != '{') return false;
  std::string_view rest = fields.rest();
  rest = rest.substr(0, rest.find_last_not_of(" \t\r") + 1);
  return rest == "{}";
}

inline line_fields field_at(line_fields fields, u64 place) {
  for (; place > 0 && !fields.empty(); --place) fields.take_word();
  return fields;
}

/// Takes what begins a line of a .gr file. False for what `bad` then describes, and for a line that is dropped.
inline bool take_letter(line_fields& fields, bool edges_alone, line_fault& bad) {
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
inline std::string parse_header(line_fields fields, u64& vertices, u64& arcs, bool& edges) {
  std::string const shown = fields.quoted();
  std::string no_header = shown + " begins no line 'p sp VERTICES ARCS', which comes first";
  if (fields.take_word() != "p") return no_header;
  std::string const kind_shown = fields.quoted();
  std::string_view const kind = fields.take_word();
  edges = kind == "edge" || kind == "col";
  bool const numbers = fields.take(vertices) && fields.take(arcs) && fields.empty() && (vertices != 0 || arcs == 0) &&
                       vertices <= highest_number + 1;
  if (numbers && !edges && kind != "sp")
    return "p " + kind_shown +
           " is of another problem: graphs are 'p sp' (arcs 'a u v w'), 'p edge' or 'p col' (edges 'e u v')";
  if (numbers) return {};
  return kind == "sp" || edges ? "p " + kind_shown + " has other numbers than those of vertices, at most " +
                                     std::to_string(highest_number + 1) + ", and of arcs"
                               : no_header;
}

}  // namespace penstock::graph
