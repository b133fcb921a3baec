// What only the software controller does: files with ends, permissions and surprises.
#include "controller_bed.hpp"

#include "penstock/host/error.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace penstock::test_support {
namespace {

struct file_kind {
  char const* name;
  io_engine engine;
  bool copy_resident;
  bool direct;
};

void PrintTo(file_kind const& kind, std::ostream* out) { *out << kind.name; }

class files : public ::testing::TestWithParam<file_kind> {
 protected:
  void SetUp() override {
    const medium where = GetParam().direct ? medium::direct_file : medium::file;
    const std::string reason = reason_to_skip({"", where, GetParam().engine});
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  software_options options() const {
    software_options result;
    result.engine = GetParam().engine;
    result.copy_resident = GetParam().copy_resident;
    return result;
  }

  std::string make_file(byte_vector const& bytes) const {
    write_file(directory_.file("data"), bytes);
    return directory_.file("data");
  }

  temporary_directory directory_;
};

INSTANTIATE_TEST_SUITE_P(every, files,
                         ::testing::Values(file_kind{"mapping", io_engine::automatic, true, false},
                                           file_kind{"io_uring", io_engine::io_uring, false, false},
                                           file_kind{"io_uring_direct", io_engine::io_uring, false, true},
                                           file_kind{"pread", io_engine::pread, false, false},
                                           file_kind{"pread_direct", io_engine::pread, false, true}),
                         [](auto const& test) { return std::string(test.param.name); });

TEST_P(files, read_as_zeros_past_their_end) {
  for (const u64 bytes : {1, 7, 511, 513, 4099, 70001}) {
    SCOPED_TRACE(testing::Message() << "file of " << bytes << " bytes, seed " << bytes);
    const byte_vector content = random_bytes(bytes, bytes);
    software_controller far_side(options());
    const u32 id = far_side.add_namespace({make_file(content), GetParam().direct, false, 4096});
    host_queue queue(far_side, 1, 8, 8);
    const u64 blocks = (bytes + 4095) / 4096;
    data_buffer buffer(blocks * 4096);
    for (u32 repeat = 0; repeat < 2; ++repeat) {
      std::memset(buffer.data(), 0xff, buffer.bytes());
      ASSERT_EQ(queue.run(buffer.read(id, 0, 4096)), nvme::code::success);
      EXPECT_TRUE(holds(buffer, content, 0));
    }
    EXPECT_EQ(queue.run(buffer.read(id, 1, 4096)), nvme::code::lba_out_of_range);
  }
}

TEST_P(files, keep_their_size_when_their_last_block_is_written) {
  constexpr u64 bytes = 10003;
  byte_vector content = random_bytes(bytes, 1);
  const std::string path = make_file(content);
  {
    software_controller far_side(options());
    const u32 id = far_side.add_namespace({path, GetParam().direct, true, 4096});
    host_queue queue(far_side, 1, 8, 8);
    data_buffer buffer(8192);
    std::memset(buffer.data(), 0x77, buffer.bytes());
    ASSERT_EQ(queue.run(buffer.write(id, 1, 4096)), nvme::code::success);
    ASSERT_EQ(queue.run(nvme::flush_command(id)), nvme::code::success);
    for (u64 k = 4096; k < bytes; ++k) content[k] = std::byte{0x77};
    ASSERT_EQ(queue.run(buffer.read(id, 1, 4096)), nvme::code::success);
    EXPECT_TRUE(holds(buffer, content, 4096));
  }
  EXPECT_EQ(read_file(path), content);
}

// Its last page is written by two paths, whole blocks and the rest, and the kernel lets a page have one of them only.
TEST_P(files, are_whole_after_all_blocks_at_their_end_were_written_at_once) {
  constexpr u64 bytes = 3 * 4096 + 5 * 512 + 100, blocks = bytes / 512 + 1;
  byte_vector content = random_bytes(bytes, 7);
  const std::string path = make_file(content);
  software_controller far_side(options());
  const u32 id = far_side.add_namespace({path, GetParam().direct, true, 512});
  host_queue queue(far_side, 1, 64, 64);
  std::vector<std::unique_ptr<data_buffer>> each;
  for (u64 k = 0; k < blocks; ++k) each.push_back(std::make_unique<data_buffer>(512));
  data_buffer over_both(2048);  // from the last whole page into the last one
  for (u32 round = 0; round < 60; ++round) {
    const auto mark = static_cast<std::byte>(round);
    const bool all = round % 3 != 0;
    std::vector<u16> submitted;
    for (u64 k = 0; k < (all ? blocks : 22); ++k) {
      std::memset(each[k]->data(), static_cast<int>(round), 512);
      submitted.push_back(queue.submit(each[k]->write(id, k)));
    }
    std::memset(over_both.data(), static_cast<int>(round), over_both.bytes());
    if (!all) submitted.push_back(queue.submit(over_both.write(id, 22)));
    for (const u16 command : submitted) ASSERT_EQ(queue.wait(command), nvme::code::success) << round;
    ASSERT_EQ(queue.run(nvme::flush_command(id)), nvme::code::success) << round;
    std::fill_n(content.begin(), all ? bytes : 26 * 512, mark);
    ASSERT_EQ(read_file(path), content) << round;
  }
}

TEST_P(files, may_have_something_before_their_first_block) {
  const u64 first = GetParam().direct ? 4096 : 100;
  constexpr u64 bytes = 10003;
  byte_vector content = random_bytes(first + bytes, 5);
  const std::string path = make_file(content);
  {
    software_controller far_side(options());
    file_namespace file{path, GetParam().direct, true, 4096};
    file.first_byte = first;
    const u32 id = far_side.add_namespace(file);
    host_queue queue(far_side, 1, 8, 8);
    data_buffer buffer(4096), tail(4096);
    for (u32 repeat = 0; repeat < 2; ++repeat) {
      ASSERT_EQ(queue.run(buffer.read(id, 1, 4096)), nvme::code::success);
      EXPECT_TRUE(holds(buffer, content, first + 4096));
    }
    std::memset(tail.data(), 0x55, tail.bytes());
    ASSERT_EQ(queue.run(tail.write(id, 0, 4096)), nvme::code::success);
    ASSERT_EQ(queue.run(tail.write(id, 2, 4096)), nvme::code::success);
    ASSERT_EQ(queue.run(nvme::flush_command(id)), nvme::code::success);
    for (u64 k = 0; k < bytes; ++k) {
      if (k < 4096 || k >= 8192) content[first + k] = std::byte{0x55};
    }
    ASSERT_EQ(queue.run(tail.read(id, 2, 4096)), nvme::code::success);
    EXPECT_TRUE(holds(tail, content, first + 8192));
    EXPECT_EQ(queue.run(buffer.read(id, 3, 4096)), nvme::code::lba_out_of_range);
  }
  EXPECT_EQ(read_file(path), content);
}

TEST_P(files, that_are_read_only_refuse_writes) {
  const byte_vector content = random_bytes(8192, 2);
  const std::string path = make_file(content);
  software_controller far_side(options());
  const u32 id = far_side.add_namespace({path, GetParam().direct});
  host_queue queue(far_side, 1, 8, 8);
  data_buffer buffer(4096);
  EXPECT_EQ(queue.run(buffer.write(id, 0)), nvme::code::write_protected);
  EXPECT_EQ(queue.run(nvme::flush_command(id)), nvme::code::success);
  EXPECT_EQ(queue.run(buffer.read(id, 0)), nvme::code::success);
  EXPECT_TRUE(holds(buffer, content, 0));
  EXPECT_EQ(read_file(path), content);
}

TEST_P(files, that_are_truncated_while_in_use_give_a_media_error) {
  const byte_vector content = random_bytes(1 << 20, 3);
  const std::string path = make_file(content);
  software_controller far_side(options());
  const u32 id = far_side.add_namespace({path, GetParam().direct});
  host_queue queue(far_side, 1, 8, 8);
  data_buffer buffer(65536);
  ASSERT_EQ(queue.run(buffer.read(id, 1024)), nvme::code::success);
  ASSERT_EQ(truncate(path.c_str(), 65536), 0);
  for (u32 repeat = 0; repeat < 3; ++repeat) {
    EXPECT_EQ(queue.run(buffer.read(id, 1024)), nvme::code::unrecovered_read_error);
    EXPECT_EQ(queue.run(buffer.read(id, 64)), nvme::code::unrecovered_read_error) << "half of it is gone";
  }
  ASSERT_EQ(queue.run(buffer.read(id, 0)), nvme::code::success);
  EXPECT_TRUE(holds(buffer, content, 0));
}

TEST_P(files, of_two_namespaces_are_told_apart) {
  const byte_vector first = random_bytes(65536, 4), second = random_bytes(32768, 5);
  write_file(directory_.file("first"), first);
  write_file(directory_.file("second"), second);
  software_controller far_side(options());
  EXPECT_EQ(far_side.add_namespace({directory_.file("first"), GetParam().direct, false, 512}), 1u);
  EXPECT_EQ(far_side.add_namespace({directory_.file("second"), GetParam().direct, false, 4096}), 2u);
  host_queue queue(far_side, 1, 8, 8);
  data_buffer buffer(8192);
  ASSERT_EQ(queue.run(buffer.read(1, 8, 512)), nvme::code::success);
  EXPECT_TRUE(holds(buffer, first, 4096));
  ASSERT_EQ(queue.run(buffer.read(2, 1, 4096)), nvme::code::success);
  EXPECT_TRUE(holds(buffer, second, 4096));
}

TEST_P(files, see_new_memory_at_the_address_of_a_buffer_that_was_given_back) {
  const byte_vector content = random_bytes(1 << 20, 6);
  software_controller far_side(options());
  const u32 id = far_side.add_namespace({make_file(content), GetParam().direct});
  constexpr u64 bytes = 65536;
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(address, MAP_FAILED);
  for (u64 round = 0; round < 4; ++round) {
    far_side.add_buffer(address, bytes);
    {
      host_queue queue(far_side, 1, 8, 8);
      auto command = nvme::transfer_command(nvme::opcode::read, id, lba{round * 8}, 8);
      command.prp1 = reinterpret_cast<u64>(address) + 4096;
      ASSERT_EQ(queue.run(command), nvme::code::success);
      EXPECT_EQ(std::memcmp(static_cast<std::byte*>(address) + 4096, content.data() + round * 4096, 4096), 0);
    }
    ASSERT_EQ(mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), address);
  }
  munmap(address, bytes);
}

TEST(software_controller, copies_what_is_in_the_page_cache_and_hands_on_what_is_not) {
  temporary_directory directory;
  const byte_vector content = random_bytes(4 << 20, 7);
  const std::string path = directory.file("data");
  write_file(path, content);
  software_controller far_side;
  const u32 id = far_side.add_namespace({path});
  host_queue queue(far_side, 1, 8, 8);
  data_buffer buffer(65536);
  ASSERT_EQ(queue.run(buffer.read(id, 0)), nvme::code::success);
  EXPECT_EQ(far_side.counts().copied, 1u) << "just written, so in the page cache";

  // The other half of the file, which no answer of mincore is known for yet.
  const int file = open(path.c_str(), O_RDONLY);
  ASSERT_EQ(fdatasync(file), 0);
  ASSERT_EQ(posix_fadvise(file, 2 << 20, 2 << 20, POSIX_FADV_DONTNEED), 0);
  void* half = mmap(nullptr, 2 << 20, PROT_READ, MAP_SHARED, file, 2 << 20);
  unsigned char resident = 1;
  ASSERT_EQ(mincore(half, 4096, &resident), 0);
  munmap(half, 2 << 20);
  close(file);
  if ((resident & 1) != 0) GTEST_SKIP() << "this file system keeps its pages (tmpfs?)";
  std::memset(buffer.data(), 0, buffer.bytes());
  ASSERT_EQ(queue.run(buffer.read(id, 4096)), nvme::code::success);
  EXPECT_TRUE(holds(buffer, content, 2 << 20));
  EXPECT_EQ(far_side.counts().handed_on, 1u);
  ASSERT_EQ(queue.run(buffer.read(id, 4096)), nvme::code::success);
  EXPECT_EQ(far_side.counts().copied, 2u) << "it has been read, so it is in the page cache";
  EXPECT_EQ(far_side.counts().commands, 3u);
}

TEST(software_controller, stores_what_is_in_the_page_cache_by_a_copy) {
  temporary_directory directory;
  const byte_vector content = random_bytes(65536 + 1003, 9);
  const std::string path = directory.file("data");
  for (const u64 first_byte : {0, 128, 100}) {
    write_file(path, content);
    software_controller far_side;
    const u32 id = far_side.add_namespace({.path = path, .writable = true, .first_byte = first_byte});
    host_queue queue(far_side, 1, 8, 8);
    data_buffer buffer(4096);
    std::memset(buffer.data(), 0x22, buffer.bytes());
    ASSERT_EQ(queue.run(buffer.write(id, 3)), nvme::code::success);
    const u64 last_block = (content.size() - first_byte - 1) / 512;
    data_buffer block(512);
    std::memset(block.data(), 0x22, block.bytes());
    ASSERT_EQ(queue.run(block.write(id, last_block)), nvme::code::success);
    // What begins between words of the file, or ends between them, is left to system calls.
    EXPECT_EQ(far_side.counts().copied, first_byte % 8 == 0 ? 1u : 0u);
    EXPECT_EQ(far_side.counts().copied + far_side.counts().handed_on, 2u);
    byte_vector expected = content;
    const auto at = [&](u64 byte) { return expected.begin() + static_cast<std::ptrdiff_t>(first_byte + byte); };
    std::fill(at(3 * 512), at(3 * 512 + 4096), std::byte{0x22});
    std::fill(at(last_block * 512), expected.end(), std::byte{0x22});
    EXPECT_EQ(read_file(path), expected) << "blocks from byte " << first_byte;
  }
}

// More than wait for each other, reads between writes, of sizes that end within a vector of words.
TEST(software_controller, moves_what_comes_at_once_each_to_its_own_place) {
  temporary_directory directory;
  constexpr u32 blocks = 29;
  byte_vector content = random_bytes(blocks * 4096 + 1000, 11);
  const std::string path = directory.file("data");
  write_file(path, content);
  software_controller far_side;
  const u32 id = far_side.add_namespace({.path = path, .writable = true, .first_byte = 1000});
  host_queue queue(far_side, 1, 32, 32);
  std::vector<std::unique_ptr<data_buffer>> buffers;
  for (u32 round = 0; round < 3; ++round) {
    for (u32 k = 0; k < blocks; ++k) {
      data_buffer& buffer = *buffers.emplace_back(std::make_unique<data_buffer>(512 * (1 + k % 8)));
      const bool written = (k + round) % 3 == 0;
      std::memset(buffer.data(), static_cast<int>(k), buffer.bytes());
      queue.write_command(written ? buffer.write(id, 8 * k) : buffer.read(id, 8 * k));
    }
    queue.ring();
    ASSERT_TRUE(queue.drain());
    for (auto const& [command, status] : queue.take_done()) EXPECT_EQ(status, nvme::code::success) << "command " << command;
    for (u32 k = 0; k < blocks; ++k) {
      data_buffer const& buffer = *buffers[round * blocks + k];
      const u64 first = 1000 + u64{k} * 4096;
      if ((k + round) % 3 != 0) {
        EXPECT_TRUE(holds(buffer, content, first)) << "block " << k;
      } else {
        std::fill_n(content.begin() + static_cast<std::ptrdiff_t>(first), buffer.bytes(), static_cast<std::byte>(k));
      }
    }
  }
  EXPECT_EQ(far_side.counts().copied, 3u * blocks);
  EXPECT_EQ(read_file(path), content);
}

// The pages that the mapping is thought to have are gone: each store ends in a bus error, and a system call takes its place.
TEST(software_controller, hands_on_the_stores_that_a_mapping_does_not_take) {
  temporary_directory directory;
  const byte_vector content = random_bytes(1 << 20, 10);
  const std::string path = directory.file("data");
  write_file(path, content);
  software_controller far_side;
  const u32 id = far_side.add_namespace({.path = path, .writable = true});
  host_queue queue(far_side, 1, 8, 8);
  data_buffer buffer(4096);
  ASSERT_EQ(queue.run(buffer.read(id, 0)), nvme::code::success) << "asks which pages there are";
  ASSERT_EQ(truncate(path.c_str(), 4096), 0);
  std::memset(buffer.data(), 0x33, buffer.bytes());
  for (u32 k = 0; k < 7; ++k) queue.write_command(buffer.write(id, 64 + 8 * k));
  queue.ring();
  ASSERT_TRUE(queue.drain());
  for (auto const& [command, status] : queue.take_done()) EXPECT_EQ(status, nvme::code::success) << "command " << command;
  EXPECT_EQ(far_side.counts().copied, 1u);
  EXPECT_EQ(far_side.counts().handed_on, 7u);
  const byte_vector found = read_file(path);
  ASSERT_EQ(found.size(), 32768u + 7 * 4096);
  for (u64 k = 32768; k < found.size(); ++k) ASSERT_EQ(found[k], std::byte{0x33}) << "byte " << k;
}

TEST(software_controller, counts_doorbell_values_that_cannot_be_once_each) {
  page_memory memory(65536);
  software_controller far_side;
  far_side.add_namespace({memory.data(), memory.bytes()});
  host_queue queue(far_side, 1, 8, 8);
  for (const u32 tail : {8u, 8u, 1000u}) {
    system_ref<u32>(*queue.rings().sq_doorbell).store(tail, release);
    queue.poll();
    queue.poll();
  }
  EXPECT_EQ(far_side.counts().refused_doorbells, 2u);
}

TEST(software_controller, memory_whose_size_is_no_multiple_of_the_block_keeps_its_neighbour_intact) {
  byte_vector memory = random_bytes(4096, 8);
  const byte_vector before = memory;
  software_controller far_side;
  const u32 id = far_side.add_namespace(std::span(memory).first(1003));
  host_queue queue(far_side, 1, 8, 8);
  data_buffer buffer(1024);
  ASSERT_EQ(queue.run(buffer.read(id, 0)), nvme::code::success);
  EXPECT_TRUE(holds(buffer, byte_vector(before.begin(), before.begin() + 1003), 0));
  std::memset(buffer.data(), 0x11, buffer.bytes());
  ASSERT_EQ(queue.run(buffer.write(id, 0)), nvme::code::success);
  for (u64 k = 0; k < memory.size(); ++k) ASSERT_EQ(memory[k], k < 1003 ? std::byte{0x11} : before[k]) << "byte " << k;
}

std::string message_of(std::function<void()> const& action) {
  try {
    action();
  } catch (error const& e) {
    return e.what();
  }
  return "no error";
}

TEST(software_controller, says_what_is_wrong_with_a_path_and_what_to_do) {
  temporary_directory directory;
  software_controller far_side;
  const auto message = [&](file_namespace const& file) { return message_of([&] { far_side.add_namespace(file); }); };
  const std::string missing = directory.file("missing");
  EXPECT_EQ(message({missing}), "open namespace " + missing + ": No such file or directory: check the path");
  EXPECT_EQ(message({directory.file("")}),
            "open namespace " + directory.file("") + ": Is a directory: name a file or a block device inside it");
  const std::string empty = directory.file("empty");
  write_file(empty, {});
  EXPECT_EQ(message({empty}), "open namespace " + empty + ": it is empty: a namespace needs at least one byte");
  EXPECT_EQ(message({"/dev/null"}), "open namespace /dev/null: it is neither a file nor a block device: name one of these");
  const std::string pipe = directory.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(message({pipe}), "open namespace " + pipe + ": it is neither a file nor a block device: name one of these");
  const std::string good = directory.file("good");
  write_file(good, byte_vector(4096));
  EXPECT_EQ(message({good, false, false, 1000}),
            "open namespace " + good + ": block size 1000: ask for a power of two from 512 to 1048576");
  EXPECT_EQ(message({good}), "no error");
  EXPECT_NE(message_of([&] { far_side.add_namespace(std::span<std::byte>()); }).find("at least one byte"), std::string::npos);
}

TEST(software_controller, says_that_a_file_may_not_be_read) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  temporary_directory directory;
  const std::string secret = directory.file("secret");
  write_file(secret, byte_vector(4096));
  ASSERT_EQ(chmod(secret.c_str(), 0), 0);
  software_controller far_side;
  EXPECT_NE(message_of([&] { far_side.add_namespace({secret}); }).find("Permission denied"), std::string::npos);
}

}  // namespace
}  // namespace penstock::test_support
