#include "libs/bench/hit.hpp"

#include "libs/bench/hit_kernels.hpp"
#include "penstock/core/clock.hpp"

#include <algorithm>
#include <map>

namespace penstock::bench {
namespace {

/// One way to read, and what it is compared with.
struct contest {
  std::string id;
  std::string pattern;
  hit_job ours;
  hit_job baseline;
  std::string baseline_name = "plain array";
};

std::string size_name(u64 bytes) { return bytes % 1024 == 0 ? std::to_string(bytes / 1024) + "k" : std::to_string(bytes); }

std::vector<contest> all_contests(u64 line_bytes) {
  using enum access_kind;
  std::vector<contest> all;
  const auto lines = [&](std::string const& id, line_kind access, line_kind plain, u32 width, u32 at_once) {
    hit_job ours{.shape = hit_shape::lines, .lines = access, .width = width, .lines_at_once = at_once};
    hit_job theirs = ours;
    theirs.lines = plain;
    all.push_back({"hit.line" + size_name(line_bytes) + id, "line", ours, theirs,
                   plain == line_kind::plain ? "plain array" : "plain array in the order of frames"});
  };
  lines(".validated", line_kind::validated, line_kind::plain, 32, 1);
  lines(".data_order", line_kind::validated_data, line_kind::plain, 32, 1);
  lines(".pinned", line_kind::pinned, line_kind::plain, 32, 1);
  lines(".pinned.data_order", line_kind::pinned_data, line_kind::plain, 32, 1);
  lines(".together", line_kind::validated, line_kind::plain_in_frames, 32, 32);
  lines(".together.data_order", line_kind::validated_data, line_kind::plain_in_frames, 32, 32);
  lines(".half_warp", line_kind::validated, line_kind::plain, 16, 1);
  lines(".quarter_warp", line_kind::validated, line_kind::plain, 8, 1);
  const auto walk = [&](char const* id, access_kind access) {
    all.push_back({id, "linear", {.shape = hit_shape::walk, .access = access}, {.shape = hit_shape::walk}});
  };
  walk("hit.linear.walk", view);
  walk("hit.linear.ref", reference);
  // All that a warp reads at once must lie on one line.
  if (line_bytes >= 32 * runs_at_once * sizeof(u64)) walk("hit.linear.ref.runs", reference_runs);
  // The same by parts of a warp: lanes of one warp walk along several lines at once.
  for (auto const& [id, width] : {std::pair{"hit.linear.walk.half_warp", 16u}, {"hit.linear.walk.quarter_warp", 8u}}) {
    const hit_job plain{.shape = hit_shape::walk, .width = width};
    hit_job ours = plain;
    ours.access = view;
    all.push_back({id, "linear", ours, plain});
  }
  const std::pair<char const*, access_kind> ways[] = {
      {"", view}, {".address_order", view_address}, {".data_order", view_data}, {".pinned", pinned}};
  const std::pair<char const*, pattern_kind> orders[] = {
      {"linear", pattern_kind::linear},   {"random", pattern_kind::random}, {"hot16", pattern_kind::hot},
      {"strided", pattern_kind::strided}, {"lines", pattern_kind::lines},   {"coarsened", pattern_kind::coarsened}};
  for (auto const& [name, order] : orders) {
    for (auto const& [way, access] : ways) {
      all.push_back({std::string("hit.") + name + way, name, {.access = access, .order = order}, {.order = order}});
    }
  }
  return all;
}

class hit_bench {
 public:
  hit_bench(executor& on, hit_options const& options, u64 bytes)
      : on_(on), options_(options), store_(on, store_of(options, bytes), options.progress),
        frame_of_line_(on.memory(), memory_kind::local, bytes / options.line_bytes),
        wrong_(on.memory(), memory_kind::local, 1) {
    data_.stored = store_.array();
    data_.plain = store_.plain();
    data_.frame_of_line = frame_of_line_.data();
    data_.frames = reinterpret_cast<u64 const*>(store_.cache().view().frames_base);
    data_.wrong = wrong_.data();
    data_.order = {store_.elements(), store_.line_elements(), options.step, options.order};
    warm_up();
  }

  measurement measure(contest const& c) {
    measurement m;
    const cache_stats before = store_.cache().stats(0);
    run(c.ours);
    run(c.baseline);
    for (u32 k = 0; k < options_.repeats; ++k) {
      m.values.push_back(rate(c.ours));
      m.baseline_values.push_back(rate(c.baseline));
    }
    const cache_stats after = store_.cache().stats(0);
    if (after.fills != before.fills) {
      throw error(error_kind::world, "measure " + c.id + ": " + std::to_string(after.fills - before.fills) +
                                         " lines were brought in, so these were no hits: ask for fewer bytes");
    }
    const bool direct = store_.cache().directory() == directory_kind::direct;
    const bool whole_lines = c.ours.shape != hit_shape::elements;
    m.id = c.id + (whole_lines ? order_suffix(options_.order) : "") + (direct ? ".direct" : ".set");
    m.unit = c.ours.shape != hit_shape::elements || c.ours.order == pattern_kind::linear ? "GB/s" : "Gaccess/s";
    if (m.unit == "GB/s") {
      for (auto* all : {&m.values, &m.baseline_values}) {
        for (double& v : *all) v *= sizeof(u64);
      }
    }
    m.baseline = c.baseline_name;
    m.verified = true;  // run() throws where it is not
    const kernel_facts facts = run(c.ours);
    m.registers = facts.registers;
    m.sms = on_.kind() == executor_kind::cpu ? 0 : options_.sms != 0 ? options_.sms : on_.units();
    const bool wide = c.ours.shape == hit_shape::lines || c.ours.access == access_kind::reference_runs;
    m.warps = m.sms * (wide ? line_blocks : element_blocks) * cuda_block_threads / 32;
    m.params = {{"executor", on_.kind() == executor_kind::cuda ? "cuda" : "cpu"},
                {"bytes", std::to_string(store_.elements() * sizeof(u64))},
                {"line_bytes", std::to_string(options_.line_bytes)},
                {"directory", direct ? "direct" : "set_associative"},
                {"l2", options_.directory_in_l2 ? "window" : "off"},
                {"pattern", c.pattern}};
    note_ablations(options_.without, m.params);
    m.bytes = {{"hbm", static_cast<double>(store_.elements() * sizeof(u64))}};
    m.details = {{"local_bytes", facts.local_bytes},
                 {"baseline_registers", run(c.baseline).registers},
                 {"directory_bytes_per_tib", static_cast<double>(store_.cache().directory_bytes_per_tib())},
                 {"directory_bytes_in_l2", static_cast<double>(store_.cache().directory_bytes_in_l2())},
                 {"metadata_bytes", static_cast<double>(store_.cache().metadata_bytes())},
                 {"retries", static_cast<double>(after.retries - before.retries)}};
    m.machine = describe_host();
    m.machine["device"] = on_.device();
    return m;
  }

