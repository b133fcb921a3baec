// What every controller does alike: one body, run against all of them.
#include "controller_bed.hpp"

#include "penstock/host/error.hpp"

#include <thread>

namespace penstock::test_support {
namespace {

constexpr u64 content_seed = 20240607;
constexpr u64 content_bytes = u64{4} << 20;

class controllers : public ::testing::TestWithParam<controller_kind> {
 protected:
  void SetUp() override {
    const std::string reason = reason_to_skip(GetParam());
    if (!reason.empty()) GTEST_SKIP() << reason;
    RecordProperty("seed", std::to_string(content_seed));
    content_ = random_bytes(content_bytes, content_seed);
    bed_ = std::make_unique<controller_bed>(GetParam(), content_);
  }

  void TearDown() override {
    if (bed_ == nullptr) return;
    for (std::string const& complaint : bed_->complaints()) ADD_FAILURE() << "the controller notes: " << complaint;
  }

  controller& far_side() { return bed_->far_side(); }

  byte_vector content_;
  std::unique_ptr<controller_bed> bed_;
};

INSTANTIATE_TEST_SUITE_P(every, controllers, ::testing::ValuesIn(all_controllers()),
                         [](auto const& test) { return std::string(test.param.name); });

/// What a correct host never sees, and each controller answers as its authors chose.
class our_controllers : public controllers {};

INSTANTIATE_TEST_SUITE_P(every, our_controllers, ::testing::ValuesIn(controllers_of_ours()),
                         [](auto const& test) { return std::string(test.param.name); });

TEST_P(controllers, read_what_the_namespace_holds_in_every_size_of_buffer) {
  host_queue queue(far_side(), 1, 16, 16);
  for (const u64 bytes : {512, 4096, 8192, 12288, 65536, 262144, 1048576}) {
    data_buffer buffer(bytes);
    for (const u64 start : {u64{0}, u64{3}, block_count(content_) - bytes / 512}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes at block " << start << ", seed " << content_seed);
      ASSERT_EQ(queue.run(buffer.read(1, start)), nvme::code::success);
      EXPECT_TRUE(holds(buffer, content_, start * 512));
    }
  }
}

TEST_P(controllers, read_into_buffers_that_start_inside_of_a_page) {
  host_queue queue(far_side(), 1, 16, 16);
  for (const u64 offset : {8, 512, 2048, 4088}) {
    for (const u64 bytes : {512, 4096, 8192, 65536}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes, offset in page " << offset);
      data_buffer buffer(bytes, offset);
      ASSERT_EQ(queue.run(buffer.read(1, 7)), nvme::code::success);
      EXPECT_TRUE(holds(buffer, content_, 7 * 512));
      for (u64 k = 0; k < offset; ++k) ASSERT_EQ(buffer.memory().data()[k], std::byte{0}) << "byte before the buffer";
    }
  }
}

TEST_P(controllers, read_into_pages_that_are_scattered_by_a_prp_list) {
  host_queue queue(far_side(), 1, 16, 16);
  constexpr u64 pages = 16;
  page_memory memory(2 * pages * 4096);
  page_memory list(4096);
  auto* entries = reinterpret_cast<u64*>(list.data());
  const auto page_address = [&](u64 k) { return memory.address() + (2 * (pages - 1 - k)) * 4096; };
  for (u64 k = 1; k < pages; ++k) entries[k - 1] = page_address(k);
  auto command = nvme::transfer_command(nvme::opcode::read, 1, lba{0}, pages * 8);
  command.prp1 = page_address(0);
  command.prp2 = list.address();
  ASSERT_EQ(queue.run(command), nvme::code::success);
  for (u64 k = 0; k < pages; ++k) {
    EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(page_address(k)), content_.data() + k * 4096, 4096), 0) << "page " << k;
  }
}

