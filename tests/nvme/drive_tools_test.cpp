// What `penstock nvme identify|smart|read|write` are made of, on QEMU's controller.
#include "support/modelled_function.hpp"
#include "support/qemu_machine.hpp"
#include "support/scratch_files.hpp"

#include "libs/drive/copy_blocks.hpp"
#include "libs/drive/drive_facts.hpp"
#include "penstock/host/error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include <unistd.h>

namespace penstock::test_support {
namespace {

namespace fs = std::filesystem;

constexpr u64 mebibyte = u64{1} << 20;

class drive_tools : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = reason_without_qemu();
    if (!reason.empty()) GTEST_SKIP() << reason;
    folder_ = fs::temp_directory_path() / ("penstock_drive_tools_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }

  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    if (machine_ == nullptr) return;
    for (std::string const& complaint : machine_->complaints()) ADD_FAILURE() << "the controller notes: " << complaint;
  }

  qemu_function& start(qemu_drive const& drive = {}) {
    machine_ = std::make_unique<qemu_machine>(std::vector{drive});
    return machine_->function(0);
  }

  /// What one command of the tools moves.
  static u64 command_bytes(pci_function& function) {
    const u64 most = drive::describe_drive(function).transfer_bytes;
    return most == 0 ? 65536 : std::min<u64>(65536, most);
  }

  std::string path(std::string const& name) const { return (folder_ / name).string(); }

  /// Neither a file nor the draft of one.
  void expect_no_file() const { EXPECT_TRUE(fs::is_empty(folder_)) << fs::directory_iterator(folder_)->path(); }

