// What is open at once on one drive: it is brought up once, each has queues of its own, and who writes is alone.
#include "support/qemu_machine.hpp"
#include "support/scratch_files.hpp"

#include "libs/columns/column_media.hpp"
#include "libs/graph/folder_writer.hpp"
#include "libs/graph/generator.hpp"
#include "libs/media/volume_media.hpp"
#include "libs/volume/drive_member.hpp"
#include "libs/volume/import.hpp"
#include "libs/volume/volume_graph.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace penstock::test_support {
namespace {

using namespace volumes;

constexpr u64 mebibyte = u64{1} << 20;

class running_drives_of_a_process : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = reason_without_qemu();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  void start(u32 queues) {
    machine_ = std::make_unique<qemu_machine>(std::vector<qemu_drive>{
        {.namespaces = {{4 * mebibyte, 512}, {4 * mebibyte, 4096}}, .options = ",max_ioqpairs=" + std::to_string(queues)}});
  }
  std::shared_ptr<running_drive> share() {
    return share_drive("the drive under test", [this] {
      ++opened_;
      return std::shared_ptr<pci_function>(&machine_->function(0), [](pci_function*) {});
    });
  }
  member_list both(access how) {
    member_list all;
    for (const u32 n : {1u, 2u}) all.push_back(open_drive_member(share(), n, how));
    return all;
  }
  std::shared_ptr<shared_volume> open() { return std::make_shared<shared_volume>(volume::open(both(access::read))); }

  /// A table of one column, and a graph.
  void import_all(std::string const& values) {
    std::filesystem::create_directory(folder_ / "t");
    put_file(folder_ / "t/table.json", "{}");
    put_file(folder_ / "t/0", values);
    graph::progress_meter silent;
    graph::write_graph(graph::generator(graph::parse_generator("urand:9:8")), folder_ / "g", {.directed = true}, {}, silent);
    volume to = volume::create(both(access::write), volume_layout::striped, 16384);
    import_entry(to, "trips", folder_ / "t");
    import_entry(to, "social", folder_ / "g");
  }

  scratch_folder folder_;
  std::unique_ptr<qemu_machine> machine_;
  int opened_ = 0;
};

media::media_options small_options() {
  media::media_options options;
  options.threads = 2;
  options.cache_bytes = 64 << 10;
  return options;
}

/// A table of column `0`, opened as a program does that opens nothing else.
struct opened_table {
  explicit opened_table(std::shared_ptr<shared_volume> const& from)
      : extents{{"trips/0", 0, files_of(from, "trips").at("0")->size(), files_of(from, "trips").at("0")}},
        on(columns::open_executor_for(extents, small_options(), false)), media(*on, extents, small_options()) {}

  std::vector<columns::extent> extents;
  std::unique_ptr<executor> on;
  columns::column_media media;
};

u64 differences(columns::column_media& media, std::string const& values, u64 first) {
  const array_view<u8> bytes = media.view(0);
  u64 wrong = 0;
  for (u64 at = first; at < bytes.size(); at += 97) wrong += bytes[at] != static_cast<u8>(values[at]) ? 1 : 0;
  return wrong;
}

