// Every kind of trouble at every step of the driver: an error in one sentence or none, in time, nothing leaked, and once the
// trouble is over the drive serves again. The function is a referee, too: the driver must not do wrong whatever was done to it.
#include "driver_bed.hpp"

#include "penstock/core/retry_policy.hpp"

#include <cstdio>

namespace penstock::test_support {
namespace {

TEST_F(driver_test, serves_and_shuts_down_in_order) {
  make();
  open();
  expect_it_serves();
  expect_it_serves();
  EXPECT_EQ(drive_->limits().queues, 4u);
  EXPECT_EQ(drive_->limits().transfer_bytes, 131072u);
  EXPECT_EQ(drive_->counts().resets, 0u);
  drive_.reset();
  EXPECT_TRUE(function_->shut_down_in_order());
  EXPECT_EQ(function_->function_resets, 0u);
}

TEST_F(driver_test, doorbells_are_as_far_apart_as_the_controller_says) {
  for (const u64 stride : {1, 2, 5}) {
    make({.capabilities = modelled_function_options{}.capabilities | stride << 32});
    open();
    expect_it_serves();
    TearDown();
  }
}

struct refused_capabilities {
  char const* name;
  u64 word;
  char const* said;
};

TEST_F(driver_test, a_controller_that_penstock_cannot_drive_is_refused_with_the_reason) {
  const u64 good = modelled_function_options{}.capabilities;
  for (auto const& [name, word, said] : {refused_capabilities{"no NVM commands", good & ~(1ull << 37), "NVM command set"},
                                         refused_capabilities{"large pages", good | 1ull << 48, "8192 bytes at least"},
                                         refused_capabilities{"rings of one", good & ~0xffffull, "one entry"},
                                         refused_capabilities{"all ones", ~0ull, "all ones"}}) {
    make({.capabilities = word});
    EXPECT_NE(refusal([&] { open(); }).find(said), std::string::npos) << name;
    TearDown();
  }
}

TEST_F(driver_test, a_controller_that_never_gets_ready_is_given_cap_to) {
  make();
  function_->never_ready = true;
  const u64 start = now_ns();
  EXPECT_NE(refusal([&] { open(); }).find("not ready after CAP.TO"), std::string::npos);
  EXPECT_GE(now_ns() - start, 500 * one_millisecond_ns);
  function_->make_peace();
  open();
  expect_it_serves();
}

TEST_F(driver_test, a_controller_that_fails_to_start_says_so_at_once) {
  make({.capabilities = modelled_function_options{}.capabilities | 40ull << 24});  // CAP.TO of 20 s
  function_->fails_to_start = true;
  EXPECT_NE(refusal([&] { open(); }).find("CSTS.CFS"), std::string::npos);
  function_->make_peace();
  open();
  expect_it_serves();
}

TEST_F(driver_test, a_controller_that_does_not_stop_has_its_function_reset) {
  make();
  open();
  function_->never_stops = true;
  drive_->reset();
  EXPECT_EQ(function_->function_resets, 1u);
  expect_it_serves();
}

TEST_F(driver_test, memory_that_the_controller_may_still_write_is_kept) {
  make();
  open();
  function_->never_stops = function_->reset_does_not_help = true;
  drive_.reset();
  leaks_ = true;
}

TEST_F(driver_test, a_queue_is_taken_back_by_a_reset_of_the_function_where_nothing_else_helps) {
  make();
  open();
  host_queue queue(*drive_, 1, 8, 8);
  function_->plan(driver_step::delete_submission_queue, trouble::drop, 1);
  function_->never_stops = true;
  queue.detach();
  EXPECT_EQ(function_->function_resets, 1u);
  EXPECT_EQ(function_->queues_alive(), 0u);
  expect_it_serves();
}

TEST_F(driver_test, a_queue_that_the_controller_does_not_let_go_of_is_told) {
  make();
  open();
  host_queue queue(*drive_, 1, 8, 8);
  function_->plan(driver_step::delete_submission_queue, trouble::drop);
  function_->never_stops = function_->reset_does_not_help = true;
  EXPECT_THROW(queue.detach(), error) << "its memory may still be written";
  function_->make_peace();
  expect_it_serves();
}

TEST_F(driver_test, events_are_told_and_asked_for_again) {
  make();
  open();
  for (u8 k = 1; k <= 20; ++k) {
    ASSERT_TRUE(function_->tell_event(1, k, nvme::log_page::health)) << k;
    const auto event = drive_->take_event();
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->information(), k);
  }
  EXPECT_FALSE(drive_->take_event().has_value());
}

TEST_F(driver_test, a_controller_that_stops_being_ready_is_reset) {
  make();
  open();
  expect_it_serves();
  function_->drop_ready();
  const u64 start = now_ns();
  expect_it_serves();
  EXPECT_LT(now_ns() - start, 2 * one_second_ns) << "CAP.TO, for it may be starting, and that of an admin command";
  EXPECT_EQ(drive_->counts().resets, 1u);
}

TEST_F(driver_test, a_drive_that_was_changed_for_another_is_not_taken_for_it) {
  make();
  open();
  function_->another_drive = true;
  EXPECT_NE(refusal([&] { drive_->reset(); }).find("open it anew"), std::string::npos);
  function_->another_drive = false;
  expect_it_serves();
}

TEST_F(driver_test, what_cannot_be_is_refused_when_it_is_opened) {
  make({.entry_sizes = 0x77});
  EXPECT_NE(refusal([&] { open(); }).find("larger than 64"), std::string::npos);
  EXPECT_NE(refusal([&] { open({.queues = 0}); }).find("1 to 65534"), std::string::npos);
  EXPECT_NE(refusal([&] { open({.queues = 65535}); }).find("1 to 65534"), std::string::npos);
}

TEST_F(driver_test, one_that_is_refused_and_does_not_stop_keeps_the_rings_that_it_was_told_of) {
  make({.refusal = nvme::code::invalid_field});
  function_->plan(driver_step::list_namespaces, trouble::refuse, 1);
  function_->never_stops = function_->reset_does_not_help = true;
  EXPECT_NE(refusal([&] { open(); }).find("0x002"), std::string::npos);
  leaks_ = true;
}

TEST_F(driver_test, a_queue_that_is_half_made_and_not_deleted_has_its_controller_stopped) {
  make({.refusal = nvme::code::invalid_field});
  open();
  function_->plan(driver_step::create_submission_queue, trouble::refuse, 1);
  function_->plan(driver_step::delete_completion_queue, trouble::refuse, 1);
  EXPECT_NE(refusal([&] { host_queue(*drive_, 1, 8, 8); }).find("create queue 1"), std::string::npos);
  expect_it_serves();
  EXPECT_EQ(drive_->counts().resets, 1u);
}

TEST_F(driver_test, what_a_reset_cuts_short_in_the_admin_queue_is_answered) {
  make();
  open({.queues = 4});
  function_->plan(driver_step::other, trouble::drop, 1);
  data_buffer page(4096);
  host_queue admin(*drive_, 0, 4, 4);
  const auto ask = nvme::identify_command(nvme::identify_structure::name_space, 1, page.address());
  admin.submit(ask);
  for (u32 k = 0; k < 10; ++k) admin.poll();
  ASSERT_EQ(admin.in_flight(), 1u);
  drive_->reset();
  const u64 start = now_ns();
  ASSERT_TRUE(admin.drive_until([&] { return admin.in_flight() == 0; }));
  EXPECT_LT(now_ns() - start, 2 * one_second_ns) << "not after the time of an admin command";
  EXPECT_EQ(admin.run(ask), nvme::code::success);
}

TEST_F(driver_test, a_queue_0_that_is_taken_back_waits_for_its_answer_and_no_longer) {
  make();
  open({.queues = 4, .admin_timeout_ns = 200 * one_millisecond_ns});
  function_->plan(driver_step::other, trouble::drop, 1);
  data_buffer page(4096);
  const auto ask = nvme::identify_command(nvme::identify_structure::name_space, 1, page.address());
  host_queue admin(*drive_, 0, 4, 4);
  admin.submit(ask);
  for (u32 k = 0; k < 10; ++k) admin.poll();
  const u64 start = now_ns();
  admin.detach();
  EXPECT_LT(now_ns() - start, 2 * one_second_ns);
  host_queue again(*drive_, 0, 4, 4);
  EXPECT_EQ(again.run(ask), nvme::code::success);
  EXPECT_EQ(drive_->counts().resets, 1u);
}

TEST_F(driver_test, every_status_of_an_admin_command_is_told) {
  for (const int code : {0x001, 0x002, 0x004, 0x005, 0x006, 0x007, 0x008, 0x00b, 0x013, 0x080,
                         0x082, 0x100, 0x101, 0x102, 0x103, 0x105, 0x108, 0x109, 0x10c, 0x281}) {
    make({.refusal = static_cast<u16>(code)});
    open();
    const bool again = admin_retries.helps({status_domain::nvme, static_cast<u16>(code)});
    function_->plan(driver_step::create_submission_queue, trouble::refuse, again ? admin_retries.attempts : 1);
    function_->plan(driver_step::read_log, trouble::refuse, again ? admin_retries.attempts : 1);
    char words[16];
    std::snprintf(words, sizeof words, "0x%03x", code);
    EXPECT_NE(refusal([&] { host_queue(*drive_, 1, 8, 8); }).find(words), std::string::npos) << words;
    EXPECT_NE(refusal([&] { drive_->health(); }).find(words), std::string::npos) << words;
    expect_it_serves();
    EXPECT_EQ(drive_->counts().resets, 0u) << "a refusal breaks nothing";
    TearDown();
  }
}

TEST_F(driver_test, an_admin_command_that_may_succeed_later_is_made_again) {
  make({.refusal = 0x082});
  open();
  for (const driver_step step : {driver_step::create_submission_queue, driver_step::read_log, driver_step::other})
    function_->plan(step, trouble::refuse, admin_retries.attempts - 1);
  drive_->health();
  expect_it_serves();
  EXPECT_EQ(drive_->counts().resets, 0u);
}

TEST_F(driver_test, memory_that_cannot_be_had_is_told) {
  make();
  const u64 all = function_->arena().bytes_free();
  void* rest = function_->memory().allocate(memory_kind::shared, all - 4096);
  try {
    open();
    ADD_FAILURE() << "opened without memory";
  } catch (error const& e) {
    EXPECT_NE(std::string(e.what()).find("bytes"), std::string::npos) << e.what();
  }
  function_->memory().deallocate(memory_kind::shared, rest, all - 4096);
  open();
  expect_it_serves();
}

TEST_F(driver_test, a_shutdown_that_is_never_complete_is_given_up) {
  make();
  open({.queues = 1, .shutdown_timeout_ns = 20 * one_millisecond_ns});
  function_->never_shut_down = true;
  const u64 start = now_ns();
  drive_.reset();
  EXPECT_GE(now_ns() - start, 20 * one_millisecond_ns);
  EXPECT_FALSE(function_->shut_down_in_order());
  EXPECT_EQ(function_->queues_alive(), 0u) << "and it was stopped";
}

TEST_F(driver_test, one_that_failed_or_is_gone_is_shut_down_at_once) {
  for (const bool gone : {false, true}) {
    make();
    open();
    function_->plan(driver_step::read_log, gone ? trouble::vanish : trouble::fatal, 1);
    EXPECT_NE(refusal([&] { drive_->health(); }), "");
    const u64 start = now_ns();
    drive_.reset();
    EXPECT_LT(now_ns() - start, 2 * one_second_ns);
    function_->make_peace();
    open();
    expect_it_serves();
    TearDown();
  }
}

TEST_F(driver_test, an_answer_to_nothing_fails_the_controller) {
  make();
  open();
  function_->plan(driver_step::read_log, trouble::duplicate, 1);
  drive_->health();
  EXPECT_NE(refusal([&] { drive_->health(); }).find("failed"), std::string::npos);
  EXPECT_EQ(drive_->counts().admin_strays, 1u);
  expect_it_serves();
  EXPECT_EQ(drive_->counts().resets, 1u);
  EXPECT_EQ(drive_->health().temperature[1], 1);
}

TEST_F(driver_test, a_failed_controller_is_reset_before_it_gets_a_queue) {
  make();
  open();
  function_->plan(driver_step::other, trouble::fatal, 1);
  data_buffer page(4096);
  {
    host_queue admin(*drive_, 0, 2, 2);
    EXPECT_EQ(admin.run(nvme::identify_command(nvme::identify_structure::name_space, 1, page.address())),
              nvme::code::internal_error);
  }
  expect_it_serves();
  EXPECT_EQ(drive_->counts().resets, 1u);
}

TEST_F(driver_test, the_admin_queue_of_others_answers_identify_alone) {
  make();
  open();
  memory_under_test() = nullptr;  // any memory will do
  host_queue admin(*drive_, 0, 2, 2);
  data_buffer page(4096, 8);
  ASSERT_EQ(admin.run(nvme::identify_command(nvme::identify_structure::name_space, 1, page.address())), nvme::code::success);
  u64 blocks = 0;
  std::memcpy(&blocks, page.data(), sizeof blocks);
  EXPECT_EQ(blocks, media_bytes / 512);
  EXPECT_EQ(admin.run(nvme::delete_queue(nvme::admin_opcode::delete_submission_queue, 1)), nvme::code::invalid_opcode);
  EXPECT_EQ(admin.run(nvme::ask_for_queues(1)), nvme::code::invalid_opcode);
  auto odd = nvme::identify_command(nvme::identify_structure::controller, 0, page.address());
  odd.prp1 += 4;
  EXPECT_EQ(admin.run(odd), nvme::code::invalid_prp_offset);
}

TEST_F(driver_test, a_queue_of_a_former_life_rings_nothing) {
  make();
  open();
  host_queue queue(*drive_, 1, 8, 8);
  drive_->reset();
  data_buffer buffer(512);
  queue.submit(buffer.read(1, 0));
  queue.poll();
  EXPECT_EQ(function_->queues_alive(), 0u);
  queue.detach();
  expect_it_serves();
}

TEST_F(driver_test, memory_that_the_device_does_not_reach_is_refused) {
  make();
  open();
  memory_under_test() = nullptr;
  EXPECT_NE(refusal([&] { host_queue(*drive_, 1, 8, 8); }).find("does not reach"), std::string::npos);
  page_memory other(4096);
  EXPECT_NE(refusal([&] { drive_->add_buffer(other.data(), other.bytes()); }).find("does not reach"), std::string::npos);
}

TEST_F(driver_test, doorbell_values_that_cannot_be_are_not_forwarded) {
  make();
  open();
  host_queue queue(*drive_, 1, 8, 8);
  system_ref<u32>(*queue.rings().sq_doorbell).store(8, release);
  queue.poll();
  system_ref<u32>(*queue.rings().cq_doorbell).store(0xffffffffu, release);
  for (u32 k = 0; k < 10; ++k) queue.poll();
  EXPECT_EQ(drive_->counts().refused_doorbells, 2u);
}

struct matrix_case {
  driver_step step;
  trouble what;
};

constexpr char const* step_names[] = {
    "identify_controller",     "ask_for_queues",          "list_namespaces",         "report_events",           "request_event",
    "create_completion_queue", "create_submission_queue", "delete_submission_queue", "delete_completion_queue", "read_log"};
constexpr char const* trouble_names[] = {"none", "refuse", "drop", "fatal", "vanish", "wrong_identifier", "duplicate"};

std::vector<matrix_case> matrix() {
  std::vector<matrix_case> all;
  for (u32 s = 0; s < std::size(step_names); ++s) {
    for (u32 t = 1; t < std::size(trouble_names); ++t) all.push_back({static_cast<driver_step>(s), static_cast<trouble>(t)});
  }
  return all;
}

class driver_matrix : public driver_test, public testing::WithParamInterface<matrix_case> {
 protected:
  /// All that a driver does in its life.
  void live() {
    open();
    {
      host_queue queue(*drive_, 1, 8, 8);
      data_buffer buffer(4096);
      if (queue.run(buffer.read(1, 0)) != nvme::code::success) ADD_FAILURE() << "a read failed";
      drive_->health();
      queue.detach();
    }
    host_queue again(*drive_, 1, 8, 8);
    again.detach();
  }
};

INSTANTIATE_TEST_SUITE_P(every, driver_matrix, testing::ValuesIn(matrix()), [](auto const& test) {
  return std::string(step_names[static_cast<u32>(test.param.step)]) + "_" + trouble_names[static_cast<u32>(test.param.what)];
});

TEST_P(driver_matrix, is_survived_and_told) {
  const auto [step, what] = GetParam();
  make();
  function_->plan(step, what);
  const std::string said = refusal([&] { live(); });
  // What has vanished cannot be told.
  EXPECT_TRUE(function_->gone || function_->queues_alive() == 0) << "a queue that was taken back is served";
  // A drive that tells of no events is as good as another, and one that deletes no queues is reset without a word.
  const bool optional = step == driver_step::report_events || step == driver_step::request_event;
  const bool deletes = step == driver_step::delete_submission_queue || step == driver_step::delete_completion_queue;
  const bool told = !optional && !deletes && what != trouble::duplicate;
  EXPECT_TRUE(!told || !said.empty()) << "nobody was told";
  EXPECT_TRUE(!told || what != trouble::refuse || said.find("0x006") != std::string::npos) << said;
  function_->make_peace();
  if (drive_ == nullptr) open();
  expect_it_serves();
}

}  // namespace
}  // namespace penstock::test_support