  fs::path folder_;
  std::unique_ptr<qemu_machine> machine_;
};

TEST_F(drive_tools, identify_tells_what_the_drive_was_made_with) {
  const auto told = drive::describe_drive(
      start({.namespaces = {{4 * mebibyte, 512, ""}, {8 * mebibyte, 4096, ""}}, .options = ",mdts=3,max_ioqpairs=5"}));
  EXPECT_EQ(told.model, "QEMU NVMe Ctrl");
  EXPECT_EQ(told.serial, "PENSTOCK0");
  EXPECT_FALSE(told.firmware.empty());
  EXPECT_EQ(told.version.substr(0, 2), "1.");
  EXPECT_EQ(told.vendor, machine_->function(0).config(0) & 0xffffu) << "as its configuration space has it";
  EXPECT_EQ(told.transfer_bytes, 32768u);
  EXPECT_EQ(told.least_page_bytes, 4096u);
  EXPECT_EQ(told.doorbell_stride, 4u);
  EXPECT_EQ(told.queues_granted, 5u);
  EXPECT_GT(told.queue_entries, 1u);
  EXPECT_GT(told.timeout_ms, 0u);
  EXPECT_GE(told.atomic_write_blocks, 1u);
  EXPECT_GE(told.atomic_power_fail_blocks, 1u);
  EXPECT_TRUE(told.volatile_write_cache);
  ASSERT_EQ(told.namespaces.size(), 2u);
  EXPECT_EQ(told.namespaces[0].blocks, 8192u);
  EXPECT_EQ(told.namespaces[0].block_bytes, 512u);
  EXPECT_EQ(told.namespaces[1].id, 2u);
  EXPECT_EQ(told.namespaces[1].blocks, 2048u);
  EXPECT_EQ(told.namespaces[1].block_bytes, 4096u);
  for (auto const& space : told.namespaces) {
    u64 in_use = 0;
    for (auto const& format : space.formats) in_use += format.in_use ? format.block_bytes : 0;
    EXPECT_EQ(in_use, space.block_bytes) << "one format is in use";
  }
}

TEST_F(drive_tools, smart_tells_the_temperature_and_the_warnings_in_words) {
  qemu_function& function = start();
  EXPECT_TRUE(drive::read_health(function).warnings.empty());
  machine_->monitor("qom-set /machine/peripheral/nvme0 smart_critical_warning 5");
  const drive::drive_health health = drive::read_health(function);
  ASSERT_EQ(health.warnings.size(), 2u);
  EXPECT_NE(health.warnings[0].find("spare"), std::string::npos);
  EXPECT_NE(health.warnings[1].find("reliability"), std::string::npos);
  EXPECT_EQ(health.temperature_celsius, 50);
}

TEST_F(drive_tools, smart_counts_what_was_written) {
  qemu_function& function = start();
  put_file(path("in"), noise(2 * mebibyte, 1));
  drive::write_from_file(function, {1, 0, 0}, path("in"));
  const drive::drive_health health = drive::read_health(function);
  EXPECT_EQ(health.data_units_written[0], (2 * mebibyte + drive::data_unit_bytes - 1) / drive::data_unit_bytes);
  EXPECT_EQ(health.host_writes[0], 2 * mebibyte / command_bytes(function));
  EXPECT_EQ(health.data_units_read[0], 0u);
}

struct copy_case {
  u32 block_bytes;
  u64 start, blocks;
  char const* options;
};

class drive_copies : public drive_tools, public testing::WithParamInterface<copy_case> {};

INSTANTIATE_TEST_SUITE_P(each, drive_copies,
                         testing::Values(copy_case{512, 0, 1, ""}, copy_case{512, 8191, 1, ""}, copy_case{512, 0, 8192, ""},
                                         copy_case{512, 3, 8001, ",mdts=1"}, copy_case{4096, 5, 1001, ""},
                                         copy_case{4096, 0, 1024, ",mdts=2"}),
                         [](auto const& test) {
                           return std::to_string(test.param.blocks) + "_blocks_of_" + std::to_string(test.param.block_bytes) +
                                  "_from_" + std::to_string(test.param.start) + (*test.param.options != 0 ? "_small" : "");
                         });

TEST_P(drive_copies, write_puts_them_there_and_read_gets_them_and_nothing_beside) {
  const auto [block, start_at, blocks, options] = GetParam();
  qemu_function& function = start({.namespaces = {{4 * mebibyte, block, ""}}, .options = options});
  std::string expected = noise(4 * mebibyte, 2);
  put_file(machine_->file(0, 1), expected);
  const std::string written = noise(blocks * block, 3);
  put_file(path("in"), written);
  u64 told = 0;
  const auto done = drive::write_from_file(function, {1, start_at, blocks}, path("in"),
                                           [&](std::string const&, u64 at, u64 total) { told = at == total ? total : 0; });
  EXPECT_EQ(done.blocks, blocks);
  EXPECT_EQ(done.bytes, written.size());
  EXPECT_EQ(told, written.size()) << "the last report is of the end";
  expected.replace(start_at * block, written.size(), written);
  EXPECT_TRUE(file_content(machine_->file(0, 1)) == expected) << "the whole of the media";
  EXPECT_EQ(drive::read_to_file(function, {1, start_at, blocks}, path("out"), false).bytes, written.size());
  EXPECT_TRUE(file_content(path("out")) == written);
}

TEST_F(drive_tools, blocks_that_are_not_there_are_refused_and_no_file_is_made) {
  qemu_function& function = start();
  for (auto const& [start_at, blocks] : std::vector<std::pair<u64, u64>>{{8192, 1}, {0, 8193}, {8191, 2}, {1, ~u64{0}}}) {
    const std::string told =
        refusal_of(error_kind::bad_input, [&] { drive::read_to_file(function, {1, start_at, blocks}, path("out"), false); });
    EXPECT_NE(told.find("it has blocks 0 to 8191"), std::string::npos) << told;
  }
  EXPECT_NE(refusal_of(error_kind::bad_input, [&] { drive::read_to_file(function, {1, 0, 0}, path("out"), false); })
                .find("one at least"),
            std::string::npos);
  EXPECT_NE(refusal_of(error_kind::bad_input, [&] { drive::read_to_file(function, {2, 0, 1}, path("out"), false); })
                .find("there is none: the drive has 1"),
            std::string::npos);
  expect_no_file();
}

TEST_F(drive_tools, what_cannot_be_written_is_refused_before_a_block_is) {
  qemu_function& function = start();
  const std::string before = file_content(machine_->file(0, 1));
  put_file(path("in"), noise(1000, 4));
  const auto told = [&](drive::block_range const& range, std::string const& file) {
    return refusal_of(error_kind::bad_input, [&] { drive::write_from_file(function, range, file); });
  };
  EXPECT_NE(told({1, 0, 0}, path("in")).find("give whole blocks"), std::string::npos);
  put_file(path("in"), "");
  EXPECT_NE(told({1, 0, 0}, path("in")).find("give whole blocks"), std::string::npos);
  put_file(path("in"), noise(1024, 4));
  EXPECT_NE(told({1, 0, 3}, path("in")).find("2 blocks and not 3"), std::string::npos);
  EXPECT_NE(told({1, 8191, 0}, path("in")).find("it has blocks 0 to 8191"), std::string::npos);
  EXPECT_NE(told({1, 0, 0}, folder_.string()).find("no regular file"), std::string::npos);
  EXPECT_NE(
      refusal_of(error_kind::world, [&] { drive::write_from_file(function, {1, 0, 0}, path("none")); }).find("No such file"),
      std::string::npos);
  EXPECT_TRUE(file_content(machine_->file(0, 1)) == before);
}

TEST_F(drive_tools, a_write_ends_with_a_flush_and_one_that_fails_is_told) {
  // The second rule beside that of the bad sector.
  const std::string rule = ",file.inject-error.1";
  qemu_function& function =
      start({.namespaces = {{4 * mebibyte,
                             512,
                             ",cache.no-flush=off" + rule + ".event=none" + rule + ".iotype=flush" + rule + ".errno=5",
                             {8000}}}});
  put_file(path("in"), noise(mebibyte, 5));
  const std::string told = refusal_of(error_kind::world, [&] { drive::write_from_file(function, {1, 0, 0}, path("in")); });
  EXPECT_EQ(told.find("flush namespace 1 of"), 0u) << told;
  EXPECT_TRUE(file_content(machine_->file(0, 1)).starts_with(file_content(path("in")))) << "it was the flush that failed";
}

TEST_F(drive_tools, a_write_that_fails_names_its_blocks) {
  qemu_function& function = start({.namespaces = {{4 * mebibyte, 512, ",readonly=on"}}});
  put_file(path("in"), noise(512, 6));
  const std::string told = refusal_of(error_kind::world, [&] { drive::write_from_file(function, {1, 7, 0}, path("in")); });
  EXPECT_NE(told.find("write block 7 of namespace 1 of"), std::string::npos) << told;
  EXPECT_NE(told.find("write fault"), std::string::npos) << told;
}

struct clear_case {
  u32 block_bytes;
  u64 start, blocks;
};

class drive_clears : public drive_tools, public testing::WithParamInterface<clear_case> {
 protected:
  static constexpr u64 media = 48 * mebibyte;  // more than one command zeroes

