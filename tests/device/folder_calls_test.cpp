// A folder's calls by threads of the host: what is seen when, refused, and reported.
#include "device/lone_folder.hpp"
#include "support/emulated_warp.hpp"
#include "support/scratch_files.hpp"
#include "support/test_context.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace penstock::test {
namespace {

TEST_F(lone_folder, an_open_sees_what_others_have_stored_before_it) {
  folder root = open_root(false);
  folder_view const& files = root.view();
  const std::string first(5000, 'a'), second(5000, 'b'), third(40, 'c');
  write("file", first);
  std::this_thread::sleep_for(
      std::chrono::milliseconds(30));  // where times of files are coarse, it may change unseen until then
  EXPECT_EQ(first, read(files, "file"));
  const u64 misses = root.cache().stats(0).misses;
  EXPECT_EQ(first, read(files, "file"));
  EXPECT_EQ(misses, root.cache().stats(0).misses) << "it has not changed";
  write("file", second);
  EXPECT_EQ(second, read(files, "file"));
  write("other", third);
  std::filesystem::rename(scratch / "other", scratch / "file");
  EXPECT_EQ(third, read(files, "file"));
  const open_result opened = open(files, "file");
  std::filesystem::remove(scratch / "file");
  EXPECT_EQ(third, read(files, opened.file)) << "a descriptor outlives the name";
  EXPECT_EQ(third, read(files, "file")) << "whose file it is as long as it is open here";
  EXPECT_EQ(0u, files.close(g, opened.file));
  EXPECT_EQ(u32{ENOENT}, open(files, "file").error);
}

TEST_F(lone_folder, what_others_have_cut_from_an_open_file_is_an_error) {
  for (const u64 bytes : {70000, 3 << 20}) {  // the longer one is mapped: of it whole pages
    write("file", std::string(bytes, 'a'));
    folder root = open_root(false);
    const open_result opened = open(root.view(), "file");
    std::filesystem::resize_file(scratch / "file", 1000);
    std::string got(512, '?');
    EXPECT_EQ(512u, root.view().pread(g, opened.file, got.data(), 512, 0).value);
    EXPECT_EQ(std::string(512, 'a'), got);
    EXPECT_EQ(u32{EIO}, root.view().pread(g, opened.file, got.data(), 512, 4096).error);
    EXPECT_EQ(u32{EIO}, root.view().pread(g, opened.file, got.data(), 512, bytes - 600).error);
    EXPECT_EQ(u32{EIO}, root.view().map(g, opened.file, 8192, 512, file_flag::read).error);
    EXPECT_EQ(0u, root.view().close(g, opened.file));
    EXPECT_EQ(std::string(1000, 'a'), read(root.view(), "file"));
  }
}

TEST_F(lone_folder, what_others_have_cut_from_a_file_that_is_written_reads_as_zeros) {
  write("file", std::string(70000, 'a'));
  folder root = open_root(true);
  const open_result opened = open(root.view(), "file", file_flag::read | file_flag::write);
  std::filesystem::resize_file(scratch / "file", 1000);
  EXPECT_EQ(std::string(1000, 'a') + std::string(69000, '\0'), read(root.view(), opened.file));
  EXPECT_EQ(0u, root.view().close(g, opened.file));
}

TEST_F(lone_folder, what_is_refused_leaves_the_rest_alone) {
  write("file", "12345");
  write("second", "");
  folder root = open_root(false, 1);
  folder_view const& files = root.view();
  EXPECT_EQ(u32{EROFS}, open(files, "file", file_flag::write).error);
  EXPECT_EQ(u32{EROFS}, files.unlink(g, "file", 4));
  EXPECT_EQ(u32{EROFS}, files.rename(g, "file", 4, "x", 1));
  const open_result opened = open(files, "file"), again = open(files, "file");
  EXPECT_EQ(opened.file.slot, again.file.slot);
  EXPECT_EQ(u32{ENFILE}, open(files, "second").error);
  EXPECT_EQ(0u, files.close(g, again.file));
  EXPECT_EQ("12345", read(files, opened.file)) << "opened twice, closed once";
  EXPECT_EQ(0u, files.close(g, opened.file));
  EXPECT_EQ("", read(files, "second"));
  std::filesystem::create_directory(scratch / "folder");
  ASSERT_EQ(0, mkfifo((scratch / "pipe").c_str(), 0600));
  EXPECT_EQ(u32{EISDIR}, open(files, "folder").error);
  EXPECT_EQ(u32{ENODEV}, open(files, "pipe").error);
  const std::string cut("file\0x", 6);
  EXPECT_EQ(u32{EINVAL}, open(files, cut).error);
  EXPECT_THROW(folder(*on, scratch / "nothing"), error);
  EXPECT_THROW(folder(*on, scratch / "file"), error);
}

TEST_F(lone_folder, what_others_stored_while_it_was_open_is_seen_after_its_close) {
  write("file", std::string(3000, 'a'));
  folder root = open_root(false);
  const open_result opened = open(root.view(), "file");
  EXPECT_EQ(std::string(3000, 'a'), read(root.view(), opened.file));
  write("file", std::string(3000, 'b'));
  EXPECT_EQ(0u, root.view().close(g, opened.file));
  EXPECT_EQ(std::string(3000, 'b'), read(root.view(), "file"));
}

TEST_F(lone_folder, what_others_stored_while_it_was_open_to_be_written_is_seen_after_its_close) {
  write("file", std::string(3000, 'a'));
  folder root = open_root(true);
  const open_result opened = open(root.view(), "file", file_flag::read | file_flag::write);
  EXPECT_EQ(std::string(3000, 'a'), read(root.view(), opened.file));
  write("file", std::string(3000, 'b'));
  EXPECT_EQ(0u, root.view().close(g, opened.file));
  EXPECT_EQ(std::string(3000, 'b'), read(root.view(), "file"));
}

TEST_F(lone_folder, an_open_that_is_refused_changes_nothing) {
  write("file", "12345");
  write("second", "content");
  folder root = open_root(true, 1);
  const open_result opened = open(root.view(), "file");
  EXPECT_EQ(u32{ENFILE}, open(root.view(), "second", file_flag::write | file_flag::truncate).error);
  EXPECT_EQ(7u, std::filesystem::file_size(scratch / "second"));
  EXPECT_EQ(u32{ENFILE}, open(root.view(), "third", file_flag::write | file_flag::create).error);
  EXPECT_FALSE(std::filesystem::exists(scratch / "third"));
  EXPECT_EQ(0u, root.view().close(g, opened.file));
}

TEST_F(lone_folder, an_open_truncates_what_others_have_stored_but_not_synced) {
  folder root = open_root(true);
  folder_view const& files = root.view();
  const open_result first = open(files, "file", file_flag::write | file_flag::create);
  EXPECT_EQ(5u, files.pwrite(g, first.file, "12345", 5, 2000).value);
  const open_result second = open(files, "file", file_flag::write | file_flag::truncate);
  EXPECT_EQ(0u, second.error);
  EXPECT_EQ(0u, files.size_of(first.file).value);
  EXPECT_EQ(0u, files.close(g, first.file));
  EXPECT_EQ(0u, files.close(g, second.file));
  EXPECT_EQ(0u, std::filesystem::file_size(scratch / "file"));
}

TEST_F(lone_folder, a_file_that_the_line_space_cannot_hold_is_refused) {
  constexpr u64 bytes = u64{200} << 30;
  write("file", "");
  std::filesystem::resize_file(scratch / "file", bytes);
  folder root = open_root(true);
  EXPECT_EQ(u32{ENOSPC}, open(root.view(), "file", file_flag::write).error);
  EXPECT_EQ(bytes, root.view().stat(g, "file", 4).size);
  EXPECT_EQ(0u, root.open_files());
}

TEST_F(lone_folder, ranges_are_used_again_without_the_lines_of_other_files) {
  folder_options options = small_folder(512, io_engine::automatic);
  options.cache.bytes = 64 << 10;
  options.writable = true;
  folder root(*on, scratch.path(), options);
  folder_view const& files = root.view();
  const u64 quarter = files.space_bytes / 4;  // twice as much for a file that may grow, so there is room for two
  for (u32 k = 0; k < 20; ++k) {
    const std::string name = k % 3 == 0 ? "one" : "two", text(600, static_cast<char>('a' + k));
    write(name, text);
    std::filesystem::resize_file(scratch / name, quarter);
    const open_result opened = open(files, name, file_flag::read | file_flag::write);
    ASSERT_EQ(0u, opened.error);
    EXPECT_EQ(2 * quarter, opened.file.range_bytes);
    std::string found(600, '?');
    EXPECT_EQ(600u, files.pread(g, opened.file, found.data(), 600, 0).value);
    EXPECT_EQ(text, found);
    EXPECT_EQ(600u, files.pwrite(g, opened.file, found.data(), 600, quarter - 600).value);
    EXPECT_EQ(0u, files.close(g, opened.file));
  }
  std::filesystem::resize_file((write("three", ""), scratch / "three"), 3 * quarter);
  EXPECT_EQ(0u, open(files, "three").error) << "all that is closed goes";
  EXPECT_EQ(u32{ENOSPC}, open(files, "one").error) << "what is open stays";
}

TEST_F(lone_folder, a_file_that_is_opened_again_has_room_to_grow) {
  folder root = open_root(true);
  std::filesystem::resize_file((write("file", ""), scratch / "file"), 200 << 20);
  open_result opened = open(root.view(), "file", file_flag::write);
  EXPECT_GE(opened.file.range_bytes, u64{400} << 20);
  EXPECT_EQ(1u, root.view().pwrite(g, opened.file, "x", 1, opened.file.range_bytes - 1).value);
  EXPECT_EQ(0u, root.view().close(g, opened.file));
  const u64 size = std::filesystem::file_size(scratch / "file");
  opened = open(root.view(), "file", file_flag::write);
  EXPECT_GE(opened.file.range_bytes, 2 * size);
  EXPECT_EQ(0u, root.view().close(g, opened.file));
}

TEST_F(lone_folder, closes_beside_opens_leave_each_file_its_size) {
  constexpr u32 threads = 4, rounds = 40, bytes = 300;
  folder root = open_root(true);
  for (u32 k = 0; k < 10; ++k) {
    const std::string name = "shared" + std::to_string(k);
    run_threads(threads, [&](u32 thread) {
      const std::string record(bytes, static_cast<char>('a' + thread));
      for (u32 round = 0; round < rounds; ++round) {
        const open_result opened = open(root.view(), name, file_flag::write | file_flag::create);
        const u64 at = (u64{round} * threads + thread) * bytes;
        EXPECT_EQ(u64{bytes}, root.view().pwrite(g, opened.file, record.data(), bytes, at).value);
        EXPECT_EQ(0u, root.view().close(g, opened.file));
      }
    });
    ASSERT_EQ(u64{threads} * rounds * bytes, std::filesystem::file_size(scratch / name));
  }
}

TEST_F(lone_folder, a_file_that_is_open_is_opened_without_the_host) {
  write("file", "12345");
  write("other", "67890");
  folder root = open_root(true);
  folder_view const& files = root.view();
  const open_result first = open(files, "file");
  const u64 calls = root.host_calls();
  const open_result again = open(files, "file");
  EXPECT_EQ(first.file.generation, again.file.generation);
  EXPECT_EQ("12345", read(files, again.file));
  EXPECT_EQ(0u, files.close(g, again.file));
  EXPECT_EQ(calls, root.host_calls());
  EXPECT_EQ(u32{EEXIST}, open(files, "file", file_flag::write | file_flag::create | file_flag::exclusive).error);
  const open_result writer = open(files, "file", file_flag::read | file_flag::write);
  EXPECT_EQ(calls + 2, root.host_calls()) << "the host has it open to read only";
  const open_result second = open(files, "file", file_flag::write | file_flag::truncate);
  EXPECT_EQ(calls + 3, root.host_calls()) << "a truncation is the host's";
  EXPECT_EQ(5u, files.pwrite(g, second.file, "abcde", 5, 0).value);
  EXPECT_EQ(0u, files.rename(g, "other", 5, "file", 4));
  EXPECT_EQ("67890", read(files, "file"));
  EXPECT_EQ("abcde", read(files, first.file));
  for (auto const* each : {&first, &writer, &second}) EXPECT_EQ(0u, files.close(g, each->file));
  EXPECT_EQ(u32{EBADF}, files.close(g, first.file));
  EXPECT_EQ(0u, root.open_files());
}

TEST_F(lone_folder, what_was_stored_before_a_sync_is_with_the_host_after_it) {
  constexpr u32 threads = 6, rounds = 60, bytes = 200;
  folder root = open_root(true);
  const open_result opened = open(root.view(), "file", file_flag::read | file_flag::write | file_flag::create);
  ASSERT_EQ(0u, opened.error);
  run_threads(threads, [&](u32 thread) {
    std::ifstream host(scratch / "file", std::ios::binary);
    std::string found(bytes, '?');
    for (u32 round = 0; round < rounds; ++round) {
      const u64 at = scatter(round) % 64 * threads * bytes + u64{thread} * bytes;
      const std::string record(bytes, static_cast<char>('a' + (thread + round) % 26));
      EXPECT_EQ(u64{bytes}, root.view().pwrite(g, opened.file, record.data(), bytes, at).value);
      EXPECT_EQ(0u, root.view().sync(g, opened.file));
      host.clear();
      host.seekg(static_cast<std::streamoff>(at));
      host.read(found.data(), bytes);
      ASSERT_EQ(record, found) << "round " << round;
    }
  });
  EXPECT_EQ(0u, root.view().close(g, opened.file));
}

TEST_F(lone_folder, a_map_outlives_the_close_of_its_file) {
  write("file", std::string(1000, 'a'));
  folder root = open_root(true);
  folder_view const& files = root.view();
  const open_result opened = open(files, "file", file_flag::read | file_flag::write);
  const mapped_bytes to_read = files.map(g, opened.file, 100, 1000, file_flag::read);
  EXPECT_EQ(412u, to_read.count) << "to the end of its line";
  const mapped_bytes mapped = files.map(g, opened.file, 600, 1000, file_flag::read | file_flag::write);
  EXPECT_EQ(400u, mapped.count) << "to the end of the file";
  EXPECT_EQ(u32{EBADF}, files.map(g, open(files, "file").file, 0, 1, file_flag::write).error);
  EXPECT_EQ(0u, files.close(g, opened.file));
  EXPECT_EQ(0u, files.close(g, opened.file));
  EXPECT_EQ(1u, root.open_files());
  mapped.bytes[399] = 'z';
  EXPECT_EQ(0u, files.unmap(g, opened.file, mapped));
  EXPECT_EQ(0u, root.open_files());
  EXPECT_EQ(std::string(412, 'a'), std::string(to_read.bytes, to_read.count));
  EXPECT_EQ(0u, files.unmap(g, opened.file, to_read));
  EXPECT_EQ(std::string(999, 'a') + "z", read(files, "file"));
  std::ifstream host(scratch / "file");
  EXPECT_EQ(std::string(999, 'a') + "z", std::string((std::istreambuf_iterator<char>(host)), {}));
  EXPECT_EQ(u32{EBADF}, files.map(g, opened.file, 0, 1, file_flag::read).error);
}

TEST_F(lone_folder, a_map_that_was_cut_is_in_the_way_of_nothing) {
  folder root = open_root(true, 100, 100'000'000);
  folder_view const& files = root.view();
  const open_result opened = open(files, "file", file_flag::read | file_flag::write | file_flag::create);
  const std::string bytes(100000, 'a');
  EXPECT_EQ(bytes.size(), files.pwrite(g, opened.file, bytes.data(), bytes.size(), 0).value);
  const mapped_bytes mapped = files.map(g, opened.file, 50000, 100, file_flag::write);
  EXPECT_EQ(u32{ETIMEDOUT}, files.truncate(g, opened.file, 10));
  EXPECT_EQ(10u, files.size_of(opened.file).value);
  mapped.bytes[0] = 'b';
  EXPECT_EQ(0u, files.unmap(g, opened.file, mapped));
  EXPECT_EQ(0u, files.close(g, opened.file));
  EXPECT_EQ(10u, std::filesystem::file_size(scratch / "file"));
  EXPECT_NO_THROW(root.flush());
  write("other", std::string(1 << 20, 'c'));
  EXPECT_EQ(std::string(1 << 20, 'c'), read(files, "other"));
}

TEST_F(lone_folder, what_has_no_room_is_not_created) {
  folder_options options;
  options.cache.bytes = 7 * 512;
  options.cache.line_bytes = 512;
  options.writable = true;
  folder root(*on, scratch.path(), options);
  std::string name;
  u32 error = 0;
  for (u32 k = 0; k < 5000 && error == 0; ++k) {
    name = std::to_string(k);
    error = open(root.view(), name, file_flag::write | file_flag::create).error;
  }
  EXPECT_EQ(u32{ENOSPC}, error);
  EXPECT_FALSE(std::filesystem::exists(scratch / name));
  EXPECT_EQ(0u, open(root.view(), "./0", file_flag::write | file_flag::create).error) << "it is open";
  EXPECT_EQ(u32{EEXIST}, open(root.view(), "0", file_flag::write | file_flag::create | file_flag::exclusive).error);
  for (u32 const files : {129u, 4'000'000'000u}) {  // of which each could grow to less than 2 MiB; places without end
    options.max_files = files;
    EXPECT_THROW(folder(*on, scratch.path(), options), penstock::error);
  }
}

TEST_F(lone_folder, as_many_files_are_open_to_be_written_as_were_asked_for) {
  constexpr u32 files = 6000;  // more than a folder that was not asked has room for
  rlimit old{}, more{};
  ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &old));
  more = {old.rlim_max, old.rlim_max};
  if (old.rlim_max < files + 100) GTEST_SKIP() << "the process may have " << old.rlim_max << " open files";
  ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &more));
  {
    folder root = open_root(true, files);
    constexpr u32 new_file = file_flag::write | file_flag::create;
    for (u32 k = 0; k < files; ++k) {
      const open_result opened = open(root.view(), std::to_string(k), new_file);
      ASSERT_EQ(0u, opened.error) << k;
      EXPECT_GE(opened.file.range_bytes, u64{2} << 20);
    }
    EXPECT_EQ(files, root.open_files());
    EXPECT_EQ(u32{ENFILE}, open(root.view(), "more", new_file).error);
    EXPECT_FALSE(std::filesystem::exists(scratch / "more"));
    write("there", "1");
    EXPECT_EQ(u32{ENFILE}, open(root.view(), "there", file_flag::write).error);
    EXPECT_EQ(0u, open(root.view(), "./7", new_file).error) << "it is open";
  }
  EXPECT_EQ(0, setrlimit(RLIMIT_NOFILE, &old));
}

