#include "device/queue_reset_test_body.hpp"

#include "device/queue_fault_test_body.hpp"
#include "penstock/controller/model_controller.hpp"
#include "penstock/runtime/block_device.hpp"
#include "support/run_on_device.cuh"

#include <vector>

namespace penstock::test {
namespace {

constexpr u64 media_blocks = 512;
const u32 warps = scaled_warps(16);
constexpr u32 rounds = 4;

/// Serves nothing: what a kernel cannot stop, it must not have.
class no_controller final : public controller {
 public:
  void attach(queue_rings const&) override {}
  void detach(u16) override {}
  void poll(u16) override {}
  void add_buffer(void*, u64) override {}
  controller_limits limits() const override { return {16, 4096, 1u << 20}; }
  std::string engine() const override { return "none"; }
};

template <class Kernel>
void run_resets(check_report& report, u32 depth, u64 first_ticket, Kernel const& kernel) {
  const auto on = open_executor("cuda");
  no_controller none;
  queue_options options;
  options.depth = depth;
  options.cq_entries = depth;
  options.first_ticket = first_ticket;
  options.rings_on_host = true;
  options.poll_in_place = false;
  queue_pair<result_sink> pair(on->memory(), none, 1, options);
  const u64 commands = u64{threads_of_warps(warps)} * rounds;
  buffer<u32> words(on->memory(), memory_kind::local, commands + 3);
  buffer<u64> data(on->memory(), memory_kind::local, commands * 64);
  kernel(resets_body{pair.view(), words.data(), data.data(), media_blocks, rounds, words.data() + commands,
                     words.data() + commands + 1});
  const queue_counts counts = pair.counts();
  PENSTOCK_CHECK_EQ(report, counts.commands, counts.reset);
  PENSTOCK_CHECK_EQ(report, 0, counts.strays + counts.expired + counts.failed);
}

PENSTOCK_CUDA_TEST(queue_reset_beside_warps_that_submit) {
  const launch_shape shape(warps / 4, 128);
  for (const u64 first : {u64{0}, (u64{1} << 32) - 64}) {
    run_resets(report, 64, first, [&](resets_body const& body) {
      launch(shape, run_parts_kernel<resets_body, 32>, body, &report, cuda_test_seed());
    });
    run_resets(report, 64, first, [&](resets_body const& body) {
      launch(shape, run_parts_kernel<resets_body, 8>, body, &report, cuda_test_seed());
    });
  }
}

/// What a kernel's reads ended with: good ones have the right data.
struct tally {
  u32 late = 0, failed = 0;
};

tally read_once(check_report& report, memory_resource& memory, queue_pair_view<result_sink> const& queue) {
  const u32 threads = threads_of_warps(warps);
  buffer<u32> words(memory, memory_kind::local, 2 * threads + 2);
  buffer<u64> data(memory, memory_kind::local, u64{threads} * 64);
  u32* const ends = words.data() + 2 * threads;
  launch(launch_shape(warps / 4, 128), run_parts_kernel<fault_reads_body, 32>,
         fault_reads_body{queue, words.data(), words.data() + threads, data.data(), media_blocks, 1, ends, ends + 1}, &report,
         cuda_test_seed());
  tally found;
  memory.read(&found, ends, sizeof found);
  return found;
}

// The host's way: the controller dies under a kernel, its queue is reset by small launches, and serves the next kernel.
PENSTOCK_CUDA_TEST(queue_reset_between_kernels) {
  stamped_media media(media_blocks * 512);
  model_options far;
  far.threads = 1;
  model_controller model(far);
  model.add_namespace(media.bytes());
  const auto on = open_executor("cuda");
  block_device_options options;
  options.queues = 2;
  options.queue_depth = 64;
  options.timeout_ns = one_second_ns / 2;
  options.transfer_bytes = 512;
  block_device device(*on, model, 1, options);
  std::vector<queue_pair_view<result_sink>> views(2);
  on->memory().read(views.data(), device.view().queues, 2 * sizeof views[0]);
  for (u32 life = 0; life < 3; ++life) {
    model.set_dead(true);
    const tally dead = read_once(report, on->memory(), views[0]);
    PENSTOCK_CHECK_EQ(report, threads_of_warps(warps), dead.late + dead.failed);
    model.set_dead(false);
    PENSTOCK_CHECK_EQ(report, 1, device.recover().queues);
    PENSTOCK_CHECK_EQ(report, 0, device.recover().queues);
    const tally alive = read_once(report, on->memory(), views[0]);
    PENSTOCK_CHECK_EQ(report, 0, alive.late + alive.failed);
  }
  PENSTOCK_CHECK_EQ(report, 2, device.recover(recover_scope::all).queues);
}

}  // namespace
}  // namespace penstock::test
