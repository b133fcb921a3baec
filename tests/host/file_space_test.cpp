// What the host keeps open of a folder's files.
#include "src/controller/file_space.hpp"
#include "support/scratch_files.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

namespace penstock::controllers {
namespace {

// As the threads of a call_controller answer, and look after it while nobody calls.
TEST(file_space, files_are_closed_without_a_further_call) {
  const test_support::scratch_folder scratch;
  file_space space(scratch.path(), false, u64{1} << 30, 100, 4096);
  const auto used = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto before = used();
  std::vector<std::unique_ptr<file_call>> calls;
  std::vector<file_call*> all;
  for (u32 k = 0; k < 40; ++k) {
    const std::string name = std::to_string(k);
    std::ofstream(scratch / name) << "1";
    calls.push_back(std::make_unique<file_call>());
    all.push_back(calls.back().get());
    all[k]->asked = {
        .op = static_cast<u32>(file_op::open), .flags = file_flag::read, .path_bytes = static_cast<u32>(name.size())};
    std::copy(name.begin(), name.end(), all[k]->path);
  }
  space.answer(all);
  EXPECT_EQ(before + 40, used());
  for (file_call* const call : all) {
    call->asked = {
        .op = static_cast<u32>(file_op::close), .slot = call->given.slot, .generation = call->given.generation, .opens = 1};
  }
  space.answer(all);
  EXPECT_EQ(0u, space.open_files());
  for (u32 k = 0; k < 1000 && used() != before; ++k) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    space.close_unused();
  }
  EXPECT_EQ(before, used());
}

}  // namespace
}  // namespace penstock::controllers
