#include "libs/volume/make.hpp"

#include "libs/volume/drive_member.hpp"

#include "penstock/host/error.hpp"

#include <filesystem>

#include <unistd.h>

namespace penstock::volumes {
namespace {

bool is_there(std::string const& name) {
  std::error_code unknown;
  return parse_drive_place(name).has_value() || std::filesystem::exists(std::filesystem::symlink_status(name, unknown));
}

/// Files that go again unless they are kept.
class made_files {
 public:
  made_files() = default;
  made_files(made_files const&) = delete;
  made_files& operator=(made_files const&) = delete;
  ~made_files() {
    for (std::string const& each : names_) unlink(each.c_str());
  }

  void make(std::string const& name, u64 bytes) {
    make_file_member(name, bytes);
    names_.push_back(name);
  }
  void keep() { names_.clear(); }

 private:
  std::vector<std::string> names_;
};

void check_overwrite(member& each, make_options const& options) {
  const probed found = probe(each);
  if (!found.holds.empty() && !options.overwrite_known) {
    throw_bad_input("create", each.name(),
                    "it holds " + found.holds + ": name another member, or --yes-overwrite and lose that");
  }
  if (!found.blank && !options.overwrite_unknown && !options.overwrite_known) {
    throw_bad_input("create", each.name(), "it is not empty: name another member, or --yes-overwrite and lose what it holds");
  }
}

}  // namespace

std::vector<probed_member> probe_members(std::vector<std::string> const& names) {
  std::vector<std::string> there;
  for (std::string const& each : names) {
    if (is_there(each)) there.push_back(each);
  }
  std::vector<probed_member> all;
  for (auto const& each : open_members(there, access::read)) all.push_back({each->name(), each->bytes(), probe(*each)});
  return all;
}

volume make_volume(std::vector<std::string> const& names, make_options const& options) {
  made_files made;
  if (options.file_bytes != 0) {
    plan_geometry(options.layout, static_cast<u32>(names.size()), options.stripe_bytes, options.file_bytes, "a file");
    for (std::string const& each : names) {
      if (!is_there(each)) made.make(each, options.file_bytes);
    }
  }
  member_list members = open_members(names, access::write);
  for (auto const& each : members) check_overwrite(*each, options);
  volume all = volume::create(std::move(members), options.layout, options.stripe_bytes);
  made.keep();
  return all;
}

}  // namespace penstock::volumes
