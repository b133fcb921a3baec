#include "libs/volume/volume.hpp"

#include "libs/graph/parallel.hpp"
#include "libs/volume/crc32c.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>
#include <set>

namespace penstock::volumes {
namespace {

bool holds(found_superblock const& found, superblock const& block) {
  return found.state == superblock_state::valid && found.block == block;
}

/// Which of a member's superblocks can be lost more easily.
u32 worse_of(std::array<found_superblock, std::size(superblock_places)> const& found) {
  const auto worth = [&](u32 k) { return found[k].state == superblock_state::valid ? found[k].block.generation : 0; };
  return worth(1) < worth(0) ? 1 : 0;
}

}  // namespace

superblock volume::block_of(u32 member, superblock const& block) const {
  superblock own = block;
  own.member = member;
  return own;
}

template <class Call>
void volume::each_member(Call const& call) {
  if (members_.size() == 1) return call(u32{0});
  graph::progress_meter silent;
  graph::parallel_for(members_.size(), members(), silent, [&](u64 m) { call(static_cast<u32>(m)); });
}

std::vector<stored_file> volume::files_of(std::string const& entry) const {
  std::vector<stored_file> files;
  std::set<std::string> known;
  for (stored_file const& each : contents_.files) {
    if (each.entry() == entry) files.push_back(each);
    known.insert(each.entry());
  }
  if (!files.empty()) return files;
  std::string names;
  for (std::string const& each : known) names += (names.empty() ? "" : ", ") + each;
  throw_bad_input("open", entry,
                  names.empty() ? "the volume is empty: import something" : "the volume has none: it has " + names);
}

std::vector<std::vector<piece>> volume::pieces_of(u64 address, std::byte* data, u64 bytes, u32 replica) const {
  std::vector<std::vector<piece>> pieces(members());
  const volume_view view = shape().view();
  // Replicas share a read by chunks; a stripe has its member.
  const u64 unit = shape().layout == volume_layout::replicated ? shape().chunk_bytes() : shape().stripe_bytes;
  for (u64 done = 0; done < bytes;) {
    const u64 at = address + done;
    const u64 part = std::min(bytes - done, unit - at % unit);
    const u32 hint = replica == any_replica ? static_cast<u32>(at / unit % members()) : replica;
    const auto place = view.locate(byte_offset{at}, hint);
    pieces[place.member].push_back({value(place.offset), data + done, part});
    done += part;
  }
  return pieces;
}

void volume::read(u64 address, std::span<std::byte> to, u32 replica) {
  const auto pieces = pieces_of(address, to.data(), to.size(), replica);
  each_member([&](u32 m) { members_[m]->read(pieces[m]); });
}

void volume::write(u64 address, std::span<std::byte const> from) {
  settle();
  auto* const data = const_cast<std::byte*>(from.data());  // which members only read
  if (shape().layout == volume_layout::replicated) {
    const piece all{address, data, from.size()};
    return each_member([&](u32 m) { members_[m]->write(std::span(&all, 1)); });
  }
  const auto pieces = pieces_of(address, data, from.size(), any_replica);
  each_member([&](u32 m) { members_[m]->write(pieces[m]); });
}

void volume::write_table(std::span<std::byte const> table, u64 generation) {
  const piece all{table_places[generation % 2], const_cast<std::byte*>(table.data()), table.size()};
  each_member([&](u32 m) {
    members_[m]->write(std::span(&all, 1));
    members_[m]->flush();
  });
}

// At every moment one of the two is whole: the worse goes first, and the other only when that is there for good. One that holds
// the block already goes before it, with the bytes that it has: read from a cache, it may not be there for good, but then the
// other is, for whoever wrote the first had flushed both before.
void volume::write_superblocks(superblock const& block) {
  std::vector<u32> first;
  for (u32 m = 0; m < members(); ++m) {
    const bool has[] = {holds(found_[m][0], block_of(m, block)), holds(found_[m][1], block_of(m, block))};
    first.push_back(has[0] != has[1] ? u32{has[1]} : worse_of(found_[m]));
  }
  for (u32 pass = 0; pass < 2; ++pass) {
    each_member([&](u32 m) {
      const u32 copy = first[m] ^ pass;
      const superblock own = block_of(m, block);
      auto bytes = encode(own);
      found_[m][copy] = {superblock_state::damaged, 0, {}};
      const piece all{superblock_places[copy], bytes.data(), bytes.size()};
      members_[m]->write(std::span(&all, 1));
      members_[m]->flush();
      found_[m][copy] = {superblock_state::valid, format_version, own};
    });
  }
}

// Members that lag get theirs here, too: they need a table whose place the change takes.
void volume::settle() {
  if (failed_) {
    throw_bad_input("write", "volume " + to_text(block_.id),
                    "a change of it failed half way, and may be there or not: open the volume again");
  }
  if (settled_) return;
  failed_ = true;
  write_superblocks(block_);
  failed_ = false;
  settled_ = true;
}

void volume::commit(contents next) {
  next.id = block_.id;
  next.generation = block_.generation + 1;
  const std::vector<std::byte> table = encode(next);
  settle();
  failed_ = true;
  write_table(table, next.generation);  // flushed, and with it what it names
  superblock block = block_;
  block.generation = next.generation;
  block.table_bytes = table.size();
  block.table_crc = crc32c(table);
  write_superblocks(block);
  block_ = block;
  contents_ = std::move(next);
  failed_ = false;
}

std::vector<volume::header_problem> volume::check_headers() {
  std::vector<header_problem> problems;
  std::vector<std::byte> table(block_.table_bytes);
  for (u32 m = 0; m < members(); ++m) {
    for (u32 copy = 0; copy < std::size(superblock_places); ++copy) {
      if (holds(found_[m][copy], block_of(m, block_))) continue;
      const bool old = found_[m][copy].state == superblock_state::valid;
      problems.push_back({m, superblock_places[copy], superblock_bytes,
                          std::string(copy == 0 ? "first" : "second") +
                              (old ? " superblock is of an earlier change" : " superblock is damaged")});
    }
    const u64 place = table_places[block_.generation % 2];
    const piece all{place, table.data(), table.size()};
    try {
      members_[m]->read(std::span(&all, 1));
      if (crc32c(table) == block_.table_crc) continue;
      problems.push_back({m, place, table.size(), "table of contents is damaged"});
    } catch (error const& problem) {
      problems.push_back({m, place, table.size(), std::string("table of contents cannot be read: ") + problem.what()});
    }
  }
  return problems;
}

}  // namespace penstock::volumes
