#include "libs/graph/text_blocks.hpp"

#include "penstock/host/error.hpp"

namespace penstock::graph {

/// Reads one byte before the block, to know whether its first byte starts a line.
block_lines text_blocks::read(u64 block) const {
  u64 const begin = block * block_bytes_, end = std::min(begin + block_bytes_, size());
  block_lines lines{block, begin == 0 ? 0 : begin - 1, {}};
  std::string& text = lines.text;
  text.resize(end - lines.begin);
  input_.read(lines.begin, std::as_writable_bytes(std::span(text)));
  if (begin != 0) {
    std::size_t const newline = text.find('\n');
    // A line that began in an earlier block and goes on beyond this one: that block has it.
    if (newline == std::string::npos || newline + 1 == text.size()) return {block, end, {}};
    text.erase(0, newline + 1);
    lines.begin += newline + 1;
  }
  for (u64 at = end; text.back() != '\n' && at < size();) {
    std::string more(std::min({std::max<u64>(4096, at - end), u64{1} << 20, size() - at}), '\0');
    input_.read(at, std::as_writable_bytes(std::span(more)));
    at += more.size();
    text.append(more, 0, std::min(more.find('\n'), more.size() - 1) + 1);
    if (at - end > longest_line_)
      throw_bad_input("read", name(),
                      "a line of more than " + std::to_string(longest_line_ >> 20) + " MiB at byte " + std::to_string(end) +
                          ": this is no edge list");
  }
  // The mark of UTF-8 (BOM) is no part of the first line; blanks leave every byte in its place.
  if (begin == 0 && text.starts_with("\xef\xbb\xbf")) text.replace(0, 3, "   ");
  return lines;
}

bool text_blocks::ends_in_newline() const {
  std::byte last{};
  input_.read(size() - 1, {&last, 1});
  return last == std::byte{'\n'};
}

u64 text_blocks::line_number(block_lines const& lines, char const* at) const {
  u64 line = 1 + static_cast<u64>(std::count(lines.text.data(), at, '\n'));
  for (u64 b = 0; b < lines.block; ++b) {
    std::string const before = read(b).text;
    line += static_cast<u64>(std::count(before.begin(), before.end(), '\n'));
  }
  return line;
}

void text_blocks::fail(block_lines const& lines, char const* at, std::string const& problem) const {
  throw_bad_input("read", name(), "line " + std::to_string(line_number(lines, at)) + ": " + problem + ": correct the line");
}

}  // namespace penstock::graph
