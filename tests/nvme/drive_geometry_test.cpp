// The driver and what stands on it over drives of many shapes, as QEMU makes them: what Penstock can use it uses, with the
// bytes that lie in the drive's file; what it cannot is refused by every way to open it, in one sentence, before a queue is
// made.
//
// All of the other tests run over drives of a few of these shapes, too: `.ci/run geometries`.
#include "qemu_bed.hpp"
#include "support/scratch_files.hpp"

#include "libs/drive/copy_blocks.hpp"
#include "libs/drive/drive_facts.hpp"
#include "libs/volume/drive_member.hpp"
#include "libs/volume/import.hpp"
#include "libs/volume/verify.hpp"
#include "penstock/runtime/identify.hpp"
#include "penstock/runtime/line_cache.hpp"

namespace penstock::test_support {
namespace {

constexpr u64 media_bytes = 4 * mebibyte;

struct drive_geometry {
  char const* name;
  char const* drive;    ///< options of -device nvme
  u32 block_bytes;      ///< of namespace 1
  char const* space;    ///< options of its -device nvme-ns
  char const* problem;  ///< what it is refused with; empty: it is usable
};

void PrintTo(drive_geometry const& g, std::ostream* out) { *out << g.name; }

std::string name_of_case(testing::TestParamInfo<drive_geometry> const& test) { return test.param.name; }

class drive_geometry_test : public qemu_drive_test, public testing::WithParamInterface<drive_geometry> {
 protected:
  /// The namespace under test, and one beside it that is as usual.
  qemu_function& open() {
    const drive_geometry g = GetParam();
    qemu_function& function = start({{{{media_bytes, g.block_bytes, "", {}, g.space}, {media_bytes, 512, ""}}, g.drive}});
    content_ = noise(media_bytes, 11);
    for (const u64 n : {1, 2}) put_file(machine_->file(0, n), content_);
    return function;
  }

  static std::shared_ptr<volumes::running_drive> run(qemu_function& function) {
    return std::make_shared<volumes::running_drive>(std::shared_ptr<pci_function>(&function, [](pci_function*) {}));
  }

  static dataset_spec all_of(pcie_controller& drive, u32 name_space, bool writable) {
    volume_spec volume;
    volume.members = {{&drive, name_space}};
    return {"data", media_bytes, volume, writable};
  }

