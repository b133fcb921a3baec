// What the driver makes of what a drive says of a namespace, for what QEMU's drives never say: structures filled in as the
// specification has them (byte offsets of base 2.1 and of the NVM command set specification 1.1).
#include "driver_bed.hpp"

#include "penstock/runtime/block_device.hpp"
#include "penstock/runtime/identify.hpp"

#include "src/controller/namespace_format.hpp"

#include <bit>
#include <cstring>

namespace penstock::test_support {
namespace {

constexpr u64 transfer = u64{1} << 20;

/// Identify Namespace, byte by byte.
struct raw_namespace {
  u8 bytes[4096] = {};

  raw_namespace() { set(0, 8192), set(8, 8192), lba_format(0, 9); }
  void set(u64 offset, u64 value) { std::memcpy(bytes + offset, &value, sizeof value); }
  void lba_format(u32 index, u8 shift, u16 metadata = 0) {
    std::memcpy(bytes + 128 + 4 * index, &metadata, 2);
    bytes[128 + 4 * index + 2] = shift;
  }
  nvme::identify_namespace structure() const { return std::bit_cast<nvme::identify_namespace>(*this); }
  std::string problem(u64 most = transfer) const { return controllers::problem_of_format(structure(), most); }
};
static_assert(sizeof(raw_namespace) == sizeof(nvme::identify_namespace));

bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

TEST(namespace_format, blocks_without_anything_beside_are_of_use) {
  for (const u8 shift : std::initializer_list<u8>{9, 12, 13, 20}) {
    raw_namespace space;
    space.lba_format(0, shift);
    EXPECT_EQ(space.problem(), "") << int{shift};
  }
  raw_namespace thin;
  thin.bytes[24] = 0xff;                   // NSFEAT: thin provisioning, atomics, deallocated blocks, preferred sizes
  thin.bytes[30] = 1;                      // NMIC: shared
  thin.bytes[31] = 0xff;                   // RESCAP: reservations
  thin.bytes[27] = thin.bytes[28] = 0xff;  // MC, DPC: what it could do
  EXPECT_EQ(thin.problem(), "") << "no feature of these changes what a Read or a Write means";
}

TEST(namespace_format, the_upper_bits_of_the_index_count_where_there_are_more_than_sixteen_formats) {
  raw_namespace space;
  for (u32 k = 0; k < 20; ++k) space.lba_format(k, 9);
  space.lba_format(17, 12, 8);
  space.bytes[25] = 19;          // NLBAF
  space.bytes[26] = 1 | 1 << 5;  // FLBAS: 17
  EXPECT_EQ(space.structure().format_index(), 17u);
  EXPECT_TRUE(has(space.problem(), "8 bytes of metadata each, in a buffer of its own")) << space.problem();
  EXPECT_TRUE(has(space.problem(), "--lbaf=0)")) << space.problem();
  space.lba_format(18, 12);
  EXPECT_TRUE(has(space.problem(), "--lbaf=18)")) << "rather one of blocks as large: " << space.problem();
  space.bytes[26] |= 0x10;
  EXPECT_EQ(space.structure().format_index(), 17u);
  EXPECT_TRUE(has(space.problem(), "interleaved with the data")) << space.problem();
  space.bytes[25] = 13;
  space.bytes[82] = 6;  // NULBAF: twenty in all
  EXPECT_EQ(space.structure().format_index(), 17u);
  space.bytes[82] = 2;
  EXPECT_EQ(space.structure().format_index(), 1u) << "sixteen: the upper bits are to be ignored";
  EXPECT_EQ(space.problem(), "");
}

TEST(namespace_format, blocks_larger_than_a_page_are_named_where_there_are_no_others) {
  raw_namespace space;
  space.bytes[25] = 2;
  space.lba_format(0, 13, 8);
  space.lba_format(1, 13);
  space.lba_format(2, 9);
  EXPECT_TRUE(has(space.problem(), "--lbaf=2)")) << "volumes take no blocks of 8 KiB: " << space.problem();
  space.lba_format(2, 9, 8);
  EXPECT_TRUE(has(space.problem(), "--lbaf=1)")) << space.problem();
}

TEST(namespace_format, an_index_that_no_format_has_is_refused) {
  raw_namespace space;
  space.bytes[26] = 3;
  EXPECT_TRUE(has(space.problem(), "its format in use, 3 (FLBAS), is none of the 1 that it has")) << space.problem();
  EXPECT_TRUE(has(space.problem(), "--lbaf=0")) << space.problem();
}

TEST(namespace_format, protection_information_is_refused_whatever_the_format_says) {
  for (const u8 type : std::initializer_list<u8>{1, 2, 3}) {
    raw_namespace space;
    space.bytes[29] = type | 8;  // DPS: the first bytes of the metadata
    EXPECT_TRUE(has(space.problem(), "it has protection information of type " + std::to_string(type))) << space.problem();
  }
}

TEST(namespace_format, block_sizes_that_the_data_path_cannot_move_are_refused) {
  for (const u8 shift : std::initializer_list<u8>{0, 1, 8, 21, 63, 64, 255}) {
    raw_namespace space;
    space.bytes[25] = 1;
    space.lba_format(0, shift);
    space.lba_format(1, 12);
    EXPECT_TRUE(has(space.problem(), "2^" + std::to_string(int{shift}))) << space.problem();
    EXPECT_TRUE(has(space.problem(), "--lbaf=1)")) << space.problem();
  }
  raw_namespace space;
  space.lba_format(0, 16);
  EXPECT_TRUE(has(space.problem(32768), "one command moves at most 32768")) << space.problem(32768);
  EXPECT_TRUE(has(space.problem(32768), "no format that would do")) << space.problem(32768);
  EXPECT_EQ(space.problem(65536), "");
  space.lba_format(0, 12);
  space.set(0, u64{1} << 52);
  EXPECT_TRUE(has(space.problem(), "which no namespace has")) << "bytes that no word counts: " << space.problem();
}

TEST(namespace_format, what_needs_a_key_or_is_being_formatted_is_refused) {
  raw_namespace keyed;
  keyed.bytes[81] = 2;
  EXPECT_EQ(keyed.problem(), "") << "it could, and does not";
  keyed.bytes[81] = 3;
  EXPECT_TRUE(has(keyed.problem(), "KPIOS")) << keyed.problem();
  raw_namespace busy;
  busy.bytes[32] = 0x80;
  EXPECT_EQ(busy.problem(), "") << "it reports formats, and none is under way";
  busy.bytes[32] = 0x80 | 37;
  EXPECT_TRUE(has(busy.problem(), "37 % are left")) << busy.problem();
}

TEST(namespace_format, the_command_set_is_found_among_the_descriptors) {
  nvme::namespace_descriptors none;
  EXPECT_EQ(none.csi(), 0);
  const nvme::namespace_descriptors first{{4, 1, 0, 0, 2}};
  EXPECT_EQ(first.csi(), 2);
  nvme::namespace_descriptors later{{1, 8, 0, 0, 4, 1, 0, 0, 9, 9, 9, 9}};  // an EUI64 that looks like one
  EXPECT_EQ(later.csi(), 0);
  later.bytes[12] = 4, later.bytes[13] = 1, later.bytes[16] = 1;
  EXPECT_EQ(later.csi(), 1);
  nvme::namespace_descriptors nonsense;
  std::memset(nonsense.bytes, 0xff, sizeof nonsense.bytes);
  EXPECT_EQ(nonsense.csi(), 0);
  for (const u8 csi : std::initializer_list<u8>{1, 2, 3, 4, 5, 0x30})
    EXPECT_NE(controllers::problem_of_command_set(csi), "") << int{csi};
  EXPECT_EQ(controllers::problem_of_command_set(0), "");
}

/// The same through a driver: what each way to open a namespace asks.
class namespace_report_test : public driver_test {
 protected:
  std::string refusal_of_namespace(modelled_function_options const& options) {
    drive_.reset();
    make(options);
    open();
    const u32 queues = function_->queues_alive();
    const std::string said = refusal([&] { identify_namespace(*drive_, 1); });
    const auto on = open_cpu_executor(function_->memory(), 1);
    EXPECT_EQ(said, refusal([&] { block_device device(*on, *drive_, 1, {.queues = 1, .queue_depth = 16}); }));
    EXPECT_EQ(function_->queues_alive(), queues);
    return said;
  }
};

TEST_F(namespace_report_test, other_command_sets_are_refused_by_name) {
  EXPECT_EQ(refusal_of_namespace({.version = 0x20000}), "");
  EXPECT_TRUE(has(refusal_of_namespace({.version = 0x20000, .command_set = 1}),
                  "open namespace 1 of model:00.0: it is a key value namespace"));
  EXPECT_TRUE(has(refusal_of_namespace({.version = 0x10400, .command_set = 2}), "it is a zoned namespace"));
  EXPECT_TRUE(has(refusal_of_namespace({.version = 0x20100, .command_set = 4}), "computational"));
  EXPECT_EQ(refusal_of_namespace({.version = 0x10200, .command_set = 2}), "") << "which has no such list to ask for";
}

TEST_F(namespace_report_test, one_that_is_not_ready_is_refused) {
  const u64 ready_without_media = modelled_function_options{}.capabilities | 1ull << 60;
  EXPECT_TRUE(has(refusal_of_namespace({.capabilities = ready_without_media, .version = 0x20000, .namespace_state = 0}),
                  "it is not ready (NSTAT)"));
  EXPECT_EQ(refusal_of_namespace({.version = 0x20000, .namespace_state = 0}), "")
      << "NRDY says nothing where the controller waits for its media (CAP.CRMS)";
  EXPECT_EQ(refusal_of_namespace({.version = 0x10400, .namespace_state = 0}), "") << "which does not say";
}

TEST_F(namespace_report_test, a_format_with_metadata_is_refused_before_a_queue_is_made) {
  const auto found =
      refusal_of_namespace({.format = [](nvme::identify_namespace& space) { space.formats[0].metadata_bytes = 16; }});
  EXPECT_TRUE(has(found, "16 bytes of metadata")) << found;
  EXPECT_TRUE(has(found, "use another namespace")) << found;
}

TEST_F(namespace_report_test, a_controller_without_blocks_is_refused) {
  for (const auto type : {nvme::controller_type::discovery, nvme::controller_type::administrative}) {
    make({.type = type});
    EXPECT_TRUE(has(refusal([&] { open(); }), "no I/O controller (CNTRLTYPE"));
  }
  make({.type = nvme::controller_type::io});
  EXPECT_EQ(refusal([&] { open(); }), "");
}

}  // namespace
}  // namespace penstock::test_support