TEST_F(running_drives_of_a_process, two_tables_and_a_graph_on_one_drive_are_read_at_once) {
  start(16);
  const std::string values = noise(200'000, 1);
  import_all(values);
  ASSERT_EQ(opened_, 1);
  {
    opened_table first(open()), second(open());
    const auto found = open_volume_graph(open(), "social", "social"), expected = graph::graph_folder::open(folder_ / "g");
    const auto on = media::open_executor_for(found, small_options(), false);
    media::volume_media media(*on, {&found.edges_place()}, small_options());
    u64 wrong = 0, others_wrong = 0;
    std::thread other([&] { others_wrong = differences(second.media, values, 5); });
    wrong += differences(first.media, values, 0);
    graph::edge_reader<std::int32_t> from_file(expected);
    const auto wanted = from_file.read(0, expected.edges(), false);
    const array_view<std::int32_t> edges = media.view<std::int32_t>(0);
    for (u64 k = 0; k < wanted.size(); ++k) wrong += edges[k] != wanted[k] ? 1 : 0;
    other.join();
    EXPECT_EQ(wrong + others_wrong, 0u);
    first.media.check();
    second.media.check();
    media.cache().check_faults();
    EXPECT_GT(first.media.bytes_moved(), 0u);
    EXPECT_GT(second.media.bytes_moved(), 0u);
    EXPECT_EQ(opened_, 2);  // it had been shut down after the import
  }
  share();
  EXPECT_EQ(opened_, 3);
  for (std::string const& complaint : machine_->complaints()) ADD_FAILURE() << "the controller notes: " << complaint;
}

TEST_F(running_drives_of_a_process, two_openings_of_a_volume_are_joined_behind_one_cache) {
  start(16);
  const std::string values = noise(100'000, 1);
  import_all(values);
  std::vector<columns::extent> extents;
  for (int k = 0; k < 2; ++k) extents.push_back({"trips/0", 0, 100'000, files_of(open(), "trips").at("0")});
  const auto on = columns::open_executor_for(extents, small_options(), false);
  columns::column_media media(*on, extents, small_options());
  for (u32 k = 0; k < 2; ++k) {
    const array_view<u8> bytes = media.view(k);
    for (u64 at = k; at < bytes.size(); at += 97) ASSERT_EQ(bytes[at], static_cast<u8>(values[at])) << k << ", " << at;
  }
  media.check();
}

TEST_F(running_drives_of_a_process, a_writer_of_a_namespace_is_alone) {
  start(16);
  const auto drive = share();
  {
    const auto reads = open_drive_member(drive, 1, access::read), too = open_drive_member(drive, 1, access::read);
    EXPECT_EQ(refusal_of(error_kind::bad_input, [&] { open_drive_member(drive, 1, access::write); }),
              "open " + reads->name() + ": this process reads it: close what is open of its volume");
    const auto writes = open_drive_member(drive, 2, access::write);
    EXPECT_EQ(refusal_of(error_kind::bad_input, [&] { open_drive_member(drive, 2, access::read); }),
              "open " + writes->name() + ": this process writes it: close what is open of its volume");
  }
  for (const u32 n : {1u, 2u}) open_drive_member(drive, n, access::write);
}

TEST_F(running_drives_of_a_process, a_drive_whose_queues_are_taken_is_refused_until_some_are_given_back) {
  start(4);
  const auto drive = share();
  auto half = std::make_unique<drive_share>(drive, 100, true, "half");
  EXPECT_EQ(half->limits().queues, 2u);
  const drive_share one(drive, 1, false, "one");
  auto last = std::make_unique<drive_share>(drive, 100, true, "last");
  EXPECT_EQ(last->limits().queues, 1u);
  EXPECT_EQ(refusal_of(error_kind::bad_input, [&] { drive_share(drive, 1, false, "trips"); }),
            "open trips: the 4 queues of its drive are taken: close what is open there, or export it");
  EXPECT_NE(refusal_of(error_kind::bad_input, [&] { open_drive_member(drive, 1, access::write); }).find("4 queues"),
            std::string::npos);
  half.reset();
  last.reset();
  EXPECT_EQ(drive_share(drive, 100, false, "all that are free").limits().queues, 3u);
  open_drive_member(drive, 1, access::write);
}

TEST_F(running_drives_of_a_process, a_drive_that_is_shut_down_is_waited_for) {
  start(4);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> users;
    for (int k = 0; k < 3; ++k)
      users.emplace_back([this] { EXPECT_EQ(open_drive_member(share(), 1, access::read)->bytes(), 4 * mebibyte); });
    for (std::thread& each : users) each.join();
  }
}

TEST_F(running_drives_of_a_process, a_fork_does_not_drive_its_parents_drive) {
  start(4);
  auto drive = share();
  const pid_t child = fork();
  if (child == 0) {
    drive.reset();  // which is its parent's to shut down
    const std::string refusal = refusal_of(error_kind::bad_input, [&] { share(); });
    _exit(refusal.find("the process that this one was forked from drives it") == std::string::npos ? 1 : 0);
  }
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_EQ(ended, 0);
  EXPECT_FALSE(drive->controller.failed());
  EXPECT_FALSE(drive->controller.namespaces().empty());
}

}  // namespace
}  // namespace penstock::test_support
