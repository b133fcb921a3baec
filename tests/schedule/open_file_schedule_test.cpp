// The table of open files and the dirty parts of one, under thousands of chosen interleavings. Opens by a known name, opens
// that the host answers, closes and renames: a descriptor is of an open file of that name, and at the end the host has had all
// of its opens back. Stores and syncs, some of which fail: what was stored before a sync that succeeds is on the medium.
#include "support/schedules.hpp"

#include "support/test_context.hpp"

#include "penstock/file/dirty_parts.hpp"

#include <array>
#include <deque>

namespace penstock::test {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr u64 share = 8;
#else
constexpr u64 share = 1;
#endif

// Steps of other threads come between its parts, but not into them.
class host_model {
 public:
  static constexpr u32 names = 2, slots = 3;

  explicit host_model(u32 slots_in_use) : in_use_(slots_in_use) {
    for (u32 s = 0; s < slots_in_use; ++s) free_.push_back(s);
    for (u32 n = 0; n < names; ++n) file_of_[n] = next_file_++;
  }

  /// Error ENFILE: all slots are taken.
  file_call::answer open(u32 name) {
    file_call::answer given;
    given.number = renames_;
    scheduled::yield_point();
    const u32 file = file_of_[name];
    scheduled::yield_point();
    u32 slot = 0;
    while (slot != slots && !(open_[slot] && file_in_[slot] == file)) ++slot;
    if (slot == slots) {
      if (free_.empty()) {
        given.error = ENFILE;
        return given;
      }
      slot = free_.front();
      free_.pop_front();
      open_[slot] = true;
      file_in_[slot] = file;
    }
    ++users_[slot];
    given.slot = slot;
    given.generation = generations_[slot];
    given.size = file;
    given.first_byte = u64{file} << 20;
    given.range_bytes = 1 << 20;
    scheduled::yield_point();  // the answer is on its way
    return given;
  }

  /// The generation afterwards; 0: what is given back was not taken.
  u32 close(u32 slot, u32 generation, u32 opens) {
    scheduled::yield_point();
    if (generations_[slot] != generation || opens == 0 || opens > users_[slot]) return 0;
    users_[slot] -= opens;
    if (users_[slot] == 0) {
      open_[slot] = false;
      ++generations_[slot];
      free_.push_back(slot);
    }
    const u32 answer = generations_[slot];
    scheduled::yield_point();
    return answer;
  }

  /// Another file has the name from now on.
  u64 rename(u32 name) {
    scheduled::yield_point();
    file_of_[name] = next_file_++;
    scheduled::yield_point();
    const u64 count = ++renames_;
    scheduled::yield_point();
    return count;
  }

  u32 file_of(u32 name) const { return file_of_[name]; }
  u32 file_in(u32 slot) const { return file_in_[slot]; }
  bool is_open(file_descriptor const& file) const { return open_[file.slot] && generations_[file.slot] == file.generation; }
  bool is_idle() const { return free_.size() == in_use_; }

 private:
  u64 in_use_;
  std::array<u32, names> file_of_{};
  std::array<u32, slots> file_in_{}, users_{};
  std::array<u32, slots> generations_{1, 1, 1};
  std::array<bool, slots> open_{};
  std::deque<u32> free_;
  u32 next_file_ = 1;
  u64 renames_ = 0;
};

struct open_cast {
  u32 threads = 3, rounds = 4;
  u32 renames = 0;        ///< by one thread more
  u32 double_closes = 0;  ///< one close in so many is made twice; 0: none
  u32 names = host_model::names, slots = host_model::slots;
};

class open_run {
 public:
  open_run(schedule_options const& options, open_cast const& who)
      : who_(who), run_(options), seed_(options.seed), host_(who.slots) {
    table_.files = files_.data();
    table_.hints = hints_.data();
    table_.renames = &renames_;
    table_.buckets = 1;
    table_.hasher.key[0] = 1;
  }

  scenario_outcome play() {
    for (u32 t = 0; t < who_.threads; ++t) {
      run_.add([this, t] { operate(t); });
    }
    run_.add([this] {
      for (u32 k = 0; k < who_.renames; ++k) {
        const u32 name = static_cast<u32>(random_word(seed_, 99, k) % host_model::names);
        table_.forget_names(host_.rename(name));
        oldest_[name] = host_.file_of(name);  // what an open that begins now may find
      }
    });
    scenario_outcome done;
    done.schedule = run_.run();
    if (done.schedule.failure.empty()) done.wrong = judge();
    done.result = scatter(known_ ^ u64{asked_} << 32);
    return done;
  }

