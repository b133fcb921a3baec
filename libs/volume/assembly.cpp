// How a volume comes to be: members are recognised by what they begin with, or made into members of a new one.
#include "libs/volume/crc32c.hpp"
#include "libs/volume/probe.hpp"
#include "libs/volume/volume.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>

namespace penstock::volumes {

class volume_assembly {
 public:
  explicit volume_assembly(member_list members) : members_(std::move(members)) {
    if (members_.empty()) throw_bad_input("open", "a volume", "no members: name all that it has");
    for (auto const& each : members_) found_.push_back(read_superblocks(*each));
  }

  volume open() {
    for (u64 k = 0; k < members_.size(); ++k) classify(k);
    for (u64 k = 1; k < members_.size(); ++k) compare(k);
    put_in_order();
    for (u64 k = 0; k < members_.size(); ++k) check_size(k);
    superblock newest = best(0);
    for (u64 k = 1; k < members_.size(); ++k) {
      if (best(k).generation > newest.generation) newest = best(k);
    }
    newest.member = 0;
    contents table = read_table(newest);
    return volume(std::move(members_), std::move(found_), newest, std::move(table));
  }

  static volume create(member_list members, volume_layout layout, u64 stripe_bytes) {
    u64 smallest = 0;
    for (u64 k = 1; k < members.size(); ++k) {
      if (members[k]->bytes() < members[smallest]->bytes()) smallest = k;
    }
    superblock block;
    block.shape =
        plan_geometry(layout, static_cast<u32>(members.size()), stripe_bytes, members.empty() ? 0 : members[smallest]->bytes(),
                      members.empty() ? "" : members[smallest]->name());
    block.id = new_uuid();
    std::vector<volume::copies> none(members.size());
    volume made(std::move(members), std::move(none), block, {});
    for (auto const& each : made.members_) erase(*each, block.shape.header_bytes);
    block.generation = 1;
    const contents empty{block.id, block.generation, {}};
    const std::vector<std::byte> table = encode(empty);
    block.table_bytes = table.size();
    block.table_crc = crc32c(table);
    made.write_table(table, block.generation);
    made.write_superblocks(block);
    made.block_ = block;
    made.contents_ = empty;
    made.settled_ = true;
    return made;
  }

 private:
  /// Zeros over the header and the end, so that nobody takes the member for what it was. A volume that was there is gone for
  /// good before its data are touched.
  static void erase(member& from, u64 header_bytes) {
    std::vector<std::byte> zeros(least_header_bytes);
    const auto write = [&](u64 begin, u64 bytes) {
      const piece all{begin, zeros.data(), bytes};
      from.write(std::span(&all, 1));
    };
    write(0, zeros.size());
    from.flush();
    for (u64 at = zeros.size(); at < header_bytes; at += zeros.size()) write(at, std::min(zeros.size(), header_bytes - at));
    const u64 end = from.bytes() - from.bytes() % page_bytes;
    write(end - end_probed_bytes, end_probed_bytes);
    from.flush();
  }

  static volume::copies read_superblocks(member& from) {
    volume::copies found;
    std::vector<std::byte> bytes(superblock_bytes);
    for (u32 copy = 0; copy < found.size(); ++copy) {
      if (from.bytes() < superblock_places[copy] + superblock_bytes) continue;
      const piece all{superblock_places[copy], bytes.data(), bytes.size()};
      try {
        from.read(std::span(&all, 1));
        found[copy] = decode(bytes);
      } catch (error const&) {
        found[copy].state = superblock_state::damaged;  // the other may be fine
      }
    }
    return found;
  }

  superblock const& best(u64 k) const {
    auto const& [a, b] = found_[k];
    if (a.state != superblock_state::valid) return b.block;
    return b.state == superblock_state::valid && b.block.generation > a.block.generation ? b.block : a.block;
  }

  [[noreturn]] void refuse(u64 k, std::string const& problem) const { throw_bad_input("open", members_[k]->name(), problem); }

