// Lanes of an executor on a controller that is not ours: QEMU's NVMe drive, without a guest. They write blocks and read them
// back, each one compared, and search a graph whose edges lie on the drive, through a cache; the answer is verified by GAP's
// rules, and whatever the controller notes that a correct driver does not do is a failure.
//
//   drive_lanes [--executor auto|cpu|cuda] [--graph kron:16] [--pieces 4096] [--sources 3] [--queues 4] [--memory low|high]
//               [--barrier_repeats 0] [--results FILE]
//
// The device's memory is where the controller and the lanes meet: rings, doorbell words and bounce buffers lie there, and one
// thread of the host forwards the doorbells where lanes do not reach them. Compiled by g++ it has CPU threads for lanes, by
// nvcc CUDA threads, too. PENSTOCK_QEMU names the emulator. Status 77: it cannot be had here, or there is no such executor.
#include "gpu/lane_copies.hpp"
#include "support/qemu_machine.hpp"

#include "libs/analytics/bfs.hpp"
#include "libs/bench/measurement.hpp"
#include "libs/graph/folder_writer.hpp"
#include "libs/graph/generator.hpp"
#include "libs/graph/graph_folder.hpp"
#include "penstock/host/error.hpp"
#include "penstock/pcie/drive_path.hpp"
#include "penstock/pcie/pcie_controller.hpp"
#include "penstock/runtime/block_device.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

namespace penstock::test {
namespace {

using test_support::qemu_machine;
using test_support::qemu_memory;

constexpr u64 mebibyte = u64{1} << 20;
constexpr u64 piece_bytes = 4096;
constexpr u64 edges_begin = 3 * mebibyte;  // in their namespace
constexpr u32 graph_space = 1, stamp_space = 2;
constexpr u64 command_timeout_ns = 20 * one_second_ns;
constexpr u32 queue_depth = 64;
constexpr u64 stored_salt = 0x5eed2;  // of the stamps that the host writes

struct bad_result : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(bool good, std::string const& what) {
  if (!good) throw bad_result(what);
}

struct lanes_options {
  std::map<std::string, std::string> words = {{"executor", "auto"}, {"graph", "kron:16"},    {"pieces", "4096"},
                                              {"sources", "3"},     {"queues", "4"},         {"memory", "low"},
                                              {"results", ""},      {"barrier_repeats", "0"}};