 private:
  static store_options store_of(hit_options const& options, u64 bytes) {
    store_options store;
    store.bytes = bytes;
    // Frames for every line, and some more: a set may fill up before the cache does.
    store.cache_bytes = bytes + std::max(bytes / 2, 64 * options.line_bytes);
    store.line_bytes = options.line_bytes;
    store.directory = options.directory;
    store.without = options.without;
    store.directory_in_l2 = options.directory_in_l2;
    return store;
  }

  kernel_facts run(hit_job job) {
    job.units = options_.sms;
    const u64 start = now_ns();
    const kernel_facts facts = on_.kind() == executor_kind::cuda ? run_hit_cuda(on_, job, data_) : run_hit_cpu(on_, job, data_);
    last_ns_ = now_ns() - start;
    store_.cache().check_faults();
    u64 wrong = 0;
    on_.memory().read(&wrong, wrong_.data(), sizeof wrong);
    if (wrong != 0) throw error(error_kind::world, "measure hits: " + std::to_string(wrong) + " threads read wrong elements");
    return facts;
  }

  /// Elements per second, in 10^9.
  double rate(hit_job const& job) {
    run(job);
    return static_cast<double>(store_.elements()) / static_cast<double>(last_ns_);
  }

  // Brings every line in, and reads it once more so that it is referenced.
  void warm_up() {
    for (u32 pass = 0; pass < 3; ++pass) {
      if (options_.progress) options_.progress("filling the cache", pass, 3);
      run({.shape = hit_shape::lines, .lines = line_kind::validated});
    }
    const list_frames list{data_.stored, data_.order.line_elements, frame_of_line_.data(), wrong_.data()};
    const u64 lines = store_.elements() / store_.line_elements();
    on_.kind() == executor_kind::cuda ? list_frames_cuda(on_, lines, list) : list_frames_cpu(on_, lines, list);
    u64 absent = 0;
    on_.memory().read(&absent, wrong_.data(), sizeof absent);
    if (absent != 0) {
      throw error(error_kind::world, "measure hits: " + std::to_string(absent) + " of " + std::to_string(lines) +
                                         " lines found no frame: ask for fewer bytes");
    }
  }

  executor& on_;
  hit_options const& options_;
  stamped_store store_;
  buffer<u32> frame_of_line_;
  buffer<u64> wrong_;
  hit_data data_;
  u64 last_ns_ = 0;
};

}  // namespace

std::vector<measurement> run_hit_benchmark(hit_options const& options) {
  if (options.repeats == 0) throw_bad_input("measure", "hits", "0 repeats: ask for 1 or more");
  if (!is_power_of_two(options.step)) {
    throw_bad_input("measure", "hits", "step " + std::to_string(options.step) + ": choose a power of two");
  }
  if (options.without.cache) throw_bad_input("measure", "hits", "without a cache there are none: measure misses");
  const auto on = open_executor(options.executor, executor_limits{options.sm_share}, built_with_kernels);
  const u64 bytes = options.bytes != 0 ? options.bytes : on->kind() == executor_kind::cuda ? 8ull << 30 : 256ull << 20;
  hit_bench run(*on, options, bytes);
  measurement_list found(options.found);
  auto contests = all_contests(options.line_bytes);
  // What pins by hand looks for a line that may be read without a pin.
  if (options.without.validation) {
    std::erase_if(contests, [](contest const& c) { return c.ours.access == access_kind::pinned; });
  }
  if (!options.patterns.empty()) {
    for (auto const& name : options.patterns) {
      if (std::none_of(contests.begin(), contests.end(), [&](contest const& c) { return c.pattern == name; })) {
        throw_bad_input("measure", "pattern " + name,
                        "there is none of this name: choose line, linear, random, hot16, strided, lines or coarsened");
      }
    }
    std::erase_if(contests, [&](contest const& c) {
      return std::find(options.patterns.begin(), options.patterns.end(), c.pattern) == options.patterns.end();
    });
  }
  for (u64 k = 0; k < contests.size(); ++k) {
    if (options.progress) options.progress(contests[k].id, k, contests.size());
    found.add(run.measure(contests[k]));
  }
  return found.take();
}

}  // namespace penstock::bench
