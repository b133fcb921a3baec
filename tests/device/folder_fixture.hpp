// The host's half of a folder's tests: files before, and what they hold after.
#pragma once

#include "device/folder_test_body.hpp"
#include "penstock/runtime/folder.hpp"
#include "support/check.hpp"
#include "support/scratch_files.hpp"

#include <filesystem>
#include <fstream>
#include <map>

namespace penstock::test {

class folder_fixture {
 public:
  folder_fixture(executor& on, u32 groups, folder_options options) {
    std::filesystem::create_directories(scratch_ / "sub/deep");
    std::filesystem::create_directories(scratch_ / "many");
    std::ofstream(scratch_ / "sub/deep/file") << "12345";
    for (u32 k = 0; k < folder_under_test::many; ++k) std::ofstream(scratch_ / ("many/" + std::to_string(k)));
    std::filesystem::create_directory_symlink("..", scratch_ / "out");
    std::string crowd;
    for (u64 k = 0; k < crowd_body::file_bytes; ++k) crowd += byte_of(0, 1, k);
    std::ofstream(scratch_ / "crowd", std::ios::binary) << crowd;
    options.writable = true;
    folder_ = std::make_unique<folder>(on, scratch_.path(), options);
    memory_ = {on.memory(), memory_kind::local, u64{groups} * 2 * folder_under_test::room};
  }

  folder_under_test bed() const { return {folder_->view(), memory_.data()}; }
  folder& files() { return *folder_; }
  std::string operator/(std::string const& name) const { return scratch_ / name; }

  void remove_names() const {
    for (u64 k = 0; k < shared_names_body::names; ++k) {
      const short_name name("name-", k);
      std::filesystem::remove(scratch_ / std::string(name.text, name.bytes));
    }
  }
  void remove_log(run_shape shape) const {
    const short_name name("log-", shape.seed);
    std::filesystem::remove(scratch_ / std::string(name.text, name.bytes));
  }
  /// Each record of each group once, and nothing else.
  void check_log(check_report& report, run_shape shape, u32 groups_that_ran) const {
    const short_name name("log-", shape.seed);
    std::ifstream file(scratch_ / std::string(name.text, name.bytes), std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    std::map<std::pair<u64, u64>, u32> seen;
    constexpr u64 record_bytes = 8 * folder_under_test::record_words;
    PENSTOCK_CHECK_EQ(report, 0u, bytes.size() % record_bytes);
    for (u64 at = 0; at + record_bytes <= bytes.size(); at += record_bytes) {
      u64 record[folder_under_test::record_words];
      std::memcpy(record, bytes.data() + at, sizeof record);
      PENSTOCK_CHECK_EQ(report, random_word(shape.seed, record[0], record[1]), record[2]);
      const u32 times = ++seen[{record[0], record[1]}];
      PENSTOCK_CHECK_EQ(report, 1u, times);
    }
    PENSTOCK_CHECK_EQ(report, u64{groups_that_ran} * folder_under_test::records, seen.size());
  }

  /// The pieces of written_once_body that are nobody's.
  void write_hosts_part(run_shape shape) const {
    std::ofstream file(once_path(shape), std::ios::binary);
    for (u64 round = 0; round < written_once_body::rounds; ++round) {
      file.seekp(static_cast<std::streamoff>(written_once_body::place_of(shape, round, shape.groups)));
      for (u64 k = 0; k < written_once_body::piece_bytes; ++k) file.put(hosts_byte);
    }
  }
  /// All pieces of each group that ran, none of others, and the host's. The file is removed.
  void check_written_once(check_report& report, run_shape shape, u32 groups_that_ran) const {
    using body = written_once_body;
    std::ifstream file(once_path(shape), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    PENSTOCK_CHECK_EQ(report, body::place_of(shape, body::rounds, 0), bytes.size());
    const auto differences = [&](u64 group, auto const& expected) {
      u64 found = 0;
      for (u64 round = 0; round < body::rounds; ++round) {
        for (u64 k = 0; k < body::piece_bytes; ++k) {
          found += bytes.at(body::place_of(shape, round, group) + k) != expected(round, k) ? 1 : 0;
        }
      }
      return found;
    };
    u32 complete = 0, empty = 0;
    for (u64 group = 0; group < shape.groups; ++group) {
      const auto stored = [&](u64 round, u64 k) { return body::stored(shape.seed, group, round, k); };
      complete += differences(group, stored) == 0 ? 1 : 0;
      empty += differences(group, [](u64, u64) { return '\0'; }) == 0 ? 1 : 0;
    }
    PENSTOCK_CHECK_EQ(report, groups_that_ran, complete);
    PENSTOCK_CHECK_EQ(report, shape.groups - groups_that_ran, empty);
    PENSTOCK_CHECK_EQ(report, 0u, differences(shape.groups, [](u64, u64) { return hosts_byte; }));
    std::filesystem::remove(once_path(shape));
  }

 private:
  static constexpr char hosts_byte = 'h';

  std::string once_path(run_shape shape) const {
    const short_name name("once-", shape.seed);
    return scratch_ / std::string(name.text, name.bytes);
  }

  test_support::scratch_folder scratch_;
  std::unique_ptr<folder> folder_;
  buffer<char> memory_;
};

}  // namespace penstock::test
