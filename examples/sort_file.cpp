// Sorts a file of records that may be far larger than memory: kernels read runs, a library sorts them, kernels write them.
//
//   sort_file IN OUT [--record BYTES] [--key BYTES] [--memory MIB]
//
// A record (16 bytes) begins with its key, an unsigned little-endian number (8 bytes, at most 8); equal keys keep their order.
// What fits --memory (256 MiB) is sorted at once. Else each part of IN that fits becomes a sorted run in a temporary file
// beside OUT. Splitters sampled from all runs partition them into slices that fit, each the same range of keys of every run; a
// slice is read in the order of the runs, sorted, and written to its place in OUT. OUT is renamed into place after sync; IN is
// only read.
#include "sort_kernels.hpp"

#include <algorithm>
#include <charconv>
#include <compare>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#if PENSTOCK_COMPILED_BY_NVCC
#include <cub/device/device_radix_sort.cuh>
#endif

#include <fcntl.h>
#include <unistd.h>

constexpr u64 piece_bytes = 65536;  // read or written by a group at once
constexpr u64 cache_bytes = 16 << 20;
constexpr u64 samples_per_run = 4;  // times the number of runs

[[noreturn]] void fail(std::string const& what) { throw penstock::error(penstock::error_kind::bad_input, what); }

/// A new file of preallocated size, removed unless it is renamed.
class scratch_file {
 public:
  scratch_file(std::filesystem::path const& beside, std::string const& purpose, u64 bytes)
      : path_(beside.string() + "." + purpose + "." + std::to_string(getpid())) {
    const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) penstock::throw_os_error("create", path_, errno, "write to a folder that allows it");
    const int error = bytes == 0 ? 0 : posix_fallocate(file, 0, static_cast<off_t>(bytes));
    close(file);
    if (error == 0) return;
    unlink(path_.c_str());
    penstock::throw_os_error("create", path_, error, "make " + std::to_string(bytes) + " bytes free");
  }
  scratch_file(scratch_file const&) = delete;
  scratch_file& operator=(scratch_file const&) = delete;
  ~scratch_file() { unlink(path_.c_str()); }

  std::string const& path() const { return path_; }
  void rename_to(std::filesystem::path const& to) const { std::filesystem::rename(path_, to); }

 private:
  std::string path_;
};

/// A file opened by a kernel, for further kernels.
class kernel_file {
 public:
  kernel_file(penstock::executor& on, penstock::folder const& folder, std::filesystem::path const& path, u32 flags)
      : on_(on), path_(path), error_(on.memory(), penstock::memory_kind::local, 1) {
    const std::string text = path.filename();
    penstock::buffer<char> name(on.memory(), penstock::memory_kind::local, text.size());
    penstock::buffer<penstock::open_result> opened(on.memory(), penstock::memory_kind::local, 1);
    name.write(text);
    penstock::launch<32>(on, 1, open_file{folder.view(), name.data(), static_cast<u32>(text.size()), flags, opened.data()});
    penstock::open_result result;
    opened.read({&result, 1});
    if (!result.ok()) penstock::throw_os_error("open", path, static_cast<int>(result.error), "check its permissions");
    access_ = {folder.view(), result.file, error_.data()};
  }

  file_access const& access() const { return access_; }

  /// Runs a body that accesses the file.
  template <class Body>
  void launch(u64 items, Body const& body, std::string const& operation) const {
    penstock::launch<32>(on_, items, body);
    u32 error = 0;
    error_.read({&error, 1});
    if (error != 0) penstock::throw_os_error(operation, path_, static_cast<int>(error), "check the disk and the room on it");
  }
  void sync() const { launch(1, sync_and_close{access_}, "write"); }

 private:
  penstock::executor& on_;
  std::filesystem::path path_;
  penstock::buffer<u32> error_;
  file_access access_;
};

/// Sorts records in the executor's memory.
class record_sorter {
 public:
  struct segment {
    u64 offset, bytes;
  };

  record_sorter(penstock::executor& on, record_layout layout, u64 most)
      : on_(on), layout_(layout), records_(make<char>(most * layout.bytes)), sorted_(make<char>(most * layout.bytes)),
        keys_(make<u64>(most)), keys_sorted_(make<u64>(most)), order_(make<u32>(most)), order_sorted_(make<u32>(most)) {}

  /// Reads the records of segments of a file, in this order, and sorts them.
  void read(kernel_file const& file, std::vector<segment> const& segments) {
    const u64 bytes = move(file, segments, records_.data(), false);
    const u64 count = bytes / layout_.bytes;
    penstock::launch<1>(on_, count, take_keys{layout_, records_.data(), keys_.data(), order_.data()});
    sort_order(count);
    penstock::launch<8>(on_, count, put_in_order{layout_, records_.data(), order_sorted_.data(), sorted_.data()});
  }
  void write(kernel_file const& file, segment to) { move(file, {to}, sorted_.data(), true); }

  /// The keys of records 0, step, ...
  std::vector<u64> sample(u64 count, u64 step) {
    std::vector<u64> found(penstock::ceil_div(count, step));
    penstock::launch<1>(on_, found.size(), pick_samples{layout_, sorted_.data(), step, keys_.data()});
    keys_.read(std::span(found));
    return found;
  }

