// The queue pair where its locks are not to be had in time, where lanes of a group help each other with what is late, and what
// a namespace's view says of commands that do not get as far.
#include "penstock/queue/result_sink.hpp"
#include "queue_fault_bed.hpp"
#include "step_controller.hpp"
#include "support/run_everywhere.hpp"

namespace penstock::test {
namespace {

constexpr u64 brief = 20 * one_millisecond_ns;
constexpr u64 never = 30 * one_second_ns;

void fetch_all(step_controller& c) {
  while (c.fetch() != nullptr) {}
}

/// Four lanes of one group.
template <class Body>
void run_four(Body const& body) {
  run_emulated_warp(0xf, body, 20 * one_second_ns);
}

// One lane names them, all look whether they have come.
TEST(queue_edges, lanes_name_what_is_late_and_await_it_together) {
  step_controller owner(fetch_all);
  fault_bed bed(owner, fault_options(8, brief), 3);
  for (u32 k = 0; k < 3; ++k) ASSERT_EQ(bed.submit(k, k), status{});
  for (u32 k = 0; k < 3; ++k) ASSERT_EQ(bed.wait(k), deadline_status);
  u16 ids[2] = {};
  std::atomic<u32> named{0}, ended{0}, in_vain{0};
  run_four([&](emulated_warp const& g) {
    const u32 count = bed.view().name_late(g, one_second_ns, ids, 2);
    named += count;
    g.sync();
    in_vain += bed.view().await_late(g, 0);
    if (is_leader(g)) {
      for (u32 k = 0; k < 3; ++k) owner.post(owner.fetched[k].command_id);
    }
    g.sync();
    bed.view().name_late(g, one_second_ns, ids, 2);
    ended += bed.view().await_late(g, 10 * one_second_ns);
  });
  EXPECT_EQ(named, 4 * 2u) << "no more than were asked for, and each lane is told";
  EXPECT_EQ(in_vain, 0u);
  EXPECT_EQ(ended, 4 * 2u);
  EXPECT_TRUE(bed.progress_until([&] { return bed.counts().strays == 3; }));
  EXPECT_FALSE(bed.broken());
  for (u32 k = 0; k < 3; ++k) EXPECT_EQ(bed.resolved(k), 1u);
}

// Whoever has the lock has it for longer than anybody waits: nothing is named, nothing is forgotten.
TEST(queue_edges, a_harvest_lock_that_is_not_had_in_time_leaves_all_as_it_was) {
  step_controller owner(fetch_all);
  fault_bed bed(owner, fault_options(8, brief), 1);
  ASSERT_EQ(bed.run(0, 0), deadline_status);
  u16 id = 0;
  device_ref<u32>(bed.state().harvest_lock).store(1, release);
  EXPECT_EQ(bed.view().name_late(lone_thread(), one_millisecond_ns, &id, 1), 0u);
  device_ref<u32>(bed.state().harvest_lock).store(0, release);
  ASSERT_EQ(bed.view().name_late(lone_thread(), one_millisecond_ns, &id, 1), 1u);
  EXPECT_EQ(id, owner.fetched[0].command_id);
  device_ref<u32>(bed.state().harvest_lock).store(1, release);
  EXPECT_EQ(bed.view().await_late(lone_thread(), one_millisecond_ns), 0u);
  device_ref<u32>(bed.state().harvest_lock).store(0, release);
  EXPECT_EQ(bed.view().quarantines[0].asked, 1u) << "it stays dead until a reset";
  EXPECT_EQ(bed.reset(), 0u);
  EXPECT_EQ(bed.view().quarantines[0].asked, 0u);
}

// Both locks or neither.
TEST(queue_edges, a_reset_that_gets_one_lock_only_gives_it_back) {
  for (u32 queue_state::* const taken : {&queue_state::ring_lock, &queue_state::harvest_lock}) {
    step_controller owner(serve_all);
    fault_bed bed(owner, fault_options(8, never), 2);
    ASSERT_EQ(bed.run(0, 0), status{});
    device_ref<u32>(bed.state().*taken).store(1, release);
    EXPECT_THROW(bed.reset(5 * one_millisecond_ns), error);
    u32 queue_state::* const other = taken == &queue_state::ring_lock ? &queue_state::harvest_lock : &queue_state::ring_lock;
    EXPECT_EQ(device_ref<u32>(bed.state().*other).load(acquire), 0u);
    EXPECT_EQ(bed.submit(1, 1), resetting_status) << "it stays closed";
    device_ref<u32>(bed.state().*taken).store(0, release);
    bed.reset();
    EXPECT_EQ(bed.run(1, 1), status{});
  }
}

// Some lanes ask, the queue is given up or closed: who asked is told why, who did not is told nothing.
TEST(queue_edges, lanes_that_ask_nothing_are_refused_nothing) {
  for (const bool closed : {false, true}) {
    step_controller owner([](step_controller& c) {
      while (auto const* command = c.fetch()) c.post(static_cast<u16>(command->command_id + 1));
    });
    fault_bed bed(owner, fault_options(8, never), 4);
    if (closed) {
      bed.view().close(lone_thread());
    } else {
      ASSERT_EQ(bed.run(0, 0), failed_status);
    }
    std::atomic<u32> right{0};
    run_four([&](emulated_warp const& g) {
      const bool want = g.rank() % 2 == 0;
      const status told = bed.view().submit(g, want, bed.read_of(g.rank(), 0), bed.target(g.rank()));
      right += told == (want ? (closed ? resetting_status : failed_status) : status{}) ? 1 : 0;
    });
    EXPECT_EQ(right, 4u);
  }
}

// A look without locks: a queue whose controller works elsewhere has something to do when a completion is there, or one is due.
TEST(queue_edges, a_queue_stirs_when_there_is_something_to_harvest) {
  step_controller owner(serve_all);
  queue_options options = fault_options(8, never);
  options.poll_in_place = false;
  fault_bed bed(owner, options, 1);
  bed.progress();  // the first look at the deadlines
  EXPECT_FALSE(bed.view().stirs());
  run_four([&](emulated_warp const& g) { EXPECT_FALSE(bed.view().stirs(g)); });
  ASSERT_EQ(bed.submit(0, 0), status{});
  EXPECT_FALSE(bed.view().stirs()) << "nobody has served it";
  owner.poll(1);
  EXPECT_TRUE(bed.view().stirs());
  run_four([&](emulated_warp const& g) { EXPECT_TRUE(bed.view().stirs(g)); });
  bed.progress();
  EXPECT_EQ(bed.finished(0), 1u);
  EXPECT_FALSE(bed.view().stirs());
}

// Whoever harvests sleeps with the lock: the wait ends by itself, once more after a last look.
TEST(queue_edges, a_wait_ends_though_nobody_harvests) {
  step_controller owner(serve_all);
  queue_options options = fault_options(8, 2 * one_millisecond_ns);
  std::vector<u64> data(2 * block_words);
  u32 results[4] = {}, slots[4] = {};
  queue_pair<result_sink> pair(cpu_memory(), owner, 1, options);
  transfer t;
  t.command = nvme::flush_command(1);
  ASSERT_EQ(pair.view().submit(lone_thread(), true, t, {results, slots}), status{});
  results[1] = result_sink::arrived;
  device_ref<u32>(pair.view().state->harvest_lock).store(1, release);
  std::atomic<u32> right{0};
  run_four([&](emulated_warp const& g) {
    const bool mine = g.rank() < 2;
    const status told = wait_for(g, pair.view(), mine, {results + g.rank(), slots + g.rank()});
    right += told == (g.rank() == 0 ? deadline_status : status{}) ? 1 : 0;
  });
  EXPECT_EQ(right, 4u);
  device_ref<u32>(pair.view().state->harvest_lock).store(0, release);
  EXPECT_EQ(wait_for(lone_thread(), pair.view(), true, {results, slots}), status{}) << "its result comes all the same";
}

}  // namespace
}  // namespace penstock::test
