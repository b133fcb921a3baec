#include "libs/volume/drive_member.hpp"

#include "penstock/host/error.hpp"
#include "penstock/pcie/pci_device.hpp"

#include <charconv>
#include <filesystem>
#include <regex>
#include <set>

namespace penstock::volumes {
namespace {

[[noreturn]] void refuse_twice(std::string const& name) {
  throw_bad_input("open", name, "it is named twice: name each member once");
}

}  // namespace

std::optional<drive_place> parse_drive_place(std::string const& name) {
  static const std::regex form("(?:([0-9a-fA-F]{4,}):)?([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\\.[0-7])(?:/([0-9]+))?");
  std::smatch parts;
  if (!std::regex_match(name, parts, form)) return std::nullopt;
  drive_place place{(parts[1].matched ? parts[1].str() : "0000") + ":" + parts[2].str()};
  for (char& each : place.address) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
  if (!parts[3].matched) return place;
  const std::string number = parts[3].str();
  if (std::from_chars(number.data(), number.data() + number.size(), place.namespace_id).ec != std::errc()) {
    throw_bad_input("open", name, "namespace " + number + ": namespaces are 1 to 4294967294");
  }
  return place;
}

member_list open_members(std::vector<std::string> const& names, access how) {
  member_list members;
  std::set<std::string> taken;
  for (std::string const& name : names) {
    const auto place = parse_drive_place(name);
    std::error_code unknown;
    const std::string what = place ? place->address + "/" + std::to_string(place->namespace_id)
                                   : std::filesystem::weakly_canonical(name, unknown).string();
    if (!taken.insert(what).second) refuse_twice(name);
    if (!place) {
      members.push_back(open_file_member(name, how));
      continue;
    }
    const auto open = [&] {
      find_nvme_device(place->address);
      return std::shared_ptr(open_pci_function(place->address));
    };
    members.push_back(open_drive_member(share_drive(place->address, open), place->namespace_id, how));
  }
  return members;
}

}  // namespace penstock::volumes
