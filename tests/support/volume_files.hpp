// A folder with volumes over files, and what a test puts into them.
#pragma once

#include "libs/graph/folder_writer.hpp"
#include "libs/graph/generator.hpp"
#include "libs/volume/drive_member.hpp"
#include "libs/volume/import.hpp"
#include "libs/volume/make.hpp"
#include "penstock/host/npy.hpp"
#include "support/scratch_files.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::volumes {

inline constexpr u64 mebibyte = u64{1} << 20;

struct layout_case {
  volume_layout layout;
  u32 members;
  u64 stripe_bytes;
};

class volume_files : public testing::Test {
 protected:
  std::vector<std::string> names(u32 count, std::string const& stem = "m") const {
    std::vector<std::string> all;
    for (u32 k = 0; k < count; ++k) all.push_back(folder_ / (stem + std::to_string(k)));
    return all;
  }
  volume make(layout_case const& how, u64 bytes = 4 * mebibyte, std::string const& stem = "m") const {
    return make_volume(names(how.members, stem), {.layout = how.layout, .stripe_bytes = how.stripe_bytes, .file_bytes = bytes});
  }
  static volume open(std::vector<std::string> const& which, access how = access::read) {
    return volume::open(open_members(which, how));
  }
  std::string put_array(std::string const& name, std::vector<u64> const& shape, u64 header, u64 seed) const {
    u64 count = 1;
    for (const u64 each : shape) count *= each;
    test_support::put_file(folder_ / name, make_npy_header('f', 4, shape, header) + test_support::noise(count * 4, seed));
    return folder_ / name;
  }
  std::string put_graph(std::string const& name) const {
    const std::string path = folder_ / name;
    graph::progress_meter silent;
    graph::write_graph(graph::generator(graph::parse_generator("urand:10:4")), path, {.directed = true}, {}, silent);
    return path;
  }
  static void flip(std::string const& file, u64 at) {
    std::fstream both(file, std::ios::binary | std::ios::in | std::ios::out);
    both.seekg(static_cast<std::streamoff>(at));
    const char was = static_cast<char>(both.get());
    both.seekp(static_cast<std::streamoff>(at));
    both.put(static_cast<char>(was ^ 0x10));
  }
  std::vector<std::string> contents_of(std::vector<std::string> const& files) const {
    std::vector<std::string> all;
    for (auto const& each : files) all.push_back(test_support::file_content(each));
    return all;
  }

  test_support::scratch_folder folder_;
};

}  // namespace penstock::volumes
