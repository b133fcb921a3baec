#include "device/queue_pair_test_body.hpp"

#include "penstock/controller/model_controller.hpp"
#include "penstock/controller/software_controller.hpp"
#include "penstock/executor/executor.hpp"
#include "penstock/runtime/queue_pair.hpp"
#include "support/run_on_device.cuh"

#include <memory>

namespace penstock::test {
namespace {

constexpr u64 media_blocks = 512;
const u32 warps = scaled_warps(64);

struct ring_shape {
  u32 depth, cq_entries;
  u64 first_ticket = 0;
};

// Rings in pinned memory, served by host threads; data through bounce buffers into HBM.
void run_reads(check_report& report, controller& owner, ring_shape shape, u32 rounds, bool in_blocks = false) {
  const auto on = open_executor("cuda");
  memory_resource& memory = on->memory();
  queue_options options;
  options.depth = shape.depth;
  options.cq_entries = shape.cq_entries;
  options.first_ticket = shape.first_ticket;
  options.bounce_bytes = test_block;
  options.rings_on_host = true;
  options.poll_in_place = false;
  options.timeout_ns = scaled_time(5 * one_second_ns);
  queue_pair<result_sink> pair(memory, owner, 1, options);
  constexpr u32 blocks = 4, block_threads = 96;
  const u32 threads = in_blocks ? blocks * block_threads : threads_of_warps(warps);
  buffer<u32> words(memory, memory_kind::local, 2 * threads);
  buffer<u64> data(memory, memory_kind::local, threads * (test_block / 8));
  const reads_body body{pair.view(), words.data(), words.data() + threads, data.data(), media_blocks, rounds};
  if (in_blocks) {
    run_blocks_on_device(body, report, blocks, block_threads);
  } else {
    run_warps_on_device(body, report, warps);
  }
  const queue_counts counts = pair.counts();
  PENSTOCK_CHECK_EQ(report, counts.commands, counts.completions);
  PENSTOCK_CHECK_EQ(report, 0, counts.strays);
  PENSTOCK_CHECK_EQ(report, status{}, counts.failure);
}

void run_reads_of_model(check_report& report, ring_shape shape) {
  stamped_media media(media_blocks * test_block);
  model_options options;
  options.threads = 1;
  options.faults.reorder = true;
  options.faults.poison_fetched = true;
  options.faults.torn_completion = true;
  model_controller model(options);
  model.add_namespace(media.bytes());
  run_reads(report, model, shape, 2);
}

PENSTOCK_CUDA_TEST(queue_pair_wide_rings) { run_reads_of_model(report, {256, 256}); }
PENSTOCK_CUDA_TEST(queue_pair_odd_rings) { run_reads_of_model(report, {48, 37}); }
PENSTOCK_CUDA_TEST(queue_pair_tickets_near_2_to_32) { run_reads_of_model(report, {64, 64, (1ull << 32) - 64}); }
PENSTOCK_CUDA_TEST(queue_pair_ring_of_two) { run_reads_of_model(report, {2, 2}); }

void run_reads_of_memory(check_report& report, bool in_blocks) {
  stamped_media media(media_blocks * test_block);
  software_options options;
  options.threads = 2;
  software_controller software(options);
  software.add_namespace(media.bytes());
  run_reads(report, software, {256, 256}, 4, in_blocks);
}

PENSTOCK_CUDA_TEST(queue_pair_software_controller) { run_reads_of_memory(report, false); }
PENSTOCK_CUDA_TEST(queue_pair_groups_of_a_block) { run_reads_of_memory(report, true); }

}  // namespace
}  // namespace penstock::test
