#include "libs/bench/files.hpp"

#include "libs/bench/batched_copies.hpp"
#include "libs/bench/files_kernels.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"
#include "penstock/runtime/stored_array.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

namespace penstock::bench {
namespace {

constexpr std::array all_patterns = {"read4k.warm", "read4k.cold", "read4k.skewed", "open.known", "open.new", "roundtrip"};

[[noreturn]] void refuse_files(std::string const& problem) { throw_bad_input("measure", "files", problem); }

template <class Body>
void run(executor& on, u64 items, Body const& body) {
  if constexpr (built_with_kernels) {
    if (on.kind() == executor_kind::cuda) return run_files_cuda(on, items, body);
  }
  launch<32>(on, items, body);
}

/// Of a measurement's details.
std::string name_of(copy_source source) {
  switch (source) {
    case copy_source::mapping: return "copies_from_mapping";
    case copy_source::registered: return "copies_from_registered_mapping";
    default: return "copies_from_staging";
  }
}

double seconds_of(std::function<void()> const& work) {
  const u64 begun = now_ns();
  work();
  return static_cast<double>(now_ns() - begun) * 1e-9;
}

/// Files that are removed again.
class made_files {
 public:
  made_files(std::string const& parent, u64 bytes, u32 files) {
    std::string pattern =
        ((parent.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(parent)) / "penstock_files_XXXXXX")
            .string();
    if (mkdtemp(pattern.data()) == nullptr) throw_os_error("make a folder", pattern, errno, "name another with --folder");
    path_ = pattern;
    std::ofstream large(path_ + "/large", std::ios::binary);
    std::vector<u64> words(u64{1} << 17);
    for (u64 first = 0; first < bytes / sizeof(u64); first += words.size()) {
      for (u64 w = 0; w < words.size(); ++w) words[w] = value_at(first + w);
      large.write(reinterpret_cast<char const*>(words.data()), static_cast<std::streamsize>(words.size() * sizeof(u64)));
    }
    if (!large.flush()) throw_os_error("write", path_ + "/large", errno, "make room, or name another folder with --folder");
    for (u32 k = 0; k < files; ++k) std::ofstream(path_ + "/" + name_of(k)) << k;
  }
  made_files(made_files const&) = delete;
  made_files& operator=(made_files const&) = delete;
  ~made_files() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string const& path() const { return path_; }
  static std::string name_of(u32 k) {
    std::string name(file_name_bytes, '\0');
    write_file_name(name.data(), k);
    return name;
  }

 private:
  std::string path_;
};

class files_bench {
 public:
  files_bench(executor& on, files_options const& options)
      : on_(on), options_(options), bytes_(bytes_of(on, options)), made_(options.folder, bytes_, options.files),
        rooms_(on.memory(), memory_kind::local, rooms_for(on, bytes_) * read_words), wrong_(on.memory(), memory_kind::local, 1),
        opened_(on.memory(), memory_kind::local, options.files + 1) {}

  void measure(std::string const& pattern, measurement_list& found) {
    if (pattern.starts_with("read4k")) found.add(measure_reads(pattern));
    if (pattern.starts_with("open")) found.add(measure_opens(pattern));
    if (pattern == "roundtrip") found.add(measure_round_trip());
  }

 private:
  bool cuda() const { return on_.kind() == executor_kind::cuda; }
  static u64 bytes_of(executor const& on, files_options const& options) {
    const u64 bytes = options.bytes != 0 ? options.bytes : on.kind() == executor_kind::cuda ? u64{1} << 30 : u64{64} << 20;
    return round_up(bytes, u64{1} << 20);
  }
  cache_options cache_of(bool small) const {
    const u64 some = options_.cache_bytes != 0 ? options_.cache_bytes : std::max<u64>(bytes_ / 8, 1 << 20);
    cache_options cache;
    cache.bytes = small ? some : bytes_ + bytes_ / 4;
    cache.line_bytes = options_.line_bytes;
    return cache;
  }
  folder_options folder_of(bool small) const {
    folder_options how;
    how.cache = cache_of(small);
    how.call_threads = options_.call_threads;
    return how;
  }

