// The driver's commands and registers, bit for bit as the specification has them, and the memory that they point to.
#include "penstock/host/error.hpp"
#include "penstock/nvme/admin.hpp"
#include "penstock/nvme/registers.hpp"

#include "src/pcie/dma_arena.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace penstock::nvme {
namespace {

TEST(wire, capabilities_are_where_the_specification_has_them) {
  // MQES 1023, CQR, TO 20 (10 s), DSTRD 2, CSS NVM, MPSMIN 1, MPSMAX 4.
  const capabilities word{1023ull | 1ull << 16 | 20ull << 24 | 2ull << 32 | 1ull << 37 | 1ull << 48 | 4ull << 52};
  EXPECT_EQ(word.queue_entries(), 1024u);
  EXPECT_EQ(word.timeout_ns(), 10 * one_second_ns);
  EXPECT_EQ(word.doorbell_stride(), 16u);
  EXPECT_TRUE(word.nvm_commands());
  EXPECT_EQ(word.least_page_shift(), 13u);
  EXPECT_EQ(word.most_page_shift(), 16u);
  EXPECT_FALSE(word.gone());
  EXPECT_TRUE(capabilities{~u64{0}}.gone());
  EXPECT_EQ(word.doorbell(0, false), 0x1000u);
  EXPECT_EQ(word.doorbell(0, true), 0x1010u);
  EXPECT_EQ(word.doorbell(3, false), 0x1060u);
  EXPECT_EQ(word.doorbell(3, true), 0x1070u);
}

TEST(wire, queues_are_made_and_deleted_with_these_commands) {
  const submission_entry cq = create_completion_queue(5, 64, 0x7000);
  EXPECT_EQ(cq.opcode, 0x05);
  EXPECT_EQ(cq.prp1, 0x7000u);
  EXPECT_EQ(cq.dword10, 63u << 16 | 5u);
  EXPECT_EQ(cq.dword11, 1u) << "contiguous, no interrupts";
  const submission_entry sq = create_submission_queue(5, 65536, 0x8000);
  EXPECT_EQ(sq.opcode, 0x01);
  EXPECT_EQ(sq.dword10, 0xffffu << 16 | 5u);
  EXPECT_EQ(sq.dword11, 5u << 16 | 1u);
  EXPECT_EQ(delete_queue(admin_opcode::delete_submission_queue, 9).opcode, 0x00);
  EXPECT_EQ(delete_queue(admin_opcode::delete_completion_queue, 9).dword10, 9u);
}

TEST(wire, features_and_logs_are_asked_for_with_these_commands) {
  EXPECT_EQ(ask_for_queues(17).opcode, 0x09);
  EXPECT_EQ(ask_for_queues(17).dword10, 0x07u);
  EXPECT_EQ(ask_for_queues(17).dword11, 16u << 16 | 16u);
  EXPECT_EQ(granted_queues(2u << 16 | 5u), 3u);
  EXPECT_EQ(granted_queues(9u << 16 | 4u), 5u);
  EXPECT_EQ(report_events(0x1f).dword11, 0x1fu);
  const submission_entry log = get_log_page(log_page::health, 512, 0x9000);
  EXPECT_EQ(log.opcode, 0x02);
  EXPECT_EQ(log.namespace_id, 0xffffffffu);
  EXPECT_EQ(log.dword10, 127u << 16 | 2u);
  const asynchronous_event event{0x02u << 16 | 0x01u << 8 | 0x1u};
  EXPECT_EQ(event.type(), 1);
  EXPECT_EQ(event.information(), 1);
  EXPECT_EQ(event.page(), 2);
}

TEST(prp, pages_are_counted_and_listed) {
  struct shape {
    u64 address, bytes, pages, entries;
  };
  for (const shape each :
       {shape{0x1000, 512, 1, 0}, shape{0x1000, 4096, 1, 0}, shape{0x1e00, 512, 1, 0}, shape{0x1e00, 513, 2, 0},
        shape{0x1000, 8192, 2, 0}, shape{0x1008, 8192, 3, 2}, shape{0x1000, 65536, 16, 15}, shape{0x1ff8, 65536, 17, 16}}) {
    EXPECT_EQ(pages_touched(each.address, each.bytes), each.pages);
    EXPECT_EQ(prp_list_entries(each.address, each.bytes), each.entries);
    std::array<u64, 17> list{};
    write_prp_list(list.data(), each.address, each.bytes);
    for (u64 k = 0; k < list.size(); ++k) EXPECT_EQ(list[k], k < each.entries ? 0x2000 + k * 4096 : 0) << k;
    submission_entry command;
    set_data_pointer(command, each.address, each.bytes, 0x5000);
    EXPECT_EQ(command.prp1, each.address);
    EXPECT_EQ(command.prp2, each.pages == 1 ? 0 : each.pages == 2 ? 0x2000 : 0x5000);
  }
}

TEST(dma_arena, gives_each_byte_to_one_and_takes_it_back) {
  alignas(4096) static std::array<std::byte, 32 * 4096> memory;
  auto* const first = memory.data();
  // Two pieces that touch and one that does not.
  pcie::dma_arena arena({{first, 4 * 4096}, {first + 4 * 4096, 4 * 4096}, {first + 16 * 4096, 8 * 4096}}, "the test");
  EXPECT_EQ(arena.bytes_free(), 16u * 4096);
  EXPECT_TRUE(arena.holds(first + 100, 8 * 4096 - 100));
  EXPECT_FALSE(arena.holds(first + 100, 8 * 4096));
  EXPECT_FALSE(arena.holds(first + 9 * 4096, 1));
  EXPECT_FALSE(arena.holds(first + 16 * 4096, ~u64{0}));
  std::vector<void*> pages;
  void* whole = arena.allocate(memory_kind::shared, 7 * 4096 + 1);
  EXPECT_EQ(whole, first) << "across the seam of the two";
  std::memset(whole, 0x5a, 8 * 4096);
  for (u32 k = 0; k < 8; ++k) pages.push_back(arena.allocate(memory_kind::local, 1));
  EXPECT_EQ(arena.bytes_free(), 0u);
  EXPECT_THROW(arena.allocate(memory_kind::shared, 1), error);
  arena.deallocate(memory_kind::shared, whole, 7 * 4096 + 1);
  for (const u32 k : {3, 1, 2, 7, 0, 6, 4, 5}) arena.deallocate(memory_kind::local, pages[k], 1);
  auto* again = static_cast<std::byte*>(arena.allocate(memory_kind::shared, 8 * 4096));
  for (u32 k = 0; k < 8 * 4096; ++k) ASSERT_EQ(again[k], std::byte{0});
  EXPECT_EQ(arena.allocate(memory_kind::shared, 8 * 4096), first + 16 * 4096)
      << "what was given back page by page is one again";
}

}  // namespace
}  // namespace penstock::nvme