  scratch_folder folder_;
  std::string content_;
};

class usable_drive : public drive_geometry_test {};

INSTANTIATE_TEST_SUITE_P(geometry, usable_drive,
                         testing::Values(drive_geometry{"transfers_of_any_size", ",mdts=0", 512, "", ""},
                                         drive_geometry{"transfers_of_2_pages", ",mdts=1", 512, "", ""},
                                         drive_geometry{"transfers_of_2_pages_in_blocks_of_4096", ",mdts=1", 4096, "", ""},
                                         drive_geometry{"transfers_of_4_pages", ",mdts=2", 4096, "", ""},
                                         drive_geometry{"transfers_of_8_pages", ",mdts=3", 512, "", ""},
                                         drive_geometry{"transfers_of_16_pages", ",mdts=4", 4096, "", ""},
                                         drive_geometry{"transfers_of_32_pages", ",mdts=5", 512, "", ""},
                                         drive_geometry{"transfers_of_64_pages", ",mdts=6", 4096, "", ""},
                                         drive_geometry{"transfers_of_128_pages", ",mdts=7", 512, "", ""},
                                         drive_geometry{"one_queue", ",max_ioqpairs=1", 512, "", ""},
                                         drive_geometry{"one_queue_and_2_pages", ",max_ioqpairs=1,mdts=1", 4096, "", ""},
                                         drive_geometry{"two_queues", ",max_ioqpairs=2", 512, "", ""},
                                         drive_geometry{"sixty_four_queues", ",max_ioqpairs=64", 4096, "", ""},
                                         drive_geometry{"one_interrupt", ",msix_qsize=1", 512, "", ""},
                                         drive_geometry{"more_queues_than_interrupts", ",msix_qsize=3,max_ioqpairs=16", 4096,
                                                        "", ""},
                                         drive_geometry{"memory_of_its_own", ",cmb_size_mb=1,mdts=1", 512, "", ""},
                                         drive_geometry{"another_vendor", ",use-intel-id=on", 4096, "", ""},
                                         drive_geometry{"no_room_for_events", ",aerl=0", 512, "", ""},
                                         drive_geometry{"a_private_namespace", "", 4096, ",shared=off", ""}),
                         name_of_case);

TEST_P(usable_drive, tools_read_write_and_zero_what_lies_in_its_file) {
  qemu_function& function = open();
  const u64 block = GetParam().block_bytes, blocks = media_bytes / block;
  const auto found = drive::describe_drive(function);
  ASSERT_EQ(found.namespaces.size(), 2u);
  EXPECT_EQ(found.namespaces[0].block_bytes, block);
  EXPECT_EQ(found.namespaces[0].problem, "");
  EXPECT_EQ(drive::read_to_file(function, {1, 0, blocks}, folder_ / "out", false).blocks, blocks);
  EXPECT_TRUE(file_content(folder_ / "out") == content_);
  const std::string written = noise((blocks / 2 + 1) * block, 12);
  put_file(folder_ / "in", written);
  drive::write_from_file(function, {1, 3, 0}, folder_ / "in");
  drive::zero_blocks(function, {1, 5, 7});
  std::string expected = content_;
  expected.replace(3 * block, written.size(), written);
  std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(5 * block), 7 * block, '\0');
  EXPECT_TRUE(file_content(machine_->file(0, 1)) == expected);
  EXPECT_TRUE(file_content(machine_->file(0, 2)) == content_) << "of the namespace beside";
}

/// With the numbers of queues, the ring depths and the command sizes that are the defaults.
TEST_P(usable_drive, a_cache_and_a_block_device_take_it_as_it_is) {
  qemu_function& function = open();
  pcie_controller drive(function);
  const auto on = open_cpu_executor(machine_->memory(), 4);
  constexpr u64 words = media_bytes / sizeof(u64);
  std::vector<u64> expected(words);
  std::memcpy(expected.data(), content_.data(), media_bytes);
  {
    line_cache cache(*on, {all_of(drive, 1, true)}, {.bytes = mebibyte / 4});
    EXPECT_EQ(cache.queues().size(), std::min(4u, drive.limits().queues));
    const auto view = cache.writable<u64>(0, 0, words);
    const auto elements = cache.array<u64>(0, 0, words);
    const lone_thread g;
    for (u64 k = 0; k < words; k += 97) ASSERT_EQ(expected[k], elements[k]) << k;
    for (u64 k = 5; k < words; k += 89) ASSERT_EQ(status{}, view.try_write(g, true, k, expected[k] = k * k)) << k;
    cache.flush();
    EXPECT_EQ(cache.stats(0).errors + cache.stats(0).write_errors, 0u);
  }
  EXPECT_EQ(expected, stored());
  block_device device(*on, drive, 1, {});
  EXPECT_EQ(device.queues().size(), std::min(4u, drive.limits().queues));
  const u64 most = u64{device.view().most_blocks} * GetParam().block_bytes;
  EXPECT_EQ(most, std::min<u64>(65536, drive.limits().transfer_bytes));
  const buffer<block_request> request(on->memory(), memory_kind::local, 1);
  const buffer<u64> data(on->memory(), memory_kind::local, most / sizeof(u64));
  for (u64 at = 0; at < media_bytes; at += most) {
    ASSERT_EQ(status{}, read_blocks(lone_thread(), device.view(), true, request.data()[0], lba{at / GetParam().block_bytes},
                                    device.view().most_blocks, reinterpret_cast<u64>(data.data())));
    ASSERT_EQ(std::memcmp(data.data(), expected.data() + at / sizeof(u64), most), 0) << at;
  }
}

TEST_P(usable_drive, a_volume_gives_back_what_was_imported) {
  qemu_function& function = open();
  const auto member = [&](volumes::access how) {
    volumes::member_list one;
    one.push_back(volumes::open_drive_member(run(function), 1, how));
    return one;
  };
  put_file(folder_ / "a", content_.substr(0, 1'000'001));
  {
    volumes::volume to = volumes::volume::create(member(volumes::access::write), volume_layout::single, 65536);
    import_entry(to, "a", folder_ / "a");
  }
  volumes::volume from = volumes::volume::open(member(volumes::access::read));
  export_entry(from, "a", folder_ / "out", false);
  EXPECT_TRUE(file_content(folder_ / "out") == file_content(folder_ / "a"));
  EXPECT_EQ(verify(from).problems, 0u);
}

class refused_drive : public drive_geometry_test {
 protected:
  static constexpr char const* hidden = "QEMU 10 attaches a zoned namespace only to a host that selects its command set";
  bool hides_it() { return drive::describe_drive(machine_->function(0)).namespaces.size() == 1; }