TEST_P(controllers, follow_a_prp_list_into_its_next_page) {
  host_queue queue(far_side(), 1, 16, 16);
  constexpr u64 pages = 6;
  page_memory memory(pages * 4096);
  page_memory lists(2 * 4096);
  auto* words = reinterpret_cast<u64*>(lists.data());
  words[510] = memory.address() + 4096;  // the list starts two entries before the end of its page
  words[511] = lists.address() + 4096;   // and goes on in the next one
  for (u64 k = 2; k < pages; ++k) words[512 + k - 2] = memory.address() + k * 4096;
  auto command = nvme::transfer_command(nvme::opcode::read, 1, lba{8}, pages * 8);
  command.prp1 = memory.address();
  command.prp2 = lists.address() + 510 * 8;
  ASSERT_EQ(queue.run(command), nvme::code::success);
  EXPECT_EQ(std::memcmp(memory.data(), content_.data() + 4096, pages * 4096), 0);
}

TEST_P(our_controllers, refuse_prps_that_are_not_aligned) {
  host_queue queue(far_side(), 1, 16, 16);
  data_buffer one(512), two(8192), many(16384);
  auto odd_first = one.read(1, 0);
  odd_first.prp1 += 4;
  EXPECT_EQ(queue.run(odd_first), nvme::code::invalid_prp_offset);
  auto odd_second = two.read(1, 0);
  odd_second.prp2 += 512;
  EXPECT_EQ(queue.run(odd_second), nvme::code::invalid_prp_offset);
  auto odd_list = many.read(1, 0);
  odd_list.prp2 += 4;
  EXPECT_EQ(queue.run(odd_list), nvme::code::invalid_prp_offset);
  auto odd_entry = many.read(1, 0);
  reinterpret_cast<u64*>(odd_entry.prp2)[1] += 8;
  EXPECT_EQ(queue.run(odd_entry), nvme::code::invalid_prp_offset);
  auto nothing = one.read(1, 0);
  nothing.prp1 = 0;
  EXPECT_EQ(queue.run(nothing), nvme::code::data_transfer_error);
}

TEST_P(controllers, keep_what_is_written_and_nothing_else) {
  {
    host_queue queue(far_side(), 1, 16, 16);
    data_buffer buffer(12288, 512);
    const byte_vector fresh = random_bytes(buffer.bytes(), content_seed + 1);
    std::memcpy(buffer.data(), fresh.data(), fresh.size());
    ASSERT_EQ(queue.run(buffer.write(1, 100)), nvme::code::success);
    ASSERT_EQ(queue.run(nvme::flush_command(1)), nvme::code::success);
    std::memset(buffer.data(), 0, buffer.bytes());
    ASSERT_EQ(queue.run(buffer.read(1, 100)), nvme::code::success);
    EXPECT_EQ(std::memcmp(buffer.data(), fresh.data(), fresh.size()), 0);
    std::memcpy(content_.data() + 51200, fresh.data(), fresh.size());
  }
  EXPECT_EQ(bed_->stored(), content_);
}

TEST_P(our_controllers, refuse_what_they_do_not_know) {
  host_queue queue(far_side(), 1, 16, 16);
  data_buffer buffer(4096);
  auto command = buffer.read(1, 0);
  command.opcode = 0x7f;
  EXPECT_EQ(queue.run(command), nvme::code::invalid_opcode);
  command = buffer.read(1, 0);
  command.flags = 0x40;
  EXPECT_EQ(queue.run(command), nvme::code::invalid_field);
  EXPECT_EQ(queue.run(buffer.read(0, 0)), nvme::code::invalid_namespace);
  EXPECT_EQ(queue.run(buffer.read(2, 0)), nvme::code::invalid_namespace);
  EXPECT_EQ(queue.run(nvme::flush_command(2)), nvme::code::invalid_namespace);
  EXPECT_EQ(queue.run(buffer.read(1, block_count(content_) - 7)), nvme::code::lba_out_of_range);
  EXPECT_EQ(queue.run(buffer.write(1, block_count(content_))), nvme::code::lba_out_of_range);
  EXPECT_EQ(queue.run(buffer.read(1, ~u64{0} - 2)), nvme::code::lba_out_of_range);
  const auto too_many = static_cast<u32>(far_side().limits().transfer_bytes / 512) + 1;
  command = nvme::transfer_command(nvme::opcode::read, 1, lba{0}, too_many);
  EXPECT_EQ(queue.run(command), nvme::code::invalid_field);
  EXPECT_EQ(queue.run(buffer.read(1, 0)), nvme::code::success) << "a refused command must not disturb the next one";
  EXPECT_EQ(bed_->stored(), content_);
}

