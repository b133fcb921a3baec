// Reads and writes of elements, pinned lines, lines stored whole, evictions, cleaning and flushes over a few frames, under
// thousands of chosen interleavings: each element behaves as one word of memory (it is linearizable), what a flush covered is
// on the medium when it returns, and at the end nothing is pinned, dirty or on its way.
#include "support/stepped_cache.hpp"

#include "support/emulated_warp.hpp"
#include "support/history_check.hpp"
#include "support/schedules.hpp"

namespace penstock::test {
namespace {

constexpr u64 elements = 3;

/// Who takes part.
struct cast {
  u32 threads = 3;
  lane_mask lanes = 0;  ///< of an emulated warp, split at random
  u32 rounds = 3;       ///< operations of each
  u32 readers = 0;      ///< threads that only read, several words of a line each round
  u32 flushes = 0;      ///< one after another, by one thread more
  u32 failures = 0;     ///< one command in so many fails; 0: none
};

class cache_run {
 public:
  cache_run(schedule_options const& options, stepped_shape const& shape, cast const& who)
      : cache_(shape), who_(who), other_lines_(shape.lines - elements), run_(options), words_(cache_.words()),
        seed_(options.seed) {}

  scenario_outcome play() {
    cache_.drive().fail_one_in(who_.failures);
    for (u32 t = 0; t < who_.threads; ++t) {
      run_.add([this, t] { operate(lone_thread(), t, t); });
    }
    for (u32 t = 0; t < who_.readers; ++t) {
      run_.add([this, t] { read_only(t); });
    }
    std::mt19937_64 rng(seed_);
    if (who_.lanes != 0) {
      for (lane_mask part : random_partition(rng, who_.lanes)) add_group(part);
    }
    run_.add([this] {
      for (u32 k = 0; k < who_.flushes; ++k) {
        if (!flush(lone_thread()) && who_.failures == 0) run_.fail("a flush failed");
      }
    });
    run_.add([this] { finish(); });
    run_.add_server([this] { return cache_.drive().step(run_); });
    run_.add_server([this] { return cache_.clean(); });
    scenario_outcome done;
    done.schedule = run_.run();
    if (done.schedule.failure.empty()) done.wrong = judge();
    for (u64 word : cache_.stored()) done.result = scatter(done.result ^ word);
    return done;
  }

 private:
  static constexpr u64 line_words = bare_cache<>::line_words;
  /// Element e is the second word of line e.
  static u64 word_of(u64 e) { return e * line_words + 1; }

  void add_group(lane_mask group) {
    for (lane_mask rest = group; rest != 0; rest &= rest - 1) {
      const u32 lane = lowest(rest);
      run_.add([this, lane, group] {
        warp_.run_lane(lane, [&] { operate(emulated_warp(warp_, lane, group), 16 + lane, 16 + lowest(group)); });
        if (latch_.failed()) latch_.rethrow();
      });
    }
  }

  /// `group` draws what all of a group do, `thread` the element that each does it to.
  template <thread_group G>
  void operate(G const& g, u32 thread, u32 group) {
    for (u32 round = 0; round < who_.rounds; ++round) {
      const u64 common = random_word(seed_, 100 + group, round), mine = random_word(seed_, 200 + thread, round);
      const u64 fresh = u64{thread + 1} << 56 | u64{round + 1} << 48 | (mine >> 24);
      const u64 began = run_.now_ns();
      if (!operate_once(g, common, mine % elements, fresh) && who_.failures == 0) {
        run_.fail("thread " + std::to_string(thread) + ": operation " + std::to_string(common % 8) + " failed after " +
                  std::to_string(run_.now_ns() - began) + " ns of the run's time");
      }
      // Another line comes in, so one must go.
      const u64 other = (elements + mine / 64 % other_lines_) * line_words;
      const u64 read = words_[other];
      if (read != stamp(other) && (read != 0 || who_.failures == 0)) run_.fail("a read gave the bytes of another line");
    }
  }

  // The first read of a line brings it in; the others find it, and take no pin.
  void read_only(u32 thread) {
    for (u32 round = 0; round < who_.rounds; ++round) {
      const u64 first = random_word(seed_, 300 + thread, round) % (elements + other_lines_) * line_words;
      for (u64 word = first + 2; word < first + 7; ++word) {
        if (words_[word] != stamp(word)) run_.fail("a read gave the bytes of another line");
      }
    }
  }

  template <thread_group G>
  bool operate_once(G const& g, u64 common, u64 e, u64 fresh) {
    const u64 word = word_of(e);
    word_event event{.argument = fresh, .called = run_.tick()};
    bool good = false;
    switch (common % 8) {
      case 0:
      case 1:
        event.op = word_op::write;
        good = words_.try_write(g, true, word, fresh).ok();
        break;
      case 2:
        event.op = word_op::add;
        event.argument = 1;
        good = (event.seen = words_.fetch_add(g, true, word, 1)) != 0;
        break;
      case 3:
        event.op = word_op::exchange;
        event.expected = event.seen = stamp(word);
        event.done = words_.compare_exchange(g, true, word, event.seen, fresh);
        good = event.seen != 0;
        break;
      case 4: good = read_pinned(g, word, event); break;
      case 5: good = store_pinned(g, word, event); break;
      case 6: return size(g) == 1 && common / 8 % 2 == 0 ? flush(g) : store_whole(g, e, fresh);
      default: good = (event.seen = words_[word]) != 0;
    }
    if (good) log(e, event);
    return good;
  }

  void log(u64 e, word_event event) {
    event.returned = run_.tick();
    log_[e].push_back(event);
  }

