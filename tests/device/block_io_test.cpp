#include "device/block_io_test_body.hpp"

#include "penstock/controller/model_controller.hpp"
#include "penstock/controller/model_server.hpp"
#include "penstock/controller/software_controller.hpp"
#include "penstock/host/error.hpp"
#include "penstock/runtime/block_device.hpp"
#include "support/run_everywhere.hpp"

#include <memory>

namespace penstock::test {
namespace {

// ThreadSanitizer finds a race in the first rounds or not at all, and a warp of 32 threads costs it most.
#if defined(PENSTOCK_TSAN)
constexpr everywhere how = {.lone_threads = 2, .warps = 1, .partitions = 1};
constexpr u32 rounds_of_a_run = 1;
#else
constexpr everywhere how = {.lone_threads = 4, .warps = 2, .partitions = 2};
constexpr u32 rounds_of_a_run = 3;
#endif
constexpr u32 most_threads = 64;

struct block_shape {
  u64 bytes = 4096;  ///< of the largest command
  u32 at_once = 3;
  u32 queues = 2;
  u32 depth = 16;
  u64 offset = 0;  ///< of the buffers, from a page
  u64 timeout_ns = 20 * one_second_ns;
  bool poll = true;
};

u64 media_bytes(block_shape shape) { return most_threads * shape.at_once * shape.bytes + block_bytes; }

/// Fresh queues, requests and buffers for each run.
template <class Body>
struct on_controller : Body {
  controller* owner = nullptr;
  block_shape shape;
  std::shared_ptr<executor> on = open_executor("cpu", 1);
  std::shared_ptr<block_device> device{};
  std::shared_ptr<buffer<block_request>> requests{};
  std::shared_ptr<buffer<u64>> data{};

  void prepare(run_shape run) {
    device.reset();
    block_device_options options;
    options.queues = shape.queues;
    options.queue_depth = shape.depth;
    options.timeout_ns = shape.timeout_ns;
    options.transfer_bytes = shape.bytes;
    options.poll_in_place = shape.poll;
    device = std::make_shared<block_device>(*on, *owner, 1, options);
    const u64 count = u64{run.threads} * shape.at_once;
    requests = std::make_shared<buffer<block_request>>(on->memory(), memory_kind::local, count);
    data = std::make_shared<buffer<u64>>(on->memory(), memory_kind::local, (count * shape.bytes + nvme::page_bytes) / 8);
    this->bed = {device->view(), requests->data(), data->data() + shape.offset / 8, static_cast<u32>(shape.bytes),
                 shape.at_once};
  }