TEST_P(our_controllers, answer_identify_on_the_admin_queue_only) {
  data_buffer page(4096);
  {
    host_queue admin(far_side(), 0, 2, 2);
    ASSERT_EQ(admin.run(nvme::identify_command(nvme::identify_structure::controller, 0, page.address())), nvme::code::success);
    auto const& about = *reinterpret_cast<nvme::identify_controller const*>(page.data());
    EXPECT_EQ(about.namespaces, 1u);
    EXPECT_EQ(u64{4096} << about.max_transfer, far_side().limits().transfer_bytes);
    ASSERT_EQ(admin.run(nvme::identify_command(nvme::identify_structure::name_space, 1, page.address())), nvme::code::success);
    auto const& space = *reinterpret_cast<nvme::identify_namespace const*>(page.data());
    EXPECT_EQ(space.blocks, block_count(content_));
    EXPECT_EQ(space.formats[space.formatted & 15].block_shift, 9);
    EXPECT_EQ(space.attributes & 1, 0);
    ASSERT_EQ(admin.run(nvme::identify_command(nvme::identify_structure::active_namespaces, 0, page.address())),
              nvme::code::success);
    EXPECT_EQ(reinterpret_cast<u32 const*>(page.data())[0], 1u);
    EXPECT_EQ(reinterpret_cast<u32 const*>(page.data())[1], 0u);
    EXPECT_EQ(admin.run(nvme::identify_command(nvme::identify_structure::name_space, 2, page.address())),
              nvme::code::invalid_namespace);
    auto unknown = nvme::identify_command(nvme::identify_structure::controller, 0, page.address());
    unknown.dword10 = 0x55;
    EXPECT_EQ(admin.run(unknown), nvme::code::invalid_field);
    EXPECT_EQ(admin.run(page.read(1, 0)), nvme::code::invalid_opcode);
  }
  host_queue queue(far_side(), 1, 2, 2);
  EXPECT_EQ(queue.run(nvme::identify_command(nvme::identify_structure::controller, 0, page.address())),
            nvme::code::invalid_opcode);
}

TEST_P(controllers, go_round_rings_of_any_size) {
  struct sizes {
    u32 sq, cq;
  };
  for (const sizes ring : {sizes{2, 2}, sizes{3, 2}, sizes{2, 5}, sizes{7, 7}, sizes{23, 5}, sizes{5, 23}, sizes{64, 64}}) {
    SCOPED_TRACE(testing::Message() << "rings of " << ring.sq << " and " << ring.cq);
    host_queue queue(far_side(), 1, ring.sq, ring.cq);
    std::vector<std::unique_ptr<data_buffer>> buffers;
    const u64 commands = 4 * std::max(ring.sq, ring.cq) + 3;
    for (u64 k = 0; k < commands; ++k) {
      buffers.push_back(std::make_unique<data_buffer>(512));
      queue.submit_when_possible(buffers.back()->read(1, k * 11 % block_count(content_)));
    }
    ASSERT_TRUE(queue.drain());
    EXPECT_EQ(queue.harvested(), commands);
    EXPECT_EQ(queue.strays(), 0u);
    for (auto const& [id, status] : queue.take_done()) EXPECT_EQ(status, nvme::code::success) << "command " << id;
    for (u64 k = 0; k < commands; ++k) EXPECT_TRUE(holds(*buffers[k], content_, k * 11 % block_count(content_) * 512));
  }
}