  void start_full() {
    start({.namespaces = {{media, GetParam().block_bytes, ",discard=unmap"}}});
    before_ = noise(media, 8);
    put_file(machine_->file(0, 1), before_);
  }
  u64 first_byte() const { return GetParam().start * GetParam().block_bytes; }
  u64 bytes() const { return GetParam().blocks * GetParam().block_bytes; }
  drive::block_range range() const { return {1, GetParam().start, GetParam().blocks}; }
  std::string with_zeros() const {
    std::string all = before_;
    std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(first_byte()), bytes(), '\0');
    return all;
  }

  std::string before_;
};

INSTANTIATE_TEST_SUITE_P(each, drive_clears,
                         testing::Values(clear_case{512, 0, 1}, clear_case{512, 3, 90001}, clear_case{4096, 0, 12288},
                                         clear_case{4096, 12287, 1}),
                         [](auto const& test) {
                           return std::to_string(test.param.blocks) + "_blocks_of_" + std::to_string(test.param.block_bytes) +
                                  "_from_" + std::to_string(test.param.start);
                         });

TEST_P(drive_clears, zero_puts_zeros_there_and_nothing_beside) {
  start_full();
  u64 told = 0;
  const auto done = drive::zero_blocks(machine_->function(0), range(), [&](std::string const&, u64 at, u64) { told = at; });
  EXPECT_EQ(done.blocks, GetParam().blocks);
  EXPECT_EQ(done.commands, (GetParam().blocks + 65535) / 65536);
  EXPECT_EQ(told, bytes());
  EXPECT_TRUE(file_content(machine_->file(0, 1)) == with_zeros()) << "the whole of the media";
}