  static constexpr u64 run_items = 64;  // of many, that a CPU's thread takes at once
  static u64 most_reads(executor const& on, u64 bytes) {
    return (on.kind() == executor_kind::cuda ? 16 : 4) * bytes / read_bytes;
  }
  /// A GPU's groups are fewer than that.
  static u64 rooms_for(executor const& on, u64 bytes) {
    constexpr u64 few = 8192;
    return on.kind() == executor_kind::cuda ? few : std::max(few, ceil_div(most_reads(on, bytes), run_items));
  }
  group_rooms rooms_of(u64 items) const {
    return {rooms_.data(), cuda() || items * read_words <= rooms_.size() ? 1 : run_items};
  }

  void check(std::string const& what) {
    u64 wrong = 0;
    wrong_.read({&wrong, 1});
    if (wrong != 0) throw error(error_kind::world, "measure files: " + what + ": " + std::to_string(wrong) + " went wrong");
  }

  measurement measure_reads(std::string const& pattern) {
    const bool small = pattern != "read4k.warm";
    folder files(on_, made_.path(), folder_of(small));
    const file_descriptor large = keep_open(files).back();
    cache_options cache = cache_of(small);
    cache.directory = directory_kind::set_associative;  // as a folder's
    stored_array array(on_, made_.path() + "/large", {.cache = cache, .raw = raw_layout{16, 0, bytes_ / 16}});
    const u64 pieces = bytes_ / read_bytes, reads = small ? pieces : most_reads(on_, bytes_);
    const auto copies = small ? open_copies() : copy_list{};
    measurement m;
    copy_rates copied;
    for (u32 k = 0; k <= options_.repeats; ++k) {
      const piece_order order{pieces, 977 * k, pattern == "read4k.skewed"};
      const group_rooms own = rooms_of(reads);
      const double ours =
          seconds_of([&] { run(on_, reads, read_file_pieces{files.view(), large, order, own, wrong_.data()}); });
      const double theirs =
          seconds_of([&] { run(on_, reads, read_array_pieces{array.view<piece16>(), order, own, wrong_.data()}); });
      check(pattern);
      const double moved = static_cast<double>(reads * read_bytes) * 1e-9;
      for (auto const& c : copies) {
        const double copying = seconds_of([&] { c->run(order, reads, wrong_.data()); });
        if (k != 0) copied[c->source()].push_back(moved / copying);
      }
      check("batched copies");
      if (k == 0) continue;  // warm-up
      m.values.push_back(moved / ours);
      m.baseline_values.push_back(moved / theirs);
    }
    m.unit = "GB/s";
    m.baseline = "spans of the array over the same file";
    m.bytes = {{"host", static_cast<double>(files.cache().stats(0).bytes_moved)}};
    m.params["cache_bytes"] = std::to_string(cache.bytes);
    for (auto const& [source, rates] : copied) m.details[name_of(source) + "_GBps"] = median(rates);
    return described(std::move(m), pattern);
  }

  using copy_list = std::vector<std::unique_ptr<batched_copies>>;
  using copy_rates = std::map<copy_source, std::vector<double>>;  // GB/s

  /// None on the CPU: there is no GPU memory to copy to.
  copy_list open_copies() {
    if constexpr (built_with_kernels) {
      if (cuda()) return open_batched_copies(on_, made_.path() + "/large", options_.host_threads);
    }
    return {};
  }

  std::vector<file_descriptor> keep_open(folder& files) {
    run(on_, options_.files + 1, open_all{files.view(), options_.files, opened_.data(), wrong_.data()});
    check("opening");
    std::vector<file_descriptor> all(opened_.size());
    opened_.read(all);
    return all;
  }

