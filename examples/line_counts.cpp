// wc -l of every file in a folder: a warp to each file, which opens it, reads it piece by piece, and closes it.
//
//   line_counts FOLDER         prints the number of lines of each file, in the order of their names
//
// Names are resolved below FOLDER, and nothing outside of it is opened. All files share one cache of 16 MiB.
#include "penstock/executor/launch.hpp"
#include "penstock/runtime/folder.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

using penstock::u32;
using penstock::u64;

constexpr u32 piece_bytes = 4096;

struct count_lines {
  penstock::folder_view folder;
  char const* names;
  u32 const* name_ends;
  char* pieces;  // [files][piece_bytes]; those of the first file of a group are the group's
  u64* counts;
  u32* errors;  // an errno each; 0: none

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, penstock::grid_range range) const {
    char* const piece = pieces + range.first * piece_bytes;
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u32 begin = k == 0 ? 0 : name_ends[k - 1];
      const auto opened = folder.open(g, names + begin, name_ends[k] - begin, penstock::file_flag::read);
      u32 error = opened.error;
      for (u64 at = 0; error == 0;) {
        const auto got = folder.pread(g, opened.file, piece, piece_bytes, at);
        error = got.error;
        if (got.value == 0) break;
        u64 lines = 0;
        for (u64 i = penstock::index_in(g); i < got.value; i += penstock::size(g)) lines += piece[i] == '\n';
        if (lines != 0) penstock::device_ref<u64>(counts[k]).fetch_add(lines, penstock::relaxed);
        at += got.value;
        penstock::converge_after_call(g);  // all have looked at the piece before it is overwritten
      }
      if (opened.ok()) folder.close(g, opened.file);
      if (penstock::is_leader(g)) errors[k] = error;
    }
  }
};

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: line_counts FOLDER\n");
    return 2;
  }
  try {
    std::vector<std::string> files;
    for (auto const& entry : std::filesystem::directory_iterator(words[1])) {
      if (entry.is_regular_file()) files.push_back(entry.path().filename().string());
    }
    std::sort(files.begin(), files.end());
    std::string all;
    std::vector<u32> ends;
    for (auto const& name : files) {
      all += name;
      ends.push_back(static_cast<u32>(all.size()));
    }
    if (files.empty()) return 0;

    auto on = penstock::open_executor("auto");
    penstock::folder folder(*on, words[1], {.cache = {.bytes = 16 << 20}});
    const auto memory = penstock::memory_kind::local;
    penstock::buffer<char> names(on->memory(), memory, all.size()), pieces(on->memory(), memory, files.size() * piece_bytes);
    penstock::buffer<u32> name_ends(on->memory(), memory, files.size()), errors(on->memory(), memory, files.size());
    penstock::buffer<u64> counts(on->memory(), memory, files.size());
    std::vector<u64> found(files.size());
    std::vector<u32> wrong(files.size());
    names.write({all.data(), all.size()});
    name_ends.write(ends);
    counts.write(found);
    penstock::launch<32>(
        *on, files.size(),
        count_lines{folder.view(), names.data(), name_ends.data(), pieces.data(), counts.data(), errors.data()});
    counts.read(found);
    errors.read(wrong);
    for (u64 k = 0; k < files.size(); ++k) {
      if (wrong[k] == 0) {
        std::printf("%llu\n", static_cast<unsigned long long>(found[k]));
      } else {
        std::fprintf(stderr, "line_counts: %s: %s\n", files[k].c_str(), std::strerror(static_cast<int>(wrong[k])));
      }
    }
    return std::any_of(wrong.begin(), wrong.end(), [](u32 error) { return error != 0; }) ? 1 : 0;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "line_counts: %s\n", problem.what());
    return 2;
  }
}
