// What flush_blocks promises, tried by killing the process that writes (docs/DURABILITY.md): nothing that was flushed is lost,
// and what is found is what somebody wrote there.
#include "contract/kill_bed.hpp"

#include "penstock/group/lone_thread.hpp"
#include "penstock/runtime/block_device.hpp"

#include <algorithm>
#include <cstring>
#include <random>

namespace penstock::test_support {
namespace {

constexpr u32 block_size = 4096, block_words = block_size / sizeof(u64), blocks = 64;
#if defined(PENSTOCK_TSAN) || defined(__SANITIZE_ADDRESS__)
constexpr u32 kills = 40;  // a fork takes them long
#else
constexpr u32 kills = 250;
#endif

/// What the writer tells, in memory that outlives it.
struct witness {
  std::atomic<u64> next{1};            ///< stamp
  std::atomic<u64> issued[blocks]{};   ///< before the write
  std::atomic<u64> flushed[blocks]{};  ///< after a flush that followed the write
};

/// Writes whole blocks of one stamp each, and flushes now and then, until it is killed.
[[noreturn]] void write_until_killed(file_case const& how, std::string const& path, witness& told, u64 seed) {
  const auto on = open_executor("cpu", 1);
  software_controller software(how.options());
  const u32 id = software.add_namespace(how.file(path, block_size));
  block_device device(*on, software, id, {.queues = 1, .queue_depth = 16, .transfer_bytes = block_size});
  buffer<block_request> request(on->memory(), memory_kind::local, 1);
  buffer<u64> data(on->memory(), memory_kind::local, 2 * block_words);
  const u64 address = round_up(reinterpret_cast<u64>(data.data()), block_size);
  const lone_thread g;
  std::mt19937_64 draw(seed);
  u64 written[blocks] = {};
  for (;;) {
    const u64 block = draw() % blocks, stamp = told.next++;
    std::fill_n(reinterpret_cast<u64*>(address), block_words, stamp);
    told.issued[block] = stamp;
    if (!write_blocks(g, device.view(), true, *request.data(), lba{block}, 1, address).ok()) _exit(2);
    written[block] = stamp;
    if (draw() % 8 != 0) continue;
    if (!flush_blocks(g, device.view(), true, *request.data()).ok()) _exit(3);
    for (u32 k = 0; k < blocks; ++k) {
      if (written[k] != 0) told.flushed[k] = written[k];
    }
  }
}

class durability : public ::testing::TestWithParam<file_case> {
 protected:
  void SetUp() override {
    const std::string reason = GetParam().reason_to_skip();
    if (!reason.empty()) GTEST_SKIP() << reason;
    write_file(path_, byte_vector(u64{blocks} * block_size));
  }

  void kill_a_writer(u64 seed) {
    kill_while(path_, seed, told_->next, 64, [&] { write_until_killed(GetParam(), path_, *told_, seed); });
  }

  void look(u64 kill) {
    const byte_vector found = read_file(path_);
    ASSERT_EQ(found.size(), u64{blocks} * block_size);
    for (u32 block = 0; block < blocks; ++block) {
      u64 words[block_words];
      std::memcpy(words, found.data() + u64{block} * block_size, block_size);
      const auto [least, most] = std::minmax_element(words, words + block_words);
      EXPECT_GE(*least, told_->flushed[block]) << "lost after kill " << kill << ": block " << block;
      EXPECT_LE(*most, told_->issued[block]) << "never written: block " << block;
      // Direct I/O writes a block as one; through the page cache a copy may be cut anywhere.
      if (GetParam().direct()) {
        EXPECT_EQ(*least, *most) << "mixed after kill " << kill << ": block " << block;
      }
    }
  }

  temporary_directory directory_;
  std::string path_ = directory_.file("data");
  shared_object<witness> told_;
};

INSTANTIATE_TEST_SUITE_P(every, durability, ::testing::ValuesIn(kill_cases),
                         [](auto const& test) { return std::string(test.param.name); });

TEST_P(durability, survives_a_kill_at_any_moment) {
  for (u64 k = 1; k <= kills && !HasFailure(); ++k) {
    kill_a_writer(k);
    look(k);
  }
  u64 flushed = 0;
  for (auto const& each : told_->flushed) flushed = std::max<u64>(flushed, each);
  EXPECT_GT(flushed, kills) << "hardly anything was flushed, so hardly anything was tried";
}

TEST(file_lock, one_writer_has_a_file_and_readers_do_not_mind) {
  temporary_directory directory;
  const std::string path = directory.file("data");
  write_file(path, byte_vector(8192));
  software_controller reader;
  {
    software_controller first, second;
    first.add_namespace({path, false, true, 512});
    reader.add_namespace({path, false, false, 512});
    try {
      second.add_namespace({path, false, true, 512});
      FAIL() << "two writers of one file";
    } catch (error const& refused) {
      EXPECT_EQ(refused.code(), EWOULDBLOCK);
      EXPECT_NE(std::string(refused.what()).find("this process has it open to be written already"), std::string::npos)
          << refused.what();
    }
  }
  software_controller third;
  third.add_namespace({path, false, true, 512});
}

}  // namespace
}  // namespace penstock::test_support
