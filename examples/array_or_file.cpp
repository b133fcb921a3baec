// The same job by the array API and by the file API: sums random pieces of 4 KiB of one file, and compares each word with
// the formula that the file was made by.
//
//   array_or_file FOLDER [FILE_MIB [CACHE_MIB]]        a scratch file of 64 MiB; caches of 96 MiB
//
// Prints for each API its sum, its rate in GB/s, and the registers and bytes of local memory of a thread of its kernel (0 on
// the CPU).
#include "penstock/executor/launch.hpp"
#include "penstock/runtime/folder.hpp"
#include "penstock/runtime/stored_array.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

using penstock::u32;
using penstock::u64;

constexpr u64 piece_bytes = 4096, piece_words = piece_bytes / sizeof(u64);
constexpr u64 items = 8192;  // per launch, each of several pieces

/// Word i of the file.
PENSTOCK_FN u64 word_at(u64 i) { return (i + 1) * 0x9e3779b97f4a7c15ull; }

/// The pieces of a launch, and the results of both kernels.
struct piece_sums {
  u64 pieces, pieces_per_item;
  u64* sum;
  u64* wrong;

  /// Calls use(piece) for the pieces of a group, in pseudorandom order.
  template <class Use>
  PENSTOCK_FN void for_each(penstock::grid_range range, Use const& use) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      for (u64 j = k * pieces_per_item; j < (k + 1) * pieces_per_item; ++j) use((j * 0xbf58476d1ce4e5b9ull >> 20) % pieces);
    }
  }
  /// Adds the sum of a lane's words, and how many of them were wrong.
  PENSTOCK_FN void add(u64 mine, u64 bad) const {
    penstock::device_ref<u64>(*sum).fetch_add(mine, penstock::relaxed);
    if (bad != 0) penstock::device_ref<u64>(*wrong).fetch_add(bad, penstock::relaxed);
  }
};

/// Reads words from the lines of the cache into registers.
struct sum_array {
  penstock::array_view<u64> words;
  piece_sums sums;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, penstock::grid_range range) const {
    u64 sum = 0, wrong = 0;
    sums.for_each(range, [&](u64 piece) {
      words.read_span(g, piece * piece_words, piece_words, [&](u64 i, u64 word) {
        sum += word;
        wrong += word != word_at(i);
      });
    });
    sums.add(sum, wrong);
  }
};

/// Copies pieces from the lines of the cache to the group's memory.
struct sum_file {
  penstock::folder_view folder;
  char const* name;
  u32 name_bytes;
  u64* rooms;  // [items][piece_words]
  piece_sums sums;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, penstock::grid_range range) const {
    u64* const room = rooms + range.first * piece_words;
    const auto opened = folder.open(g, name, name_bytes, penstock::file_flag::read);
    u64 sum = 0, wrong = 0;
    sums.for_each(range, [&](u64 piece) {
      const auto got = folder.pread(g, opened.file, room, piece_bytes, piece * piece_bytes);
      wrong += got.value != piece_bytes;  // also where open failed
      for (u64 i = penstock::index_in(g); i < piece_words; i += penstock::size(g)) {
        sum += room[i];
        wrong += room[i] != word_at(piece * piece_words + i);
      }
      penstock::converge_after_call(g);  // all lanes have read the piece before it is overwritten
    });
    if (opened.ok()) folder.close(g, opened.file);
    sums.add(sum, wrong);
  }
};

