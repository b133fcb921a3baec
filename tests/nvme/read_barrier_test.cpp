// Read barriers on a device whose data arrive late: a completion is there at once, and the data that came before it only when
// the device reads memory again, as it does to fetch a command. (So may a GPU's threads see what a drive writes to its memory.)
#include "device/block_io_test_body.hpp"
#include "support/run_everywhere.hpp"

#include "penstock/controller/model_controller.hpp"
#include "penstock/executor/executor.hpp"
#include "penstock/host/error.hpp"
#include "penstock/runtime/block_device.hpp"

#include "src/controller/pieces.hpp"
#include "src/controller/prp_reader.hpp"
#include "src/controller/ring_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <mutex>

namespace penstock::test {
namespace {

constexpr u32 most_threads = 64, at_once = 2;
constexpr u64 piece_bytes = 4096;

class late_controller final : public controller {
 public:
  explicit late_controller(std::span<std::byte> media) : media_(media), admin_({}) { admin_.add_namespace(media, block_bytes); }

  void attach(queue_rings const& rings) override {
    if (rings.id == 0) return admin_.attach(rings);
    const std::lock_guard lock(mutex_);
    queues_[rings.id] = std::make_unique<controllers::ring_server>(rings);
  }
  void detach(u16 queue) override {
    if (queue == 0) return admin_.detach(queue);
    if (on_detach) on_detach();
    const std::lock_guard lock(mutex_);
    queues_.erase(queue);
    pending_.clear();
    if (keeps_queues) throw_os_error("detach", "queue " + std::to_string(queue), ETIMEDOUT, "it does not let go");
  }
  void poll(u16 queue) override {
    if (queue == 0) return admin_.poll(queue);
    const std::unique_lock lock(mutex_, std::try_to_lock);
    const auto at = queues_.find(queue);
    if (!lock.owns_lock() || at == queues_.end()) return;
    at->second->drain();
    for (nvme::submission_entry command; answers > 0 && !at->second->congested() && at->second->fetch(command); --answers) {
      serve(*at->second, command);
    }
  }
  void add_buffer(void*, u64) override {}
  controller_limits limits() const override {
    controller_limits all = admin_.limits();
    all.rings_in_controller = rings_in_controller;
    return all;
  }
  std::string engine() const override { return "late"; }

  bool rings_in_controller = false, keeps_queues = false;
  std::function<void()> on_detach;
  std::atomic<u64> fetched{0};
  std::atomic<u64> answers{~u64{0}};  ///< that it still gives

 private:
  struct late_data {
    controllers::pieces to;
    std::byte const* from;
    u64 bytes;
  };

  void serve(controllers::ring_server& ring, nvme::submission_entry const& command) {
    ++fetched;
    for (late_data const& each : pending_) controllers::copy_to_pieces(each.to, each.from, each.bytes, each.bytes);
    pending_.clear();
    u16 outcome = nvme::code::success;
    if (command.opcode != static_cast<u8>(nvme::opcode::flush)) outcome = move(command);
    ring.complete(command.command_id, outcome);
  }

  u16 move(nvme::submission_entry const& command) {
    const u64 bytes = ((command.dword12 & 0xffffu) + 1) * u64{block_bytes};
    std::byte* const at = media_.data() + (static_cast<u64>(command.dword11) << 32 | command.dword10) * block_bytes;
    controllers::pieces data;
    const u16 outcome = controllers::read_prps(command, bytes, data);
    if (outcome != nvme::code::success) return outcome;
    if (command.opcode == static_cast<u8>(nvme::opcode::write)) {
      controllers::copy_from_pieces(at, data, bytes);
    } else {
      pending_.push_back({data, at, bytes});
    }
    return outcome;
  }

  std::span<std::byte> media_;
  model_controller admin_;
  std::mutex mutex_;  ///< guards all below
  std::map<u16, std::unique_ptr<controllers::ring_server>> queues_;
  std::vector<late_data> pending_;
};

struct late_bed {
  explicit late_bed(bool barrier, u64 timeout_ns = 20 * one_second_ns, u32 queues = 2)
      : media((most_threads * at_once + 1) * piece_bytes), drive(media.bytes()), on(open_executor("cpu", 1)),
        device(std::make_shared<block_device>(*on, drive, 1,
                                              block_device_options{.queues = queues,
                                                                   .queue_depth = 16,
                                                                   .timeout_ns = timeout_ns,
                                                                   .transfer_bytes = piece_bytes,
                                                                   .read_barrier = barrier})),
        requests(std::make_shared<buffer<block_request>>(on->memory(), memory_kind::local, most_threads * at_once)),
        data(std::make_shared<buffer<u64>>(on->memory(), memory_kind::local, most_threads * at_once * piece_bytes / 8)) {}