  template <thread_group G>
  bool read_pinned(G const& g, u64 word, word_event& event) {
    const pinned_line<G> line = pin(g, words_, word);
    if (!line.error().ok()) return false;
    event.seen = line.template load<u64>(sizeof(u64));
    // It stays what it is, unless somebody stores into this line.
    for (u64 k = 2; k < 6; ++k) {
      const u64 beside = line.template load<u64>(k * sizeof(u64));
      if (beside != stamp(word - 1 + k) && !whole_) run_.fail("a pinned line has the bytes of another");
    }
    return true;
  }

  template <thread_group G>
  bool store_pinned(G const& g, u64 word, word_event& event) {
    writable_line<G> line = pin_to_write(g, words_, word);
    event.op = word_op::write;
    if (line.error().ok()) line.template store<u64>(sizeof(u64), event.argument);
    return line.error().ok();
  }

  /// The line of the leader's element, by all of the group: one event.
  template <thread_group G>
  bool store_whole(G const& g, u64 mine, u64 fresh) {
    const u64 e = from_leader(g, mine), value = from_leader(g, fresh);
    whole_ = true;
    const word_event event{.op = word_op::write, .argument = value, .called = run_.tick()};
    const bool good = words_.write_span(g, e * line_words, line_words, [&](u64) { return value; }).ok();
    if (good && is_leader(g)) log(e, event);
    return good;
  }

  /// What is on the medium afterwards is what each element was at some moment since the flush began.
  template <thread_group G>
  bool flush(G const& g) {
    while (flushing_) run_.pause();  // one at a time, as a host does
    flushing_ = true;
    const u64 called = run_.tick();
    const bool good = cache_.flush(g).ok();
    flushing_ = false;
    if (!good) return false;
    for (u64 e = 0; e < elements; ++e) {
      flushed_[e].push_back({.seen = cache_.stored()[word_of(e)], .called = called, .returned = run_.tick()});
    }
    return true;
  }

  void finish() {
    while (run_.workers() > 1) run_.pause();
    for (u32 attempt = 0; !flush(lone_thread()); ++attempt) {
      if (attempt == 50) run_.fail("the last flush fails again and again");
    }
  }

  static std::string judge(char const* what, u64 e, std::vector<word_event> const& events) {
    if (events.size() > 64) return "too many operations to check";
    history_check check(stamp(word_of(e)), events);
    return check.linearizable() ? "" : what + std::to_string(e) + ", " + check.smallest();
  }

  std::string judge() {
    for (u64 e = 0; e < elements; ++e) {
      std::vector<word_event> all = log_[e], on_medium = flushed_[e];
      all.push_back(flushed_[e].back());  // when all was over
      // A flush need not have what a store that is under way has stored, though others have read it.
      std::copy_if(log_[e].begin(), log_[e].end(), std::back_inserter(on_medium),
                   [](word_event const& o) { return o.op != word_op::read && (o.op != word_op::exchange || o.done); });
      if (std::string wrong = judge("element ", e, all); !wrong.empty()) return wrong;
      if (std::string wrong = judge("on the medium, element ", e, on_medium); !wrong.empty()) return wrong;
    }
    for (u64 w = elements * line_words; w < cache_.stored().size(); ++w) {
      if (cache_.stored()[w] != stamp(w)) return "word " + std::to_string(w) + " was changed by nobody";
    }
    return cache_.unrest();
  }

  stepped_cache cache_;
  cast who_;
  u64 other_lines_;
  scheduler run_;
  writable_view<u64> words_;
  u64 seed_;
  std::vector<word_event> log_[elements];
  std::vector<word_event> flushed_[elements];  ///< reads of the medium after flushes
  bool flushing_ = false;
  bool whole_ = false;  ///< some line was stored whole
  failure_latch latch_;
  emulated_warp_state warp_{latch_};
};

auto scenario(stepped_shape const& shape, cast const& who) {
  return [=](schedule_options const& options) { return cache_run(options, shape, who).play(); };
}

constexpr stepped_shape two_frames{.frames = 2};
constexpr stepped_shape one_set{.sets = 1, .lines = 12};

#if defined(__SANITIZE_ADDRESS__)
constexpr u64 share = 8;
#else
constexpr u64 share = 1;
#endif

TEST(cache_schedule, threads_over_two_frames) {
  try_schedules({3000 / share, 8000}, scenario(two_frames, {.threads = 3, .flushes = 2}));
}

TEST(cache_schedule, readers_of_more_lines_than_frames) {
  try_schedules({2000 / share, 2500}, scenario({.frames = 2, .lines = 4}, {.threads = 0, .readers = 3}));
}

TEST(cache_schedule, threads_in_one_set) { try_schedules({3000 / share, 8000}, scenario(one_set, {.threads = 4})); }

TEST(cache_schedule, commands_that_fail) {
  try_schedules({4000 / share, 9000}, scenario(two_frames, {.threads = 3, .flushes = 2, .failures = 5}));
}

TEST(cache_schedule, a_split_warp_beside_a_thread) {
  try_schedules({2000 / share, 6000}, scenario({.frames = 6, .lines = 12}, {.threads = 1, .lanes = 0x1b, .rounds = 2}));
}

TEST(cache_schedule, a_seed_is_an_interleaving) {
  expect_repeatable({0, 3000}, scenario(two_frames, {.threads = 3, .flushes = 2, .failures = 5}));
  expect_repeatable({0, 8000}, scenario(one_set, {.threads = 1, .lanes = 0x1b, .rounds = 2}));
}

}  // namespace
}  // namespace penstock::test