  u32 known() const { return known_; }

 private:
  void operate(u32 thread) {
    for (u32 round = 0; round < who_.rounds; ++round) {
      const u64 drawn = random_word(seed_, thread, round);
      const u32 name = static_cast<u32>(drawn % who_.names);
      const u32 flags = file_flag::read | (drawn / 8 % 4 == 0 ? file_flag::write : 0);
      file_descriptor file;
      if (!open(name, flags, file)) continue;
      for (u64 k = drawn / 64 % 4; k != 0; --k) scheduled::yield_point();
      if (who_.double_closes == 0) check_open(file);
      close(file);
      if (who_.double_closes != 0 && drawn / 1024 % who_.double_closes == 0) close(file);
    }
  }

  bool open(u32 name, u32 flags, file_descriptor& file) {
    const u32 oldest = oldest_[name];
    char const text = static_cast<char>('a' + name);
    const name_hash hash = table_.hasher(&text, 1);
    host_debt debt;
    if (table_.add_user_by_name(hash, flags, file, debt)) {
      ++known_;
    } else {
      give_back(file.slot, debt);
      const file_call::answer given = host_.open(name);
      if (given.error != 0) return false;
      file = table_.add_user(given, flags, hash);
      ++asked_;
    }
    if (who_.double_closes != 0) return true;
    check_open(file);
    const u32 found = host_.file_in(file.slot);
    if (found < oldest) run_.fail("an open found a file that had lost its name before");
    if (u64{found} << 20 != file.first_byte) run_.fail("a descriptor has the range of another file");
    return true;
  }

  void check_open(file_descriptor const& file) {
    if (!host_.is_open(file)) run_.fail("a file was closed under a user");
    const u64 word = files_[file.slot].size;
    if (word >> size_bits != file.generation) run_.fail("a user's descriptor is taken for a closed one");
    if ((word & size_mask) != host_.file_in(file.slot)) run_.fail("an open file has another size than it began with");
  }

  void close(file_descriptor const& file) {
    host_debt debt;
    const bool had = table_.remove_user(file, debt);
    give_back(file.slot, debt);
    if (!had && who_.double_closes == 0) run_.fail("a descriptor was over before its close");
  }

  void give_back(u32 slot, host_debt const& debt) {
    if (debt.opens == 0) return;
    const u32 generation = host_.close(slot, debt.generation, debt.opens);
    if (generation == 0) run_.fail("the host got back what it had not given");
    if (generation > debt.generation) table_.end_generation(slot, generation);
  }

  std::string judge() const {
    if (who_.double_closes != 0) return "";
    if (!host_.is_idle()) return "the host has not had all of its opens back";
    for (open_file const& file : files_) {
      const user_word users{file.users};
      if (users.users() != user_word::bias || users.host_opens() != 0) return "users of a closed file are left";
    }
    return "";
  }

  open_cast who_;
  scheduler run_;
  u64 seed_;
  host_model host_;
  std::array<open_file, host_model::slots> files_{};
  std::array<u32, open_file_table::hints_per_bucket> hints_{};
  u64 renames_ = 0;
  open_file_table table_;
  std::array<u32, host_model::names> oldest_{};
  u32 known_ = 0, asked_ = 0;
};

auto opens(open_cast const& who) {
  return [=](schedule_options const& options) { return open_run(options, who).play(); };
}

TEST(open_file_schedule, files_that_all_open_and_close) { try_schedules({6000 / share, 600}, opens({.threads = 3})); }

TEST(open_file_schedule, many_at_once) { try_schedules({3000 / share, 1200}, opens({.threads = 6, .rounds = 3})); }

TEST(open_file_schedule, one_file_in_one_slot) {
  try_schedules({6000 / share, 400}, opens({.threads = 4, .rounds = 4, .names = 1, .slots = 1}));
}

TEST(open_file_schedule, names_that_change) { try_schedules({6000 / share, 700}, opens({.threads = 3, .renames = 3})); }

// What a second close ends may be another's, which may stay open for good then. The host gets back no open twice.
TEST(open_file_schedule, closes_made_twice) { try_schedules({3000 / share, 800}, opens({.threads = 3, .double_closes = 2})); }

TEST(open_file_schedule, most_opens_of_a_file_in_use_reach_no_host) {
  open_run run({.seed = 2, .how = strategy::random_walk}, {.threads = 8, .rounds = 8});
  EXPECT_EQ("", run.play().wrong);
  EXPECT_GT(run.known(), 16u);
}

struct sync_cast {
  u32 writers = 2, stores = 3, syncers = 2, syncs = 3;
  u32 failures = 0;  ///< one write in so many fails; 0: none
};

/// Of each part: what was stored last, and what the medium has. A line is written as flush_lines does.
class sync_run {
 public:
  sync_run(schedule_options const& options, sync_cast const& who) : who_(who), run_(options), seed_(options.seed) {}

