// What the tests of graphs share.
#pragma once

#include "libs/graph/edge_source.hpp"
#include "penstock/host/error.hpp"
#include "penstock/host/npy.hpp"
#include "support/scratch_files.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

namespace penstock::graph {

using test_support::file_content;
using test_support::put_file;
using test_support::scratch_folder;

/// The values of a .npy file that the builder wrote.
template <class T>
std::vector<T> array_in(std::string const& path) {
  std::string const bytes = file_content(path);
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
