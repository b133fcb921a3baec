// What line_cache::flush promises, tried by killing the process that writes through a cache of few frames (docs/DURABILITY.md):
// elements, whole lines and runs of neighbours, while lines are evicted, cleaned and flushed all the time. The writer logs each
// change before it makes it; what is found in each block must be the result of so many of them, at least of those that a flush
// covered which returned.
#include "contract/kill_bed.hpp"

#include "penstock/group/lone_thread.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <cstring>
#include <random>

namespace penstock::test_support {
namespace {

// A line is a block, what a drive writes as one.
constexpr u32 line_bytes = 4096, line_words = line_bytes / sizeof(u64), lines = 64, frames = 14;
#if defined(PENSTOCK_TSAN) || defined(__SANITIZE_ADDRESS__)
constexpr u32 kills = 20;  // a fork takes them long
#else
constexpr u32 kills = 125;
#endif

struct change {
  static constexpr u32 whole = ~0u;
  u32 line;
  u32 word;  ///< of the line; or whole
  u64 stamp;
};

/// What the writer tells, in memory that outlives it.
struct diary {
  static constexpr u32 most = 1u << 16;
  std::atomic<u64> next{1};           ///< stamp
  std::atomic<u32> changes{0};        ///< logged, of one life
  std::atomic<u32> flushed[lines]{};  ///< of those: covered by a flush that returned
  std::atomic<u64> flushes{0}, ranges{0}, evictions{0}, write_backs{0}, whole_lines{0};  ///< of all lives
  change log[most];
};

/// Reads and writes at random, and flushes now and then, until it is killed.
class writer {
 public:
  writer(line_cache& cache, diary& told, u64 seed)
      : cache_(cache), words_(cache.writable<u64>(0, 0, u64{lines} * line_words)), told_(told), draw_(seed) {}

  [[noreturn]] void write_until_killed() {
    for (;;) {
      const u32 line = number(lines), what = number(32);
      if (what < 16) {
        store(line, number(line_words));
      } else if (what < 20) {
        store_lines(line, 1);
      } else if (what < 22) {
        store_lines(line, std::min(2 + number(6), lines - line));
      } else if (what < 30) {
        (void)words_[u64{line} * line_words];
      } else if (what == 30) {
        cache_.flush();
        covered(0, lines);
        ++told_.flushes;
      } else {
        flush_part(number(lines - 1));
      }
    }
  }

 private:
  u32 number(u32 below) { return static_cast<u32>(draw_() % below); }

  u64 log(u32 line, u32 word) {
    const u32 at = told_.changes;
    while (at == diary::most) usleep(1000);  // enough for one life
    const u64 stamp = told_.next++;
    told_.log[at] = {line, word, stamp};
    told_.changes = at + 1;
    return stamp;
  }

  void store(u32 line, u32 word) {
    const u64 stamp = log(line, word);
    if (!words_.try_write(lone_thread(), true, u64{line} * line_words + word, stamp).ok()) _exit(2);
  }

  void store_lines(u32 first, u32 count) {
    u64 stamps[8];
    for (u32 k = 0; k < count; ++k) stamps[k] = log(first + k, change::whole);
    const u64 from = u64{first} * line_words;
    const auto make = [&](u64 i) { return stamps[(i - from) / line_words]; };
    if (!words_.write_span(lone_thread(), from, u64{count} * line_words, make).ok()) _exit(3);
  }

  // Bytes that begin and end inside of lines.
  void flush_part(u32 first) {
    const u32 last = std::min(first + 1 + number(12), lines - 1);
    const u64 begin = u64{first} * line_bytes + 8 * number(line_words);
    const u64 end = u64{last} * line_bytes + 8 * (1 + number(line_words - 1));
    cache_.flush(0, begin, end - begin);
    covered(first, last + 1);
    ++told_.ranges;
    const cache_stats now = cache_.stats(0);
    told_.evictions += now.evictions - before_.evictions;
    told_.write_backs += now.write_backs - before_.write_backs;
    told_.whole_lines += now.whole_lines - before_.whole_lines;
    before_ = now;
  }

  void covered(u32 first, u32 end) {
    for (u32 line = first; line < end; ++line) told_.flushed[line].store(told_.changes);
  }

  line_cache& cache_;
  writable_view<u64> words_;
  diary& told_;
  std::mt19937_64 draw_;
  cache_stats before_;
};

using cache_case = std::tuple<file_case, directory_kind>;

class cache_durability : public ::testing::TestWithParam<cache_case> {
 protected:
  void SetUp() override {
    const std::string reason = how().reason_to_skip();
    if (!reason.empty()) GTEST_SKIP() << reason;
    before_ = byte_vector(u64{lines} * line_bytes);
    write_file(path_, before_);
  }