// What is read ahead of one file lies in the range of the next, which may not be open yet.
TEST_F(lone_folder, files_that_are_read_side_by_side_are_no_matter_to_each_other) {
  constexpr u32 files = 12, threads = 3, bytes = 1 << 20, piece = 32 << 10;
  for (u32 k = 0; k < files; ++k) write(std::to_string(k), std::string(bytes, static_cast<char>('a' + k)));
  folder_options options;
  options.cache.bytes = 64 << 20;
  options.cache.line_bytes = piece;
  for (u32 round = 0; round < 25; ++round) {
    folder root(*on, scratch.path(), options);
    std::atomic<u32> next = 0;
    run_threads(threads, [&](u32) {
      for (u32 k; (k = next++) < files;) {
        const open_result opened = open(root.view(), std::to_string(k));
        ASSERT_EQ(0u, opened.error);
        for (u64 at = 0; at < bytes; at += piece) {
          const mapped_bytes mapped = root.view().map(g, opened.file, at, piece, file_flag::read);
          ASSERT_EQ(0u, mapped.error) << "file " << k << " at " << at;
          EXPECT_EQ('a' + k, static_cast<u32>(mapped.bytes[0]));
          EXPECT_EQ(0u, root.view().unmap(g, opened.file, mapped));
        }
        EXPECT_EQ(0u, root.view().close(g, opened.file));
      }
    });
  }
}

