#include "libs/columns/compiled_source.hpp"

#include <algorithm>

namespace penstock::columns {
namespace {

constexpr u64 max_instructions = 512;

std::string number(u64 value) { return std::to_string(value); }
template <class Enum>
std::string enumerator(char const* type, Enum value) {
  return std::string(type) + "(" + number(static_cast<u64>(value)) + ")";
}
template <class Each>
std::string braced(u64 count, Each const& each) {
  std::string list = "{";
  for (u64 k = 0; k < count; ++k) list += (k == 0 ? "" : ", ") + each(k);
  return list + "}";
}

class source_writer {
 public:
  explicit source_writer(compiled_pass const& pass) : pass_(pass) {
    made_.is_resident =
        std::all_of(pass.columns.begin(), pass.columns.end(), [](auto const& each) { return each.is_resident; });
  }

  void code(char const* name, std::vector<instruction> const& all, program_view const& parts) {
    instructions_ += parts.end;
    const std::string list = braced(parts.end, [&](u64 k) { return text_of(all[k]); });
    if (parts.end != 0) line("instruction " + std::string(name) + "_code[]", list);
    const std::string from = parts.end == 0 ? "nullptr" : std::string(name) + "_code";
    line("program_view " + std::string(name), "{" + from + ", " + number(parts.constants) + ", " + number(parts.filter) + ", " +
                                                  number(parts.end) + ", " + number(parts.condition) + "}");
  }
  void line(std::string const& what, std::string const& value) {
    lines_ += "  static constexpr " + what + " = " + value + ";\n";
  }

  void notes_and_ranges(bool some) {
    zone_notes const& notes = pass_.view.notes;
    const u32 noted = some ? notes.count : 0;
    line("zone_notes notes", "{" + number(noted) + ", " + braced(noted, [&](u64 n) { return number(notes.registers[n]); }) +
                                 ", " + braced(noted, [&](u64 n) { return number(notes.numbers[n]); }) + ", {}}");
    const u64 count = some ? pass_.ranges.size() : 0;
    line("u32 ranges_count", number(count));
    line("column_range ranges[" + number(std::max<u64>(count, 1)) + "]", braced(count, [&](u64 k) {
           column_range const& range = pass_.ranges[k];
           use(range.column);
           return "{" + number(range.column) + "u, " + number(range.note) + "u, 0, 0}";
         }));
  }

  compiled_source finish(char const* body, u64 bytes) {
    if (instructions_ > max_instructions || made_.literals.size() > max_literals) return {};
    line("column_facts columns[" + number(std::max<u64>(used_.size(), 1)) + "]", braced(used_.size(), [&](u64 column) {
           if (!used_[column]) return std::string("{}");
           column_facts const& facts = pass_.columns[column];
           return "{" + enumerator("encoding", facts.how) + ", " + number(facts.packed_bits) + ", " + number(facts.is_divided) +
                  ", " + number(facts.is_nullable) + ", " + number(facts.is_resident) + "}";
         }));
    made_.text = std::string(
                     "#include \"libs/columns/group_bodies.hpp\"\n"
                     "#include \"libs/columns/zone_bodies.hpp\"\n"
                     "#include \"penstock/group/warp.hpp\"\n\n"
                     "using namespace penstock;\n"
                     "using namespace penstock::columns;\n\n"
                     "namespace {\n"
                     "struct code {\n"
                     "  static constexpr bool is_compiled = true, is_resident = ") +
                 (made_.is_resident ? "true" : "false") + ";\n" + lines_ +
                 "};\n"
                 "}  // namespace\n"
                 "static_assert(sizeof(" +
                 body + ") == " + number(bytes) + " && sizeof(column_view) == " + number(sizeof(column_view)) +
                 ");\n\n"
                 "extern \"C\" __global__ void __launch_bounds__(cuda_block_threads, cuda_blocks_per_unit)\n"
                 "    penstock_query(const __grid_constant__ " +
                 body +
                 " body, u64 items, u64 groups) {\n"
                 "  const u64 group = (u64{blockIdx.x} * blockDim.x + threadIdx.x) / 32;\n"
                 "  if (group < groups) body.operator()<warp, code>(warp::whole(), grid_range{group, items, groups});\n"
                 "}\n";
    return std::move(made_);
  }