TEST_P(drive_clears, discard_forgets_at_most_what_was_named) {
  start_full();
  EXPECT_EQ(drive::discard_blocks(machine_->function(0), range()).blocks, GetParam().blocks);
  const std::string after = file_content(machine_->file(0, 1)), zeros(GetParam().block_bytes, '\0');
  u64 forgotten = 0;
  for (u64 at = 0; at < media; at += zeros.size()) {
    const bool named = at >= first_byte() && at < first_byte() + bytes();
    const bool same = after.compare(at, zeros.size(), before_, at, zeros.size()) == 0;
    const bool zero = after.compare(at, zeros.size(), zeros) == 0;
    ASSERT_TRUE(same || (named && zero)) << "block " << at / zeros.size();
    forgotten += zero && !same ? 1 : 0;
  }
  // A block that is smaller than a page of the disk may stay.
  EXPECT_TRUE(forgotten > GetParam().blocks / 2 || GetParam().blocks == 1) << forgotten;
}

TEST_F(drive_tools, what_cannot_be_cleared_is_refused) {
  qemu_function& function = start();
  const std::string before = noise(4 * mebibyte, 9);
  put_file(machine_->file(0, 1), before);
  for (auto const& call : std::vector<std::function<void(drive::block_range const&)>>{
           [&](drive::block_range const& range) { drive::zero_blocks(function, range); },
           [&](drive::block_range const& range) { drive::discard_blocks(function, range); }}) {
    EXPECT_NE(refusal_of(error_kind::bad_input, [&] { call({1, 8191, 2}); }).find("it has blocks 0 to 8191"),
              std::string::npos);
    EXPECT_NE(refusal_of(error_kind::bad_input, [&] { call({1, 0, 0}); }).find("one at least"), std::string::npos);
    EXPECT_NE(refusal_of(error_kind::bad_input, [&] { call({2, 0, 1}); }).find("there is none"), std::string::npos);
  }
  EXPECT_TRUE(file_content(machine_->file(0, 1)) == before);
}

TEST_F(drive_tools, a_file_that_exists_is_replaced_only_when_that_is_asked_for) {
  qemu_function& function = start();
  put_file(path("out"), "mine");
  EXPECT_NE(refusal_of(error_kind::bad_input, [&] { drive::read_to_file(function, {1, 0, 1}, path("out"), false); })
                .find("it exists"),
            std::string::npos);
  EXPECT_EQ(file_content(path("out")), "mine");
  drive::read_to_file(function, {1, 0, 1}, path("out"), true);
  EXPECT_EQ(fs::file_size(path("out")), 512u);
  EXPECT_EQ(drive::read_to_file(function, {1, 0, 9}, "/dev/null", false).blocks, 9u);
  EXPECT_TRUE(fs::is_character_file("/dev/null")) << "a device is written to, not replaced";
}

