// Groups that submit, ring, harvest and give up commands at one small ring, under thousands of chosen interleavings, with a
// drive that answers in any order and some commands too late: each command ends once and with its own data, what is late
// releases its quarantine, the counters add up, and nobody waits for ever.
#include "support/stepped_drive.hpp"

#include "fault/queue_fault_bed.hpp"
#include "support/emulated_warp.hpp"
#include "support/schedules.hpp"

namespace penstock::test {
namespace {

struct ring_shape {
  u32 depth = 4;
  u32 cq_entries = 5;
  bool bounce = false;
};

/// Who takes part.
struct crew {
  u32 threads = 3;
  lane_mask lanes = 0;  ///< of an emulated warp, split at random
  u32 rounds = 4;       ///< commands of each
  u32 delays = 0;       ///< one command in so many is answered too late; 0: none
};

/// Of commands that may be answered too late. What a command takes of the run's time depends on how often its drive goes on.
constexpr u64 short_timeout_ns = one_millisecond_ns;
constexpr u32 most_commands = 64;

class queue_run {
 public:
  queue_run(schedule_options const& options, ring_shape const& shape, crew const& who)
      : media_(media_blocks * block_words * sizeof(u64)), drive_(media_.bytes()),
        bed_(drive_, options_of(shape, who), most_commands), who_(who), run_(options), seed_(options.seed) {}

  scenario_outcome play() {
    drive_.delay_one_in(who_.delays, 2 * short_timeout_ns);
    for (u32 t = 0; t < who_.threads; ++t) {
      run_.add([this, t] { work(lone_thread(), t * who_.rounds); });
    }
    std::mt19937_64 rng(seed_);
    if (who_.lanes != 0) {
      for (lane_mask part : random_partition(rng, who_.lanes)) add_group(part);
    }
    run_.add([this] { finish(); });
    run_.add_server([this] { return drive_.step(run_); });
    scenario_outcome done;
    done.schedule = run_.run();
    if (done.schedule.failure.empty()) done.wrong = judge();
    for (u32 k = 0; k < most_commands; ++k) done.result = scatter(done.result ^ bed_.record(k).outcome);
    return done;
  }

 private:
  static queue_options options_of(ring_shape const& shape, crew const& who) {
    const u64 timeout_ns = who.delays == 0 ? one_second_ns : short_timeout_ns;
    queue_options options = fault_options(shape.depth, timeout_ns, shape.bounce, shape.cq_entries);
    options.poll_in_place = false;
    return options;
  }

  void add_group(lane_mask group) {
    for (lane_mask rest = group; rest != 0; rest &= rest - 1) {
      const u32 lane = lowest(rest);
      run_.add([this, lane, group] {
        warp_.run_lane(lane, [&] { work(emulated_warp(warp_, lane, group), (who_.threads + lane) * who_.rounds); });
        if (latch_.failed()) latch_.rethrow();
      });
    }
  }

  // Commands k = first to first + rounds, two on their way at a time.
  template <thread_group G>
  void work(G const& g, u32 first) {
    for (u32 k = first; k < first + who_.rounds; k += 2) {
      for (u32 mine = k; mine < k + 2; ++mine) {
        const u64 block = random_word(seed_, 1, mine) % media_blocks;
        submitted_[mine] = bed_.view().submit(g, true, bed_.read_of(mine, block), bed_.target(mine)).ok();
        if (!submitted_[mine] && who_.delays == 0) run_.fail("a submission was refused");
      }
      await(g, k);
      await(g, k + 1);
    }
  }

  template <thread_group G>
  void await(G const& g, u32 k) {
    backoff patience(one_second_ns);
    while (any(g.ballot(submitted_[k] && !bed_.over(k)))) {
      bed_.view().progress(g);
      check_fetched();
      (void)patience.pause();
    }
    if (bed_.finished(k) != 0 && bed_.record(k).outcome == 0 && !bed_.data_right(k)) run_.fail("wrong data");
  }

  // What the queue takes for fetched, the drive has, and had: positions of the ring are freed by that.
  void check_fetched() {
    const u64 fetched = bed_.state().fetched;
    if (fetched > drive_.fetched()) run_.fail("the queue believes that more was fetched than was");
    if (fetched < fetched_) run_.fail("the queue believes that less was fetched than it knew");
    fetched_ = fetched;
  }

  /// Until what was late has come, too, unless the drive was given up for being late twice in one slot.
  void finish() {
    while (run_.workers() > 1 || (unresolved() && bed_.counts().failure.ok())) {
      bed_.progress();
      run_.pause();
    }
  }
  bool unresolved() {
    u64 given_up = 0, resolved = 0;
    for (u32 k = 0; k < most_commands; ++k) {
      given_up += bed_.abandoned(k);
      resolved += bed_.resolved(k);
    }
    return given_up != resolved;
  }

  std::string judge() {
    const queue_counts counts = bed_.counts();
    u64 commands = 0;
    for (u32 k = 0; k < most_commands; ++k) {
      command_record const& r = bed_.record(k);
      const std::string which = "command " + std::to_string(k);
      commands += submitted_[k];
      if (r.finished + r.abandoned != (submitted_[k] ? 1u : 0u)) return which + " has not ended once";
      if (r.resolved > r.abandoned) return which + " was resolved, but never given up";
      if (who_.delays == 0 && r.outcome != 0) return which + " failed";
    }
    if (counts.commands != commands) return "the count of commands is " + std::to_string(counts.commands);
    if (counts.commands != counts.completions - counts.strays + counts.expired + counts.failed)
      return "the counts do not add up";
    if (who_.delays == 0 && counts.strays != 0) return "strays";
    return "";
  }

  stamped_media media_;
  stepped_drive drive_;
  fault_bed bed_;
  crew who_;
  scheduler run_;
  u64 seed_;
  u64 fetched_ = 0;
  bool submitted_[most_commands] = {};
  failure_latch latch_;
  emulated_warp_state warp_{latch_};
};

auto ring_scenario(ring_shape const& shape, crew const& who) {
  return [=](schedule_options const& options) { return queue_run(options, shape, who).play(); };
}

#if defined(__SANITIZE_ADDRESS__)
constexpr u64 ring_share = 8;
#else
constexpr u64 ring_share = 1;
#endif

TEST(queue_schedule, threads_at_a_small_ring) { try_schedules({3000 / ring_share, 6000}, ring_scenario({}, {.threads = 4})); }

TEST(queue_schedule, bounce_buffers) {
  try_schedules({2000 / ring_share, 7000}, ring_scenario({.bounce = true}, {.threads = 3}));
}

TEST(queue_schedule, answers_that_come_too_late) {
  try_schedules({1500 / ring_share, 25000}, ring_scenario({.depth = 6}, {.threads = 3, .delays = 8}));
}

TEST(queue_schedule, a_split_warp_beside_threads) {
  try_schedules({2000 / ring_share, 7000}, ring_scenario({.depth = 3}, {.threads = 2, .lanes = 0x27, .rounds = 2}));
}

TEST(queue_schedule, a_seed_is_an_interleaving) {
  expect_repeatable({0, 5000}, ring_scenario({}, {.threads = 3, .delays = 6}));
}

}  // namespace
}  // namespace penstock::test
