#include "apps/graph/text_edge_list.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <mutex>
#include <string_view>
#include <vector>

namespace penstock::graph {
namespace {

constexpr u64 longest_line = u64{1} << 20;
/// More vertices than any machine has memory for; keeps id + 1 and all sizes far from overflow.
constexpr u64 highest_id = (u64{1} << 40) - 1;

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

char const* skip_blanks(char const* at, char const* end) {
  while (at != end && blank(*at)) ++at;
  return at;
}

std::string_view field_at(char const* at, char const* end) {
  char const* stop = std::find_if(at, end, blank);
  return {at, std::min<std::size_t>(static_cast<std::size_t>(stop - at), 40)};
}

/// What is wrong with a line, and where.
struct complaint {
  char const* at = nullptr;
  std::string problem{};
};

/// A parsed weight: an integer, or a number with a fraction.
struct weight_value {
  bool whole = true;
  int whole_value = 0;
  float real_value = 0;
};

char const* parse_id(char const* at, char const* end, u64& id, complaint& bad) {
  auto const [next, error] = std::from_chars(at, end, id);
  if (error == std::errc() && (next == end || blank(*next)) && id <= highest_id) return next;
  if (at == end)
    bad = {at, "two vertex numbers are needed"};
  else
    bad = {at, "'" + std::string(field_at(at, end)) + "' is no vertex number from 0 to 2^40 - 1"};
  return end;
}

char const* parse_weight(char const* at, char const* end, weight_value& weight, complaint& bad) {
  auto const [next, error] = std::from_chars(at, end, weight.whole_value);
  if (error == std::errc() && (next == end || blank(*next))) {
    weight.whole = true;
    weight.real_value = static_cast<float>(weight.whole_value);
    return next;
  }
  weight.whole = false;
  auto const [real_next, real_error] = std::from_chars(at, end, weight.real_value);
  if (real_error == std::errc() && (real_next == end || blank(*real_next)) && std::isfinite(weight.real_value))
    return real_next;
  if (at == end)
    bad = {at, "a third field, the weight, is needed in a .wel file"};
  else
    bad = {at, "'" + std::string(field_at(at, end)) + "' is no int32 or float32 weight"};
  return end;
}

/// Parses one line without its newline. False for empty and comment lines and for those that `bad` then describes.
bool parse_line(char const* at, char const* end, bool weighted, edge& e, weight_value& weight, complaint& bad) {
  at = skip_blanks(at, end);
  if (at == end || *at == '#' || *at == '%') return false;
  at = skip_blanks(parse_id(at, end, e.from, bad), end);
  if (bad.at == nullptr) at = skip_blanks(parse_id(at, end, e.to, bad), end);
  if (bad.at == nullptr && weighted) at = skip_blanks(parse_weight(at, end, weight, bad), end);
  if (bad.at == nullptr && at != end)
    bad = {at, "'" + std::string(field_at(at, end)) + "' after the last field: " +
                   (weighted ? "a .wel line has three fields" : "a .el line has two fields, a .wel line three")};
  return bad.at == nullptr;
}

}  // namespace

/// What the first pass learns; each block has its own and merges it once.
struct text_edge_list::findings {
  u64 edges = 0;
  u64 highest = 0;
  bool fractions = false;
};

text_edge_list::text_edge_list(byte_input input, bool weighted, unsigned threads, progress_meter& meter, u64 block_bytes)
    : input_(std::move(input)), block_bytes_(block_bytes), weighted_(weighted) {
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
  if (all.edges == 0) throw_bad_input("read", input_.name(), "has no edges: write one 'u v' per line");
  vertices_ = all.highest + 1;
  if (weighted) weights_ = all.fractions ? weight_type::float32 : weight_type::int32;
}

u64 text_edge_list::blocks() const { return (input_.size() + block_bytes_ - 1) / block_bytes_; }

/// The lines whose first byte lies in the block, from that byte to the newline of the last. Reads one byte before the block, to
/// know whether its first byte starts a line.
std::string text_edge_list::read_lines(u64 block) const {
  u64 const begin = block * block_bytes_, end = std::min(begin + block_bytes_, input_.size());
  u64 at = begin == 0 ? 0 : begin - 1;
  std::string text(end - at, '\0');
  input_.read(at, std::as_writable_bytes(std::span(text)));
  if (begin != 0) {
    std::size_t const newline = text.find('\n');
    // A line that began in an earlier block and goes on beyond this one: that block has it.
    if (newline == std::string::npos || newline + 1 == text.size()) return {};
    text.erase(0, newline + 1);
  }
  at = end;
  while (text.back() != '\n' && at < input_.size()) {
    std::string more(std::min<u64>(4096, input_.size() - at), '\0');
    input_.read(at, std::as_writable_bytes(std::span(more)));
    at += more.size();
    text.append(more, 0, std::min(more.find('\n'), more.size() - 1) + 1);
    if (at - end > longest_line)
      throw_bad_input("read", input_.name(),
                      "a line of more than 1 MiB at byte " + std::to_string(end) + ": this is no edge list");
  }
  return text;
}

void text_edge_list::parse_block(u64 block, findings* found, edge_sink const* sink) const {
  std::string const lines = read_lines(block);
  constexpr std::size_t batch_edges = 2048;
  std::vector<edge> batch;
  batch.reserve(batch_edges);
  char const* const end = lines.data() + lines.size();
  for (char const* at = lines.data(); at < end;) {
    char const* const line_end = std::find(at, end, '\n');
    edge e;
    weight_value weight;
    complaint bad;
    if (parse_line(at, line_end, weighted_, e, weight, bad)) {
      if (found != nullptr) {
        ++found->edges;
        found->highest = std::max({found->highest, e.from, e.to});
        found->fractions |= !weight.whole;
      } else {
        e.weight =
            weights_ == weight_type::float32 ? std::bit_cast<u32>(weight.real_value) : static_cast<u32>(weight.whole_value);
        batch.push_back(e);
        if (batch.size() == batch_edges) (*sink)(batch), batch.clear();
      }
    } else if (bad.at != nullptr) {
      fail(block, lines, bad.at, bad.problem);
    }
    at = line_end + 1;
  }
  if (sink != nullptr && !batch.empty()) (*sink)(batch);
}

void text_edge_list::produce(u64 block, edge_sink const& sink) const { parse_block(block, nullptr, &sink); }

void text_edge_list::fail(u64 block, std::string const& lines, char const* at, std::string const& problem) const {
  u64 line = 1 + static_cast<u64>(std::count(lines.data(), at, '\n'));
  for (u64 b = 0; b < block; ++b) {
    std::string const before = read_lines(b);
    line += static_cast<u64>(std::count(before.begin(), before.end(), '\n'));
  }
  throw_bad_input("read", input_.name(), "line " + std::to_string(line) + ": " + problem + ": correct the line");
}

}  // namespace penstock::graph