TEST_F(drive_tools, a_media_error_names_the_blocks_and_leaves_no_file) {
  qemu_function& function = start({.namespaces = {{4 * mebibyte, 512, "", {8 * 128 + 3}}}});
  const std::string told =
      refusal_of(error_kind::world, [&] { drive::read_to_file(function, {1, 0, 8192}, path("out"), false); });
  const u64 blocks = command_bytes(function) / 512, first = (8 * 128 + 3) / blocks * blocks;
  EXPECT_NE(
      told.find("read blocks " + std::to_string(first) + " to " + std::to_string(first + blocks - 1) + " of namespace 1 of"),
      std::string::npos)
      << told;
  EXPECT_NE(told.find("unrecovered read error"), std::string::npos) << told;
  expect_no_file();
  EXPECT_EQ(drive::read_to_file(function, {1, 1152, 4000}, path("out"), false).blocks, 4000u) << "the rest can be had";
}

TEST_F(drive_tools, who_watches_may_stop_it) {
  qemu_function& function = start();
  struct stop {};
  const auto watch = [](std::string const&, u64, u64) { throw stop{}; };
  EXPECT_THROW(drive::read_to_file(function, {1, 0, 8192}, path("out"), false, watch), stop);
  expect_no_file();
  EXPECT_EQ(drive::read_to_file(function, {1, 0, 8192}, path("out"), false).blocks, 8192u);
}

TEST_F(drive_tools, a_disk_that_is_full_is_told) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  qemu_function& function = start();
  EXPECT_NE(refusal_of(error_kind::world, [&] { drive::read_to_file(function, {1, 0, 64}, "/dev/full", false); })
                .find("No space left"),
            std::string::npos);
}

TEST(drive_tools_without_qemu, a_drive_that_cannot_clear_says_which_command_it_has_not) {
  std::vector<std::byte> media(mebibyte);
  modelled_function function(media);
  EXPECT_EQ(refusal_of(error_kind::bad_input, [&] { drive::zero_blocks(function, {1, 0, 1}); }),
            "zero namespace 1 of model:00.0: the drive has no Write Zeroes (ONCS bit 3): write a file of zeros instead");
  EXPECT_EQ(refusal_of(error_kind::bad_input, [&] { drive::discard_blocks(function, {1, 0, 1}); }),
            "discard namespace 1 of model:00.0: the drive has no Dataset Management (ONCS bit 2): it keeps blocks until they "
            "are written");
  // One that says that it has them, and has not.
  modelled_function liar(media, {.optional_commands = 0xff});
  EXPECT_NE(refusal_of(error_kind::world, [&] { drive::zero_blocks(liar, {1, 7, 1}); }).find("zero block 7 of"),
            std::string::npos);
  EXPECT_NE(refusal_of(error_kind::world, [&] { drive::discard_blocks(liar, {1, 7, 1}); }).find("0x001"), std::string::npos);
}

TEST(drive_tools_without_qemu, a_drive_that_the_machine_asks_back_is_given_back_in_order) {
  std::vector<std::byte> media(16 * mebibyte);
  modelled_function function(media);
  const auto watch = [&](std::string const&, u64, u64) { function.wanted_back = true; };
  const std::string told =
      refusal_of(error_kind::world, [&] { drive::read_to_file(function, {1, 0, 32768}, "/dev/null", false, watch); });
  EXPECT_NE(told.find("asks for the drive back"), std::string::npos) << told;
  EXPECT_NE(told.find("of 32768 blocks were done"), std::string::npos) << told;
  EXPECT_TRUE(function.shut_down_in_order());
  EXPECT_NE(refusal_of(error_kind::world, [&] { drive::describe_drive(function); }).find("asks for"), std::string::npos);
}

TEST(drive_tools_without_qemu, a_controller_that_refuses_to_come_up_is_told) {
  std::vector<std::byte> media(mebibyte);
  modelled_function function(media);
  function.gone = true;
  EXPECT_NE(refusal_of(error_kind::world, [&] { drive::describe_drive(function); }), "nothing was thrown");
  function.gone = false;
  function.plan(driver_step::read_log, trouble::refuse);
  EXPECT_NE(refusal_of(error_kind::world, [&] { drive::read_health(function); }).find("internal error"), std::string::npos);
}

}  // namespace
}  // namespace penstock::test_support