  measurement measure_opens(std::string const& pattern) {
    folder files(on_, made_.path(), folder_of(true));
    if (pattern == "open.known") keep_open(files);
    const u64 opens = pattern == "open.known" ? (cuda() ? 2'000'000 : 200'000) : (cuda() ? 200'000 : 20'000);
    measurement m;
    for (u32 k = 0; k <= options_.repeats; ++k) {
      const double ours =
          seconds_of([&] { run(on_, opens, open_and_close{files.view(), options_.files, 977 * k, wrong_.data()}); });
      const double theirs = seconds_of([&] { open_on_host(opens, 977 * k); });
      check(pattern);
      if (k == 0) continue;
      m.values.push_back(static_cast<double>(opens) * 1e-6 / ours);
      m.baseline_values.push_back(static_cast<double>(opens) * 1e-6 / theirs);
    }
    m.unit = "M/s";
    m.baseline = std::to_string(options_.host_threads) + " host threads that open and close";
    m.details["host_calls"] = static_cast<double>(files.host_calls());
    m.params["files"] = std::to_string(options_.files);
    return described(std::move(m), pattern);
  }

  void open_on_host(u64 opens, u64 seed) const {
    std::vector<std::jthread> threads;
    threads.reserve(options_.host_threads);
    for (u32 t = 0; t < options_.host_threads; ++t) {
      threads.emplace_back([&, t] {
        for (u64 k = t; k < opens; k += options_.host_threads) {
          const std::string name =
              made_.path() + "/" + made_files::name_of(static_cast<u32>(mix_word(k ^ seed) % options_.files));
          const int file = open(name.c_str(), O_RDONLY | O_CLOEXEC);
          if (file >= 0) close(file);
        }
      });
    }
  }

  /// Beside reads of 4 KiB that hit.
  measurement measure_round_trip() {
    folder files(on_, made_.path(), folder_of(false));
    const file_descriptor large = keep_open(files).back();
    const u64 pieces = bytes_ / read_bytes, calls = cuda() ? 200'000 : 20'000;
    const piece_order order{pieces, 5, false};
    const group_rooms own = rooms_of(2 * pieces);
    run(on_, 2 * pieces, read_file_pieces{files.view(), large, order, own, wrong_.data()});
    measurement m;
    for (u32 k = 0; k <= options_.repeats; ++k) {
      const double ours =
          seconds_of([&] { run(on_, 2 * pieces, read_file_pieces{files.view(), large, order, own, wrong_.data()}); });
      const double theirs = seconds_of([&] { run(on_, calls, ask_host{files.view(), wrong_.data()}); });
      check("roundtrip");
      if (k == 0) continue;
      m.values.push_back(static_cast<double>(2 * pieces) * 1e-6 / ours);
      m.baseline_values.push_back(static_cast<double>(calls) * 1e-6 / theirs);
    }
    m.unit = "M/s";
    m.baseline = "a round trip to the host that does nothing";
    return described(std::move(m), "roundtrip");
  }

  measurement described(measurement m, std::string const& pattern) const {
    m.id = "file." + pattern;
    m.verified = true;  // check() throws where it is not
    m.params["executor"] = cuda() ? "cuda" : "cpu";
    m.params["line_bytes"] = std::to_string(options_.line_bytes);
    m.params["file_bytes"] = std::to_string(bytes_);
    m.machine = describe_host();
    m.machine["device"] = on_.device();
    return m;
  }

  executor& on_;
  files_options const& options_;
  u64 bytes_;
  made_files made_;
  buffer<u64> rooms_, wrong_;
  buffer<file_descriptor> opened_;
};

void check_options(files_options const& options) {
  if (options.repeats == 0) refuse_files("0 repeats: ask for 1 or more");
  if (options.files == 0 || options.files > 60000) refuse_files(std::to_string(options.files) + " files: choose 1 to 60000");
  if (options.host_threads == 0 || options.host_threads > 1024) {
    refuse_files(std::to_string(options.host_threads) + " host threads: choose 1 to 1024");
  }
  for (std::string const& pattern : options.patterns) {
    if (std::find(all_patterns.begin(), all_patterns.end(), pattern) != all_patterns.end()) continue;
    std::string known;
    for (char const* each : all_patterns) known += std::string(known.empty() ? "" : ", ") + each;
    refuse_files("pattern " + pattern + ": there is no such pattern; choose of " + known);
  }
}

}  // namespace

std::vector<measurement> run_files_benchmark(files_options const& options) {
  check_options(options);
  const auto on = open_executor(options.executor, 0, built_with_kernels);
  measurement_list found(options.found);
  std::vector<std::string> patterns = options.patterns;
  if (patterns.empty()) patterns.assign(all_patterns.begin(), all_patterns.end());
  files_bench bench(*on, options);
  for (u64 k = 0; k < patterns.size(); ++k) {
    if (options.progress) options.progress(patterns[k], k, patterns.size());
    bench.measure(patterns[k], found);
  }
  return found.take();
}

}  // namespace penstock::bench
