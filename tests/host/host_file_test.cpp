// Files that commands write: there for good when they are done, or not there.
#include "libs/drive/host_file.hpp"
#include "support/scratch_files.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

namespace {

/// What was flushed, by its name at that moment, and whether the file of the test had its own name then.
struct flushed {
  std::string name;
  bool named = false;
};
thread_local std::vector<flushed>* seen = nullptr;
thread_local std::string awaited;

}  // namespace

// In the place of the C library's, of which it does what is asked.
extern "C" int fsync(int handle) {
  if (seen != nullptr) {
    std::error_code unknown;
    const auto name = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(handle), unknown);
    seen->push_back({name.string(), std::filesystem::exists(awaited)});
  }
  return static_cast<int>(syscall(SYS_fsync, handle));
}

namespace penstock::drive {
namespace {

TEST(output_files, are_flushed_before_they_get_their_name_and_their_folder_after) {
  const test_support::scratch_folder folder;
  const std::string path = folder / "out";
  std::vector<flushed> all;
  seen = &all;
  awaited = path;
  {
    output_file to(path, false);
    to.write("hello", 5, [] {});
    to.finish();
  }
  seen = nullptr;
  EXPECT_EQ(test_support::file_content(path), "hello");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_NE(all[0].name.find("/.out."), std::string::npos) << all[0].name;
  EXPECT_FALSE(all[0].named);
  EXPECT_EQ(all[1].name, std::filesystem::canonical(path).parent_path().string());
  EXPECT_TRUE(all[1].named);
}

TEST(output_files, that_are_devices_are_not_flushed) {
  std::vector<flushed> all;
  seen = &all;
  {
    output_file to("/dev/null", false);
    to.write("hello", 5, [] {});
    to.finish();
  }
  seen = nullptr;
  EXPECT_TRUE(all.empty());
}

}  // namespace
}  // namespace penstock::drive