  file_case how() const { return std::get<0>(GetParam()); }

  void kill_a_writer(u64 seed) {
    told_->changes = 0;
    for (auto& each : told_->flushed) each = 0;
    kill_while(path_, seed, told_->changes, 120, [&] {
      const auto on = open_executor("cpu", 1);
      software_controller software(how().options());
      const u32 id = software.add_namespace(how().file(path_, line_bytes));
      cache_options options;
      options.bytes = u64{frames} * line_bytes;
      options.line_bytes = line_bytes;
      options.directory = std::get<1>(GetParam());
      line_cache cache(*on, {{"data", before_.size(), {volume_layout::single, {{&software, id}}}, true}}, options);
      writer(cache, *told_, seed).write_until_killed();
    });
  }

  void look(u64 kill) {
    const byte_vector found = read_file(path_);
    ASSERT_EQ(found.size(), before_.size());
    for (u32 line = 0; line < lines; ++line) {
      const std::string wrong = how().direct() ? look_at_state(line, found) : look_at_words(line, found);
      EXPECT_EQ("", wrong) << "after kill " << kill << ", line " << line;
    }
    before_ = found;
  }

 private:
  using line_words_of = std::array<u64, line_words>;
  static line_words_of line_of(byte_vector const& bytes, u32 line) {
    line_words_of words;
    std::memcpy(words.data(), bytes.data() + u64{line} * line_bytes, line_bytes);
    return words;
  }
  u32 changes() const { return told_->changes; }

  static void apply(change const& c, line_words_of& words) {
    if (c.word == change::whole) {
      words.fill(c.stamp);
    } else {
      words[c.word] = c.stamp;
    }
  }

  // Direct I/O writes a block as one: it is as it was after some change, the last that a flush covered or one that came later.
  std::string look_at_state(u32 line, byte_vector const& found) const {
    const line_words_of is = line_of(found, line);
    line_words_of state = line_of(before_, line);
    for (u32 k = 0;; ++k) {
      if (k >= told_->flushed[line] && state == is) return "";
      if (k == changes()) return "neither what a flush covered nor what was stored later";
      if (told_->log[k].line == line) apply(told_->log[k], state);
    }
  }

  // Through the page cache a copy may be cut anywhere: each word is what it was when a flush covered it, or later.
  std::string look_at_words(u32 line, byte_vector const& found) const {
    const line_words_of is = line_of(found, line);
    line_words_of state = line_of(before_, line);
    std::array<bool, line_words> good{};
    for (u32 k = 0;; ++k) {
      if (k == told_->flushed[line]) {
        for (u32 w = 0; w < line_words; ++w) good[w] = state[w] == is[w];
      }
      if (k == changes()) break;
      change const& c = told_->log[k];
      if (c.line != line) continue;
      apply(c, state);
      if (k < told_->flushed[line]) continue;
      for (u32 w = 0; w < line_words; ++w)
        good[w] = good[w] || (c.word == change::whole || c.word == w ? is[w] == c.stamp : false);
    }
    const auto lost = std::find(good.begin(), good.end(), false);
    return lost == good.end() ? ""
                              : "word " + std::to_string(lost - good.begin()) + " is older than a flush, or was never written";
  }

 protected:
  temporary_directory directory_;
  std::string path_ = directory_.file("data");
  byte_vector before_;  ///< the file when the writer begins
  shared_object<diary> told_;
};

INSTANTIATE_TEST_SUITE_P(every, cache_durability,
                         ::testing::Combine(::testing::ValuesIn(kill_cases),
                                            ::testing::Values(directory_kind::direct, directory_kind::set_associative)),
                         [](auto const& test) {
                           const bool direct = std::get<1>(test.param) == directory_kind::direct;
                           return std::string(std::get<0>(test.param).name) + (direct ? "_direct_directory" : "_sets");
                         });

TEST_P(cache_durability, survives_a_kill_at_any_moment) {
  for (u64 k = 1; k <= kills && !HasFailure(); ++k) {
    kill_a_writer(k);
    if (!HasFatalFailure()) look(k);
  }
  if (HasFailure()) return;
  // It was a test of all of these.
  EXPECT_GT(told_->flushes, kills);
  EXPECT_GT(told_->ranges, kills);
  EXPECT_GT(told_->evictions, kills);
  EXPECT_GT(told_->write_backs, kills);
  EXPECT_GT(told_->whole_lines, kills);
}

}  // namespace
}  // namespace penstock::test_support