 private:
  template <class T>
  penstock::buffer<T> make(u64 count) {
    return {on_.memory(), penstock::memory_kind::local, count};
  }

  /// Reads or writes in pieces that end at line boundaries of the cache. Returns bytes.
  u64 move(kernel_file const& file, std::vector<segment> const& segments, char* memory, bool write) {
    std::vector<file_piece> pieces;
    u64 done = 0;
    for (auto [offset, bytes] : segments) {
      while (bytes != 0) {
        const u64 most = std::min(bytes, piece_bytes - offset % piece_bytes);
        pieces.push_back({offset, most, memory + done});
        offset += most, bytes -= most, done += most;
      }
    }
    if (pieces_.size() < pieces.size()) pieces_ = make<file_piece>(pieces.size());
    pieces_.write(pieces);
    file.launch(pieces.size(), move_pieces{file.access(), pieces_.data(), write}, write ? "write" : "read");
    return done;
  }

  /// Stable on either executor.
  void sort_order(u64 count) {
#if PENSTOCK_COMPILED_BY_NVCC
    if (on_.kind() == penstock::executor_kind::cuda) {
      const penstock::gpu_scope here(on_.gpu());
      u64 bytes = 0;
      const auto sort = [&](char* scratch) {
        const auto failed = cub::DeviceRadixSort::SortPairs(
            scratch, bytes, keys_.data(), keys_sorted_.data(), order_.data(), order_sorted_.data(), count, 0,
            static_cast<int>(8 * layout_.key_bytes), static_cast<cudaStream_t>(on_.stream()));
        if (failed != cudaSuccess) fail(std::string("sort: ") + cudaGetErrorString(failed) + ": ask for less --memory");
      };
      sort(nullptr);
      const auto scratch = make<char>(bytes);
      sort(scratch.data());
      return on_.synchronize();
    }
#endif
    std::copy_n(order_.data(), count, order_sorted_.data());
    std::stable_sort(order_sorted_.data(), order_sorted_.data() + count,
                     [keys = keys_.data()](u32 a, u32 b) { return keys[a] < keys[b]; });
  }

  penstock::executor& on_;
  record_layout layout_;
  penstock::buffer<char> records_, sorted_;
  penstock::buffer<u64> keys_, keys_sorted_;
  penstock::buffer<u32> order_, order_sorted_;
  penstock::buffer<file_piece> pieces_;
};

/// A record of the runs file: (key, record) is the order of the whole sort.
struct sample {
  u64 key, record;
  auto operator<=>(sample const&) const = default;
};

/// Partitions the runs into slices of at most `most` records: [slices][runs], the end of each slice in each run.
std::vector<u64> cut_runs(penstock::executor& on, kernel_file const& file, record_layout layout, std::vector<sample> samples,
                          u64 step, u64 most, u64 records) {
  const u64 runs = penstock::ceil_div(records, most);
  std::sort(samples.begin(), samples.end());
  std::vector<u64> before(runs);  // samples of each run so far
  std::vector<cut_search> searches;
  const u64 samples_per_slice = most / step - runs;  // so that a slice fits with up to a step more of each run
  for (u64 i = 0; i < samples.size(); ++i) {
    const auto [key, record] = samples[i];
    if (i != 0 && i % samples_per_slice == 0) {
      for (u64 run = 0; run < runs; ++run) {
        const u64 first = run * most, last = std::min(first + most, records), own = record / most;
        const u64 high = std::min(first + before[run] * step, last);
        const u64 low = run == own ? high : before[run] == 0 ? first : first + (before[run] - 1) * step + 1;
        searches.push_back({low, high, key, run < own ? u64{1} : u64{0}});
      }
    }
    ++before[record / most];
  }
  std::vector<u64> cuts(searches.size());
  const auto local = penstock::memory_kind::local;
  penstock::buffer<cut_search> asked(on.memory(), local, searches.size());
  penstock::buffer<u64> found(on.memory(), local, searches.size());
  penstock::buffer<char> keys(on.memory(), local, 8 * searches.size());
  asked.write(searches);
  file.launch(searches.size(), find_cuts{file.access(), layout, asked.data(), found.data(), keys.data()}, "read");
  found.read(cuts);
  for (u64 run = 0; run < runs; ++run) cuts.push_back(std::min((run + 1) * most, records));
  return cuts;
}

struct sort_options {
  std::filesystem::path in, out;
  record_layout layout;
  u64 memory_mib = 256;
};

