#include "device/queue_reset_test_body.hpp"

#include "penstock/controller/model_controller.hpp"
#include "penstock/runtime/queue_pair.hpp"
#include "support/run_everywhere.hpp"

#include <memory>

namespace penstock::test {
namespace {

constexpr u64 media_blocks = 512;

constexpr u32 rounds_of_a_run = yields_are_dear ? 3 : 10;

/// Serves nothing.
class no_controller final : public controller {
 public:
  void attach(queue_rings const&) override {}
  void detach(u16) override {}
  void poll(u16) override {}
  void add_buffer(void*, u64) override {}
  controller_limits limits() const override { return {16, 4096, 1u << 20}; }
  std::string engine() const override { return "none"; }
};

/// The queue's own reset, taken apart: its controller has threads, so that nobody polls.
struct resets_on : resets_body {
  controller* owner = nullptr;
  bool serves = false;
  queue_options options;
  struct state {
    queue_pair<result_sink> pair;
    controller& owner;
    std::vector<u32> words;
    std::vector<u64> buffers;
    queue_rings rings;
  };
  std::shared_ptr<state> now;

  void prepare(run_shape shape) {
    now.reset();
    const u64 commands = u64{shape.threads} * rounds;
    now.reset(new state{{cpu_memory(), *owner, u16{1}, options},
                        *owner,
                        std::vector<u32>(commands + 3),
                        std::vector<u64>(commands * 64 + 64),
                        {}});
    queue = now->pair.view();
    now->rings = {1, queue.depth, queue.cq_entries, queue.sq, queue.cq, queue.sq_doorbell, queue.cq_doorbell};
    results = now->words.data();
    finished = results + commands;
    answers = finished + 1;
    data = reinterpret_cast<u64*>(round_up(reinterpret_cast<u64>(now->buffers.data()), 512));
    blocks = media_blocks;
    if (!serves) return;
    stop = [](void* s, u16 id) { static_cast<state*>(s)->owner.detach(id); };
    begin = [](void* s, u16) { static_cast<state*>(s)->owner.attach(static_cast<state*>(s)->rings); };
    far_side = now.get();
  }

  void verify(check_report& report, run_shape) const {
    const queue_counts counts = now->pair.counts();
    PENSTOCK_CHECK_EQ(report, counts.commands, counts.completions + counts.reset);
    PENSTOCK_CHECK_EQ(report, 0, counts.strays + counts.expired + counts.failed);
    PENSTOCK_CHECK_EQ(report, counts.completions, answers[0]);
    PENSTOCK_CHECK(report, counts.reset <= answers[1]);  // the others were withdrawn
    PENSTOCK_CHECK_EQ(report, status{}, counts.failure);
  }
};

void run_resets(controller& owner, bool serves, queue_options const& shape) {
  resets_on body;
  body.owner = &owner;
  body.serves = serves;
  body.rounds = rounds_of_a_run;
  body.options = shape;
  body.options.poll_in_place = false;
  run_everywhere(body, for_waiting_threads);
}

queue_options ring(u32 depth, u32 cq_entries, u64 first_ticket = 0, u32 bounce_bytes = 0) {
  queue_options options;
  options.depth = depth;
  options.cq_entries = cq_entries;
  options.first_ticket = first_ticket;
  options.bounce_bytes = bounce_bytes;
  return options;
}

TEST(queue_reset_steps, answer_every_command_of_a_queue_that_nobody_serves) {
  no_controller none;
  for (auto const& shape : {ring(2, 2), ring(5, 3, 65530), ring(16, 16, (1ull << 32) - 16), ring(64, 64, 0, 512)}) {
    run_resets(none, false, shape);
  }
}

TEST(queue_reset_steps, lose_no_answer_of_a_controller_that_works) {
  stamped_media media(media_blocks * 512);
  model_options options;
  options.threads = 1;
  options.faults.reorder = true;
  options.faults.poison_fetched = true;
  model_controller model(options);
  model.add_namespace(media.bytes());
  for (auto const& shape : {ring(3, 2), ring(16, 7, (1ull << 32) - 16), ring(8, 8, 0, 512)}) run_resets(model, true, shape);
}

}  // namespace
}  // namespace penstock::test