TEST_P(controllers, keep_completions_back_while_the_completion_queue_is_full) {
  constexpr u32 sq_entries = 32, cq_entries = 4;
  host_queue queue(far_side(), 1, sq_entries, cq_entries);
  std::vector<std::unique_ptr<data_buffer>> buffers;
  for (u32 k = 0; k + 1 < sq_entries; ++k) {
    buffers.push_back(std::make_unique<data_buffer>(4096));
    queue.write_command(buffers.back()->read(1, k * 8));
  }
  queue.ring();
  // Read all that fits without saying so: then nothing more may come, however often the controller is polled.
  u32 seen = 0;
  backoff wait(host_queue::patience_ns);
  while (seen < cq_entries - 1) {
    queue.poll();
    if (queue.harvest(false)) ++seen;
    ASSERT_TRUE(wait.pause());
  }
  for (u32 k = 0; k < 1000; ++k) {
    queue.poll();
    std::this_thread::yield();
    ASSERT_FALSE(queue.harvest(false)) << "the completion queue was overrun";
  }
  queue.tell_head();
  ASSERT_TRUE(queue.drain());
  EXPECT_EQ(queue.harvested(), sq_entries - 1);
  EXPECT_EQ(queue.strays(), 0u);
  for (u32 k = 0; k + 1 < sq_entries; ++k) EXPECT_TRUE(holds(*buffers[k], content_, u64{k} * 4096));
}

TEST_P(our_controllers, ignore_doorbell_values_that_cannot_be) {
  host_queue queue(far_side(), 1, 8, 8);
  system_ref<u32>(*queue.rings().sq_doorbell).store(8, release);
  system_ref<u32>(*queue.rings().cq_doorbell).store(5, release);
  for (u32 k = 0; k < 100; ++k) queue.poll();
  EXPECT_FALSE(queue.harvest());
  system_ref<u32>(*queue.rings().cq_doorbell).store(0, release);
  data_buffer buffer(512);
  for (u64 k = 0; k < 30; ++k) ASSERT_EQ(queue.run(buffer.read(1, k)), nvme::code::success);
  EXPECT_EQ(queue.strays(), 0u);
}

TEST_P(controllers, serve_many_queues_for_many_threads) {
  constexpr u16 queues = 6;
  constexpr u64 commands = 300;
  std::atomic<u64> wrong{0};
  std::vector<std::thread> hosts;
  for (u16 id = 1; id <= queues; ++id) {
    hosts.emplace_back([&, id] {
      try {
        std::mt19937_64 random(content_seed + id);
        host_queue queue(far_side(), id, 9 + id, 7);
        data_buffer buffer(4096 * u64{id});
        far_side().add_buffer(buffer.memory().data(), buffer.memory().bytes());
        for (u64 k = 0; k < commands; ++k) {
          const u64 start = random() % (block_count(content_) - buffer.bytes() / 512);
          if (queue.run(buffer.read(1, start)) != nvme::code::success || !holds(buffer, content_, start * 512)) ++wrong;
        }
        if (queue.strays() != 0) ++wrong;
      } catch (std::exception const& e) {
        ADD_FAILURE() << "queue " << id << ": " << e.what();
      }
    });
  }
  for (std::thread& host : hosts) host.join();
  EXPECT_EQ(wrong.load(), 0u);
}

TEST_P(controllers, keep_words_whole_where_commands_of_several_queues_meet) {
  constexpr u16 queues = 4;
  constexpr u64 commands = 200, block = 7;
  const auto pattern = [](u64 queue, u64 round) { return (queue * commands + round) * 0x9e3779b97f4a7c15u; };
  std::atomic<u64> wrong{0};
  std::vector<std::thread> hosts;
  for (u16 id = 1; id <= queues; ++id) {
    hosts.emplace_back([&, id] {
      try {
        host_queue queue(far_side(), id, 16, 16);
        data_buffer buffer(512);
        auto* words = reinterpret_cast<u64*>(buffer.data());
        far_side().add_buffer(buffer.memory().data(), buffer.memory().bytes());
        for (u64 k = 0; k < commands; ++k) {
          std::fill_n(words, buffer.bytes() / sizeof(u64), pattern(id, k));
          if (queue.run(buffer.write(1, block)) != nvme::code::success) ++wrong;
          if (queue.run(buffer.read(1, block)) != nvme::code::success) ++wrong;
          for (u64 w = 0; w < buffer.bytes() / sizeof(u64); ++w) {
            // What may be found is all that a queue has stored, not only the last of it: the multiplier's inverse tells which.
            const u64 told = words[w] * 0xf1de83e19937733du;
            if (told < commands || told >= (queues + u64{1}) * commands) ++wrong;
          }
        }
      } catch (std::exception const& e) {
        ADD_FAILURE() << "queue " << id << ": " << e.what();
      }
    });
  }
  for (std::thread& host : hosts) host.join();
  EXPECT_EQ(wrong.load(), 0u);
}