/// Sorts runs of `in` into `middle`, then slices of all runs into `out`.
void sort_runs(penstock::executor& on, record_sorter& sorter, record_layout layout, u64 most, u64 records,
               kernel_file const& in, kernel_file const& middle, kernel_file const& out) {
  const u64 runs = penstock::ceil_div(records, most), step = std::max<u64>(most / (samples_per_run * runs), 1);
  std::vector<sample> samples;
  for (u64 first = 0; first < records; first += most) {
    const u64 count = std::min(most, records - first);
    sorter.read(in, {{first * layout.bytes, count * layout.bytes}});
    sorter.write(middle, {first * layout.bytes, count * layout.bytes});
    u64 at = first;
    for (const u64 key : sorter.sample(count, step)) samples.push_back({key, std::exchange(at, at + step)});
  }
  const std::vector<u64> cuts = cut_runs(on, middle, layout, std::move(samples), step, most, records);
  u64 written = 0;
  for (u64 slice = 0; slice < cuts.size() / runs; ++slice) {
    std::vector<record_sorter::segment> segments;
    u64 bytes = 0;
    for (u64 run = 0; run < runs; ++run) {
      const u64 first = slice == 0 ? run * most : cuts[(slice - 1) * runs + run], last = cuts[slice * runs + run];
      segments.push_back({first * layout.bytes, (last - first) * layout.bytes});
      bytes += segments.back().bytes;
    }
    sorter.read(middle, segments);
    sorter.write(out, {written, bytes});
    written += bytes;
  }
}

void sort_file(sort_options const& options) {
  const auto written = std::filesystem::last_write_time(options.in);
  const u64 bytes = std::filesystem::file_size(options.in), records = bytes / options.layout.bytes;
  const u64 most = std::clamp<u64>((options.memory_mib << 20) / (2 * options.layout.bytes + 24), 1, (u64{1} << 31) - 1);
  const bool fits = records <= most;
  if (!fits && records >= most * (most - 1)) fail("sort " + options.in.string() + ": too little memory: raise --memory");
  const scratch_file sorted(options.out, "sorted", bytes);
  if (records != 0) {
    const scratch_file scratch(options.out, "runs", fits ? 0 : bytes);
    const auto on = penstock::open_executor("auto");
    const penstock::folder from(*on, options.in.parent_path(), {.cache = {.bytes = cache_bytes}});
    const penstock::folder to(*on, options.out.parent_path(), {.cache = {.bytes = cache_bytes}, .writable = true});
    const kernel_file in(*on, from, options.in, penstock::file_flag::read);
    const kernel_file out(*on, to, sorted.path(), penstock::file_flag::read | penstock::file_flag::write);
    record_sorter sorter(*on, options.layout, std::min(most, records));
    if (fits) {
      sorter.read(in, {{0, bytes}});
      sorter.write(out, {0, bytes});
    } else {
      const kernel_file middle(*on, to, scratch.path(), penstock::file_flag::read | penstock::file_flag::write);
      sort_runs(*on, sorter, options.layout, most, records, in, middle, out);
    }
    out.sync();
  }
  // Kernels read zeros where another process has truncated the file.
  if (std::filesystem::last_write_time(options.in) != written)
    fail("sort " + options.in.string() + ": it was changed meanwhile: sort it again");
  sorted.rename_to(options.out);
}

/// False: an unknown option, or a value that is no number.
bool read_options(int count, char** words, sort_options& options) {
  if (count < 3 || count % 2 == 0) return false;
  for (int k = 3; k < count; k += 2) {
    const std::string name = words[k], text = words[k + 1];
    u64* const to = name == "--record"   ? &options.layout.bytes
                    : name == "--key"    ? &options.layout.key_bytes
                    : name == "--memory" ? &options.memory_mib
                                         : nullptr;
    if (to == nullptr) return false;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), *to);
    if (wrong != std::errc{} || end != text.data() + text.size()) return false;
  }
  return true;
}

void check(sort_options& options) {
  const auto [bytes, key_bytes] = options.layout;
  if (key_bytes == 0 || key_bytes > 8 || key_bytes > bytes) {
    fail("sort by keys of " + std::to_string(key_bytes) + " bytes: choose 1 to 8, and no more than a record has");
  }
  if (bytes > 1 << 30 || options.memory_mib == 0 || options.memory_mib > 1 << 20) {
    fail("sort: records have up to 1 GiB, and --memory is 1 to 1048576 MiB: choose others");
  }
  if (!std::filesystem::is_regular_file(options.in)) fail("open " + options.in.string() + ": there is no such file: name one");
  if (std::filesystem::exists(options.out)) {
    if (!std::filesystem::is_regular_file(options.out)) fail("write " + options.out.string() + ": it is no file: name another");
    if (std::filesystem::equivalent(options.in, options.out))
      fail("write " + options.out.string() + ": it is IN: name another");
  }
  const u64 rest = std::filesystem::file_size(options.in) % bytes;
  if (rest != 0) {
    fail("sort " + options.in.string() + ": " + std::to_string(rest) + " bytes are left behind the last record of " +
         std::to_string(bytes) + ": give their size with --record");
  }
  options.in = std::filesystem::canonical(options.in);
  options.out = std::filesystem::absolute(options.out);
}

int main(int count, char** words) {
  sort_options options;
  if (!read_options(count, words, options)) {
    std::fprintf(stderr, "usage: sort_file IN OUT [--record BYTES] [--key BYTES] [--memory MIB]\n");
    return 2;
  }
  try {
    options.in = words[1];
    options.out = words[2];
    check(options);
    sort_file(options);
    return 0;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "sort_file: %s\n", problem.what());
    return 2;
  }
}
