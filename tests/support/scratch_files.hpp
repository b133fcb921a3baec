// A folder of its own for a test's files, and what a test does with them.
#pragma once

#include "penstock/core/config.hpp"
#include "penstock/host/error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include <unistd.h>

namespace penstock::test_support {

class scratch_folder {
 public:
  scratch_folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "penstock_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  scratch_folder(scratch_folder const&) = delete;
  scratch_folder& operator=(scratch_folder const&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(std::string const& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }
  bool empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::filesystem::path path_;
};

inline std::string file_content(std::string const& file) {
  std::ostringstream all;  // filled by the block, which matters to sanitizers
  all << std::ifstream(file, std::ios::binary).rdbuf();
  return std::move(all).str();
}

inline void put_file(std::string const& file, std::string const& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

inline std::string noise(u64 count, u64 seed) {
  std::mt19937_64 random(seed);
  std::string all(count, '\0');
  for (u64 at = 0; at < count; at += sizeof(u64)) {
    const u64 word = random();
    std::memcpy(all.data() + at, &word, std::min(count - at, sizeof word));
  }
  return all;
}

/// The sentence of the penstock::error that a call ends with.
inline std::string refusal_of(error_kind kind, std::function<void()> const& call) {
  try {
    call();
  } catch (error const& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  return "nothing was thrown";
}

}  // namespace penstock::test_support
