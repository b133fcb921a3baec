// The queue pair over a modelled drive that fails, delays, loses and is late, under every kind of group.
#include "device/queue_fault_test_body.hpp"
#include "device/queue_status_test_body.hpp"
#include "penstock/controller/model_controller.hpp"
#include "queue_fault_bed.hpp"
#include "step_controller.hpp"
#include "support/run_everywhere.hpp"

#include <sched.h>

namespace penstock::test {
namespace {

constexpr u64 never = 30 * one_second_ns;
// Long enough that a thread that is not scheduled for a while is no time-out.
#if defined(PENSTOCK_TSAN)
constexpr u64 timeout = 400 * one_millisecond_ns;
#else
constexpr u64 timeout = 100 * one_millisecond_ns;
#endif

/// Generic, command specific, media and path errors, and what vendors may say.
std::vector<u16> all_codes() {
  std::vector<u16> codes;
  const auto add = [&](u32 first, u32 last) {
    for (u32 code = first; code <= last; ++code) codes.push_back(static_cast<u16>(code));
  };
  add(0x001, 0x085);
  add(0x100, 0x10c);
  add(0x180, 0x185);
  add(0x280, 0x287);
  add(0x300, 0x303);
  add(0x700, 0x702);
  add(0x7fe, 0x7ff);
  return codes;
}

TEST(queue_fault, every_status_arrives_whole) {
  stamped_media media(media_blocks * 512);
  for (const u16 code : all_codes()) {
    model_options options;
    options.faults.error = 1;
    options.faults.error_codes = {code};
    model_controller model(options);
    model.add_namespace(media.bytes());
    for (const bool bounce : {false, true}) {
      fault_bed bed(model, fault_options(4, never, bounce), 1);
      ASSERT_EQ(bed.run(0, 1), (status{status_domain::nvme, code})) << std::hex << code;
      ASSERT_TRUE(bed.data_untouched(0));
    }
  }
}

/// Fresh rings and memory for each run.
template <class Body>
struct on_queue : Body {
  controller* owner = nullptr;
  queue_options options;
  std::shared_ptr<std::vector<u32>> words;
  std::shared_ptr<std::vector<u64>> buffers;
  std::shared_ptr<queue_pair<result_sink>> pair;

  void prepare(run_shape shape) {
    const u32 commands = shape.threads * this->rounds;
    pair.reset();
    words = std::make_shared<std::vector<u32>>(2 * commands + 2);
    buffers = std::make_shared<std::vector<u64>>((u64{commands} + 1) * block_words);
    pair = std::make_shared<queue_pair<result_sink>>(cpu_memory(), *owner, u16{1}, options);
    this->queue = pair->view();
    this->results = words->data();
    this->slots = words->data() + commands;
    this->data = reinterpret_cast<u64*>(round_up(reinterpret_cast<u64>(buffers->data()), 512));
    if constexpr (requires { this->late; }) {
      this->late = words->data() + 2 * commands;
      this->broken = this->late + 1;
    }
  }
};

struct statuses : on_queue<status_body> {
  void verify(check_report& report, run_shape) const { PENSTOCK_CHECK_EQ(report, status{}, pair->counts().failure); }
};

// Whoever asks, through whichever group, with the bits beside the status set at random.
TEST(queue_fault, every_status_arrives_at_the_lane_that_asked) {
  std::vector<u16> codes = all_codes();
  codes.push_back(0);
  step_controller owner([&](step_controller& c) {
    while (auto const* command = c.fetch()) {
      const u64 block = value(nvme::starting_lba(*command));
      const u64 beside = scatter(block + c.polls) & 0xf;  // CRD, M, DNR
      c.post(command->command_id, static_cast<u16>(codes[block] | (codes[block] == 0 ? 0 : beside << 11)));
    }
  });
  statuses body;
  body.owner = &owner;
  body.options = fault_options(64, never);
  body.codes = codes.data();
  body.codes_count = static_cast<u32>(codes.size());
  body.rounds = scaled(10);
  run_everywhere(body, {.lone_threads = 4, .warps = 1, .partitions = 1});
}

struct fault_reads : on_queue<fault_reads_body> {
  model_controller* model = nullptr;
  model_counts before;
  u64 spares = 0;