  void classify(u64 k) const {
    const auto any = [&](superblock_state state) {
      return std::ranges::find(found_[k], state, &found_superblock::state) != found_[k].end();
    };
    if (any(superblock_state::newer)) {
      const u32 version = std::max(found_[k][0].version, found_[k][1].version);
      refuse(k, "its volume is of format version " + std::to_string(version) + ", and this Penstock knows " +
                    std::to_string(format_version) + ": use a newer Penstock");
    }
    if (any(superblock_state::valid)) {
      auto const& [a, b] = found_[k];
      if (a.state == b.state &&
          (a.block.id != b.block.id || a.block.member != b.block.member || a.block.shape != b.block.shape)) {
        refuse(k, "its two superblocks are of different volumes: make the volume anew");
      }
      return;
    }
    if (any(superblock_state::damaged)) {
      refuse(k, "both of its superblocks are damaged: bring a copy of it back, or make the volume anew");
    }
    refuse(k, "it is no member of a volume: name those of one, or make one with penstock volume create");
  }

  void compare(u64 k) const {
    superblock const &first = best(0), &own = best(k);
    if (own.id != first.id) {
      refuse(k, "it is of volume " + to_text(own.id) + ", and " + members_[0]->name() + " of " + to_text(first.id) +
                    ": name the members of one volume");
    }
    if (own.shape != first.shape) {
      refuse(k, "its superblock tells of another layout than that of " + members_[0]->name() +
                    ": bring a copy of it back, or make the volume anew");
    }
    for (u64 other = 0; other < k; ++other) {
      if (best(other).member != own.member) continue;
      refuse(k, "it is member " + std::to_string(own.member) + " of the volume, and so is " + members_[other]->name() +
                    ": name each member once");
    }
  }

  void put_in_order() {
    superblock const& first = best(0);
    const u64 count = first.shape.members;
    std::vector<u64> place(count, ~u64{0});
    for (u64 k = 0; k < members_.size(); ++k) place[best(k).member] = k;
    std::string missing;
    for (u64 m = 0; m < count; ++m) {
      if (place[m] == ~u64{0}) missing += (missing.empty() ? "" : ", ") + std::to_string(m);
    }
    if (!missing.empty()) {
      throw_bad_input("open", "volume " + to_text(first.id),
                      "it is " + to_text(first.shape.layout) + " over " + std::to_string(count) +
                          " members, counted from 0, and these are missing: " + missing + ": attach and name them, too");
    }
    member_list members;
    std::vector<volume::copies> found;
    for (const u64 k : place) {
      members.push_back(std::move(members_[k]));
      found.push_back(found_[k]);
    }
    members_ = std::move(members);
    found_ = std::move(found);
  }

  void check_size(u64 k) const {
    const u64 need = best(k).shape.member_bytes;
    if (members_[k]->bytes() >= need) return;
    refuse(k, "it has " + std::to_string(members_[k]->bytes()) + " bytes, and the volume lies on " + std::to_string(need) +
                  ": it was cut short; bring a copy of it back");
  }

  /// Of the newest change, and that each member has seen it: its superblock says so, or was just about to.
  contents read_table(superblock const& newest) {
    std::vector<std::byte> table(newest.table_bytes), whole;
    for (u64 k = 0; k < members_.size(); ++k) {
      const bool lags = best(k).generation != newest.generation;
      const bool there = (lags || whole.empty()) && read_whole_table(*members_[k], newest, table);
      if (lags && (!there || best(k).generation + 1 != newest.generation)) {
        refuse(k, "it has missed changes of its volume (it is at change " + std::to_string(best(k).generation) +
                      ", others at " + std::to_string(newest.generation) + "): bring back the member that has them");
      }
      if (!lags && best(k).table_crc != newest.table_crc) {
        refuse(k, "it has seen other changes of its volume than the others: bring back the member that went with them");
      }
      if (there) whole = table;
    }
    const std::string name = "volume " + to_text(newest.id);
    if (whole.empty()) throw_bad_input("open", name, "its table of contents is damaged on all members: make the volume anew");
    contents found = decode_contents(whole, newest.shape, name);
    if (found.id != newest.id || found.generation != newest.generation) {
      throw_bad_input("open", name, "its table of contents is of another change: make the volume anew");
    }
    return found;
  }

  static bool read_whole_table(member& from, superblock const& newest, std::span<std::byte> table) {
    const piece all{table_places[newest.generation % 2], table.data(), table.size()};
    try {
      from.read(std::span(&all, 1));
    } catch (error const&) {
      return false;  // another member has it, too
    }
    return crc32c(table) == newest.table_crc;
  }

  member_list members_;
  std::vector<volume::copies> found_;
};

volume volume::open(member_list members) { return volume_assembly(std::move(members)).open(); }

volume volume::create(member_list members, volume_layout layout, u64 stripe_bytes) {
  return volume_assembly::create(std::move(members), layout, stripe_bytes);
}

}  // namespace penstock::volumes
