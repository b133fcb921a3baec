// Drives of a resident kernel, asked by warps on the SMs beside it.
#include "device/model_server_test_body.hpp"
#include "device/queue_pair_test_body.hpp"

#include "penstock/controller/model_server.hpp"
#include "penstock/executor/executor.hpp"
#include "penstock/host/error.hpp"
#include "penstock/runtime/queue_pair.hpp"
#include "support/run_on_device.cuh"

#include <algorithm>
#include <memory>

namespace penstock::test {
namespace {

const u32 warps = scaled_warps(64);
const u32 threads = threads_of_warps(warps);

struct placing {
  memory_kind rings = memory_kind::local;
  memory_kind media = memory_kind::local;
  int device = -1;  ///< that serves
};

model_server_options server_options(placing where) {
  model_server_options options;
  options.units = 8;
  options.device = where.device;
  options.idle_timeout_ns = scaled_time(8 * one_second_ns);
  return options;
}

/// A server with one drive over stamped media, and one queue. Nothing is allocated after it is made.
class device_bed {
 public:
  device_bed(model_drive_options const& drive, placing where, u64 media_bytes, u32 block_bytes, u32 depth, u32 cq_entries)
      : on_(open_executor("cuda")), memory_(on_->memory()),
        server_(std::make_unique<model_server>(*on_, server_options(where))),
        media_(server_->memory(), where.media, media_bytes / 8), words_(memory_, memory_kind::local, 2 * threads),
        data_(memory_, memory_kind::local, u64{threads} * (block_bytes / 8)) {
    std::vector<u64> stamps(media_.size());
    for (u64 w = 0; w < stamps.size(); ++w) stamps[w] = stamp(w);
    media_.write(stamps);
    drive_ = &server_->add_drive(drive);
    drive_->add_namespace(media_.data(), media_.bytes());
    queue_options queue;
    queue.depth = depth;
    queue.cq_entries = cq_entries;
    queue.rings = where.rings;
    queue.rings_on_host = where.rings == memory_kind::shared;
    queue.poll_in_place = false;
    queue.timeout_ns = scaled_time(5 * one_second_ns);
    pair_ = std::make_unique<queue_pair<result_sink>>(memory_, *drive_, 1, queue);
  }

  model_server& server() { return *server_; }
  model_drive& drive() { return *drive_; }
  queue_pair<result_sink>& pair() { return *pair_; }
  buffer<u64>& media() { return media_; }
  u32* results() { return words_.data(); }
  u32* slots() { return words_.data() + threads; }
  u64* data() { return data_.data(); }

  void check_counts(check_report& report) {
    const queue_counts counts = pair_->counts();
    PENSTOCK_CHECK_EQ(report, counts.commands, counts.completions);
    PENSTOCK_CHECK_EQ(report, 0, counts.strays);
    PENSTOCK_CHECK_EQ(report, status{}, counts.failure);
    PENSTOCK_CHECK_EQ(report, counts.commands, drive_->counts().completed);
    PENSTOCK_CHECK(report, !server_->gave_up());
  }