  fault_reads(model_controller& drive, queue_options const& wanted, u32 commands) : model(&drive) {
    owner = &drive;
    options = wanted;
    blocks = media_blocks;
    rounds = commands;
  }
  void prepare(run_shape shape) {
    on_queue::prepare(shape);
    before = model->counts();
    spares = queue.state->spare_buffers;
  }
  /// What was lost has expired, and all else that has, be it because this machine is slow, is heard of in the end.
  void verify(check_report& report, run_shape) const {
    const u64 drops = model->counts().drops - before.drops;
    const u64 expired = pair->counts().expired;
    backoff patience(20 * one_second_ns);
    while (pair->counts().strays < expired - drops && patience.pause()) queue.progress(lone_thread());
    const queue_counts counts = pair->counts();
    PENSTOCK_CHECK_EQ(report, status{}, counts.failure);
    PENSTOCK_CHECK_EQ(report, 0, *broken);
    PENSTOCK_CHECK(report, drops <= expired && expired <= *late);
    PENSTOCK_CHECK_EQ(report, expired - drops, counts.strays);
    PENSTOCK_CHECK_EQ(report, counts.commands, counts.completions + drops);
    if (options.bounce_bytes != 0) PENSTOCK_CHECK_EQ(report, spares - drops, queue.state->spare_buffers);
  }
};

/// A slot that loses two commands fails its controller, as it should; rings here are longer than a run.
void run_faults(fault_plan plan, u32 rounds, queue_options options, u32 threads = 0) {
  stamped_media media(media_blocks * 512);
  model_options drive;
  drive.faults = plan;
  drive.faults.seed = test_seed();
  drive.faults.reorder = true;
  drive.faults.poison_fetched = true;
  drive.faults.torn_completion = true;
  drive.threads = threads;
  model_controller model(drive);
  model.add_namespace(media.bytes());
  options.poll_in_place = threads == 0;
  SCOPED_TRACE("seed " + std::to_string(drive.faults.seed));
  run_everywhere(fault_reads(model, options, rounds), {.lone_threads = 4, .warps = 1, .partitions = 1});
}

TEST(queue_fault, commands_may_overtake_each_other) {
  fault_plan plan;
  plan.delay = 0.3;
  plan.delay_ns = 300 * one_microsecond_ns;
  run_faults(plan, scaled(30), fault_options(16, never));
  run_faults(plan, scaled(30), fault_options(5, never, true, 3));
}

TEST(queue_fault, lost_completions_end_at_their_deadline) {
  fault_plan plan;
  plan.drop = 0.02;
  run_faults(plan, scaled(12), fault_options(2048, timeout));
  queue_options bounced = fault_options(2048, timeout, true);
  bounced.spare_bounces = 64;
  run_faults(plan, scaled(12), bounced, 1);
}

TEST(queue_fault, late_completions_are_heard_and_give_back_what_was_kept) {
  fault_plan plan;
  plan.late = 0.02;
  plan.late_ns = 2 * timeout;
  run_faults(plan, scaled(12), fault_options(2048, timeout));
  queue_options bounced = fault_options(2048, timeout, true);
  bounced.spare_bounces = 64;
  run_faults(plan, scaled(12), bounced, 1);
}

// Answers come from nowhere else: each wait ends by the queue's own look at its deadlines.
struct dead_reads : fault_reads {
  using fault_reads::fault_reads;
  void verify(check_report& report, run_shape shape) const {
    const u32 answers = device_ref<u32>(*late).load(relaxed) + device_ref<u32>(*broken).load(relaxed);
    PENSTOCK_CHECK_EQ(report, pair->counts().completions, 0);
    PENSTOCK_CHECK(report, answers % rounds == 0 && answers > 0);
    // Rings shorter than the run: the guard is met, and then all is said.
    if (shape.groups > 8) PENSTOCK_CHECK_EQ(report, make_status(failure::controller_failed), pair->counts().failure);
  }
};

TEST(queue_fault, a_dead_controller_answers_nobody_and_everyone_is_told) {
  stamped_media media(media_blocks * 512);
  for (const bool bounce : {false, true}) {
    model_controller model({});
    model.add_namespace(media.bytes());
    model.set_dead(true);
    dead_reads body(model, fault_options(8, 20 * one_millisecond_ns, bounce), 12);
    run_everywhere(body, {.lone_threads = 4, .warps = 1, .partitions = 1});
  }
}

TEST(queue_fault, after_a_controller_has_failed_submissions_answer_at_once) {
  stamped_media media(media_blocks * 512);
  model_controller model({});
  model.add_namespace(media.bytes());
  fault_bed bed(model, fault_options(4, 5 * one_millisecond_ns), 100);
  ASSERT_EQ(bed.run(0, 0), status{});
  model.set_dead(true);
  u32 k = 1;
  for (status last{}; last != failed_status; ++k) {
    ASSERT_LT(k, 10u);
    last = bed.run(k, k);
    ASSERT_TRUE(last == deadline_status || last == failed_status);
  }
  const u64 commands = bed.counts().commands;
  for (; k < 100; ++k) ASSERT_EQ(bed.submit(k, 0), failed_status);
  EXPECT_EQ(bed.counts().commands, commands) << "their tickets were withdrawn";
  model.set_dead(false);
  bed.progress();
  EXPECT_EQ(bed.counts().failure, failed_status);  // given up is given up
}

// The drive takes as long as the queue waits, so completion and time-out meet; each command has exactly one answer.
TEST(queue_fault, completion_and_deadline_at_one_moment_give_one_answer) {
  stamped_media media(media_blocks * 512);
  for (const u32 threads : {0u, 1u}) {
    model_options drive;
    drive.threads = threads;
    drive.faults.delay = 1;
    drive.faults.delay_ns = one_millisecond_ns;
    model_controller model(drive);
    model.add_namespace(media.bytes());
    constexpr u32 batch = 120;
    u64 good = 0, late = 0;
    for (u32 round = 0; round < scaled(100); ++round) {
      queue_options options = fault_options(128, one_millisecond_ns, round % 2 == 0);
      options.spare_bounces = 128;
      options.poll_in_place = threads == 0;
      fault_bed bed(model, options, batch);
      for (u32 k = 0; k < batch; ++k) ASSERT_EQ(bed.submit(k, k), status{});
      for (u32 k = 0; k < batch; ++k) {
        const status outcome = bed.wait(k);
        ASSERT_TRUE(outcome == status{} || outcome == deadline_status) << pack(outcome);
        ASSERT_TRUE(!outcome.ok() || bed.data_right(k));
        (outcome.ok() ? good : late) += 1;
      }
      ASSERT_TRUE(bed.progress_until([&] { return bed.counts().strays == bed.counts().expired; }));
      for (u32 k = 0; k < batch; ++k) {
        ASSERT_EQ(bed.finished(k) + bed.abandoned(k), 1u);
        ASSERT_EQ(bed.resolved(k), bed.abandoned(k));
      }
      ASSERT_EQ(bed.counts().failure, status{});
    }
    std::printf("  %llu in time, %llu late\n", (unsigned long long)good, (unsigned long long)late);
  }
}

/// This thread and those that it starts, on one core.
class one_core {
 public:
  one_core() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
      if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &one);
    }
    sched_setaffinity(0, sizeof one, &one);
  }
  ~one_core() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