  void verify(check_report& report, run_shape) const {
    for (queue_counts const& counts : device->queues()) PENSTOCK_CHECK_EQ(report, status{}, counts.failure);
  }
};

template <class Body>
void run_on(controller& owner, block_shape shape, Body body) {
  on_controller<Body> whole;
  static_cast<Body&>(whole) = body;
  whole.owner = &owner;
  whole.shape = shape;
  run_everywhere(whole, how);
}

void run_copies(controller& owner, block_shape shape) { run_on(owner, shape, copies_body{{}, rounds_of_a_run}); }

TEST(block_io, several_commands_of_a_thread_move_their_own_blocks) {
  stamped_media media(media_bytes({}));
  model_options options;
  options.faults.reorder = true;
  options.faults.poison_fetched = true;
  options.faults.torn_completion = true;
  model_controller model(options);
  model.add_namespace(media.bytes());
  run_copies(model, {});
  run_copies(model, {.queues = 1, .depth = 5});
  run_copies(model, {.queues = 5, .depth = 7});
}

TEST(block_io, a_controller_of_its_own_thread_serves_it) {
  stamped_media media(media_bytes({}));
  model_options options;
  options.threads = 1;
  model_controller model(options);
  model.add_namespace(media.bytes());
  run_copies(model, {.poll = false});
}

TEST(block_io, software_controller_serves_memory) {
  stamped_media media(media_bytes({}));
  software_controller software;
  software.add_namespace(media.bytes());
  run_copies(software, {});
}

TEST(block_io, a_flush_is_a_command_and_its_failure_is_told) {
  stamped_media media(media_bytes({}));
  const auto on = open_executor("cpu", 1);
  for (const double errors : {0.0, 1.0}) {
    model_server server(*on, {});
    fault_plan faults;
    faults.error = errors;
    model_drive& drive = server.add_drive({.timing = {}, .faults = faults});
    drive.add_namespace(media.bytes().data(), media.size());
    block_device device(*on, drive, 1, {.queues = 1});
    buffer<block_request> request(on->memory(), memory_kind::local, 1);
    EXPECT_EQ(flush_blocks(lone_thread{}, device.view(), true, *request.data()).ok(), errors == 0.0);
    EXPECT_EQ(flush_blocks(lone_thread{}, device.view(), false, *request.data()), status{});
    EXPECT_EQ(device.queues()[0].commands, 1);
    EXPECT_EQ(device.queues()[0].completions, 1);
  }
}

TEST(block_io, modelled_drives_serve_it) {
  stamped_media media(media_bytes({}));
  const auto on = open_executor("cpu", 1);
  model_server server(*on, {});
  model_drive& drive = server.add_drive({});
  drive.add_namespace(media.bytes().data(), media.size());
  run_copies(drive, {});
}

// Requests lie one behind the other, and each has a PRP list in it; the largest command fills the list.
TEST(block_io, commands_of_every_size_up_to_the_limit) {
  for (const u64 bytes : {u64{512}, u64{8192}, u64{65536}}) {
    const block_shape shape{.bytes = bytes, .at_once = 2};
    stamped_media media(media_bytes(shape));
    model_controller model({});
    model.add_namespace(media.bytes());
    run_copies(model, shape);
  }
}

/// A controller takes the last entry of a page for the address of the rest of the list.
TEST(block_io, the_list_of_a_request_lies_in_one_page) {
  const buffer<block_request> requests(cpu_memory(), memory_kind::local, 256);
  for (u64 k = 0; k < requests.size(); ++k) {
    const u64 first = reinterpret_cast<u64>(requests.data()[k].list), last = first + sizeof requests.data()[k].list - 1;
    ASSERT_EQ(first / nvme::page_bytes, last / nvme::page_bytes) << "request " << k;
  }
}

TEST(block_io, buffers_that_start_inside_of_a_page) {
  const block_shape shape{.bytes = 65536, .at_once = 1, .offset = 1024};
  stamped_media media(media_bytes(shape));
  model_controller model({});
  model.add_namespace(media.bytes());
  run_copies(model, shape);
}

TEST(block_io, what_the_device_does_not_have_is_refused_lane_by_lane) {
  stamped_media media(media_bytes({}));
  model_controller model({});
  model.add_namespace(media.bytes());
  run_on(model, {.at_once = 1}, refusals_body{{}, rounds_of_a_run});
}

/// A drive whose plan of faults leaves its admin queue alone.
class faulty_drive {
 public:
  explicit faulty_drive(fault_plan const& faults) : media_(media_bytes({})) {
    model_drive_options options;
    options.faults = faults;
    drive_ = &server_.add_drive(options);
    drive_->add_namespace(media_.bytes().data(), media_.size() / block_bytes * block_bytes);
  }
  model_drive& operator*() const { return *drive_; }

 private:
  stamped_media media_;
  std::unique_ptr<executor> on_ = open_executor("cpu", 1);
  model_server server_{*on_, {}};
  model_drive* drive_ = nullptr;
};

TEST(block_io, media_errors_are_told) {
  fault_plan faults;
  faults.error = 1;
  const faulty_drive drive(faults);
  const status outcome{status_domain::nvme, nvme::code::unrecovered_read_error};
  run_on(*drive, {}, failures_body{{}, rounds_of_a_run, outcome});
}

TEST(block_io, a_lost_completion_ends_at_the_deadline) {
  fault_plan faults;
  faults.drop = 1;
  const faulty_drive drive(faults);
  on_controller<failures_body> body;
  static_cast<failures_body&>(body) = {{}, 2, make_status(failure::deadline)};
  body.owner = &*drive;
  body.shape = {.depth = 256, .timeout_ns = 20 * one_millisecond_ns};
  run_lone(body, 2, test_seed());
  run_warps(body, "one whole warp", {{0xffffffffu}}, test_seed());
}

template <class Change>
std::string refusal(Change change) {
  stamped_media media(1 << 20);
  model_controller model({});
  model.add_namespace(media.bytes());
  const auto on = open_executor("cpu", 1);
  block_device_options options;
  change(options);
  try {
    const block_device device(*on, model, 1, options);
  } catch (error const& problem) {
    EXPECT_EQ(problem.kind(), error_kind::bad_input) << problem.what();
    return problem.what();
  }
  return "";
}

TEST(block_io, a_device_that_cannot_be_is_refused_in_one_sentence) {
  EXPECT_EQ(refusal([](auto&) {}), "");
  EXPECT_NE(refusal([](auto& o) { o.transfer_bytes = 131072; }), "");
  EXPECT_NE(refusal([](auto& o) { o.transfer_bytes = 256; }), "");
  EXPECT_NE(refusal([](auto& o) { o.queue_depth = 1; }), "");
  EXPECT_NE(refusal([](auto& o) { o.queues = 4, o.first_queue_id = 0xffff; }), "");
}

}  // namespace
}  // namespace penstock::test
