// Elements that several threads read and change while their lines come and go, some of the commands fail, and a service cleans:
// each element behaves as one word of memory does (it is linearizable), and an operation that failed has had no effect.
#include "penstock/runtime/queue_service.hpp"
#include "support/faulty_cache.hpp"
#include "support/history_check.hpp"

#include <atomic>

namespace penstock::test {
namespace {

constexpr u32 threads = 4;
constexpr u64 elements = 3;
constexpr u32 rounds = 12;  ///< of a thread, in one window: 48 operations on three elements
#if defined(PENSTOCK_TSAN)
constexpr u32 windows = 30;
#else
constexpr u32 windows = 120;
#endif

word_event event(word_op op, u64 argument, u64 seen, u64 called, u64 returned) {
  return {.op = op, .argument = argument, .seen = seen, .called = called, .returned = returned};
}

// A history that is wrong must be refused, one that only looks wrong must not.
TEST(history_check, refuses_what_no_order_explains) {
  using enum word_op;
  const auto good = [](std::vector<word_event> events) { return history_check(1, std::move(events)).linearizable(); };
  EXPECT_TRUE(good({}));
  EXPECT_TRUE(good({event(write, 2, 0, 1, 2), event(read, 0, 2, 3, 4)}));
  EXPECT_FALSE(good({event(write, 2, 0, 1, 2), event(read, 0, 1, 3, 4)})) << "a stale read";
  EXPECT_TRUE(good({event(write, 2, 0, 1, 4), event(read, 0, 1, 2, 3)})) << "they overlap";
  EXPECT_FALSE(good({event(write, 2, 0, 1, 8), event(read, 0, 2, 2, 3), event(read, 0, 1, 4, 5)})) << "new, then old";
  EXPECT_FALSE(good({event(add, 1, 1, 1, 4), event(add, 1, 1, 2, 3)})) << "a lost addition";
  EXPECT_TRUE(good({event(add, 1, 2, 1, 4), event(add, 1, 1, 2, 3)}));
  EXPECT_FALSE(good({event(write, 2, 0, 1, 2), event(write, 3, 0, 3, 4), event(read, 0, 2, 5, 6)})) << "a lost write";
  EXPECT_FALSE(good({event(read, 0, 7, 1, 2)})) << "nobody wrote it";
  word_event exchanged = event(exchange, 5, 1, 1, 2);
  exchanged.expected = 1;
  EXPECT_TRUE(good({exchanged, event(read, 0, 5, 3, 4)}));
  EXPECT_FALSE(good({exchanged, event(read, 0, 1, 3, 4)}));
  exchanged.done = false;
  EXPECT_FALSE(good({exchanged})) << "it should have been done";
  history_check wrong(1, {event(read, 0, 1, 1, 2), event(write, 2, 0, 3, 4), event(read, 0, 1, 5, 6), event(read, 0, 2, 7, 8)});
  ASSERT_FALSE(wrong.linearizable());
  EXPECT_EQ("from 1:\n  [3, 4] thread 0 write 2\n  [5, 6] thread 0 read, saw 1\n", wrong.smallest());
}

class write_history_test : public faulty_cache {
 protected:
  /// Element e is the second word of line e.
  static u64 word_of(u64 e) { return e * line_words + 1; }

  void start(u64 seed) {
    seed_ = seed;
    make({.frames = 5,
          .timeout_ns = 50 * one_millisecond_ns,
          .writable = true,
          .write_back = {.most_dirty = 0.6},
          .retry = {.attempts = 1, .fails_after = 0}});
    out_ = fixture_->writable();
    for (u64 e = 0; e < elements; ++e) initial_[e] = stamp(word_of(e));
    // One in 24, and the fifth for certain: how many there are depends on who is faster.
    const auto draw = [this](u64 kind, u64& asked) {
      return verdict{++asked == 5 || random_word(seed_, kind, asked) % 24 == 0 ? u16{0x006} : u16{0}};
    };
    controller_.answer([this, draw](u64) { return draw(1, reads_); });
    controller_.answer_writes([this, draw](u64) { return draw(2, writes_); });
  }

