// The system's way to resolve a name below a folder, and the one component by component: they find the same.
#include "src/controller/folder_names.hpp"
#include "support/scratch_files.hpp"

#include "penstock/host/error.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace penstock::controllers {
namespace {

struct found {
  int error = 0;
  u64 inode = 0;
  bool operator==(found const&) const = default;
};

std::ostream& operator<<(std::ostream& to, found const& f) {
  return to << (f.error != 0 ? std::strerror(f.error) : "inode " + std::to_string(f.inode));
}

class folder_names_test : public testing::Test {
 protected:
  folder_names_test() {
    namespace fs = std::filesystem;
    fs::create_directories(scratch_ / "root/a/b");
    std::ofstream(scratch_ / "outside") << "no";
    std::ofstream(scratch_ / "root/f") << "1";
    std::ofstream(scratch_ / "root/a/f") << "2";
    std::ofstream(scratch_ / "root/a/b/f") << "3";
    fs::create_symlink("a/b", scratch_ / "root/l");
    fs::create_symlink("../f", scratch_ / "root/a/up");
    fs::create_symlink("../../outside", scratch_ / "root/a/out");
    fs::create_symlink("..", scratch_ / "root/a/b/dots");
    fs::create_symlink("/etc", scratch_ / "root/abs");
    fs::create_symlink("loop", scratch_ / "root/loop");
    fs::create_symlink("l/../f", scratch_ / "root/a/chain");
    fs::create_symlink("new", scratch_ / "root/dangling");
    fs::create_symlink("a/", scratch_ / "root/slash");
    kernel_.emplace(scratch_ / "root");
    walk_.emplace(scratch_ / "root", false);
  }

  static found look(folder_names const& names, std::string const& path, int flags) {
    const owned_file file = names.open(path, flags, 0600);
    if (!file.valid()) return {errno, 0};
    struct stat about;
    EXPECT_EQ(0, fstat(file.get(), &about));
    return {0, about.st_ino};
  }
  std::string random_path(std::mt19937_64& random) const {
    static constexpr char const* parts[] = {"a",     "b",  "f", "l", "up",   "out", "dots", "abs", "loop",    "chain",
                                            "slash", "..", ".", "",  "none", "..",  "a",    "b",   "dangling"};
    std::string path = random() % 16 == 0 ? "/" : "";
    for (u64 k = random() % 6 + 1; k != 0; --k) path += std::string(parts[random() % std::size(parts)]) + (k > 1 ? "/" : "");
    return random() % 8 == 0 ? path + "/" : path;
  }

  test_support::scratch_folder scratch_;
  std::optional<folder_names> kernel_, walk_;
};

TEST_F(folder_names_test, both_ways_find_the_same) {
  std::mt19937_64 random(20261127);
  u32 opened = 0, left = 0;
  for (u32 k = 0; k < 20000; ++k) {
    const std::string path = random_path(random);
    for (const int flags : {O_RDONLY, O_RDWR, O_PATH, O_RDONLY | O_DIRECTORY, O_RDWR | O_CREAT | O_EXCL}) {
      const found expected = look(*kernel_, path, flags);
      if (expected.error == ENOSYS || expected.error == EPERM) GTEST_SKIP() << "the kernel has no openat2";
      // What was created must not be there for the other.
      if (expected.error == 0 && (flags & O_CREAT) != 0) continue;
      ASSERT_EQ(expected, look(*walk_, path, flags)) << path << " with " << flags;
      opened += expected.error == 0;
      left += expected.error == EXDEV;
    }
  }
  EXPECT_GT(opened, 1000u);
  EXPECT_GT(left, 1000u);
}

TEST_F(folder_names_test, what_is_created_lies_below) {
  for (auto const* names : {&*kernel_, &*walk_}) {
    EXPECT_EQ(0, look(*names, "dangling", O_RDWR | O_CREAT).error) << "over a link";
    EXPECT_TRUE(std::filesystem::remove(scratch_ / "root/new"));
    EXPECT_EQ(EXDEV, look(*names, "a/out/../x", O_RDWR | O_CREAT).error);
    EXPECT_EQ(EXDEV, look(*names, "../x", O_RDWR | O_CREAT).error);
    EXPECT_FALSE(std::filesystem::exists(scratch_ / "x"));
    EXPECT_EQ(EEXIST, look(*names, "dangling", O_RDWR | O_CREAT | O_EXCL).error);
  }
}

TEST_F(folder_names_test, the_parent_of_a_name_is_below) {
  for (auto const* names : {&*kernel_, &*walk_}) {
    std::string name;
    const auto inode_of = [&](std::string const& path) {
      const owned_file parent = names->open_parent(path, name);
      struct stat about;
      return parent.valid() && fstat(parent.get(), &about) == 0 ? found{0, about.st_ino} : found{errno, 0};
    };
    EXPECT_EQ(look(*names, "a/b", O_PATH), inode_of("l//new/"));
    EXPECT_EQ("new", name);
    EXPECT_EQ(look(*names, ".", O_PATH), inode_of("new"));
    EXPECT_EQ(EXDEV, inode_of("/new").error);
    EXPECT_EQ(EXDEV, inode_of("a/..").error);
    EXPECT_EQ(EXDEV, inode_of("../new").error);
    EXPECT_EQ(ENOENT, inode_of("").error);
    EXPECT_EQ(ENOTDIR, inode_of("f/new").error);
  }
}

}  // namespace
}  // namespace penstock::controllers
