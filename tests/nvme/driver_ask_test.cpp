// What the driver asks a controller for, and what it makes of the answers: events, namespaces, limits; and what it does when
// the machine asks for the device.
#include "driver_bed.hpp"

#include "penstock/runtime/identify.hpp"

namespace penstock::test_support {
namespace {

TEST_F(driver_test, events_are_told_of_that_the_controller_says_it_has) {
  make({.optional_events = 0xffffffffu});
  open();
  EXPECT_EQ(function_->events_asked(), nvme::event_mask::health | nvme::event_mask::namespaces | nvme::event_mask::firmware);
  drive_.reset();
  make();
  open();
  EXPECT_EQ(function_->events_asked(), nvme::event_mask::health) << "notices that it does not have are not asked for";
}

TEST_F(driver_test, the_log_page_of_each_kind_of_event_is_read) {
  make();
  open();
  std::vector<u8> pages;
  for (auto const& [type, page] :
       {std::pair{nvme::event_type::error, nvme::log_page::errors}, std::pair{nvme::event_type::health, nvme::log_page::health},
        std::pair{nvme::event_type::notice, nvme::log_page::changed_namespaces},
        std::pair{nvme::event_type::notice, nvme::log_page::firmware_slots}, std::pair{nvme::event_type::vendor, u8{0xc0}}}) {
    ASSERT_TRUE(function_->tell_event(static_cast<u8>(type), 0, page));
    const auto event = drive_->take_event();
    ASSERT_TRUE(event.has_value());
    EXPECT_TRUE(event->is(type));
    EXPECT_FALSE(drive_->take_event().has_value());
    pages.push_back(page);
    EXPECT_EQ(function_->logs_read(), pages);
  }
}

TEST_F(driver_test, an_event_whose_log_page_is_refused_is_told_without_it) {
  make();
  open();
  function_->plan(driver_step::read_log, trouble::refuse);
  ASSERT_TRUE(function_->tell_event(1, 7, nvme::log_page::health));
  const auto event = drive_->take_event();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->information(), 7);
  EXPECT_FALSE(drive_->take_event().has_value());
}

TEST_F(driver_test, an_event_whose_log_page_is_not_answered_is_not_lost) {
  make();
  open();
  function_->plan(driver_step::read_log, trouble::drop, 1);
  ASSERT_TRUE(function_->tell_event(1, 7, nvme::log_page::health));
  EXPECT_NE(refusal([&] { drive_->take_event(); }).find("read a log page"), std::string::npos);
  drive_->reset();
  const auto event = drive_->take_event();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->information(), 7);
  EXPECT_FALSE(drive_->take_event().has_value());
}

TEST_F(driver_test, namespaces_are_managed_where_the_controller_does_that) {
  make();
  open();
  EXPECT_NE(refusal([&] { drive_->attach_namespace(2); }).find("OACS bit 3"), std::string::npos);
  drive_.reset();
  make({.admin_commands = nvme::optional_command::namespace_management});
  open();
  EXPECT_NE(refusal([&] { drive_->detach_namespace(1); }).find("detach namespace 1 from"), std::string::npos)
      << "the modelled one refuses the command";
}

TEST_F(driver_test, a_drive_that_the_machine_asks_back_gets_no_more_queues_and_shuts_down) {
  make();
  open();
  EXPECT_FALSE(drive_->removal_requested());
  {
    host_queue queue(*drive_, 1, 8, 8);
    data_buffer buffer(4096);
    function_->wanted_back = true;
    EXPECT_TRUE(drive_->removal_requested());
    EXPECT_EQ(queue.run(buffer.read(1, 0)), nvme::code::success) << "what is under way ends";
    EXPECT_NE(refusal([&] { host_queue(*drive_, 2, 8, 8); }).find("asks for the device back"), std::string::npos);
  }
  drive_.reset();
  EXPECT_TRUE(function_->shut_down_in_order());
}

TEST_F(driver_test, namespaces_are_listed_however_many_there_are_and_no_nonsense) {
  make({.namespaces = [] {
    std::vector<u32> many;
    for (u32 id = 1; id <= 2500; ++id) many.push_back(3 * id);
    return many;
  }()});
  open();
  EXPECT_EQ(drive_->facts().namespaces.size(), 2500u);
  EXPECT_EQ(drive_->facts().namespaces.back(), 7500u);
  TearDown();
  make({.namespaces = {5, 4}});
  EXPECT_NE(refusal([&] { open(); }).find("does not ascend"), std::string::npos);
}

struct told_limits {
  char const* name;
  u16 offered;
  std::optional<nvme::command_set_limits> told;
  clear_limits most;
};

TEST_F(driver_test, the_limits_of_commands_that_move_no_data_are_those_that_it_tells) {
  using namespace nvme::optional_command;
  constexpr u32 blocks = 65536, ranges = 0xffffffffu;
  for (told_limits const& each : {
           told_limits{"offers neither", 0, {}, {0, 0}},
           told_limits{"offers both, tells nothing", write_zeroes | dataset_management, {}, {blocks, ranges}},
           told_limits{"zeroes alone", write_zeroes, {}, {blocks, 0}},
           told_limits{"deallocates alone", dataset_management, {}, {0, ranges}},
           told_limits{"no limits", write_zeroes | dataset_management, nvme::command_set_limits{}, {blocks, ranges}},
           told_limits{"8 pages", write_zeroes, nvme::command_set_limits{.write_zeroes = 3}, {64, 0}},
           told_limits{"more than the field holds", write_zeroes, nvme::command_set_limits{.write_zeroes = 19}, {blocks, 0}},
           told_limits{"nonsense", write_zeroes, nvme::command_set_limits{.write_zeroes = 200}, {blocks, 0}},
           told_limits{"short ranges", dataset_management, nvme::command_set_limits{.range_blocks = 77}, {0, 77}},
           told_limits{
               "short commands", dataset_management, nvme::command_set_limits{.range_blocks = 77, .all_blocks = 50}, {0, 50}},
           told_limits{"long commands", dataset_management, nvme::command_set_limits{.all_blocks = 1ull << 40}, {0, ranges}},
       }) {
    make({.optional_commands = each.offered, .limits = each.told});
    open();
    const clear_limits most = identify_clear_limits(*drive_, 512);
    EXPECT_EQ(most.zero_blocks, each.most.zero_blocks) << each.name;
    EXPECT_EQ(most.discard_blocks, each.most.discard_blocks) << each.name;
    TearDown();
  }
}

}  // namespace
}  // namespace penstock::test_support
