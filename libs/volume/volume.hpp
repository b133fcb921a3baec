// A volume: members in their order, the superblock and the table of contents of its last change, and its bytes by address.
//
// A change (an import, a removal) writes
//   0. the superblocks of before, as in 3 and 4: what was opened may have been seen in a cache alone, of a writer that was
//   killed
//      before it flushed. What that change freed is free only when no loss of power brings the change before it back;
//   1. data, where the table of before has nothing, and
//   2. the new table, on all members, in the place that the table of before does not have; both are flushed;
//   3. a superblock of the next generation on each member, over the worse of its two; flushed;
//   4. the other superblock of each; flushed.
// Opening takes the highest generation that any member has. Cut short before a superblock of step 3 is whole, the volume is as
// it was: nothing that generation names was written over. From then on it is as it should be: data and tables of the new one
// are on all members. A member that lags is brought up before the next change, which takes the place of its table.
#pragma once

#include "libs/volume/contents.hpp"
#include "libs/volume/member.hpp"
#include "penstock/host/progress.hpp"

#include <array>
#include <string>
#include <vector>

namespace penstock::volumes {

class volume {
 public:
  /// Takes members in any order. Throws bad_input, in one sentence and before anything is written, for one that has no volume,
  /// is damaged, of a newer version, of another volume, named twice, shorter than it was, or has missed changes, and where one
  /// is missing.
  static volume open(member_list members);

  /// Makes an empty volume on members that are in this order from then on. Whatever they hold is lost; look first
  /// (probe.hpp). Throws bad_input for members that cannot be.
  static volume create(member_list members, volume_layout layout, u64 stripe_bytes);

  uuid const& id() const { return block_.id; }
  geometry const& shape() const { return block_.shape; }
  u64 generation() const { return block_.generation; }
  contents const& table() const { return contents_; }
  u32 members() const { return static_cast<u32>(members_.size()); }
  std::string name_of(u32 member) const { return members_[member]->name(); }
  namespace_place place_of(u32 member) const { return members_[member]->place(); }

  /// The files of an entry. Throws bad_input where there is no such entry.
  std::vector<stored_file> files_of(std::string const& entry) const;

  /// Bytes by address, in whole pages. A replicated volume is read from all members in turn, or from `replica`. The first write
  /// does step 0.
  void read(u64 address, std::span<std::byte> to, u32 replica = any_replica);
  void write(u64 address, std::span<std::byte const> from);

  /// Makes `next` the table of contents (its generation is set), after all that was written. Throws penstock::error; what the
  /// volume has then is the one or the other, and this object, which does not know which, refuses every other change.
  void commit(contents next);

  /// What is wrong with superblocks and tables: a member and what it is, for people.
  struct header_problem {
    u32 member = 0;
    u64 offset = 0;
    u64 bytes = 0;
    std::string what;
  };
  std::vector<header_problem> check_headers();

  static constexpr u32 any_replica = ~u32{0};

 private:
  using copies = std::array<found_superblock, std::size(superblock_places)>;
  friend class volume_assembly;

  volume(member_list members, std::vector<copies> found, superblock const& block, contents table)
      : members_(std::move(members)), found_(std::move(found)), block_(block), contents_(std::move(table)) {}

  superblock block_of(u32 member, superblock const& block) const;
  template <class Call>
  void each_member(Call const& call);
  std::vector<std::vector<piece>> pieces_of(u64 address, std::byte* data, u64 bytes, u32 replica) const;
  void write_table(std::span<std::byte const> table, u64 generation);
  void write_superblocks(superblock const& block);
  void settle();

  member_list members_;
  std::vector<copies> found_;  ///< what each member has
  superblock block_;           ///< of member 0
  contents contents_;
  bool settled_ = false;  ///< all members have `block_` in both places for good
  bool failed_ = false;   ///< a change of superblocks was begun and not ended
};

}  // namespace penstock::volumes
