#include "libs/bench/grep.hpp"

#include "libs/files/tree_search.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace penstock::bench {
namespace {

using grep_lines = std::map<std::string, std::vector<u64>>;  // numbers of matching lines, by path

/// The numbers of the lines of `text` that contain `pattern`; none where it has a zero byte. Most binary files have one at
/// their begin, and no more of them is read.
std::vector<u64> grep_numbers(char const* text, u64 bytes, std::string const& pattern) {
  std::vector<u64> numbers;
  if (memchr(text, 0, std::min<u64>(bytes, 65536)) != nullptr) return numbers;
  char const* const end = text + bytes;
  u64 number = 1;
  for (char const* at = text; at < end;) {
    auto const* match = static_cast<char const*>(memmem(at, static_cast<u64>(end - at), pattern.data(), pattern.size()));
    if (match == nullptr) break;
    number += static_cast<u64>(std::count(at, match, '\n'));
    numbers.push_back(number);
    auto const* newline = static_cast<char const*>(memchr(match, '\n', static_cast<u64>(end - match)));
    if (newline == nullptr) break;
    at = newline + 1;
    ++number;
  }
  if (!numbers.empty() && memchr(text, 0, bytes) != nullptr) numbers.clear();
  return numbers;
}

/// Threads that take folders from one list, map the files in them and search them, as ripgrep's workers do.
class grep_workers {
 public:
  grep_workers(std::string const& root, std::string const& pattern, u32 threads)
      : root_(root), pattern_(pattern), folders_{""}, busy_(threads) {
    std::vector<std::jthread> workers;
    workers.reserve(threads);
    for (u32 t = 0; t < threads; ++t) workers.emplace_back([this] { work(); });
  }

  grep_lines lines;
  u64 bytes = 0;

 private:
  void work() {
    grep_lines mine;
    u64 read = 0;
    std::string folder, room(small_bytes, '\0');
    while (next(folder)) search_folder(folder, room, mine, read);
    const std::scoped_lock here(lock_);
    lines.merge(mine);
    bytes += read;
  }

  bool next(std::string& folder) {
    std::unique_lock here(lock_);
    --busy_;
    more_.wait(here, [&] { return !folders_.empty() || busy_ == 0; });
    if (folders_.empty()) {
      more_.notify_all();
      return false;
    }
    ++busy_;
    folder = std::move(folders_.front());
    folders_.pop_front();
    return true;
  }

  void search_folder(std::string const& folder, std::string& room, grep_lines& mine, u64& read) {
    DIR* const open_folder = opendir((root_ + "/" + folder).c_str());
    if (open_folder == nullptr) return;
    while (dirent const* entry = readdir(open_folder)) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      const std::string path = folder.empty() ? name : folder + "/" + name;
      if (entry->d_type == DT_DIR) {
        const std::scoped_lock here(lock_);
        folders_.push_back(path);
        more_.notify_one();
      } else if (entry->d_type == DT_REG) {
        search_file(path, room, mine, read);
      }
    }
    closedir(open_folder);
  }

  void search_file(std::string const& path, std::string& room, grep_lines& mine, u64& read) const {
    const int file = open((root_ + "/" + path).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat facts{};
    if (file < 0) return;
    if (fstat(file, &facts) == 0 && facts.st_size > 0) {
      const u64 size = static_cast<u64>(facts.st_size);
      std::vector<u64> numbers;
      if (size <= small_bytes) {  // a copy costs less than a map of so few pages
        const auto got = ::read(file, room.data(), size);
        if (got > 0) numbers = grep_numbers(room.data(), static_cast<u64>(got), pattern_);
      } else if (void* const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0); mapped != MAP_FAILED) {
        numbers = grep_numbers(static_cast<char const*>(mapped), size, pattern_);
        munmap(mapped, size);
      }
      read += size;
      if (!numbers.empty()) mine.emplace(path, std::move(numbers));
    }
    close(file);
  }

  static constexpr u64 small_bytes = u64{256} << 10;

  std::string root_, pattern_;
  std::mutex lock_;
  std::condition_variable more_;
  std::deque<std::string> folders_;
  u32 busy_;
};

grep_lines grep_lines_of(files::search_result const& result) {
  grep_lines lines;
  for (auto const& file : result.files) {
    std::vector<u64> numbers;
    numbers.reserve(file.lines.size());
    for (auto const& line : file.lines) numbers.push_back(line.number);
    if (!numbers.empty()) lines.emplace(file.path, std::move(numbers));
  }
  return lines;
}

void compare_grep(grep_lines const& ours, grep_lines const& theirs, std::string const& folder) {
  if (ours == theirs) return;
  std::string where;
  for (auto const& [path, numbers] : theirs) {
    const auto same = ours.find(path);
    if (same == ours.end() || same->second != numbers) where = path;
  }
  for (auto const& [path, numbers] : ours) {
    if (!theirs.contains(path)) where = path;
  }
  throw error(error_kind::world, "measure grep: " + folder + "/" + where +
                                     ": the searches found other lines: a file that changes meanwhile, or a defect");
}

}  // namespace

std::vector<measurement> run_grep_benchmark(grep_options const& options) {
  if (options.repeats == 0) throw_bad_input("measure", "grep", "0 repeats: ask for 1 or more");
  const u32 threads = options.host_threads != 0 ? options.host_threads : std::max(1u, std::thread::hardware_concurrency());
  files::search_options how;
  how.executor = options.executor;
  how.cache_bytes = options.cache_bytes;
  if (options.line_bytes != 0) how.line_bytes = options.line_bytes;
  measurement m;
  files::search_result ours;
  for (u32 k = 0; k <= options.repeats; ++k) {
    if (options.progress) options.progress("searching " + options.folder, k, options.repeats + 1);
    ours = files::search_tree(options.folder, options.pattern, how);
    const u64 begun = now_ns();
    const grep_workers theirs(options.folder, options.pattern, threads);
    const double seconds = static_cast<double>(now_ns() - begun) * 1e-9;
    compare_grep(grep_lines_of(ours), theirs.lines, options.folder);
    if (k == 0) continue;  // the page cache is cold
    m.values.push_back(static_cast<double>(theirs.bytes) * 1e-6 / ours.seconds);
    m.baseline_values.push_back(static_cast<double>(theirs.bytes) * 1e-6 / seconds);
  }
  m.id = "grep";
  m.unit = "MB/s";
  m.baseline = std::to_string(threads) + " host threads that map the files";
  m.verified = true;
  m.params = {{"executor", ours.executor}, {"folder", options.folder}, {"pattern", options.pattern}};
  m.params["line_bytes"] = std::to_string(how.line_bytes);
  m.bytes = {{"host", static_cast<double>(ours.bytes_moved)}};
  m.details = {{"files", static_cast<double>(ours.files.size())},
               {"seconds", ours.seconds},
               {"listing_seconds", ours.listing_seconds},
               {"searching_seconds", ours.searching_seconds},
               {"host_calls", static_cast<double>(ours.host_calls)}};
  m.machine = describe_host();
  m.machine["device"] = ours.device;
  measurement_list found(options.found);
  found.add(std::move(m));
  return found.take();
}

}  // namespace penstock::bench