TEST_F(lone_folder, a_close_that_is_not_the_last_writes_what_was_stored) {
  folder root = open_root(true);
  folder_view const& files = root.view();
  const open_result writer = open(files, "file", file_flag::write | file_flag::create), reader = open(files, "file");
  EXPECT_EQ(5u, files.pwrite(g, writer.file, "12345", 5, 0).value);
  EXPECT_EQ(0u, files.close(g, writer.file));
  std::ifstream host(scratch / "file");
  std::string found(5, '?');
  host.read(found.data(), 5);
  EXPECT_EQ("12345", found);
  EXPECT_EQ(0u, files.close(g, reader.file));
}

TEST_F(lone_folder, what_was_stored_into_a_map_is_kept_by_who_closes_last) {
  write("file", std::string(1000, 'a'));
  folder root = open_root(true);
  folder_view const& files = root.view();
  const open_result writer = open(files, "file", file_flag::read | file_flag::write), reader = open(files, "file");
  const mapped_bytes mapped = files.map(g, writer.file, 0, 1, file_flag::write);
  EXPECT_EQ(0u, files.close(g, writer.file));
  mapped.bytes[0] = 'b';
  EXPECT_EQ(0u, files.unmap(g, writer.file, mapped));
  EXPECT_EQ(0u, files.close(g, reader.file));
  EXPECT_EQ(0u, root.open_files());
  std::ifstream host(scratch / "file");
  EXPECT_EQ("b" + std::string(999, 'a'), std::string((std::istreambuf_iterator<char>(host)), {}));
}

