// Blocks by warps: straight to HBM from drives of a resident kernel, and through bounce buffers from host threads.
#include "device/block_io_test_body.hpp"

#include "penstock/controller/model_server.hpp"
#include "penstock/controller/software_controller.hpp"
#include "penstock/runtime/block_device.hpp"
#include "support/run_on_device.cuh"

#include <memory>

namespace penstock::test {
namespace {

const u32 warps = scaled_warps(16);
const u32 threads = threads_of_warps(warps);

struct block_shape {
  u32 bytes = 4096;  ///< of the largest command
  u32 at_once = 2;
  u64 timeout_ns = scaled_time(5 * one_second_ns);
  bool once = false;  ///< one run of whole warps: a slot whose completion never comes is not used a second time
};

u64 media_bytes(block_shape shape) { return u64{threads} * shape.at_once * shape.bytes + block_bytes; }

/// Requests and buffers in HBM.
class device_memory {
 public:
  device_memory(executor& on, block_shape shape)
      : shape_(shape), requests_(on.memory(), memory_kind::local, u64{threads} * shape.at_once),
        data_(on.memory(), memory_kind::local, u64{threads} * shape.at_once * shape.bytes / 8) {}
  block_bed bed(block_device const& device) const {
    return {device.view(), requests_.data(), data_.data(), shape_.bytes, shape_.at_once};
  }

 private:
  block_shape shape_;
  buffer<block_request> requests_;
  buffer<u64> data_;
};

block_device_options device_options(block_shape shape, memory_kind rings) {
  block_device_options options;
  options.queues = 3;
  options.queue_depth = shape.once ? 1024 : 64;
  options.timeout_ns = shape.timeout_ns;
  options.transfer_bytes = shape.bytes;
  options.rings = rings;
  return options;
}

void check_queues(check_report& report, block_device const& device) {
  for (queue_counts const& counts : device.queues()) PENSTOCK_CHECK_EQ(report, status{}, counts.failure);
}

/// Every kernel once with nothing to do, before the resident one starts.
template <class Body>
void run_on_drive(check_report& report, block_shape shape, fault_plan const& faults, Body body) {
  const auto on = open_executor("cuda");
  buffer<u64> media(on->memory(), memory_kind::local, media_bytes(shape) / 8);
  std::vector<u64> stamps(media.size());
  for (u64 w = 0; w < stamps.size(); ++w) stamps[w] = stamp(w);
  media.write(stamps);
  const device_memory memory(*on, shape);
  model_server_options options;
  options.units = 8;
  options.idle_timeout_ns = scaled_time(8 * one_second_ns);
  model_server server(*on, options);
  model_drive_options drive_options;
  drive_options.faults = faults;
  model_drive& drive = server.add_drive(drive_options);
  drive.add_namespace(media.data(), media.bytes());
  const block_device device(*on, drive, 1, device_options(shape, memory_kind::local));
  body.bed = memory.bed(device);
  Body idle = body;
  idle.rounds = 0;
  run_warps_on_device(idle, report, warps);
  server.start();
  if (shape.once) {
    launch(launch_shape(warps / 4, 128), run_parts_kernel<Body, 32>, body, &report, cuda_test_seed());
  } else {
    run_warps_on_device(body, report, warps);
  }
  server.stop();
  PENSTOCK_CHECK(report, !server.gave_up());
  check_queues(report, device);
}

PENSTOCK_CUDA_TEST_BESIDE(block_io_copies_small) { run_on_drive(report, {512, 3}, {}, copies_body{{}, 2}); }
PENSTOCK_CUDA_TEST_BESIDE(block_io_copies_pages) { run_on_drive(report, {8192, 2}, {}, copies_body{{}, 2}); }
PENSTOCK_CUDA_TEST_BESIDE(block_io_copies_up_to_the_limit) { run_on_drive(report, {65536, 2}, {}, copies_body{{}, 1}); }
PENSTOCK_CUDA_TEST_BESIDE(block_io_refuses_lane_by_lane) { run_on_drive(report, {4096, 1}, {}, refusals_body{{}, 3}); }

PENSTOCK_CUDA_TEST_BESIDE(block_io_tells_media_errors) {
  fault_plan faults;
  faults.error = 1;
  const status outcome{status_domain::nvme, nvme::code::unrecovered_read_error};
  run_on_drive(report, {}, faults, failures_body{{}, 2, outcome});
}

PENSTOCK_CUDA_TEST_BESIDE(block_io_ends_at_the_deadline) {
  fault_plan faults;
  faults.drop = 1;
  run_on_drive(report, {4096, 2, 50 * one_millisecond_ns, true}, faults, failures_body{{}, 1, make_status(failure::deadline)});
}

/// By host threads, through bounce buffers.
template <class Body>
void run_on_threads(check_report& report, block_shape shape, Body body) {
  stamped_media media(media_bytes(shape));
  software_options software;
  software.threads = 2;
  software_controller controller(software);
  controller.add_namespace(media.bytes());
  const auto on = open_executor("cuda");
  const device_memory memory(*on, shape);
  const block_device device(*on, controller, 1, device_options(shape, memory_kind::shared));
  body.bed = memory.bed(device);
  run_warps_on_device(body, report, warps);
  check_queues(report, device);
}

PENSTOCK_CUDA_TEST(block_io_through_bounce_buffers) { run_on_threads(report, {16384, 2}, copies_body{{}, 1}); }
PENSTOCK_CUDA_TEST(block_io_through_small_bounce_buffers) { run_on_threads(report, {512, 3}, copies_body{{}, 2}); }
PENSTOCK_CUDA_TEST(block_io_of_threads_refuses_lane_by_lane) { run_on_threads(report, {4096, 1}, refusals_body{{}, 3}); }

}  // namespace
}  // namespace penstock::test
