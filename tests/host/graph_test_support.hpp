// What the tests of graphs share.
#pragma once

#include "apps/graph/edge_source.hpp"
#include "penstock/host/error.hpp"
#include "penstock/host/npy.hpp"

#include <gtest/gtest.h>

#include <unistd.h>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

namespace penstock::graph {

/// A folder of its own for each test, removed at the end.
class scratch_folder {
 public:
  scratch_folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "penstock-graph-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  scratch_folder(scratch_folder const&) = delete;
  scratch_folder& operator=(scratch_folder const&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string operator/(std::string const& name) const { return path_ + "/" + name; }
  std::string const& path() const { return path_; }
  bool empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::string path_;
};

inline std::string read_all(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_all(std::string const& path, std::string const& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// The values of a .npy file that the builder wrote.
template <class T>
std::vector<T> array_in(std::string const& path) {
  std::string const bytes = read_all(path);
  std::vector<T> values((bytes.size() - npy_data_offset) / sizeof(T));
  std::memcpy(values.data(), bytes.data() + npy_data_offset, values.size() * sizeof(T));
  return values;
}

using plain_edge = std::tuple<u64, u64, u32>;

inline std::vector<plain_edge> edges_of(edge_source const& source) {
  std::vector<plain_edge> all;
  for (u64 b = 0; b < source.blocks(); ++b)
    source.produce(b, [&](std::span<edge const> edges) {
      for (edge const& e : edges) all.emplace_back(e.from, e.to, e.weight);
    });
  return all;
}

/// The sentence of the error that `run` throws; it must be of this kind.
template <class Run>
std::string complaint(Run const& run, error_kind kind = error_kind::bad_input) {
  try {
    run();
  } catch (error const& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

inline bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace penstock::graph
