// A folder whose calls a thread of the host makes.
#pragma once

#include "device/small_folder.hpp"
#include "penstock/executor/executor.hpp"
#include "support/scratch_files.hpp"

#include <fstream>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace penstock::test {

// A thread of the host calls as a kernel's would.
struct lone_folder : testing::Test {
  std::unique_ptr<executor> on = open_executor("cpu");
  test_support::scratch_folder scratch;
  lone_thread g;

  folder open_root(bool writable, u32 files = 100, u64 timeout_ns = folder_options().cache.timeout_ns) {
    folder_options options = small_folder(512, io_engine::automatic);
    options.cache.timeout_ns = timeout_ns;
    options.writable = writable;
    options.max_files = files;
    return folder(*on, scratch.path(), options);
  }
  void write(std::string const& name, std::string const& text) const {
    std::ofstream(scratch / name, std::ios::binary | std::ios::trunc) << text;
  }
  std::string read(folder_view const& files, file_descriptor const& file) const {
    std::string text(files.size_of(file).value + 100, '?');
    const file_result got = files.pread(g, file, text.data(), text.size(), 0);
    EXPECT_EQ(0u, got.error);
    return text.substr(0, got.value);
  }
  open_result open(folder_view const& files, std::string const& name, u32 flags = file_flag::read) const {
    return files.open(g, name.data(), static_cast<u32>(name.size()), flags);
  }
  std::string read(folder_view const& files, std::string const& name) const {
    const open_result opened = open(files, name);
    EXPECT_EQ(0u, opened.error);
    const std::string text = read(files, opened.file);
    EXPECT_EQ(0u, files.close(g, opened.file));
    return text;
  }
};

}  // namespace penstock::test