  lanes_options(int count, char** given) {
    for (int k = 1; k < count; k += 2) {
      const std::string name = given[k];
      const auto known = name.rfind("--", 0) == 0 ? words.find(name.substr(2)) : words.end();
      if (known == words.end() || k + 1 == count) throw_bad_input("start", name, "see the head of drive_lanes.cpp");
      known->second = given[k + 1];
    }
  }
  std::string const& text(char const* name) const { return words.at(name); }
  u64 number(char const* name) const { return std::stoull(words.at(name)); }
};

/// A folder that goes with its owner.
class scratch_folder {
 public:
  scratch_folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "penstock_lanes_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
      throw_os_error("make", pattern, errno, "set TMPDIR to a folder that can be written");
    path_ = pattern;
  }
  scratch_folder(scratch_folder const&) = delete;
  scratch_folder& operator=(scratch_folder const&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(std::string const& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

graph::graph_folder make_graph(std::string const& text, std::string const& target) {
  graph::progress_meter meter;
  const graph::generator_spec spec = graph::parse_generator(text);
  graph::build_options options;
  options.symmetrise = options.drop_duplicates = options.drop_self_loops = true;
  graph::write_graph(graph::generator(spec), target, {.directed = false, .source = text}, options, meter);
  return graph::graph_folder::open(target);
}

std::vector<char> read_file(std::string const& path, u64 offset, u64 bytes) {
  std::vector<char> all(bytes);
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  in.read(all.data(), static_cast<std::streamsize>(bytes));
  require(static_cast<bool>(in), path + " is shorter than it should be");
  return all;
}

void write_file(std::string const& path, u64 offset, char const* from, u64 bytes) {
  std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(offset));
  out.write(from, static_cast<std::streamsize>(bytes));
  require(static_cast<bool>(out.flush()), path + " cannot be written");
}

/// One machine with one drive of two namespaces, and what the lanes did to it.
class lanes_on_drive {
 public:
  explicit lanes_on_drive(lanes_options const& options)
      : options_(options), pieces_(options.number("pieces")), graph_(make_graph(options.text("graph"), folder_ / "graph")),
        machine_({{{{round_up(edges_begin + edge_bytes(), mebibyte), 512, ""}, {pieces_ * piece_bytes, 4096, ""}}, ""}},
                 options.text("memory") == "high" ? qemu_memory::above_4gib : qemu_memory::low),
        path_(machine_.function(0), options.text("executor")),
        drive_(machine_.function(0), path_.options({.queues = 16, .threads = 1})), on_(&path_.on()) {
    graph::array_place const& edges = graph_.edges_place();
    write_file(machine_.file(0, graph_space), edges_begin, read_file(edges.path, edges.data_offset, edge_bytes()).data(),
               edge_bytes());
  }

  executor& on() { return *on_; }
  drive_path const& path() const { return path_; }

  /// All blocks of a namespace: written by lanes and compared by the host, then written by the host and compared by lanes.
  void copy_blocks() {
    block_device device(*on_, drive_, stamp_space, device_options(false));
    lane_copies body = body_on(device);
    body.writes = true;
    body.salt = 0x5eed1;
    run(body, "write");
    require(read_file(machine_.file(0, stamp_space), 0, pieces_ * piece_bytes) == stamps_of(body),
            "what lies in the drive's file is not what the lanes wrote");

    body.writes = false;
    body.salt = stored_salt;
    write_file(machine_.file(0, stamp_space), 0, stamps_of(body).data(), pieces_ * piece_bytes);
    details_["block_reads_per_s"] = run(body, "read");
    details_["blocks_written"] = details_["blocks_read"] = static_cast<double>(pieces_);
    for (queue_counts const& q : device.queues()) account(q);
  }

  /// The same reads with and without a read barrier, in turn. After copy_blocks.
  void measure_barrier() {
    const u64 repeats = options_.number("barrier_repeats");
    if (repeats == 0) return;
    bench::measurement m = new_measurement("nvme.read_barrier");
    for (u64 k = 0; k < repeats; ++k) {
      for (const bool barrier : {false, true}) {
        block_device device(*on_, drive_, stamp_space, device_options(barrier));
        lane_copies body = body_on(device);
        body.salt = stored_salt;
        (barrier ? m.values : m.baseline_values).push_back(run(body, barrier ? "read, with a barrier" : "read"));
        if (barrier) m.details["barriers"] = static_cast<double>(device.barriers());
      }
    }
    m.baseline = "the same reads without";
    m.unit = "commands/s";
    m.details["commands"] = static_cast<double>(pieces_);
    write(m);
  }

  void search() {
    analytics::bfs_options search;
    search.graph = graph_.path();
    search.drive = {on_, &drive_, graph_space, edges_begin};
    search.cache_bytes = std::max<u64>(mebibyte / 8, edge_bytes() / 4);
    search.queues = static_cast<u32>(options_.number("queues"));
    search.queue_depth = queue_depth;
    search.verify = true;
    for (u64 k = 0; k < options_.number("sources"); ++k) {
      search.trials = static_cast<u32>(k + 1);
      const analytics::bfs_result found = run_bfs(search);
      require(found.violation.empty(), "the search from vertex " + std::to_string(found.source) + ": " + found.violation);
      require(found.fills != 0 && found.evictions != 0, "the cache held all edges: nothing was proven of the drive");
      require(found.errors == 0, "the cache met errors");
      details_["searches"] += 1;
      details_["fills"] += static_cast<double>(found.fills);
      details_["bytes_moved"] += static_cast<double>(found.bytes_moved);
      details_["reached"] = static_cast<double>(found.reached);
      details_["levels"] = static_cast<double>(found.levels);
      details_["search_s"] = found.seconds;
      std::printf("search from %llu: %llu vertices on %llu levels, %llu fills in %.3f s, verified\n",
                  static_cast<unsigned long long>(found.source), static_cast<unsigned long long>(found.reached),
                  static_cast<unsigned long long>(found.levels), static_cast<unsigned long long>(found.fills), found.seconds);
    }
  }

  /// What the controller and its driver noted.
  void check_referees() {
    for (std::string const& line : machine_.complaints()) throw bad_result("the controller notes: " + line);
    const pcie_counts counts = drive_.counts();
    require(counts.refused_doorbells == 0, "doorbell values that no correct host writes were forwarded");
    require(counts.resets == 0 && counts.admin_strays == 0, "the controller was reset, or answered what was not asked");
    details_["referee_events"] = 0;
  }

  void tell() {
    bench::measurement m = new_measurement(on_->kind() == executor_kind::cuda ? "nvme.gpu_bfs" : "nvme.cpu_bfs");
    m.values.assign(options_.number("sources"), 1.0);
    m.unit = "verified";
    m.details = details_;
    m.bytes["storage"] = details_["bytes_moved"];
    write(m);
  }

 private:
  u64 edge_bytes() const { return graph_.edges() * graph_.edges_place().item_bytes; }

  template <u64 Size>
  static std::string text_of(char const (&field)[Size]) {
    const std::string all(field, Size);
    return all.substr(0, all.find_last_not_of(std::string_view(" \0", 2)) + 1);
  }

  static std::vector<char> stamps_of(lane_copies const& body) {
    std::vector<char> all(body.pieces * piece_bytes);
    for (u64 w = 0; w < body.pieces * body.piece_words; ++w) {
      const u64 word = body.word_at(w / body.piece_words, static_cast<u32>(w % body.piece_words));
      std::copy_n(reinterpret_cast<char const*>(&word), sizeof word, all.data() + w * sizeof word);
    }
    return all;
  }

  block_device_options device_options(bool barrier) const {
    return {.queues = static_cast<u32>(options_.number("queues")),
            .queue_depth = queue_depth,
            .timeout_ns = command_timeout_ns,
            .transfer_bytes = piece_bytes,
            .read_barrier = barrier};
  }

  lane_copies body_on(block_device const& device) {
    sums_.write(std::vector<u64>(2, 0));
    return {device.view(), requests_.data(), data_.data(), sums_.data(), sums_.data() + 1, pieces_, piece_bytes / sizeof(u64)};
  }

  bench::measurement new_measurement(std::string const& id) const {
    bench::measurement m;
    m.id = id;
    m.params = options_.words;
    m.params.erase("results");
    m.params["executor"] = on_->kind() == executor_kind::cuda ? "cuda" : "cpu";
    m.params["doorbells"] = "forwarded by one host thread";
    m.params["controller"] = text_of(drive_.facts().controller.model_number);
    m.verified = true;
    if (on_->kind() == executor_kind::cuda) m.sms = on_->units();
    m.machine = bench::describe_host();
    m.machine["device"] = on_->device();
    return m;
  }

  void write(bench::measurement const& m) const {
    if (options_.text("results").empty()) {
      std::printf("%s\n", bench::to_json(m).c_str());
    } else {
      bench::write_line(m, options_.text("results"));
    }
  }

  /// Commands a second.
  double run(lane_copies const& body, std::string const& what) {
    const u64 begun = now_ns();
    launch<32>(*on_, ceil_div(pieces_, pieces_of_item), body);
    const double seconds = static_cast<double>(now_ns() - begun) / static_cast<double>(one_second_ns);
    std::vector<u64> found(2);
    sums_.read(found);
    require(found[1] == 0, what + ": " + std::to_string(found[1]) + " commands failed");
    require(found[0] == 0, what + ": " + std::to_string(found[0]) + " words are wrong");
    std::printf("%s: %llu blocks of %llu bytes, none wrong\n", what.c_str(), static_cast<unsigned long long>(pieces_),
                static_cast<unsigned long long>(piece_bytes));
    return static_cast<double>(pieces_) / seconds;
  }

  void account(queue_counts const& q) {
    require(q.failure.ok() && q.strays == 0 && q.expired == 0 && q.errors == 0, "a queue pair met strays, deadlines or errors");
    require(q.commands == q.completions, "commands and completions are not as many");
    details_["commands"] += static_cast<double>(q.commands);
    details_["doorbells"] += static_cast<double>(q.doorbells);
  }

  lanes_options const& options_;
  u64 pieces_;
  scratch_folder folder_;
  graph::graph_folder graph_;
  qemu_machine machine_;
  drive_path path_;
  pcie_controller drive_;
  executor* on_;
  buffer<block_request> requests_{on_->memory(), memory_kind::local, pieces_};
  buffer<u64> data_{on_->memory(), memory_kind::local, pieces_ * piece_bytes / sizeof(u64)};
  buffer<u64> sums_{on_->memory(), memory_kind::local, 2};
  std::map<std::string, double> details_;
};

int run_lanes(lanes_options const& options) {
  if (const std::string reason = test_support::reason_without_qemu(); !reason.empty()) {
    std::printf("SKIPPED: %s\n", reason.c_str());
    return 77;
  }
  std::string reason;
  if (options.text("executor").rfind("cuda", 0) == 0 && !cuda_usable(&reason)) {
    std::printf("SKIPPED: %s\n", reason.c_str());
    return 77;
  }
  lanes_on_drive lanes(options);
  std::printf("on %s; %s: %s\n", lanes.on().device().c_str(), name_of(lanes.path().tier()), lanes.path().reason().c_str());
  lanes.copy_blocks();
  lanes.measure_barrier();
  lanes.search();
  lanes.check_referees();
  lanes.tell();
  return 0;
}

}  // namespace
}  // namespace penstock::test

int main(int count, char** words) {
  try {
    return penstock::test::run_lanes({count, words});
  } catch (std::exception const& problem) {
    std::fflush(stdout);
    std::fprintf(stderr, "drive_lanes: %s\n", problem.what());
    return 1;
  }
}