  /// One read of a block by one thread: its first word, as this thread finds it.
  u64 read_block(u64 block, status expected = {}) {
    data->data()[0] = 0;
    EXPECT_EQ(expected, read_blocks(lone_thread(), device->view(), true, *requests->data(), lba{block}, 1,
                                    reinterpret_cast<u64>(data->data())));
    return data->data()[0];
  }

  stamped_media media;
  /// One such read up to the barrier, which `trouble` befalls.
  template <class Trouble>
  status read_block_and(u64 block, Trouble const& trouble) {
    block_request& request = *requests->data();
    submit_blocks(lone_thread(), device->view(), nvme::opcode::read, true, request, lba{block}, 1,
                  reinterpret_cast<u64>(data->data()));
    while (device_ref<u32>(request.result).load(acquire) == 0) {
      for (u32 q = 0; q < device->view().queues_count; ++q) device->view().queues[q].progress(lone_thread());
    }
    trouble();
    return wait_blocks(lone_thread(), device->view(), true, request);
  }

  u32 lock() const { return device->view().barrier->lock; }

  late_controller drive;
  std::shared_ptr<executor> on;
  std::shared_ptr<block_device> device;
  std::shared_ptr<buffer<block_request>> requests;
  std::shared_ptr<buffer<u64>> data;
};

TEST(read_barrier, without_it_a_completion_says_nothing_of_the_data) {
  late_bed bed(false);
  EXPECT_NE(bed.read_block(7), stamp(7 * (block_bytes / 8))) << "this device's data are not late";
  EXPECT_EQ(bed.device->barriers(), 0u);
}

TEST(read_barrier, data_are_there_when_one_more_command_has_been_fetched) {
  late_bed bed(true);
  for (u64 block = 0; block < 20; ++block) ASSERT_EQ(bed.read_block(block), stamp(block * (block_bytes / 8))) << block;
  EXPECT_EQ(bed.device->barriers(), 20u) << "one thread shares with nobody";
}

/// The body that all controllers pass, over this one.
struct shared_copies : copies_body {
  std::shared_ptr<late_bed> bed_of_run;
  void prepare(run_shape) {
    bed_of_run = std::make_shared<late_bed>(true);
    bed = {bed_of_run->device->view(), bed_of_run->requests->data(), bed_of_run->data->data(), static_cast<u32>(piece_bytes),
           at_once};
  }
  void verify(check_report& report, run_shape) const {
    for (queue_counts const& counts : bed_of_run->device->queues()) PENSTOCK_CHECK_EQ(report, status{}, counts.failure);
    PENSTOCK_CHECK(report, bed_of_run->device->barriers() > 0);
  }
};

TEST(read_barrier, all_who_wait_share_it) {
  const shared_copies body{{{}, 3}, nullptr};
  run_everywhere(body, {.lone_threads = 4, .warps = 2, .partitions = 2});
}

TEST(read_barrier, the_lanes_of_a_group_need_one) {
  late_bed bed(true);
  constexpr u32 reads = 16;
  for (u32 k = 0; k < reads; ++k) {
    submit_blocks(lone_thread(), bed.device->view(), nvme::opcode::read, true, bed.requests->data()[k], lba{k}, 1,
                  reinterpret_cast<u64>(bed.data->data() + k * (piece_bytes / 8)));
  }
  EXPECT_EQ(wait_blocks(lone_thread(), bed.device->view(), false, bed.requests->data()[0]), status{});
  EXPECT_EQ(bed.device->barriers(), 0u) << "who waits for nothing needs none";
  EXPECT_EQ(flush_blocks(lone_thread(), bed.device->view(), true, bed.requests->data()[reads]), status{});
  EXPECT_EQ(bed.device->barriers(), 0u) << "no data come with a flush";
}

TEST(read_barrier, a_device_that_does_not_answer_it_ends_the_read_and_the_next_one_is_served) {
  late_bed bed(true, 20 * one_millisecond_ns, 1);
  EXPECT_EQ(bed.read_block(3), stamp(3 * (block_bytes / 8)));
  bed.drive.answers = 1;
  bed.read_block(4, make_status(failure::deadline));
  bed.drive.answers = ~u64{0};
  EXPECT_EQ(bed.read_block(5), stamp(5 * (block_bytes / 8)));
}

// Whoever has the harvest lock keeps all results back, as a harvester that does not run.
TEST(read_barrier, one_whose_result_may_still_come_is_nobody_s_until_it_has) {
  for (const bool by_reset : {false, true}) {
    late_bed bed(true, 20 * one_millisecond_ns, 1);
    u32& harvest_lock = bed.device->view().queues[0].state->harvest_lock;
    if (by_reset) bed.drive.answers = 1;
    EXPECT_EQ(bed.read_block_and(4, [&] { harvest_lock = 1; }), make_status(failure::deadline));
    EXPECT_EQ(bed.lock(), read_barrier::left);
    EXPECT_FALSE(barrier_io::try_lock(*bed.device->view().barrier));
    harvest_lock = 0;
    if (by_reset) bed.device->recover(recover_scope::all);
    bed.drive.answers = ~u64{0};
    EXPECT_EQ(bed.read_block(5), stamp(5 * (block_bytes / 8)));
    EXPECT_EQ(bed.lock(), 0u);
  }
}

TEST(read_barrier, one_that_was_not_submitted_leaves_nothing_behind) {
  late_bed bed(true);
  queue_pair_view<result_sink> const& next = bed.device->view().queues[1];  // the first barrier's
  EXPECT_EQ(bed.read_block_and(4, [&] { next.close(lone_thread()); }), make_status(failure::resetting));
  EXPECT_EQ(bed.lock(), 0u);
  bed.device->recover(recover_scope::all);
  EXPECT_EQ(bed.read_block(5), stamp(5 * (block_bytes / 8)));
}

TEST(read_barrier, a_queue_whose_controller_was_given_up_is_not_chosen) {
  late_bed bed(true);
  queue_state& next = *bed.device->view().queues[1].state;
  EXPECT_EQ(bed.read_block_and(4,
                               [&] {
                                 next.failure = pack(make_status(failure::controller_failed));
                                 next.stopped = queue_state::given_up;
                               }),
            status{});
  EXPECT_EQ(bed.data->data()[0], stamp(4 * (block_bytes / 8)));
}

TEST(read_barrier, commands_that_are_fetched_from_elsewhere_make_none) {
  stamped_media media(4 * piece_bytes);
  late_controller drive(media.bytes());
  drive.rings_in_controller = true;
  const auto on = open_executor("cpu", 1);
  block_device_options options{.queues = 1};
  block_device(*on, drive, 1, options);
  options.read_barrier = true;
  try {
    block_device(*on, drive, 1, options);
    FAIL() << "was made";
  } catch (error const& e) {
    EXPECT_EQ(e.kind(), error_kind::bad_input);
    EXPECT_NE(std::string(e.what()).find("rings in the controller's memory"), std::string::npos) << e.what();
  }
}

struct noting_memory final : memory_resource {
  void* allocate(memory_kind kind, u64 bytes) override { return cpu_memory().allocate(kind, bytes); }
  void deallocate(memory_kind kind, void* address, u64 bytes) noexcept override {
    freed.push_back(reinterpret_cast<u64>(address));
    cpu_memory().deallocate(kind, address, bytes);
  }
  void write(void* to, void const* from, u64 bytes) override { cpu_memory().write(to, from, bytes); }
  void read(void* to, void const* from, u64 bytes) override { cpu_memory().read(to, from, bytes); }
  bool is_freed(u64 address) const { return std::ranges::find(freed, address) != freed.end(); }
  std::vector<u64> freed;
};

TEST(read_barrier, its_data_stay_until_the_controller_has_let_go_of_the_queues) {
  for (const bool keeps_queues : {false, true}) {
    noting_memory memory;
    stamped_media media(4 * piece_bytes);
    late_controller drive(media.bytes());
    const auto on = open_cpu_executor(memory, 1);
    auto device = std::make_unique<block_device>(*on, drive, 1, block_device_options{.queues = 2, .read_barrier = true});
    const u64 address = device->view().barrier->address;
    u32 detached = 0;
    drive.on_detach = [&] {
      ++detached;
      EXPECT_FALSE(memory.is_freed(address)) << "the device may still write it";
    };
    drive.keeps_queues = keeps_queues;
    device.reset();
    EXPECT_EQ(detached, 2u);
    EXPECT_EQ(memory.is_freed(address), !keeps_queues);
  }
}

}  // namespace
}  // namespace penstock::test