 private:
  void use(u32 column) {
    if (used_.size() <= column) used_.resize(column + 1);
    used_[column] = true;
  }

  std::string text_of(instruction const& c) {
    u64 bits = 0;
    if (c.what == op::constant || c.what == op::lookup) {
      bits = made_.literals.size();
      made_.literals.push_back(c.bits);
    }
    if (c.what == op::load) use(c.number);
    std::string text = "{" + enumerator("op", c.what) + ", " + enumerator("value_kind", c.kind);
    for (u32 field : {u32{c.nullable}, u32{c.to}, u32{c.a}, u32{c.b}, u32{c.c}, 0u, c.number, 0u}) text += ", " + number(field);
    return text + ", " + number(bits) + "}";
  }

  compiled_pass const& pass_;
  compiled_source made_;
  std::string lines_;
  std::vector<bool> used_;  ///< of the columns
  u64 instructions_ = 0;
};

/// Passes that evaluate the condition: all of the program, or nothing behind it.
source_writer walking(compiled_pass const& pass, bool rest) {
  query_program const& program = pass.program;
  source_writer writer(pass);
  const u32 end = rest ? pass.view.dense.end : program.filter;
  writer.code("dense", program.dense, {nullptr, program.constants, program.filter, end, program.condition});
  writer.code("sparse", program.sparse, {nullptr, 0, program.sparse_filter, rest ? pass.view.sparse.end : 0, 0});
  const u32 left = pass.ranges.empty() ? 0 : pass.view.residual.end;
  writer.code("residual", program.residual, {nullptr, 0, 0, left, left == 0 ? 0 : program.residual_condition});
  writer.notes_and_ranges(true);
  return writer;
}

std::string text_of(aggregate const& each) {
  return "{" + enumerator("aggregate_kind", each.what) + ", " + number(each.from) + "}";
}

}  // namespace

compiled_source source_of(compiled_pass const& pass, aggregate_zones const& body) {
  source_writer writer = walking(pass, true);
  aggregation_view const& into = body.into;
  writer.line("aggregation_view aggregation", "{" + braced(into.count, [&](u64 k) { return text_of(into.list[k]); }) + ", " +
                                                  number(into.count) + ", " + number(into.groups) + ", " + number(into.key) +
                                                  ", " + number(into.by_key) + ", nullptr}");
  return writer.finish("aggregate_zones", sizeof(aggregate_zones));
}

compiled_source source_of(compiled_pass const& pass, mark_zones const&) {
  return walking(pass, false).finish("mark_zones", sizeof(mark_zones));
}

compiled_source source_of(compiled_pass const& pass, emit_zones const& body) {
  query_program const& program = pass.program;
  source_writer writer(pass);
  writer.code("dense", program.dense, {nullptr, program.constants, program.constants, program.constants, 0});
  writer.code("sparse", program.sparse, {nullptr, 0, program.sparse_filter, pass.view.sparse.end, 0});
  writer.code("residual", {}, {});
  writer.notes_and_ranges(false);
  output_view const& out = body.out;
  writer.line("output_view output",
              "{" + number(out.columns) + ", " + braced(out.columns, [&](u64 k) { return number(out.registers[k]); }) + "}");
  return writer.finish("emit_zones", sizeof(emit_zones));
}

compiled_source source_of(compiled_pass const& pass, group_zones const& body) {
  source_writer writer = walking(pass, true);
  group_slots const& into = body.into;
  const std::string keys = braced(into.key_words, [&](u64 w) { return number(into.keys[w]); });
  const std::string list = braced(into.count, [&](u64 k) {
    slot_aggregate const& each = into.list[k];
    return "{" + text_of(each.of) + ", " + number(each.at) + ", " + number(each.counts) + "}";
  });
  writer.line("group_slots grouping", "{nullptr, 0, 0, nullptr, " + number(into.stride) + ", " + number(into.key_words) + ", " +
                                          number(into.count) + ", " + keys + ", " + list + "}");
  return writer.finish("group_zones", sizeof(group_zones));
}

}  // namespace penstock::columns
