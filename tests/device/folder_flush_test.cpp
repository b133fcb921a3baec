// What a folder's flush leaves behind: files of their sizes, on the device.
#include "device/lone_folder.hpp"

#include <filesystem>
#include <set>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

thread_local std::set<ino_t> synced;

}  // namespace

// In the place of the C library's, of which it does what is asked.
extern "C" int fsync(int handle) {
  struct stat about;
  if (fstat(handle, &about) == 0) synced.insert(about.st_ino);
  return static_cast<int>(syscall(SYS_fsync, handle));
}

namespace penstock::test {
namespace {

struct flushed_folder : lone_folder {
  static constexpr u32 to_write = file_flag::read | file_flag::write | file_flag::create;
  static constexpr u64 size = 1005, on_the_disk = 1024;  // whole lines are written

  /// Stores the last of `size` bytes of an open file by another descriptor, whose close writes them back.
  void store_and_write_back(folder const& root, std::string const& name) const {
    const open_result opened = open(root.view(), name, to_write);
    EXPECT_EQ(1u, root.view().pwrite(g, opened.file, "!", 1, size - 1).value);
    EXPECT_EQ(0u, root.view().close(g, opened.file));
    EXPECT_EQ(on_the_disk, std::filesystem::file_size(scratch / name));
    synced.clear();
  }
  void expect_final(std::string const& name) const {
    EXPECT_EQ(size, std::filesystem::file_size(scratch / name));
    struct stat about;
    EXPECT_EQ(0, stat((scratch / name).c_str(), &about));
    EXPECT_TRUE(synced.contains(about.st_ino)) << name;
  }
};

TEST_F(flushed_folder, files_that_are_open_at_its_end_have_their_sizes) {
  {
    folder root = open_root(true);
    const open_result opened = open(root.view(), "file", file_flag::write | file_flag::create);
    ASSERT_EQ(0u, opened.error);
    EXPECT_EQ(5u, root.view().pwrite(g, opened.file, "hello", 5, 1000).value);
    root.flush();
    EXPECT_EQ(1005u, std::filesystem::file_size(scratch / "file"));
    EXPECT_EQ(1u, root.view().pwrite(g, opened.file, "!", 1, 1005).value);
  }
  EXPECT_EQ(1006u, std::filesystem::file_size(scratch / "file"));
}

TEST_F(flushed_folder, what_others_append_to_a_file_that_is_open_to_be_written_stays) {
  folder root = open_root(true);
  write("file", std::string(3000, 'a'));
  const auto append = [this] { std::ofstream(scratch / "file", std::ios::binary | std::ios::app) << std::string(500, 'b'); };
  open_result opened = open(root.view(), "file", to_write);
  append();
  root.flush();
  EXPECT_EQ(3500u, std::filesystem::file_size(scratch / "file"));
  EXPECT_EQ(1u, root.view().pwrite(g, opened.file, "!", 1, 0).value);
  append();
  EXPECT_EQ(0u, root.view().close(g, opened.file));
  EXPECT_EQ("!" + std::string(2999, 'a') + std::string(1000, 'b'), read(root.view(), "file"));
}

TEST_F(flushed_folder, what_others_cut_from_a_file_that_nobody_made_longer_stays_cut) {
  folder root = open_root(true);
  write("file", std::string(3000, 'a'));
  const open_result opened = open(root.view(), "file", to_write);
  std::filesystem::resize_file(scratch / "file", 10);
  root.flush();
  EXPECT_EQ(0u, root.view().close(g, opened.file));
  EXPECT_EQ(std::string(10, 'a'), read(root.view(), "file"));
}

// The last flush knew the same size in the same place, and no line is dirty: what is left is to cut and to sync.
TEST_F(flushed_folder, cuts_and_syncs_files_of_known_sizes_whose_lines_are_clean) {
  {
    folder root = open_root(true, 2);
    const open_result first = open(root.view(), "first", to_write);
    store_and_write_back(root, "first");
    root.flush();
    store_and_write_back(root, "first");
    root.flush();
    expect_final("first");
    EXPECT_EQ(0u, root.view().close(g, first.file));
    open_result second = open(root.view(), "second", to_write);
    while (second.ok() && second.file.slot != first.file.slot) {  // places are used in turn
      EXPECT_EQ(0u, root.view().close(g, second.file));
      second = open(root.view(), "second", to_write);
    }
    store_and_write_back(root, "second");
    root.flush();
    expect_final("second");
    store_and_write_back(root, "second");
  }
  expect_final("second");
}

}  // namespace
}  // namespace penstock::test