/// A scratch file that holds word_at.
class made_file {
 public:
  made_file(std::filesystem::path const& folder, u64 bytes) : path_(folder / ("array_or_file." + std::to_string(getpid()))) {
    std::ofstream file(path_, std::ios::binary);
    std::vector<u64> words(piece_words);
    for (u64 i = 0; i < bytes / sizeof(u64); i += words.size()) {
      for (u64 k = 0; k < words.size(); ++k) words[k] = word_at(i + k);
      file.write(reinterpret_cast<char const*>(words.data()), piece_bytes);
    }
    if (file.flush()) return;
    std::filesystem::remove(path_);
    throw penstock::error(penstock::error_kind::world, "write " + path_.string() + ": make room, or name another folder");
  }
  made_file(made_file const&) = delete;
  made_file& operator=(made_file const&) = delete;
  ~made_file() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  std::filesystem::path const& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct measured {
  u64 sum = 0;
  double seconds = 1e9;
};

/// Runs a kernel once and keeps the least time.
template <class Body>
void measure(penstock::executor& on, Body const& body, penstock::buffer<u64>& counts, measured& best) {
  counts.write(std::vector<u64>(2));
  const auto begun = std::chrono::steady_clock::now();
  penstock::launch<32>(on, items, body);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::vector<u64> found(2);
  counts.read(found);
  if (found[1] != 0) throw penstock::error(penstock::error_kind::world, std::to_string(found[1]) + " words are wrong");
  best = {found[0], std::min(best.seconds, took.count())};
}

template <class Body>
void print(char const* name, penstock::executor& on, Body const& body, measured const& best) {
  const auto kernel = penstock::describe_kernel<32>(on, body);
  const double bytes = static_cast<double>(items * body.sums.pieces_per_item * piece_bytes);
  std::printf("%s: sum %llu, %.3f GB/s, %u registers, %u local bytes\n", name, static_cast<unsigned long long>(best.sum),
              bytes * 1e-9 / best.seconds, kernel.registers, kernel.local_bytes);
}

void compare(std::string const& parent, u64 file_bytes, u64 cache_bytes) {
  const auto on = penstock::open_executor("auto");
  const made_file made(parent, file_bytes);
  const std::string name = made.path().filename();
  const auto local = penstock::memory_kind::local;
  penstock::buffer<u64> counts(on->memory(), local, 2), rooms(on->memory(), local, items * piece_words);
  penstock::buffer<char> name_there(on->memory(), local, name.size());
  name_there.write(name);
  penstock::stored_array array(
      *on, made.path(),
      {.cache = {.bytes = cache_bytes}, .raw = penstock::raw_layout{sizeof(u64), 0, file_bytes / sizeof(u64)}});
  penstock::folder folder(*on, parent, {.cache = {.bytes = cache_bytes}});

  const u64 pieces = file_bytes / piece_bytes;
  const piece_sums sums{pieces, penstock::ceil_div(4 * pieces, items), counts.data(), counts.data() + 1};
  const sum_array by_array{array.view<u64>(), sums};
  const sum_file by_file{folder.view(), name_there.data(), static_cast<u32>(name.size()), rooms.data(), sums};
  measured array_best, file_best;
  for (u32 round = 0; round < 4; ++round) {  // the first one fills the caches
    measure(*on, by_array, counts, array_best);
    measure(*on, by_file, counts, file_best);
  }
  array.cache().check_faults();
  print("array", *on, by_array, array_best);
  print("file", *on, by_file, file_best);
}

int main(int count, char** words) {
  const auto mib = [&](int k, u64 otherwise) { return (count > k ? std::strtoull(words[k], nullptr, 10) : otherwise) << 20; };
  if (count < 2 || count > 4 || mib(2, 1) == 0 || mib(3, 1) == 0) {
    std::fprintf(stderr, "usage: array_or_file FOLDER [FILE_MIB [CACHE_MIB]]\n");
    return 2;
  }
  if (!std::filesystem::is_directory(words[1])) {
    std::fprintf(stderr, "array_or_file: open %s: it is no folder: name one for a file of %llu MiB\n", words[1],
                 static_cast<unsigned long long>(mib(2, 64) >> 20));
    return 2;
  }
  try {
    compare(words[1], mib(2, 64), mib(3, 96));
    return 0;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "array_or_file: %s\n", problem.what());
    return 2;
  }
}