  /// One operation on an element, if it succeeds.
  void operate(u32 thread, u64 draw, std::vector<word_event>& of) {
    const u64 word = word_of(draw % elements);
    word_event e;
    e.thread = thread;
    e.called = clock_.fetch_add(1);
    const u64 mine = u64{thread + 1} << 56 | (draw >> 16) << 8;
    bool good = false;
    switch (draw / 8 % 8) {
      case 0:
      case 1:
        e.op = word_op::write;
        e.argument = mine;
        good = out_.try_write(lone_thread(), true, word, mine).ok();
        break;
      case 2:
        e.op = word_op::add;
        e.argument = 1;
        e.seen = out_.fetch_add(word, 1);
        good = e.seen != 0;
        break;
      case 3:
        e.op = word_op::exchange;
        e.argument = mine;
        e.seen = out_[word];
        if (draw / 4096 % 2 != 0) e.seen ^= 1;  // what nobody has written
        e.expected = e.seen;
        e.called = clock_.fetch_add(1);
        e.done = out_.compare_exchange(word, e.seen, mine);
        good = e.seen != 0;
        break;
      default: e.seen = out_[word]; good = e.seen != 0;
    }
    e.returned = clock_.fetch_add(1);
    if (good) of.push_back(e);
  }

  /// All threads for some rounds, with other lines coming in between; then what each element is, which the next window begins
  /// with.
  void run_window(u32 window, std::vector<word_event> (&histories)[elements]) {
    std::vector<word_event> logged[threads][elements];
    run_threads(threads, [&](u32 t) {
      for (u32 round = 0; round < rounds; ++round) {
        const u64 draw = random_word(seed_, 100 + t, u64{window} * rounds + round);
        operate(t, draw, logged[t][draw % elements]);
        (void)out_[(10 + draw / 64 % 60) * line_words];
      }
    });
    for (u64 e = 0; e < elements; ++e) {
      for (auto& of : logged) histories[e].insert(histories[e].end(), of[e].begin(), of[e].end());
      word_event last;
      last.called = clock_.fetch_add(1);
      for (u32 attempt = 0; attempt < 100 && last.seen == 0; ++attempt) last.seen = out_[word_of(e)];
      last.returned = clock_.fetch_add(1);
      histories[e].push_back(last);
    }
  }

  void flush_at_last() {
    for (u32 attempt = 0;; ++attempt) {
      try {
        return fixture_->flush();
      } catch (error const& failed) {
        ASSERT_LT(attempt, 50u) << failed.what();
      }
    }
  }

  u64 seed_ = 0;
  u64 reads_ = 0, writes_ = 0;  ///< asked for so far; under the controller's lock
  std::atomic<u64> clock_{0};
  writable_view<u64> out_;
  u64 initial_[elements] = {};
};
PENSTOCK_UNDER_BOTH_DIRECTORIES(write_history_test);

TEST_P(write_history_test, elements_are_linearizable_under_faults_and_evictions) {
  const u64 seed = test_seed();
  start(seed);
  queue_service service(*on_, cache(), {.units = 1});
  service.start();
  u64 logged = 0;
  for (u32 window = 0; window < windows; ++window) {
    std::vector<word_event> histories[elements];
    run_window(window, histories);
    for (u64 e = 0; e < elements; ++e) {
      logged += histories[e].size();
      ASSERT_LE(histories[e].size(), 64u);
      history_check check(initial_[e], histories[e]);
      ASSERT_TRUE(check.linearizable()) << "seed " << seed << ", window " << window << ", element " << e << ", "
                                        << check.smallest();
      initial_[e] = histories[e].back().seen;
    }
    flush_at_last();
    for (u64 e = 0; e < elements; ++e) ASSERT_EQ(initial_[e], media_.words()[word_of(e)]) << "seed " << seed;
  }
  service.stop();
  // Few operations fail: it was a test of those that do not, too.
  EXPECT_GT(logged, u64{windows} * threads * rounds / 2);
  EXPECT_GT(cache().stats(0).evictions, 0u);
  EXPECT_GT(cache().stats(0).errors, 0u);
  EXPECT_GT(cache().stats(0).write_errors, 0u);
}

}  // namespace
}  // namespace penstock::test