// Callers and controller take turns in the same threads, and nobody runs while another one does.
TEST(queue_fault, many_threads_on_one_core_make_progress) {
  const one_core pinned;
  stamped_media media(media_blocks * 512);
  for (const bool bounce : {false, true}) {
    for (const u32 depth : {2u, 3u, 16u}) {
      model_controller model({});
      model.add_namespace(media.bytes());
      fault_reads body(model, fault_options(depth, never, bounce), scaled(20));
      run_lone(body, 16, test_seed());
      run_warps(body, "split warp", {{0x000000ffu, 0x00000f00u, 0x0000f000u, 0xffff0000u}}, test_seed());
    }
  }
}

// Q7. The head that a completion tells is read after its phase: it never goes back.
TEST(queue_fault, the_submission_queue_head_is_the_completions_own) {
  static queue_state* state = nullptr;
  static u64 fetched = 0, went_back = 0;
  stamped_media media(media_blocks * 512);
  model_options drive;
  drive.threads = 1;
  drive.faults.torn_completion = true;
  model_controller model(drive);
  model.add_namespace(media.bytes());
  queue_options options = fault_options(61, never, false, 17);
  options.poll_in_place = false;
  options.rings_on_host = true;  // looks at the ring whether there is something or not
  fault_bed bed(model, options, 8);
  state = &bed.state();
  fetched = went_back = 0;
  recording_sink::on_finish = [](command_record&) {
    const u64 now = device_ref<u64>(state->fetched).load(relaxed);
    went_back += now < fetched ? 1 : 0;
    fetched = now;
  };
  for (u32 round = 0; round < scaled(2000); ++round) {
    for (u32 k = 0; k < 8; ++k) ASSERT_EQ(bed.view().submit(lone_thread(), true, bed.read_of(k, k), bed.target(k)), status{});
    // Without a yield, which would put the controller's turns between two looks.
    const u64 end = now_ns() + 20 * one_second_ns;
    while (state->completions != 8 * (round + 1) && now_ns() < end) bed.progress();
    ASSERT_EQ(state->fetched, state->rung);
    ASSERT_EQ(went_back, 0u);
  }
}

}  // namespace
}  // namespace penstock::test
