// A change of a volume that is cut short at any moment: the volume is as it was, or as it should be, and nothing is lost.
#include "libs/volume/import.hpp"
#include "libs/volume/verify.hpp"
#include "penstock/core/status.hpp"
#include "support/cut_member.hpp"
#include "support/scratch_files.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>

namespace penstock::volumes {
namespace {

using test_support::cut_member;
using test_support::disk;
using test_support::file_content;
using test_support::noise;
using test_support::power;
using test_support::power_cut;
using test_support::put_file;
using test_support::refusal_of;
using test_support::scratch_folder;

constexpr u64 disk_bytes = u64{1536} << 10;
/// Calls between those that are cut. Sanitizers see each line of code in some of them; for threads there is little to see.
#if defined(PENSTOCK_TSAN)
constexpr u64 apart = 37;
#elif defined(__SANITIZE_ADDRESS__)
constexpr u64 apart = 11;
#else
constexpr u64 apart = 1;
#endif

struct cut_case {
  volume_layout layout;
  u32 members;
};

class volume_cuts : public testing::TestWithParam<cut_case> {
 protected:
  void SetUp() override {
    put_file(folder_ / "a", noise(70'000, 1));
    put_file(folder_ / "b", noise(9'000, 2));
    put_file(folder_ / "c", noise(140'000, 3));
  }

  member_list members(std::vector<disk>& disks, power& from) const {
    member_list all;
    for (u64 k = 0; k < disks.size(); ++k) all.push_back(std::make_unique<cut_member>(disks[k], from, "m" + std::to_string(k)));
    return all;
  }

  /// Every file of an open volume, as it was imported.
  std::map<std::string, std::string> files(volume& all) const {
    std::map<std::string, std::string> found;
    for (stored_file const& each : all.table().files) {
      export_entry(all, each.name, folder_ / "out", true);
      found[each.name] = file_content(folder_ / "out");
    }
    return found;
  }

  u64 data_problems(volume& all) const {
    u64 count = 0;
    for (finding const& each : verify(all).findings) count += each.file.empty() ? 0 : 1;
    return count;
  }

  struct change {
    std::function<void(volume&)> make;
    std::function<void(std::map<std::string, std::string>&)> expect;
  };

  /// Cuts the changes at call `cut`, and whatever comes after that, once more. Gives whether they have so many calls.
  bool cut_at(std::vector<disk> disks, u64 cut, u64 seed, std::vector<change> const& changes) {
    std::map<std::string, std::string> before{{"a", noise(70'000, 1)}};
    bool was_cut = false;
    for (change const& each : changes) {
      auto after = before;
      each.expect(after);
      power short_one(cut);
      try {
        volume now = volume::open(members(disks, short_one));
        each.make(now);
        EXPECT_FALSE(short_one.gone());
        cut = short_one.left;
      } catch (power_cut const&) {
        was_cut = true;
        cut = seed % 16;  // the next one soon
      }
      for (disk& on : disks) on.settle(++seed);
      power lasting;
      volume now = volume::open(members(disks, lasting));
      const auto found = files(now);
      EXPECT_TRUE(found == before || found == after) << "neither as it was nor as it should be";
      before = found;
      EXPECT_EQ(data_problems(now), 0u);
      if (testing::Test::HasFailure()) return false;
    }
    power lasting;
    volume now = volume::open(members(disks, lasting));
    import_entry(now, "last", folder_ / "b");
    EXPECT_EQ(verify(now).problems, 0u) << "the next change makes everything whole";
    return was_cut;
  }

  scratch_folder folder_;
};

INSTANTIATE_TEST_SUITE_P(each, volume_cuts,
                         testing::Values(cut_case{volume_layout::single, 1}, cut_case{volume_layout::striped, 2},
                                         cut_case{volume_layout::striped, 3}, cut_case{volume_layout::replicated, 2}),
                         [](auto const& test) {
                           return to_text(test.param.layout) + "_" + std::to_string(test.param.members);
                         });

TEST_P(volume_cuts, leave_the_volume_as_it_was_or_as_it_should_be) {
  std::vector<disk> disks;
  for (u32 m = 0; m < GetParam().members; ++m) disks.emplace_back(disk_bytes);
  {
    power lasting;
    volume made = volume::create(members(disks, lasting), GetParam().layout, 16384);
    import_entry(made, "a", folder_ / "a");
  }
  const std::vector<change> changes{
      {[&](volume& all) { import_entry(all, "b", folder_ / "b"); }, [](auto& all) { all["b"] = noise(9'000, 2); }},
      {[&](volume& all) { remove_entry(all, "a"); }, [](auto& all) { all.erase("a"); }},
      {[&](volume& all) { import_entry(all, "c", folder_ / "c"); }, [](auto& all) { all["c"] = noise(140'000, 3); }}};
  for (u64 seed = 1; seed <= 2; ++seed) {
    u64 cut = 0;
    while (cut_at(disks, cut, 1000 * seed + cut, changes)) cut += apart;
    ASSERT_FALSE(HasFailure()) << "cut at call " << cut << " of seed " << seed;
    EXPECT_GT(cut, 8u * GetParam().members) << "the changes have more calls than that";
  }
}

// A change ended when one member had a superblock of it, and others had none or half of one: they get theirs before the next
// one takes their table's place, and never lose the one that they have.
TEST_P(volume_cuts, after_another_find_members_that_lag) {
  if (GetParam().members == 1) return;
  std::vector<disk> disks;
  for (u32 m = 0; m < GetParam().members; ++m) disks.emplace_back(disk_bytes);
  std::map<std::string, std::string> before{{"a", noise(70'000, 1)}, {"b", noise(9'000, 2)}}, after = before;
  {
    power lasting;
    volume made = volume::create(members(disks, lasting), GetParam().layout, 16384);
    import_entry(made, "a", folder_ / "a");
    const std::vector<disk> old = disks;
    import_entry(made, "b", folder_ / "b");
    for (u32 m = 1; m < GetParam().members; ++m) {
      for (const u64 place : superblock_places) {
        std::copy_n(old[m].durable.data() + place, superblock_bytes, disks[m].durable.data() + place);
      }
    }
  }
  after.erase("a");
  for (u64 seed = 1; seed <= 10; ++seed) {
    bool was_cut = true;
    for (u64 cut = 0; was_cut; cut += apart) {
      std::vector<disk> mine = disks;
      if (seed % 2 == 0) mine.back().durable[100] ^= std::byte{1};
      power short_one(cut);
      try {
        volume now = volume::open(members(mine, short_one));
        remove_entry(now, "a");
        was_cut = false;
      } catch (power_cut const&) {}
      for (u64 m = 0; m < mine.size(); ++m) mine[m].settle(1000 * seed + 10 * cut + m);
      power lasting;
      volume now = volume::open(members(mine, lasting));
      const auto found = files(now);
      ASSERT_TRUE(found == before || found == after) << "cut at call " << cut << " of seed " << seed;
      ASSERT_TRUE(was_cut || found == after);
    }
  }
}

// A writer ends, and its machine does not: the next one sees in the cache what was not flushed, and may not count on it.
TEST_P(volume_cuts, after_a_writer_was_killed_bring_no_change_back_whose_bytes_are_gone) {
  std::vector<disk> disks;
  for (u32 m = 0; m < GetParam().members; ++m) disks.emplace_back(disk_bytes);
  {
    power lasting;
    volume made = volume::create(members(disks, lasting), GetParam().layout, 16384);
    import_entry(made, "a", folder_ / "a");
  }
  const std::map<std::string, std::string> first{{"a", noise(70'000, 1)}}, last{{"c", noise(140'000, 3)}};
  bool killed = true;
  u64 seed = 0;
  for (u64 kill = 0; killed; kill += apart) {
    std::vector<disk> seen = disks;
    power until(kill);
    killed = false;
    try {
      volume now = volume::open(members(seen, until));
      remove_entry(now, "a");
    } catch (power_cut const&) {
      killed = true;
    }
    bool was_cut = true;
    for (u64 cut = 0; was_cut; cut += apart) {
      std::vector<disk> mine = seen;
      for (disk& on : mine) {
        if (cut % 2 == 1) on.fail_flush(++seed);
      }
      power short_one(cut);
      was_cut = false;
      bool had_a = false;
      try {
        volume now = volume::open(members(mine, short_one));
        had_a = !now.table().files.empty();
        import_entry(now, "c", folder_ / "c");
      } catch (power_cut const&) {
        was_cut = true;
      }
      for (disk& on : mine) on.settle(++seed);
      power lasting;
      volume now = volume::open(members(mine, lasting));
      auto found = files(now);
      EXPECT_EQ(data_problems(now), 0u);
      auto both = last;
      both.insert(first.begin(), first.end());
      const bool done = found == (had_a ? both : last), removed = found.empty() && !had_a;
      ASSERT_TRUE(done || (was_cut && (found == first || removed))) << "killed at call " << kill << ", cut at " << cut;
      ASSERT_FALSE(HasFailure()) << "killed at call " << kill << ", cut at " << cut;
    }
  }
}

/// A member whose flushes can be made to fail.
class failing_member final : public member {
 public:
  failing_member(std::unique_ptr<member> own, int& flushes) : own_(std::move(own)), flushes_(flushes) {}

  std::string name() const override { return own_->name(); }
  u64 bytes() const override { return own_->bytes(); }
  namespace_place place() const override { return own_->place(); }
  void read(std::span<piece const> pieces) override { own_->read(pieces); }
  void write(std::span<piece const> pieces) override { own_->write(pieces); }
  void flush() override {
    if (flushes_-- == 0) throw_os_error("flush", name(), EIO, "check its disk");
    own_->flush();
  }

 private:
  std::unique_ptr<member> own_;
  int& flushes_;
};

TEST(volume_cut_short, in_the_middle_of_superblocks_takes_no_further_change_by_the_same_object) {
  const scratch_folder folder;
  put_file(folder / "b", noise(9'000, 2));
  disk on(disk_bytes);
  power lasting;
  int flushes = -1;
  const auto only = [&] {
    member_list one;
    one.push_back(std::make_unique<failing_member>(std::make_unique<cut_member>(on, lasting), flushes));
    return one;
  };
  {
    volume made = volume::create(only(), volume_layout::single, 16384);
    import_entry(made, "a", folder / "b");
  }
  for (int whole = 0; whole < 5; ++whole) {  // two of the superblocks of before, the table, two of the superblocks
    volume now = volume::open(only());
    flushes = whole;
    const auto grow = [&] { import_entry(now, "b" + std::to_string(whole), folder / "b"); };
    EXPECT_NE(refusal_of(error_kind::world, grow).find("check its disk"), std::string::npos) << whole;
    const std::string told = "write volume " + to_text(now.id()) +
                             ": a change of it failed half way, and may be there or not: open the volume again";
    const auto before = on.unflushed.size();
    EXPECT_EQ(refusal_of(error_kind::bad_input, grow), told) << whole;
    EXPECT_EQ(refusal_of(error_kind::bad_input, [&] { remove_entry(now, "a"); }), told) << whole;
    EXPECT_EQ(on.unflushed.size(), before) << "nothing is written";
  }
  volume again = volume::open(only());
  import_entry(again, "c", folder / "b");
  EXPECT_EQ(verify(again).problems, 0u);
}

TEST_P(volume_cuts, of_a_create_leave_no_volume_that_lies) {
  bool was_cut = true;
  for (u64 cut = 0; was_cut; cut += apart) {
    std::vector<disk> disks;
    for (u32 m = 0; m < GetParam().members; ++m) disks.emplace_back(disk_bytes);
    power lasting;
    uuid old{};
    {
      volume first = volume::create(members(disks, lasting), GetParam().layout, 16384);
      import_entry(first, "a", folder_ / "a");
      old = first.id();
    }
    power short_one(cut);
    was_cut = false;
    try {
      volume::create(members(disks, short_one), GetParam().layout, 65536);
    } catch (power_cut const&) {
      was_cut = true;
    }
    for (disk& on : disks) on.settle(cut + 1);
    try {
      volume now = volume::open(members(disks, lasting));
      if (now.id() == old) {
        EXPECT_EQ(data_problems(now), 0u);
        EXPECT_TRUE(files(now) == (std::map<std::string, std::string>{{"a", noise(70'000, 1)}}));
      } else {
        EXPECT_TRUE(now.table().files.empty());
      }
    } catch (error const& refused) {
      EXPECT_EQ(refused.kind(), error_kind::bad_input);
      EXPECT_TRUE(was_cut) << refused.what();
    }
  }
}

}  // namespace
}  // namespace penstock::volumes
