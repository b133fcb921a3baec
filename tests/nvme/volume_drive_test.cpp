// Volumes on namespaces of QEMU's controller.
#include "support/qemu_machine.hpp"
#include "support/scratch_files.hpp"

#include "libs/columns/column_media.hpp"
#include "libs/graph/folder_writer.hpp"
#include "libs/graph/generator.hpp"
#include "libs/media/volume_media.hpp"
#include "libs/volume/drive_member.hpp"
#include "libs/volume/import.hpp"
#include "libs/volume/probe.hpp"
#include "libs/volume/verify.hpp"
#include "libs/volume/volume_graph.hpp"
#include "penstock/host/npy.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace penstock::test_support {
namespace {

using namespace volumes;

constexpr u64 mebibyte = u64{1} << 20;

struct drive_case {
  char const* name;
  volume_layout layout;
  u64 stripe_bytes;
  std::vector<qemu_drive> drives;
};

class volume_drives : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = reason_without_qemu();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  void TearDown() override {
    if (machine_ == nullptr) return;
    for (std::string const& complaint : machine_->complaints()) ADD_FAILURE() << "the controller notes: " << complaint;
  }

  void start(std::vector<qemu_drive> const& drives) {
    drives_ = drives;
    machine_.reset();
    machine_ = std::make_unique<qemu_machine>(drives);
  }
  std::shared_ptr<running_drive> run(u64 drive) {
    return std::make_shared<running_drive>(std::shared_ptr<pci_function>(&machine_->function(drive), [](pci_function*) {}));
  }
  /// All namespaces of all drives.
  member_list members(access how) {
    member_list all;
    for (u64 d = 0; d < drives_.size(); ++d) {
      const auto drive = run(d);
      for (u32 n = 1; n <= drives_[d].namespaces.size(); ++n) all.push_back(open_drive_member(drive, n, how));
    }
    return all;
  }
  std::vector<std::string> media() const {
    std::vector<std::string> all;
    for (u64 d = 0; d < drives_.size(); ++d) {
      for (u64 n = 1; n <= drives_[d].namespaces.size(); ++n) all.push_back(file_content(machine_->file(d, n)));
    }
    return all;
  }

  scratch_folder folder_;
  std::vector<qemu_drive> drives_;
  std::unique_ptr<qemu_machine> machine_;
};

class volume_on : public volume_drives, public testing::WithParamInterface<drive_case> {};

INSTANTIATE_TEST_SUITE_P(
    each, volume_on,
    testing::Values(drive_case{"one_namespace_of_512", volume_layout::single, 65536, {{.namespaces = {{4 * mebibyte, 512}}}}},
                    drive_case{"one_namespace_of_4096", volume_layout::single, 65536, {{.namespaces = {{4 * mebibyte, 4096}}}}},
                    drive_case{
                        "two_namespaces_of_a_drive",
                        volume_layout::striped,
                        4096,
                        {{.namespaces = {{4 * mebibyte, 512}, {5 * mebibyte, 4096}}, .options = ",mdts=1,max_ioqpairs=2"}}},
                    drive_case{"two_drives",
                               volume_layout::striped,
                               65536,
                               {{.namespaces = {{4 * mebibyte, 4096}}}, {.namespaces = {{4 * mebibyte, 512}}}}},
                    drive_case{"two_replicas",
                               volume_layout::replicated,
                               65536,
                               {{.namespaces = {{4 * mebibyte, 512}}}, {.namespaces = {{4 * mebibyte, 4096}}}}}),
    [](auto const& test) { return std::string(test.param.name); });