  /// One sentence that names the drive and the namespace, says what is wrong and what to do; and no queue was made.
  template <class Open>
  void expect_refusal(std::string const& way, Open const& open) {
    SCOPED_TRACE(way);
    const u64 queues = machine_->queues_made();
    const u64 begun = now_ns();
    const std::string said = refusal_of(error_kind::bad_input, open);
    EXPECT_EQ(said.find("open namespace 1 of " + machine_->function(0).name() + ": it"), 0u) << said;
    EXPECT_NE(said.find(GetParam().problem), std::string::npos) << said;
    EXPECT_NE(said.find("use "), std::string::npos) << "what to do? " << said;
    EXPECT_EQ(said.find_first_of("\n"), std::string::npos) << said;
    EXPECT_EQ(said.find(". "), std::string::npos) << "one sentence: " << said;
    EXPECT_EQ(machine_->queues_made(), queues) << "a queue was made before";
    EXPECT_LT(now_ns() - begun, 10 * one_second_ns);
  }
};

INSTANTIATE_TEST_SUITE_P(
    geometry, refused_drive,
    testing::Values(
        drive_geometry{"metadata_interleaved", "", 512, ",ms=8,mset=1", "blocks carry 8 bytes of metadata each, interleaved"},
        drive_geometry{"metadata_apart", "", 512, ",ms=8", "blocks carry 8 bytes of metadata each, in a buffer of its own"},
        drive_geometry{"metadata_of_64_bytes", "", 4096, ",ms=64,mset=1", "blocks carry 64 bytes of metadata each"},
        drive_geometry{"protection_type_1", "", 512, ",ms=8,pi=1", "protection information of type 1"},
        drive_geometry{"protection_type_3", "", 4096, ",ms=8,mset=1,pi=3", "protection information of type 3"},
        drive_geometry{"zoned", "", 4096, ",zoned=true,zoned.zone_size=1M", "zoned namespace (command set 2)"},
        drive_geometry{"blocks_beyond_a_transfer", ",mdts=1", 16384, "", "one command moves at most 8192"}),
    name_of_case);

TEST_P(refused_drive, by_each_way_to_open_it_before_a_queue_is_made) {
  qemu_function& function = open();
  if (hides_it()) GTEST_SKIP() << hidden;
  put_file(folder_ / "in", noise(65536, 13));
  {
    pcie_controller drive(function);
    const auto on = open_cpu_executor(machine_->memory(), 1);
    expect_refusal("identify", [&] { identify_namespace(drive, 1); });
    expect_refusal("block device", [&] { block_device device(*on, drive, 1, {}); });
    for (const bool writable : {false, true}) {
      expect_refusal("cache", [&] { line_cache cache(*on, {all_of(drive, 2, false), all_of(drive, 1, writable)}, {}); });
    }
    host_queue queue(drive, 1, 8, 8);
    data_buffer buffer(512);
    EXPECT_EQ(queue.run(buffer.read(2, 0)), nvme::code::success) << "the namespace beside is of use";
    EXPECT_GT(machine_->queues_made(), 0u) << "queues are counted";
  }
  const drive::block_range range{1, 0, 1};
  expect_refusal("read", [&] { drive::read_to_file(function, range, folder_ / "out", false); });
  expect_refusal("write", [&] { drive::write_from_file(function, {1, 0, 0}, folder_ / "in"); });
  expect_refusal("zero", [&] { drive::zero_blocks(function, range); });
  expect_refusal("discard", [&] { drive::discard_blocks(function, range); });
  const auto drive = run(function);
  for (const auto how : {volumes::access::read, volumes::access::write}) {
    expect_refusal("volume", [&] { volumes::open_drive_member(drive, 1, how); });
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
  EXPECT_TRUE(file_content(machine_->file(0, 1)) == content_);
}

/// `identify` refuses nothing: it shows what there is, and why Penstock does not use it.
TEST_P(refused_drive, identify_lists_it_with_the_reason) {
  const auto found = drive::describe_drive(open());
  if (found.namespaces.size() == 1) GTEST_SKIP() << hidden;
  ASSERT_EQ(found.namespaces.size(), 2u);
  EXPECT_NE(found.namespaces[0].problem.find(GetParam().problem), std::string::npos) << found.namespaces[0].problem;
  EXPECT_EQ(found.namespaces[1].problem, "");
  EXPECT_EQ(found.namespaces[1].block_bytes, 512u);
}

/// What the remedy names is a format that would do: the controller's own list says so.
TEST_P(refused_drive, the_remedy_names_a_format_without_metadata) {
  const auto found = drive::describe_drive(open());
  if (found.namespaces.size() == 1) GTEST_SKIP() << hidden;
  const std::string problem = found.namespaces[0].problem, before = "--lbaf=";
  const u64 at = problem.find(before);
  if (at == std::string::npos) GTEST_SKIP() << "another remedy: " << problem;
  const u64 number = std::stoul(problem.substr(at + before.size()));
  ASSERT_LT(number, found.namespaces[0].formats.size());
  EXPECT_EQ(found.namespaces[0].formats[number].metadata_bytes, 0u);
  EXPECT_LE(found.namespaces[0].formats[number].block_bytes, 4096u);
}

}  // namespace
}  // namespace penstock::test_support