TEST_F(lone_folder, what_the_disk_does_not_take_is_reported) {
  folder root = open_root(true);
  folder_view const& files = root.view();
  const open_result opened = open(files, "file", file_flag::write | file_flag::create);
  const std::string bytes(4000, 'a');
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{1024, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &little);
  EXPECT_EQ(4000u, files.pwrite(g, opened.file, bytes.data(), 4000, 0).value);
  EXPECT_NE(0u, files.sync(g, opened.file));
  EXPECT_NE(0u, files.close(g, opened.file)) << "and it is dropped";
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NO_THROW(root.flush());
  const open_result again = open(files, "file", file_flag::write);
  EXPECT_EQ(4000u, files.pwrite(g, again.file, bytes.data(), 4000, 0).value);
  EXPECT_EQ(0u, files.close(g, again.file));
  EXPECT_EQ(bytes, read(files, "file"));
}

TEST_F(lone_folder, more_files_than_the_process_may_open_are_refused) {
  folder root = open_root(false);
  for (u32 k = 0; k < 40; ++k) write(std::to_string(k), "1");
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const auto used = static_cast<rlim_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
  const rlimit few{used + 10, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  std::vector<file_descriptor> all;
  u32 refused = 0;
  for (u32 k = 0; k < 40; ++k) {
    const open_result opened = open(root.view(), std::to_string(k));
    if (opened.ok()) all.push_back(opened.file);
    if (opened.error == EMFILE) ++refused;
  }
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_GT(all.size(), 4u);
  EXPECT_EQ(40u, all.size() + refused);
  for (file_descriptor const& file : all) EXPECT_EQ(0u, root.view().close(g, file));
}

TEST_F(lone_folder, a_folder_that_was_moved_is_still_the_folder) {
  std::filesystem::create_directory(scratch / "here");
  write("here/file", std::string(5000, 'a'));
  folder_options options = small_folder(512, io_engine::automatic);
  folder root(*on, scratch / "here", options);
  const open_result opened = open(root.view(), "file");
  const mapped_bytes mapped = root.view().map(g, opened.file, 0, 512, file_flag::read);
  std::filesystem::rename(scratch / "here", scratch / "there");
  std::filesystem::resize_file(scratch / "there/file", 10);
  EXPECT_EQ(std::string(512, 'a'), std::string(mapped.bytes, mapped.count)) << "it was cut while it was mapped";
  EXPECT_EQ(0u, root.view().unmap(g, opened.file, mapped));
  EXPECT_EQ(0u, root.view().close(g, opened.file));
  EXPECT_EQ(std::string(10, 'a'), read(root.view(), "file"));
}

TEST_F(lone_folder, a_group_that_holds_all_frames_is_told_so) {
  write("file", std::string(4 << 20, 'a'));
  folder root = open_root(false, 100, 200'000'000);
  const open_result opened = open(root.view(), "file");
  std::vector<mapped_bytes> held;
  for (u64 at = 0;; at += 512) {
    held.push_back(root.view().map(g, opened.file, at, 512, file_flag::read));
    if (!held.back().ok() || held.size() > 4000) break;
  }
  EXPECT_EQ(u32{ENOMEM}, held.back().error);
  for (mapped_bytes const& each : held) EXPECT_EQ(0u, root.view().unmap(g, opened.file, each));
  EXPECT_EQ(std::string(4 << 20, 'a'), read(root.view(), opened.file));
  EXPECT_EQ(0u, root.view().close(g, opened.file));
}

TEST_F(lone_folder, what_is_written_once_is_open_in_no_other_way) {
  write("file", std::string(3000, 'a'));
  folder root = open_root(true);
  folder_view const& files = root.view();
  constexpr u32 once = file_flag::write | file_flag::write_once;
  const open_result first = open(files, "file", once), second = open(files, "file", once | file_flag::create);
  ASSERT_EQ(0u, first.error);
  EXPECT_EQ(0u, second.error);
  EXPECT_EQ(1u, root.open_files());
  EXPECT_EQ(u32{EBUSY}, open(files, "file").error);
  EXPECT_EQ(u32{EBUSY}, open(files, "file", file_flag::write).error);
  EXPECT_EQ(u32{EINVAL}, open(files, "file", once | file_flag::read).error);
  EXPECT_EQ(u32{EINVAL}, open(files, "file", once | file_flag::append).error);
  EXPECT_EQ(u32{EINVAL}, open(files, "file", file_flag::read | file_flag::write_once).error);
  char byte = 0;
  EXPECT_EQ(u32{EBADF}, files.pread(g, first.file, &byte, 1, 0).error);
  EXPECT_EQ(u32{EBADF}, files.map(g, first.file, 0, 1, file_flag::read).error);
  EXPECT_EQ(2u, files.pwrite(g, first.file, "b\0", 2, 1000).value);
  const mapped_bytes mapped = files.map(g, second.file, 2000, 1, file_flag::write);
  ASSERT_EQ(0u, mapped.error);
  *mapped.bytes = 'c';
  EXPECT_EQ(0u, files.unmap(g, second.file, mapped));
  EXPECT_EQ(0u, files.close(g, first.file));
  EXPECT_EQ(0u, files.close(g, second.file));
  std::string expected(3000, 'a');
  expected[1000] = 'b';
  expected[2000] = 'c';
  EXPECT_EQ(expected, read(files, "file")) << "its lines are not those that were stored into";
  const open_result read = open(files, "file");
  EXPECT_EQ(u32{EBUSY}, open(files, "file", once).error);
  EXPECT_EQ(0u, files.close(g, read.file));
}

TEST_F(lone_folder, two_folders_and_the_host_write_one_file_once) {
  constexpr u64 bytes = 9000;
  folder here = open_root(true), there = open_root(true);
  constexpr u32 once = file_flag::write | file_flag::create | file_flag::write_once;
  const open_result a = open(here.view(), "file", once), b = open(there.view(), "file", once);
  std::ofstream host(scratch / "file", std::ios::binary | std::ios::in);
  for (u64 k = 0; k + 3 <= bytes; k += 3) {
    EXPECT_EQ(1u, here.view().pwrite(g, a.file, "a", 1, k).value);
    EXPECT_EQ(1u, there.view().pwrite(g, b.file, "b", 1, k + 1).value);
    host.seekp(static_cast<std::streamoff>(k + 2)).put('c');
  }
  host.flush();
  EXPECT_EQ(0u, here.cache().stats(0).misses) << "nothing is read";
  EXPECT_EQ(0u, here.view().sync(g, a.file));
  EXPECT_EQ(bytes, here.view().stat(g, "file", 4).size);
  EXPECT_EQ(0u, there.view().truncate(g, b.file, bytes - 1)) << "cuts what others have stored behind it, as it always does";
  EXPECT_EQ(0u, there.view().close(g, b.file));
  EXPECT_EQ(0u, here.view().close(g, a.file));
  std::string expected;
  while (expected.size() < bytes) expected += "abc";
  expected.back() = 0;
  expected.pop_back();
  EXPECT_EQ(expected, read(here.view(), "file"));
}

TEST_F(lone_folder, what_frames_had_is_not_written_once) {
  write("before", std::string(2 << 20, 'x'));  // more than there are frames
  folder root = open_root(true);
  read(root.view(), "before");
  const open_result opened = open(root.view(), "file", file_flag::write | file_flag::create | file_flag::write_once);
  for (u64 at : {700u, 1536u, 2047u, 5000u}) EXPECT_EQ(3u, root.view().pwrite(g, opened.file, "abc", 3, at).value);
  EXPECT_EQ(0u, root.view().close(g, opened.file));
  std::string expected(5003, '\0');
  for (u64 at : {700u, 1536u, 2047u, 5000u}) expected.replace(at, 3, "abc");
  EXPECT_EQ(expected, read(root.view(), "file"));
}

// Its size is what the longest of its writers gave it, be that zeros.
TEST_F(lone_folder, a_file_that_is_written_once_gets_no_shorter) {
  folder root = open_root(true);
  constexpr u32 once = file_flag::write | file_flag::create | file_flag::write_once;
  open_result opened = open(root.view(), "file", once);
  write("file", std::string(5000, 'x'));
  EXPECT_EQ(3u, root.view().pwrite(g, opened.file, "abc", 3, 10).value);
  EXPECT_EQ(5000u, root.view().stat(g, "file", 4).size);
  EXPECT_EQ(0u, root.view().close(g, opened.file));
  EXPECT_EQ(5000u, std::filesystem::file_size(scratch / "file"));
  opened = open(root.view(), "file", once);
  EXPECT_EQ(1u, root.view().pwrite(g, opened.file, "\0", 1, 7000).value);
  root.flush();
  EXPECT_EQ(7001u, std::filesystem::file_size(scratch / "file"));
  EXPECT_EQ(0u, root.view().close(g, opened.file));
  EXPECT_EQ(std::string(10, 'x') + "abc" + std::string(4987, 'x') + std::string(2001, '\0'), read(root.view(), "file"));
  // Also where others have made it longer by less than the line that was stored into.
  opened = open(root.view(), "short", once);
  EXPECT_EQ(3u, root.view().pwrite(g, opened.file, "abc", 3, 0).value);
  EXPECT_EQ(0u, root.view().sync(g, opened.file));
  std::ofstream(scratch / "short", std::ios::binary | std::ios::app) << "def";
  EXPECT_EQ(0u, root.view().close(g, opened.file));
  EXPECT_EQ("abcdef", read(root.view(), "short"));
}

}  // namespace
}  // namespace penstock::test