  scenario_outcome play() {
    for (u32 t = 0; t < who_.writers; ++t) {
      run_.add([this, t] {
        for (u32 k = 0; k < who_.stores; ++k) store(static_cast<u32>(random_word(seed_, t, k) % parts));
      });
    }
    for (u32 t = 0; t < who_.syncers; ++t) {
      run_.add([this, t] {
        for (u32 k = 0; k < who_.syncs; ++k) {
          store(static_cast<u32>(random_word(seed_, 50 + t, k) % parts));
          sync();
        }
      });
    }
    scenario_outcome done;
    done.schedule = run_.run();
    if (done.schedule.failure.empty() && entry_.flushing != 0) done.wrong = "a sync is counted that is over";
    for (part const& p : parts_) done.result = scatter(done.result ^ p.medium);
    return done;
  }

 private:
  static constexpr u32 parts = 2;
  static constexpr u64 part_bytes = 512;

  struct part {
    u32 stored = 0, medium = 0, promised = 0;
    bool dirty = false, writing = false;
  };

  void store(u32 p) {
    const u32 value = ++parts_[p].stored;
    scheduled::yield_point();
    parts_[p].dirty = true;
    scheduled::yield_point();
    dirty_.add(p * part_bytes, 1);
    parts_[p].promised = std::max(parts_[p].promised, value);
  }

  bool write(u32 p) {
    part& it = parts_[p];
    while (it.writing) run_.pause();
    if (it.dirty) {
      it.dirty = false;
      it.writing = true;
      const u32 value = it.stored;
      scheduled::yield_point();
      it.writing = false;
      if (who_.failures != 0 && run_.draw() % who_.failures == 0) {
        it.dirty = true;
        return false;
      }
      it.medium = value;
    }
    return true;
  }

  void sync() {
    std::array<u32, parts> wanted;
    for (u32 p = 0; p < parts; ++p) wanted[p] = parts_[p].promised;
    const u32 found = dirty_.begin_flush();
    bool good = true;
    for (u32 p = 0; p < parts; ++p) {
      if ((found >> p & 1) != 0) good &= write(p);
      scheduled::yield_point();
    }
    if (found != 0) dirty_.end_flush(good ? 0 : found);
    if (!good) return;
    for (u32 p = 0; p < parts; ++p) {
      if (parts_[p].medium < wanted[p]) run_.fail("a sync returned before what was stored was on the medium");
    }
  }

  sync_cast who_;
  scheduler run_;
  u64 seed_;
  open_file entry_;
  dirty_parts dirty_{entry_, dirty_parts::parts * part_bytes, part_bytes};
  std::array<part, parts> parts_{};
};

auto syncs(sync_cast const& who) {
  return [=](schedule_options const& options) { return sync_run(options, who).play(); };
}

TEST(dirty_parts_schedule, stores_and_syncs) { try_schedules({6000 / share, 300}, syncs({})); }

TEST(dirty_parts_schedule, three_syncs_at_once) {
  try_schedules({4000 / share, 400}, syncs({.writers = 1, .syncers = 3, .syncs = 2}));
}

TEST(dirty_parts_schedule, writes_that_fail) { try_schedules({6000 / share, 400}, syncs({.syncers = 3, .failures = 3})); }

TEST(dirty_parts, cover_the_bytes_of_a_store) {
  open_file entry;
  const dirty_parts dirty(entry, u64{40} << 20, 4096);
  const u64 part = dirty.part_bytes();
  EXPECT_GE(part * dirty_parts::parts, u64{40} << 20);
  EXPECT_EQ(0u, part % 4096);
  dirty.add(0, 1);
  EXPECT_EQ(1u, entry.dirty);
  dirty.add(3 * part - 1, 2);
  EXPECT_EQ(0b1101u, entry.dirty);
  dirty.add(0, u64{40} << 20);
  EXPECT_EQ(~0u, entry.dirty);
  EXPECT_EQ(~0u, dirty.begin_flush());
  EXPECT_EQ(0u, entry.dirty);
  dirty.end_flush(1u << 31);
  EXPECT_EQ(1u << 31, entry.dirty);
  EXPECT_EQ(0u, entry.flushing);
}

}  // namespace
}  // namespace penstock::test