TEST_P(controllers, let_any_thread_poll_a_queue) {
  host_queue queue(far_side(), 1, 64, 64);
  std::atomic<bool> stop{false};
  std::vector<std::thread> pollers;
  for (u32 k = 0; k < 3; ++k) {
    pollers.emplace_back([&] {
      while (!stop.load(acquire)) {
        far_side().poll(1);
        std::this_thread::yield();
      }
    });
  }
  data_buffer buffer(8192);
  for (u64 k = 0; k < 500; ++k) {
    EXPECT_EQ(queue.run(buffer.read(1, k)), nvme::code::success);
    EXPECT_TRUE(holds(buffer, content_, k * 512));
  }
  stop.store(true, release);
  for (std::thread& poller : pollers) poller.join();
}

TEST_P(controllers, finish_what_a_thread_that_has_ended_had_submitted) {
  host_queue queue(far_side(), 1, 64, 64);
  std::vector<std::unique_ptr<data_buffer>> buffers;
  std::thread([&] {
    for (u64 k = 0; k < 60; ++k) {
      buffers.push_back(std::make_unique<data_buffer>(65536));
      queue.submit(buffers.back()->read(1, k * 64));
    }
    queue.poll();
  }).join();
  ASSERT_TRUE(queue.drain());
  for (auto const& [id, status] : queue.take_done()) EXPECT_EQ(status, nvme::code::success) << "command " << id;
  for (u64 k = 0; k < 60; ++k) EXPECT_TRUE(holds(*buffers[k], content_, k * 64 * 512));
}

TEST_P(controllers, write_nothing_after_detach) {
  for (u64 round = 0; round < 8; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    host_queue queue(far_side(), 1, 64, 64);
    std::vector<std::unique_ptr<data_buffer>> buffers;
    for (u64 k = 0; k < 60; ++k) {
      buffers.push_back(std::make_unique<data_buffer>(65536));
      queue.submit(buffers.back()->read(1, (round * 60 + k) % 64 * 64));
    }
    for (u64 k = 0; k < round % 4; ++k) queue.poll();
    queue.detach();
    for (auto const& buffer : buffers) std::memset(buffer->data(), 0x5a, buffer->bytes());
    std::memset(static_cast<void*>(queue.rings().cq), 0x5a, 64 * 16);
    for (u64 k = 0; k < 50; ++k) {
      queue.poll();
      std::this_thread::yield();
    }
    const byte_vector untouched(65536, std::byte{0x5a});
    for (auto const& buffer : buffers) ASSERT_EQ(std::memcmp(buffer->data(), untouched.data(), buffer->bytes()), 0);
    ASSERT_EQ(std::memcmp(queue.rings().cq, untouched.data(), 64 * 16), 0);
  }
}

TEST_P(controllers, refuse_rings_beyond_their_limits_and_identifiers_in_use) {
  host_queue queue(far_side(), 1, 4, 4);
  const controller_limits limits = far_side().limits();
  EXPECT_THROW(host_queue(far_side(), 1, 4, 4), error);
  EXPECT_THROW(host_queue(far_side(), static_cast<u16>(limits.queues + 1), 4, 4), error);
  EXPECT_THROW(host_queue(far_side(), 2, limits.queue_entries + 1, 4), error);
  EXPECT_THROW(host_queue(far_side(), 2, 4, 1), error);
  EXPECT_THROW(far_side().detach(2), error);
  far_side().poll(2);
  far_side().poll(0xffff);
  data_buffer buffer(512);
  EXPECT_EQ(queue.run(buffer.read(1, 0)), nvme::code::success);
}

}  // namespace
}  // namespace penstock::test_support
