#include "device/queue_pair_test_body.hpp"

#include "penstock/controller/model_controller.hpp"
#include "penstock/controller/software_controller.hpp"
#include "penstock/runtime/queue_pair.hpp"
#include "support/run_everywhere.hpp"

#include <memory>

namespace penstock::test {
namespace {

constexpr u64 media_blocks = 512;

constexpr u32 rounds_of_a_run = yields_are_dear ? 3 : 12;

struct ring_shape {
  u32 depth, cq_entries;
  u64 first_ticket = 0;
  bool bounce = false;
  u32 controller_threads = 0;
};

/// Fresh rings and buffers for each run; whoever is left when a run ends has all results.
struct reads_on : reads_body {
  controller* owner = nullptr;
  queue_options options;
  std::shared_ptr<queue_pair<result_sink>> pair;
  std::shared_ptr<std::vector<u32>> words;
  std::shared_ptr<std::vector<u64>> buffers;

  void prepare(run_shape shape) {
    pair.reset();
    pair = std::make_shared<queue_pair<result_sink>>(cpu_memory(), *owner, u16{1}, options);
    words = std::make_shared<std::vector<u32>>(2 * shape.threads);
    buffers = std::make_shared<std::vector<u64>>(shape.threads * test_block / 8 + test_block / 8);
    queue = pair->view();
    results = words->data();
    slots = words->data() + shape.threads;
    // Aligned, as frames are: a command's data starts at a multiple of its block.
    const u64 base = round_up(reinterpret_cast<u64>(buffers->data()), test_block);
    data = reinterpret_cast<u64*>(base);
    blocks = media_blocks;
  }

  void verify(check_report& report, run_shape) const {
    const queue_counts counts = pair->counts();
    PENSTOCK_CHECK_EQ(report, counts.commands, counts.completions);
    PENSTOCK_CHECK_EQ(report, 0, counts.strays);
    PENSTOCK_CHECK_EQ(report, status{}, counts.failure);
  }
};

reads_on prepared_reads(controller& owner, ring_shape shape, u32 rounds) {
  reads_on body;
  body.owner = &owner;
  body.rounds = rounds;
  body.options.depth = shape.depth;
  body.options.cq_entries = shape.cq_entries;
  body.options.first_ticket = shape.first_ticket;
  body.options.bounce_bytes = shape.bounce ? test_block : 0;
  body.options.poll_in_place = shape.controller_threads == 0;
  return body;
}

void run_reads(controller& owner, ring_shape shape) {
  run_everywhere(prepared_reads(owner, shape, rounds_of_a_run), for_waiting_threads);
}

class queue_rings_test : public testing::TestWithParam<ring_shape> {};

TEST_P(queue_rings_test, each_command_ends_once_with_its_data) {
  stamped_media media(media_blocks * test_block);
  model_options options;
  options.threads = GetParam().controller_threads;
  options.faults.reorder = true;
  options.faults.poison_fetched = true;
  options.faults.torn_completion = true;
  model_controller model(options);
  model.add_namespace(media.bytes());
  run_reads(model, GetParam());
}

// Rings of two, no powers of two, completion queues smaller and larger, more laps than one, tickets next to 2^32 and 2^16.
INSTANTIATE_TEST_SUITE_P(shapes, queue_rings_test,
                         testing::Values(ring_shape{2, 2}, ring_shape{3, 2}, ring_shape{2, 3}, ring_shape{5, 7},
                                         ring_shape{16, 16}, ring_shape{48, 5}, ring_shape{256, 256},
                                         ring_shape{4, 4, (1ull << 32) - 4}, ring_shape{5, 3, 65530},
                                         ring_shape{16, 16, (1ull << 34) - 16}, ring_shape{2, 2, 0, true},
                                         ring_shape{7, 3, 0, true}, ring_shape{64, 64, 0, true},
                                         ring_shape{16, 16, 0, false, 1}, ring_shape{5, 7, 0, true, 1}));

// More lanes than the ring holds, in one group whose mask is wider than a word.
TEST(queue_pair, groups_wider_than_a_warp) {
  stamped_media media(media_blocks * test_block);
  for (const bool bounce : {false, true}) {
    for (const u32 depth : {16u, 64u}) {
      model_controller model({});
      model.add_namespace(media.bytes());
      reads_on body = prepared_reads(model, {depth, depth, 0, bounce}, rounds_of_a_run / 2);
      run_block(body, 48, test_seed());
    }
  }
}

// Else a kernel would wait for its deadlines, and get nothing.
TEST(queue_pair, a_kernel_needs_a_controller_with_threads) {
  const queue_options of_kernel{.rings_on_host = true, .poll_in_place = false};
  EXPECT_THROW(check_queue_options(of_kernel, software_controller({.threads = 0}).limits()), error);
  EXPECT_THROW(check_queue_options(of_kernel, model_controller(model_options{}).limits()), error);
  EXPECT_NO_THROW(check_queue_options(of_kernel, software_controller({.threads = 1}).limits()));
  const queue_options of_cpu{.poll_in_place = false};  // somebody polls it
  EXPECT_NO_THROW(check_queue_options(of_cpu, software_controller({.threads = 0}).limits()));
}

TEST(queue_pair, software_controller_serves_memory) {
  stamped_media media(media_blocks * test_block);
  software_controller software;
  software.add_namespace(media.bytes());
  run_reads(software, {16, 16});
}

}  // namespace
}  // namespace penstock::test