 private:
  std::unique_ptr<executor> on_;
  memory_resource& memory_;
  std::unique_ptr<model_server> server_;
  buffer<u64> media_;
  buffer<u32> words_;
  buffer<u64> data_;
  model_drive* drive_ = nullptr;
  std::unique_ptr<queue_pair<result_sink>> pair_;
};

/// Every kernel once with nothing to do: loaded, and the stacks of all of them made, before the resident one starts.
template <class Body>
void run_beside(device_bed& bed, Body body, check_report& report) {
  Body idle = body;
  idle.rounds = 0;
  run_warps_on_device(idle, report, warps);
  bed.server().start();
  run_warps_on_device(body, report, warps);
  bed.server().stop();
  bed.check_counts(report);
}

void run_reads(check_report& report, model_drive_options const& drive, placing where, u32 depth, u32 cq_entries) {
  constexpr u64 blocks = 512;
  device_bed bed(drive, where, blocks * test_block, test_block, depth, cq_entries);
  run_beside(bed, reads_body{bed.pair().view(), bed.results(), bed.slots(), bed.data(), blocks, 2}, report);
}

model_drive_options preset(char const* name) {
  model_drive_options options;
  options.timing = drive_preset(name);
  return options;
}

PENSTOCK_CUDA_TEST_BESIDE(model_server_reads_hbm_rings_hbm_media) { run_reads(report, {}, {}, 256, 256); }
PENSTOCK_CUDA_TEST_BESIDE(model_server_reads_pinned_media) {
  run_reads(report, {}, {memory_kind::local, memory_kind::shared}, 256, 200);
}
PENSTOCK_CUDA_TEST_BESIDE(model_server_reads_pinned_rings) {
  run_reads(report, {}, {memory_kind::shared, memory_kind::local}, 256, 256);
}
PENSTOCK_CUDA_TEST_BESIDE(model_server_ring_of_two) { run_reads(report, {}, {}, 2, 2); }
PENSTOCK_CUDA_TEST_BESIDE(model_server_timed_drive) { run_reads(report, preset("p5800x"), {}, 48, 37); }

PENSTOCK_CUDA_TEST_BESIDE(model_server_keeps_the_service_time) {
  constexpr u64 blocks = 512;
  model_drive_options drive;
  drive.timing.service_time_ns = 25'000;
  device_bed bed(drive, {}, blocks * test_block, test_block, 48, 48);
  run_beside(bed, reads_body{bed.pair().view(), bed.results(), bed.slots(), bed.data(), blocks, 16}, report);
  const model_traffic traffic = bed.drive().traffic();
  const u64 mean_ns = traffic.residence_ns / std::max<u64>(1, traffic.reads);
  PENSTOCK_CHECK(report, mean_ns >= 24'000);
  PENSTOCK_CHECK(report, mean_ns < 30'000);  // the first ones teach the lead
}

PENSTOCK_CUDA_TEST_BESIDE(model_server_reorders_poisons_and_tears) {
  model_drive_options drive;
  drive.faults.reorder = drive.faults.poison_fetched = drive.faults.torn_completion = true;
  drive.faults.delay = 0.2;
  drive.faults.delay_ns = 20'000;
  run_reads(report, drive, {}, 64, 64);
}

void run_writes(check_report& report, placing where, u32 bytes) {
  constexpr u32 rounds = 2;
  device_bed bed({}, where, u64{threads} * rounds * bytes, bytes, 128, 128);
  run_beside(bed, writes_body{bed.pair().view(), bed.results(), bed.slots(), bed.data(), bytes, rounds, 0}, report);
  // All runs wrote the same bytes, and whoever left a round out left the stamps: the medium is as it was.
  std::vector<u64> words(bed.media().size());
  bed.media().read(words);
  for (u64 w = 0; w < words.size(); ++w) {
    if (!PENSTOCK_CHECK_EQ(report, stamp(w), words[w])) break;
  }
  PENSTOCK_CHECK(report, bed.drive().traffic().writes != 0);
}

PENSTOCK_CUDA_TEST_BESIDE(model_server_writes_small) { run_writes(report, {}, 512); }
PENSTOCK_CUDA_TEST_BESIDE(model_server_writes_pages) { run_writes(report, {}, 4096); }
PENSTOCK_CUDA_TEST_BESIDE(model_server_writes_pinned_media) {
  run_writes(report, {memory_kind::local, memory_kind::shared}, 512);
}

PENSTOCK_CUDA_TEST_BESIDE(model_server_stops_and_goes_on) {
  constexpr u64 blocks = 256;
  device_bed bed({}, {}, blocks * test_block, test_block, 64, 64);
  reads_body body{bed.pair().view(), bed.results(), bed.slots(), bed.data(), blocks, 1};
  for (u32 k = 0; k < 3; ++k) run_beside(bed, body, report);
}

PENSTOCK_CUDA_TEST(model_server_refuses_what_cannot_be_resident) {
  const auto on = open_executor("cuda");
  model_server_options options;
  options.units = on->units();
  bool refused = false;
  try {
    model_server server(*on, options);
  } catch (error const&) {
    refused = true;
  }
  PENSTOCK_CHECK(report, refused);
}

/// A GPU beside the current one; -1 where there is none, or the two do not reach each other, which is told.
int other_gpu() {
  int devices = 0, current = 0;
  require_cuda(cudaGetDeviceCount(&devices), "count");
  require_cuda(cudaGetDevice(&current), "current");
  for (int device = 0; device < devices; ++device) {
    int there = 0, back = 0;
    if (device == current) continue;
    require_cuda(cudaDeviceCanAccessPeer(&there, current, device), "peer");
    require_cuda(cudaDeviceCanAccessPeer(&back, device, current), "peer");
    if (there != 0 && back != 0) return device;
  }
  std::printf("  skipped: %d GPUs, of which no other reaches the first\n", devices);
  return -1;
}

// Rings, doorbells and buffers stay in the HBM of those who ask; the drive's own memory is on either GPU, or in the host's.
PENSTOCK_CUDA_TEST_BESIDE(model_server_on_a_second_gpu) {
  const int device = other_gpu();
  if (device < 0) {
    PENSTOCK_CHECK(report, true);
    return;
  }
  run_reads(report, {}, {memory_kind::local, memory_kind::local, device}, 256, 200);
  run_reads(report, {}, {memory_kind::local, memory_kind::shared, device}, 64, 64);
  run_reads(report, {}, {memory_kind::local, memory_kind::local, device}, 2, 2);
  run_reads(report, preset("p5800x"), {memory_kind::local, memory_kind::local, device}, 48, 37);
  run_writes(report, {memory_kind::local, memory_kind::local, device}, 512);
  run_writes(report, {memory_kind::local, memory_kind::local, device}, 4096);
}

PENSTOCK_CUDA_TEST(model_server_refuses_a_gpu_that_there_is_not) {
  const auto on = open_executor("cuda");
  model_server_options options;
  options.device = 999;
  bool refused = false;
  try {
    model_server server(*on, options);
  } catch (error const&) {
    refused = true;
  }
  PENSTOCK_CHECK(report, refused);
}

PENSTOCK_CUDA_TEST_BESIDE(model_server_gives_up_when_nobody_asks) {
  const auto on = open_executor("cuda");
  model_server_options options;
  options.units = 2;
  options.idle_timeout_ns = 200 * one_millisecond_ns;
  model_server server(*on, options);
  server.start();
  backoff wait(5 * one_second_ns);
  while (!server.gave_up() && wait.pause()) {}
  PENSTOCK_CHECK(report, server.gave_up());
  server.stop();
}

}  // namespace
}  // namespace penstock::test
