#include "libs/volume/volume_graph.hpp"

#include "libs/volume/drive_member.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <map>

namespace penstock::volumes {
namespace {

constexpr char const* prefix = "volume:";
constexpr u64 most_at_once = u64{8} << 20;

[[noreturn]] void refuse(std::string const& name, std::string const& problem) { throw_bad_input("open", name, problem); }

}  // namespace

void volume_file::read(u64 offset, std::span<std::byte> to) const {
  std::vector<std::byte> pages;
  while (!to.empty()) {
    const u64 at = file_.file_begin + offset, first = at - at % page_bytes;
    const u64 part = std::min<u64>(to.size(), most_at_once);
    pages.resize(round_up(at + part, page_bytes) - first);
    {
      const std::lock_guard lock(from_->mutex);
      from_->all.read(first, pages);
    }
    std::copy_n(pages.data() + (at - first), part, to.data());
    to = to.subspan(part);
    offset += part;
  }
}

graph::graph_folder open_volume_graph(std::shared_ptr<shared_volume> const& from, std::string const& entry,
                                      std::string const& name) {
  std::map<std::string, std::shared_ptr<graph::stored_bytes const>> files;
  for (stored_file const& each : from->all.files_of(entry)) {
    if (!each.of_graph) refuse(name, entry + " is no graph: name one, or export it");
    files[each.name.substr(entry.size() + 1)] = std::make_shared<volume_file>(from, each);
  }
  return graph::graph_folder::open(name, [files](std::string const& file) {
    const auto found = files.find(file);
    return found == files.end() ? nullptr : found->second;
  });
}

graph::graph_folder open_graph(std::string const& name) {
  if (!name.starts_with(prefix)) return graph::graph_folder::open(name);
  const u64 begin = std::string(prefix).size(), at = name.find('@', begin);
  if (at == std::string::npos) refuse(name, "no members are named: write volume:NAME@MEMBER,MEMBER");
  if (at == begin) refuse(name, "the graph has no name: write volume:NAME@MEMBER,MEMBER");
  std::vector<std::string> members;
  for (u64 from = at + 1; from <= name.size();) {
    const u64 end = std::min(name.find(',', from), name.size());
    if (end == from) refuse(name, "a member has no name: write volume:NAME@MEMBER,MEMBER");
    members.push_back(name.substr(from, end - from));
    from = end + 1;
  }
  auto opened = std::make_shared<shared_volume>(volume::open(open_members(members, access::read)));
  return open_volume_graph(opened, name.substr(begin, at - begin), name);
}

}  // namespace penstock::volumes
