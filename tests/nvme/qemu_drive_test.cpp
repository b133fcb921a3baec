// The driver on QEMU's controller: what it finds, what the library does through it, and what it does when the controller does
// not.
#include "qemu_bed.hpp"

#include "penstock/host/error.hpp"
#include "penstock/runtime/identify.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

namespace penstock::test_support {
namespace {

/// What a call is refused with; empty if it is not.
template <class Call>
std::string refusal(Call const& call) {
  try {
    call();
  } catch (error const& e) {
    return e.what();
  }
  return {};
}

TEST_F(qemu_drive_test, says_what_it_is) {
  pcie_controller drive(start({{{{4 * mebibyte, 512, ""}, {8 * mebibyte, 4096, ""}}, ",mdts=3,max_ioqpairs=5"}}));
  pcie_facts const& facts = drive.facts();
  EXPECT_EQ(std::string(facts.controller.serial_number, 9), "PENSTOCK0");
  EXPECT_EQ(facts.namespaces, (std::vector<u32>{1, 2}));
  EXPECT_EQ(facts.version >> 16, 1u);
  EXPECT_EQ(drive.limits().transfer_bytes, 32768u);
  EXPECT_EQ(drive.limits().queues, 5u) << "fewer than were asked for";
  EXPECT_EQ(drive.limits().queue_entries, facts.capabilities.queue_entries());
  EXPECT_EQ(identify_namespace(drive, 1).block_bytes, 512u);
  EXPECT_EQ(identify_namespace(drive, 2).block_bytes, 4096u);
  EXPECT_EQ(identify_namespace(drive, 2).blocks, 2048u);
  EXPECT_EQ(identify_controller(drive).max_transfer, 3);
  EXPECT_THROW(identify_namespace(drive, 3), error) << "one that is not there";
  const nvme::health_log health = drive.health();
  EXPECT_EQ(health.critical_warning, 0);
  EXPECT_GT(health.temperature[1] * 256 + health.temperature[0], 273);
  EXPECT_EQ(drive.counts().resets, 0u);
  EXPECT_EQ(drive.counts().admin_strays, 0u);
}

TEST_F(qemu_drive_test, tells_of_asynchronous_events) {
  pcie_controller drive(start());
  EXPECT_FALSE(drive.take_event().has_value());
  machine_->monitor("qom-set /machine/peripheral/nvme0 smart_critical_warning 4");
  const auto event = next_event(drive);
  EXPECT_EQ(event.type(), 1);
  EXPECT_EQ(event.page(), nvme::log_page::health);
  // The log page has been read, so the next one is told, too.
  machine_->monitor("qom-set /machine/peripheral/nvme0 smart_critical_warning 8");
  next_event(drive);
  EXPECT_EQ(drive.health().critical_warning, 8);
}

TEST_F(qemu_drive_test, an_event_is_told_once_until_its_log_page_is_read) {
  pcie_controller drive(start());
  machine_->monitor("qom-set /machine/peripheral/nvme0 smart_critical_warning 4");
  machine_->monitor("qom-set /machine/peripheral/nvme0 smart_critical_warning 4");
  const auto first = next_event(drive);
  EXPECT_TRUE(first.is(nvme::event_type::health));
  EXPECT_FALSE(drive.take_event().has_value()) << "told twice";
  machine_->monitor("qom-set /machine/peripheral/nvme0 smart_critical_warning 12");
  EXPECT_TRUE(next_event(drive).is(nvme::event_type::health)) << "and the next one, too";
}

TEST_F(qemu_drive_test, namespaces_are_attached_and_detached_and_what_is_not_attached_is_refused) {
  pcie_controller drive(start({{{{4 * mebibyte, 512, ""}, {8 * mebibyte, 512, "", {}, ",detached=on"}}, "", true}}));
  EXPECT_EQ(drive.facts().namespaces, (std::vector<u32>{1}));
  const auto on = open_cpu_executor(machine_->memory(), 1);
  const auto open_second = [&] { block_device device(*on, drive, 2, {.queues = 1, .queue_depth = 16}); };
  const auto refused = [&] { return refusal(open_second); };
  EXPECT_NE(refused().find("namespace 2"), std::string::npos) << refused();
  drive.attach_namespace(2);
  EXPECT_EQ(drive.facts().namespaces, (std::vector<u32>{1, 2}));
  const auto event = next_event(drive);
  EXPECT_TRUE(event.is(nvme::event_type::notice));
  EXPECT_EQ(event.information(), nvme::namespaces_changed);
  EXPECT_EQ(event.page(), nvme::log_page::changed_namespaces);
  EXPECT_EQ(refused(), "");
  EXPECT_EQ(identify_namespace(drive, 2).blocks, 16384u);
  EXPECT_THROW(drive.attach_namespace(2), error) << "it is attached";
  {
    host_queue queue(drive, 1, 8, 8);
    data_buffer buffer(512);
    EXPECT_EQ(queue.run(buffer.read(2, 5)), nvme::code::success);
    drive.detach_namespace(2);
    EXPECT_NE(queue.run(buffer.read(2, 5)), nvme::code::success) << "under a queue that is open";
    EXPECT_EQ(queue.run(buffer.read(1, 5)), nvme::code::success);
  }
  EXPECT_EQ(drive.facts().namespaces, (std::vector<u32>{1}));
  EXPECT_NE(refused(), "");
}

TEST_F(qemu_drive_test, commands_smaller_than_a_line_are_refused_with_the_drive_s_limit) {
  pcie_controller drive(start({{{{}}, ",mdts=1"}}));
  EXPECT_EQ(drive.limits().transfer_bytes, 8192u);
  const auto on = open_cpu_executor(machine_->memory(), 1);
  volume_spec volume;
  volume.members = {{&drive, 1}};
  try {
    line_cache cache(*on, {{"data", mebibyte, volume, false}}, {.bytes = mebibyte, .line_bytes = 16384, .queues = 1});
    FAIL() << "a line that no command can carry was accepted";
  } catch (error const& e) {
    EXPECT_EQ(e.kind(), error_kind::bad_input);
    EXPECT_NE(std::string(e.what()).find("8192"), std::string::npos) << e.what();
  }
}

TEST_F(qemu_drive_test, memory_that_the_device_does_not_reach_is_refused) {
  pcie_controller drive(start());
  memory_under_test() = nullptr;
  EXPECT_THROW(host_queue(drive, 1, 8, 8), error);
  page_memory other(4096);
  EXPECT_THROW(drive.add_buffer(other.data(), other.bytes()), error);
}

TEST_F(qemu_drive_test, a_function_whose_memory_space_is_off_is_refused) {
  qemu_function& function = start();
  function.set_memory_space(false);
  try {
    pcie_controller drive(function);
    FAIL() << "opened";
  } catch (error const& e) {
    EXPECT_NE(std::string(e.what()).find("all ones"), std::string::npos) << e.what();
  }
}

TEST_F(qemu_drive_test, a_controller_that_somebody_left_running_is_brought_up_anew) {
  qemu_function& function = start();
  store(numbered(4 * mebibyte, 1));
  const pid_t child = fork();
  if (child == 0) {
    pcie_controller drive(function);
    host_queue queue(drive, 1, 16, 16);
    data_buffer buffer(4096);
    for (u64 k = 0; k < 12; ++k) queue.write_command(buffer.read(1, 8 * k));
    queue.ring();
    drive.poll(1);
    raise(SIGKILL);
  }
  waitpid(child, nullptr, 0);
  pcie_controller drive(function);
  host_queue queue(drive, 1, 16, 16);
  data_buffer buffer(std::min<u64>(65536, drive.limits().transfer_bytes));
  for (u64 k = 0; k < 64; ++k) ASSERT_EQ(queue.run(buffer.read(1, k * 16)), nvme::code::success);
  EXPECT_EQ(std::memcmp(buffer.data(), numbered(4 * mebibyte, 1).data() + 63 * 1024, buffer.bytes()), 0);
  EXPECT_EQ(queue.strays(), 0u);
}

struct cache_case {
  directory_kind directory;
  u64 line_bytes;
  u32 name_space;
};

class qemu_cache_test : public qemu_drive_test, public testing::WithParamInterface<cache_case> {};

INSTANTIATE_TEST_SUITE_P(every, qemu_cache_test,
                         testing::Values(cache_case{directory_kind::direct, 512, 1},
                                         cache_case{directory_kind::direct, 4096, 2},
                                         cache_case{directory_kind::set_associative, 4096, 1},
                                         cache_case{directory_kind::set_associative, 65536, 2}),
                         [](auto const& test) {
                           return std::string(test.param.directory == directory_kind::direct ? "direct_" : "sets_") +
                                  std::to_string(test.param.line_bytes) + "_in_namespace_" +
                                  std::to_string(test.param.name_space);
                         });

TEST_P(qemu_cache_test, reads_writes_and_flushes_through_it) {
  constexpr u64 bytes = 4 * mebibyte, words = bytes / sizeof(u64);
  pcie_controller drive(start({{{{bytes, 512, ""}, {bytes, 4096, ""}}, ""}}));
  std::vector<u64> expected = numbered(bytes, 3);
  store(expected, GetParam().name_space);
  const auto on = open_cpu_executor(machine_->memory(), 2);
  volume_spec volume;
  volume.members = {{&drive, GetParam().name_space}};
  cache_options options;
  options.bytes = std::max<u64>(mebibyte, 14 * GetParam().line_bytes);
  options.line_bytes = GetParam().line_bytes;
  options.directory = GetParam().directory;
  options.queues = std::min(2u, drive.limits().queues);
  options.queue_depth = 64;
  if (options.line_bytes > drive.limits().transfer_bytes) {
    EXPECT_NE(refusal([&] { line_cache cache(*on, {{"data", bytes, volume, true}}, options); }).find("ask for smaller lines"),
              std::string::npos);
    return;
  }
  {
    line_cache cache(*on, {{"data", bytes, volume, true}}, options);
    const auto view = cache.writable<u64>(0, 0, words);
    const lone_thread g;
    const auto elements = cache.array<u64>(0, 0, words);
    for (u64 k = 0; k < words; k += 61) ASSERT_EQ(expected[k], elements[k]) << k;
    for (u64 k = 5; k < words; k += 97) ASSERT_EQ(status{}, view.try_write(g, true, k, expected[k] = k * k));
    cache.flush();
    EXPECT_GT(cache.stats(0).evictions, 0u);
    EXPECT_EQ(cache.stats(0).errors, 0u);
  }
  EXPECT_EQ(expected, stored(GetParam().name_space));
}

TEST_F(qemu_recovery_test, a_media_error_is_told_to_whoever_asked_and_to_nobody_else) {
  open({{{4 * mebibyte, 512, "", {8 * 17 + 3}}}}, 10 * one_second_ns);
  submit_all();
  for (u32 k = 0; k < requests; ++k) {
    const status expected = k == 17 ? status{status_domain::nvme, nvme::code::unrecovered_read_error} : status{};
    EXPECT_EQ(expected, wait(k)) << k;
  }
}

// QEMU's Abort says "not aborted", whatever it is asked: what follows is what the recovery of any such drive falls back to.
TEST_F(qemu_recovery_test, what_its_abort_does_not_end_is_taken_back_with_its_queue) {
  open({{{4 * mebibyte, 512, ",throttling.iops-total=20"}}}, one_second_ns);
  submit_all();
  u32 good = 0, late = 0;
  for (u32 k = 0; k < requests; ++k) {
    const status outcome = wait(k);
    good += outcome.ok();
    late += outcome == make_status(failure::deadline);
  }
  EXPECT_EQ(good + late, requests);
  EXPECT_GT(late, 0u);
  const recovery done = device_->recover();
  EXPECT_GT(done.queues, 0u);
  EXPECT_GT(drive_->counts().aborts, 0u);
  EXPECT_EQ(drive_->counts().aborted, 0u);
  machine_->monitor("block_set_io_throttle d0n1 0 0 0 0 0 0");
  expect_all_good();
}

TEST_F(qemu_recovery_test, a_controller_is_reset_with_commands_in_flight_and_goes_on) {
  open({{{4 * mebibyte, 512, ",throttling.iops-total=20"}}}, 10 * one_second_ns);
  submit_all();
  drive_->reset();
  const recovery done = device_->recover(recover_scope::all);
  EXPECT_EQ(done.queues, queues_);
  u32 answered = 0, good = 0;
  for (u32 k = 0; k < requests; ++k) {
    const status outcome = wait(k);
    answered += outcome == make_status(failure::resetting);
    good += outcome.ok();
  }
  EXPECT_EQ(answered + good, requests) << "each ends in one of the two";
  EXPECT_EQ(answered, done.commands);
  EXPECT_GT(answered, 0u);
  EXPECT_EQ(drive_->counts().resets, 1u);
  machine_->monitor("block_set_io_throttle d0n1 0 0 0 0 0 0");
  expect_all_good();
}

TEST_F(qemu_recovery_test, a_function_that_vanishes_costs_its_commands_one_deadline_and_may_come_back) {
  open({{{}}}, one_second_ns);
  machine_->function(0).set_memory_space(false);
  submit_all();
  const u64 start = now_ns();
  for (u32 k = 0; k < requests; ++k) EXPECT_EQ(make_status(failure::deadline), wait(k)) << k;
  EXPECT_LT(now_ns() - start, 5 * one_second_ns);
  EXPECT_THROW(device_->recover(), error) << "it is not there";
  machine_->function(0).set_memory_space(true);
  EXPECT_EQ(device_->recover().queues, queues_);
  expect_all_good();
}

TEST_F(qemu_recovery_test, a_function_level_reset_is_survived) {
  open({{{}}}, 2 * one_second_ns);
  expect_all_good();
  machine_->function(0).reset();
  EXPECT_EQ(device_->recover(recover_scope::all).queues, queues_);
  EXPECT_GE(drive_->counts().resets, 1u);
  expect_all_good();
}

}  // namespace
}  // namespace penstock::test_support
