#include "libs/volume/volume_entry.hpp"

#include "libs/volume/drive_member.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace penstock::volumes {
namespace {

constexpr std::string_view prefix = "volume:";
constexpr u64 most_at_once = u64{8} << 20;

[[noreturn]] void refuse(std::string const& name, std::string const& problem) {
  throw_bad_input("open", name, problem + ": write volume:NAME@MEMBER,MEMBER");
}

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

entry_files files_of(std::shared_ptr<shared_volume> const& from, std::string const& entry) {
  entry_files files;
  for (stored_file const& each : from->all.files_of(entry)) {
    files[each.of_folder ? each.name.substr(entry.size() + 1) : ""] = std::make_shared<volume_file>(from, each);
  }
  return files;
}

bool is_volume_name(std::string const& name) { return name.starts_with(prefix); }

volume_name parse_volume_name(std::string const& name) {
  const u64 begin = prefix.size(), at = name.find('@', begin);
  if (at == std::string::npos) refuse(name, "no members are named");
  volume_name parts;
  parts.entry = name.substr(begin, at - begin);
  if (const u64 slash = parts.entry.find('/'); slash != std::string::npos) {
    parts.file = parts.entry.substr(slash + 1);
    parts.entry.resize(slash);
  }
  if (parts.entry.empty()) refuse(name, "the entry has no name");
  for (u64 from = at + 1; from <= name.size();) {
    const u64 end = std::min(name.find(',', from), name.size());
    if (end == from) refuse(name, "a member has no name");
    parts.members.push_back(name.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

std::string to_text(volume_name const& name) {
  std::string text = std::string(prefix) + name.entry + (name.file.empty() ? "" : "/" + name.file);
  for (u64 m = 0; m < name.members.size(); ++m) text += (m == 0 ? "@" : ",") + name.members[m];
  return text;
}

volume_name absolute(volume_name name) {
  for (std::string& member : name.members) {
    std::error_code no_folder;
    if (!parse_drive_place(member)) member = std::filesystem::absolute(member, no_folder).string();
  }
  return name;
}

std::shared_ptr<shared_volume> open_shared(volume_name const& name) {
  return std::make_shared<shared_volume>(volume::open(open_members(name.members, access::read)));
}

}  // namespace penstock::volumes