TEST_P(volume_on, namespaces_gives_back_what_was_imported) {
  start(GetParam().drives);
  const std::string array = make_npy_header('i', 4, {1000, 300}, 128) + noise(1'200'000, 1);
  put_file(folder_ / "a.npy", array);
  put_file(folder_ / "b", noise(70'001, 2));
  uuid id{};
  {
    volume to = volume::create(members(access::write), GetParam().layout, GetParam().stripe_bytes);
    import_entry(to, "array", folder_ / "a.npy");
    import_entry(to, "other", folder_ / "b");
    id = to.id();
  }
  member_list all = members(access::read);
  std::ranges::reverse(all);
  volume from = volume::open(std::move(all));
  EXPECT_EQ(from.id(), id);
  export_entry(from, "array", folder_ / "out.npy", false);
  export_entry(from, "other", folder_ / "out", false);
  EXPECT_TRUE(file_content(folder_ / "out.npy") == array);
  EXPECT_TRUE(file_content(folder_ / "out") == noise(70'001, 2));
  EXPECT_EQ(verify(from).problems, 0u);
}

TEST_P(volume_on, namespaces_is_what_it_would_be_in_files) {
  start(GetParam().drives);
  put_file(folder_ / "b", noise(300'001, 3));
  {
    volume to = volume::create(members(access::write), GetParam().layout, GetParam().stripe_bytes);
    import_entry(to, "other", folder_ / "b");
  }
  const std::vector<std::string> copies = media();
  std::vector<std::string> names;
  for (u64 k = 0; k < copies.size(); ++k) {
    names.push_back(folder_ / ("copy" + std::to_string(k)));
    put_file(names.back(), copies[k]);
  }
  volume from = volume::open(open_members(names, access::read));
  export_entry(from, "other", folder_ / "out", false);
  EXPECT_TRUE(file_content(folder_ / "out") == noise(300'001, 3));
}

TEST_F(volume_drives, a_cache_over_the_namespaces_reads_an_array_in_place) {
  start({{.namespaces = {{4 * mebibyte, 512}, {4 * mebibyte, 4096}}, .options = ",max_ioqpairs=4"}});
  put_file(folder_ / "a.npy", make_npy_header('u', 8, {50'000}, 128) + noise(400'000, 5));
  stored_file file;
  geometry shape;
  {
    volume to = volume::create(members(access::write), volume_layout::striped, 16384);
    import_entry(to, "array", folder_ / "a.npy");
    file = to.files_of("array").front();
    shape = to.shape();
  }
  qemu_function& function = machine_->function(0);
  const auto on = open_cpu_executor(function.memory(), 2);
  pcie_controller drive(function, {.queues = 8});
  const volume_spec where{shape.layout, {{&drive, 1}, {&drive, 2}}, shape.stripe_bytes};
  line_cache cache(*on, {{"volume", shape.end(), where}}, {.bytes = 64 << 10, .queues = 2, .queue_depth = 16});
  const array_view<u64> view = cache.array<u64>(0, file.array_begin(), 50'000);
  const std::string expected = noise(400'000, 5);
  for (u64 k = 0; k < 50'000; k += 129) {
    u64 value = 0;
    std::memcpy(&value, expected.data() + 8 * k, 8);
    ASSERT_EQ(view[k], value) << k;
  }
  cache.check_faults();
}

TEST_F(volume_drives, a_graph_on_two_namespaces_of_a_drive_is_read_where_it_lies) {
  start({{.namespaces = {{4 * mebibyte, 512}, {4 * mebibyte, 4096}}, .options = ",max_ioqpairs=4"},
         {.namespaces = {{4 * mebibyte, 512}}}});
  const std::string path = folder_ / "g";
  graph::progress_meter silent;
  graph::write_graph(graph::generator(graph::parse_generator("urand:9:8")), path, {.directed = true}, {}, silent);
  const auto drive = run(0);
  const auto open_both = [&](access how) {
    member_list both;
    for (const u32 n : {1u, 2u}) both.push_back(open_drive_member(drive, n, how));
    return both;
  };
  {
    volume to = volume::create(open_both(access::write), volume_layout::striped, 16384);
    import_entry(to, "social", path);
  }
  const auto all = std::make_shared<shared_volume>(volume::open(open_both(access::read)));
  const auto found = open_volume_graph(all, "social", "on a drive"), expected = graph::graph_folder::open(path);
  media::media_options options;
  options.threads = 2;
  options.cache_bytes = 64 << 10;
  const auto on = media::open_executor_for(found, options, false);
  media::volume_media media(*on, {&found.edges_place()}, options);
  const array_view<std::int32_t> edges = media.view<std::int32_t>(0);
  graph::edge_reader<std::int32_t> from_drive(found), from_file(expected);
  const auto wanted = from_file.read(0, expected.edges(), false), again = from_drive.read(0, found.edges(), false);
  ASSERT_EQ(edges.size(), wanted.size());
  EXPECT_TRUE(std::ranges::equal(wanted, again));
  for (u64 k = 0; k < wanted.size(); k += 13) ASSERT_EQ(edges[k], wanted[k]) << k;
  media.cache().check_faults();
  options.executor = "cuda";
  EXPECT_NE(
      refusal_of(error_kind::bad_input, [&] { media::open_executor_for(found, options, true); }).find("choose executor cpu"),
      std::string::npos);
}

TEST_F(volume_drives, columns_on_a_drive_are_read_where_they_lie_beside_those_of_a_file) {
  start({{.namespaces = {{4 * mebibyte, 512}, {4 * mebibyte, 4096}}, .options = ",max_ioqpairs=4"}});
  const auto drive = run(0);
  const auto open_both = [&](access how) {
    member_list both;
    for (const u32 n : {1u, 2u}) {
      both.push_back(open_drive_member(drive, n, how));
    }
    return both;
  };
  const std::string values[] = {noise(100'000, 1), noise(70'000, 2), noise(50'000, 3)};
  std::filesystem::create_directory(folder_ / "t");
  put_file(folder_ / "t/table.json", "{}");
  for (const u32 k : {0u, 1u}) put_file(folder_ / ("t/" + std::to_string(k)), values[k]);
  put_file(folder_ / "beside", values[2]);
  {
    volume to = volume::create(open_both(access::write), volume_layout::striped, 16384);
    import_entry(to, "trips", folder_ / "t");
  }
  const auto files = files_of(std::make_shared<shared_volume>(volume::open(open_both(access::read))), "trips");
  const std::vector<columns::extent> extents = {
      {"trips/0", 0, 100'000, files.at("0")}, {"trips/1", 4099, 60'000, files.at("1")}, {folder_ / "beside", 0, 50'000}};
  media::media_options options;
  options.threads = 2;
  options.cache_bytes = 64 << 10;
  const auto on = columns::open_executor_for(extents, options, false);
  columns::column_media media(*on, extents, options);
  for (u32 k = 0; k < extents.size(); ++k) {
    const array_view<u8> bytes = media.view(k);
    ASSERT_EQ(bytes.size(), extents[k].bytes);
    for (u64 at = 0; at < bytes.size(); at += 97) {
      ASSERT_EQ(bytes[at], static_cast<u8>(values[k][extents[k].offset + at])) << k << ", " << at;
    }
  }
  media.check();
  EXPECT_GT(media.bytes_moved(), 0u);
  options.executor = "cuda";
  EXPECT_NE(refusal_of(error_kind::bad_input, [&] { columns::open_executor_for(extents, options, true); })
                .find("open trips/0: its drive does not reach a GPU's memory: choose executor cpu, or export it"),
            std::string::npos);
}

TEST_F(volume_drives, a_cache_takes_the_queues_that_members_leave) {
  const std::vector<qemu_namespace> spaces(2, {4 * mebibyte, 512});
  const std::string path = folder_ / "g";
  graph::progress_meter silent;
  graph::write_graph(graph::generator(graph::parse_generator("urand:8:4")), path, {.directed = true}, {}, silent);
  for (const u32 queues : {4u, 3u, 2u}) {
    start({{.namespaces = spaces, .options = ",max_ioqpairs=" + std::to_string(queues)}});
    const auto drive = run(0);
    ASSERT_EQ(drive->controller.limits().queues, queues);
    const auto open_both = [&](access how) {
      member_list both;
      for (const u32 n : {1u, 2u}) both.push_back(open_drive_member(drive, n, how));
      return both;
    };
    {
      volume to = volume::create(open_both(access::write), volume_layout::striped, 16384);
      import_entry(to, "social", path);
    }
    const auto all = std::make_shared<shared_volume>(volume::open(open_both(access::read)));
    const auto found = open_volume_graph(all, "social", "social");
    media::media_options options;
    options.threads = options.queues = 4;  // as many as there are queues, or more
    options.cache_bytes = 64 << 10;
    const auto on = media::open_executor_for(found, options, false);
    if (queues == 2) {
      EXPECT_NE(refusal_of(error_kind::bad_input, [&] { media::volume_media(*on, {&found.edges_place()}, options); })
                    .find("the 2 queues of its drive are taken: close what is open there, or export it"),
                std::string::npos);
      continue;
    }
    media::volume_media media(*on, {&found.edges_place()}, options);
    EXPECT_EQ(media.cache().queues().size(), queues - 2);
    const array_view<std::int32_t> edges = media.view<std::int32_t>(0);
    graph::edge_reader<std::int32_t> from_drive(found);
    const auto wanted = from_drive.read(0, found.edges(), false);
    for (u64 k = 0; k < wanted.size(); k += 13) ASSERT_EQ(edges[k], wanted[k]) << k;
    media.cache().check_faults();
  }
}

TEST_F(volume_drives, an_import_that_the_drive_fails_leaves_the_volume_as_it_was) {
  // Its data would lie at 1 MiB and beyond; the second rule beside that of the bad sector fails flushes.
  const std::string rule = ",file.inject-error.1";
  start({{.namespaces = {{4 * mebibyte, 512}}}});
  {
    volume to = volume::create(members(access::write), volume_layout::single, 65536);
    put_file(folder_ / "b", noise(100'000, 1));
    import_entry(to, "kept", folder_ / "b");
  }
  const std::string image = media().front();
  start({{.namespaces = {{4 * mebibyte,
                          512,
                          ",cache.no-flush=off" + rule + ".event=none" + rule + ".iotype=flush" + rule + ".errno=5",
                          {8000}}}}});
  put_file(machine_->file(0, 1), image);
  {
    volume to = volume::open(members(access::write));
    const std::string told = refusal_of(error_kind::world, [&] { import_entry(to, "new", folder_ / "b"); });
    EXPECT_TRUE(told.starts_with("flush namespace 1 of qemu:")) << told;
  }
  volume now = volume::open(members(access::read));
  EXPECT_EQ(now.table().files.size(), 1u);
  export_entry(now, "kept", folder_ / "out", false);
  EXPECT_TRUE(file_content(folder_ / "out") == noise(100'000, 1));
}

TEST_F(volume_drives, a_media_error_is_told_by_verify_with_member_and_chunk_and_a_replica_serves) {
  // Sector 2176 is at 1 MiB + 64 KiB: the second chunk of data.
  const qemu_namespace bad{4 * mebibyte, 512, "", {2048 + 128 + 3}}, good{4 * mebibyte, 512};
  start({{.namespaces = {bad}}, {.namespaces = {good}}});
  put_file(folder_ / "b", noise(200'000, 1));
  volume all = volume::create(members(access::write), volume_layout::replicated, 65536);
  import_entry(all, "x", folder_ / "b");
  const verdict found = verify(all);
  ASSERT_EQ(found.problems, 1u);
  EXPECT_EQ(found.findings[0].member, 0u);
  EXPECT_EQ(found.findings[0].offset, mebibyte + 65536);
  EXPECT_EQ(found.findings[0].bytes, 65536u);
  EXPECT_NE(found.findings[0].what.find("unrecovered read error"), std::string::npos) << found.findings[0].what;
  export_entry(all, "x", folder_ / "out", false);
  EXPECT_TRUE(file_content(folder_ / "out") == noise(200'000, 1));
}

TEST_F(volume_drives, what_cannot_be_is_refused_and_nothing_is_written) {
  start({{.namespaces = {{4 * mebibyte, 512}, {mebibyte, 512}}, .options = ",max_ioqpairs=2"},
         {.namespaces = {{4 * mebibyte, 512}}}});
  const auto before = media();
  EXPECT_EQ(refusal_of(error_kind::bad_input, [&] { volume::create(members(access::write), volume_layout::striped, 65536); }),
            "create namespace 2 of " + machine_->function(0).name() +
                ": it has 1048576 bytes, and a member of this volume needs 1114112 at least: name a larger one");
  EXPECT_EQ(refusal_of(error_kind::bad_input, [&] { volume::open(members(access::write)); }),
            "open namespace 1 of " + machine_->function(0).name() +
                ": it is no member of a volume: name those of one, or make one with penstock volume create");
  EXPECT_NE(refusal_of(error_kind::bad_input, [&] { open_drive_member(run(0), 7, access::read); })
                .find("there is none: the drive has 1, 2"),
            std::string::npos);
  EXPECT_TRUE(media() == before);
  EXPECT_TRUE(probe(*open_drive_member(run(0), 1, access::read)).blank);
}

}  // namespace
}  // namespace penstock::test_support
