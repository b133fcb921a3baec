#include "libs/bench/io_plan.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>

namespace penstock::bench {
namespace {

[[noreturn]] void refuse_plan(std::string const& problem) { throw_bad_input("plan", "commands", problem); }

// A value of the option that a sweep goes over, where options have it.
struct sweep_kind {
  char const* name;
  void (*set)(io_options& options, u64 value);
  std::vector<u64> values;  ///< unless told
};

std::vector<sweep_kind> const& sweeps() {
  static const std::vector<sweep_kind> all = {
      {"threads", [](io_options& o, u64 v) { o.threads = v; }, {1, 32, 128, 512, 1024, 4096, 16384, 65536}},
      {"requests", [](io_options& o, u64 v) { o.commands = v; }, {256, 1024, 2048, 4096, 16384, 65536, 262144, 1048576}},
      {"blocks", [](io_options& o, u64 v) { o.block_bytes = static_cast<u32>(v); }, {512, 1024, 2048, 4096, 8192}},
      {"depth", [](io_options& o, u64 v) { o.queue_depth = static_cast<u32>(v); }, {32, 64, 128, 256, 512, 1024}},
      {"queues", [](io_options& o, u64 v) { o.queues = static_cast<u32>(v); }, {1, 2, 4, 8, 16, 32, 64, 128, 256}},
      {"in-flight", [](io_options& o, u64 v) { o.in_flight = static_cast<u32>(v); }, {1, 2, 4, 8}},
      {"drives", [](io_options& o, u64 v) { o.drives = static_cast<u32>(v); }, {1, 2, 4, 6, 8, 10}},
      {"writes", [](io_options& o, u64 v) { o.write_percent = static_cast<u32>(v); }, {0, 10, 25, 50, 75, 100}},
  };
  return all;
}

std::vector<io_step> sweep_steps(io_options const& options) {
  for (sweep_kind const& each : sweeps()) {
    if (each.name != options.sweep) continue;
    std::vector<io_step> steps;
    for (const u64 value : options.values.empty() ? each.values : options.values) {
      io_step step{options, "", 0, "", false};
      each.set(step.options, value);
      steps.push_back(step);
    }
    return steps;
  }
  refuse_plan("there is no sweep over " + options.sweep + ": choose one of " + sweep_names());
}

constexpr u64 many_threads = 65536;

io_options drives_of_bam(io_options options, u32 drives, u32 block_bytes, u32 write_percent) {
  options.preset = "p5800x";
  options.link = "gen4x16";
  options.drives = drives;
  options.queues = 32 * drives;
  options.block_bytes = block_bytes;
  options.write_percent = write_percent;
  if (options.drive_mib == 0) options.drive_mib = 64;
  return options;
}

/// Measured rates of single drives. "7500K" for the reads of NAND flash at 4 KiB is one digit too many.
std::vector<io_step> table_5_3(io_options const& base) {
  struct row {
    char const* preset;
    double reads_512, reads_4k, writes_512, writes_4k;
  };
  constexpr row rows[] = {
      {"p5800x", 5.1e6, 1.5e6, 1.0e6, 1.5e6}, {"pm1735", 1.1e6, 1.6e6, 351e3, 351e3}, {"980pro", 750e3, 750e3, 172e3, 172e3}};
  std::vector<io_step> steps;
  for (row const& drive : rows) {
    for (auto const& [bytes, writes, rate] : {std::tuple{512u, 0u, drive.reads_512},
                                              {4096u, 0u, drive.reads_4k},
                                              {512u, 100u, drive.writes_512},
                                              {4096u, 100u, drive.writes_4k}}) {
      io_options options = drives_of_bam(base, 1, bytes, writes);
      options.preset = drive.preset;
      options.link = "none";
      options.threads = 16384;
      steps.push_back({options, "table5.3." + std::to_string(bytes) + (writes != 0 ? ".write" : ".read"), rate,
                       "BaM dissertation, Table 5.3", false});
    }
  }
  return steps;
}

/// Random commands of 512 bytes over threads and drives. The text has a figure for ten drives, and says that fewer reach their
/// peaks.
std::vector<io_step> figure_5_6(io_options const& base) {
  std::vector<io_step> steps;
  for (const u32 writes : {0u, 100u}) {
    for (u32 drives = 1; drives <= 10; ++drives) {
      for (const u64 threads : {u64{1024}, u64{4096}, u64{16384}, many_threads}) {
        io_options options = drives_of_bam(base, drives, 512, writes);
        options.threads = threads;
        io_step step{options, writes != 0 ? "fig5.6.write" : "fig5.6.read", 0, "", false};
        if (threads == many_threads) {
          step.expected = drives == 10 ? (writes != 0 ? 10.6e6 : 45.8e6) : drives * (writes != 0 ? 1.0e6 : 5.1e6);
          step.source = drives == 10 ? "BaM dissertation, Fig. 5.6" : "BaM dissertation, Table 5.3, for each drive";
        }
        steps.push_back(step);
      }
    }
  }
  return steps;
}

/// Random commands of 4 KiB over the requests of a run, a thread for each; one drive is saturated from 2 K requests on.
std::vector<io_step> figure_5_8(io_options const& base) {
  std::vector<io_step> steps;
  for (const u32 writes : {0u, 100u}) {
    for (u32 drives = 1; drives <= 4; ++drives) {
      for (const u64 requests : {256u, 1024u, 2048u, 4096u, 8192u, 16384u, 65536u, 262144u}) {
        io_options options = drives_of_bam(base, drives, 4096, writes);
        options.threads = std::min<u64>(requests, many_threads);
        options.commands = requests;
        const bool saturates = requests >= u64{2048} * drives;
        steps.push_back({options, writes != 0 ? "fig5.8.write" : "fig5.8.read", saturates ? 6.2 * drives : 0,
                         saturates ? "BaM dissertation, Fig. 5.8" : "", true});
      }
    }
  }
  return steps;
}

/// Consecutive blocks of five sizes, four drives.
std::vector<io_step> figure_5_9(io_options const& base) {
  std::vector<io_step> steps;
  for (auto const& [bytes, peak] : {std::pair{512u, 10.0}, {1024u, 15.0}, {2048u, 20.0}, {4096u, 24.0}, {8192u, 24.0}}) {
    for (const u64 threads : {u64{1024}, u64{4096}, u64{16384}, many_threads}) {
      io_options options = drives_of_bam(base, 4, bytes, 0);
      options.threads = threads;
      options.sequential = true;
      const bool saturates = threads >= 16384;
      steps.push_back({options, "fig5.9.read", saturates ? peak : 0, saturates ? "BaM dissertation, Fig. 5.9" : "", true});
    }
  }
  return steps;
}

struct procedure_kind {
  char const* name;
  std::vector<io_step> (*steps)(io_options const& base);
};
constexpr procedure_kind procedures[] = {
    {"table5.3", table_5_3}, {"fig5.6", figure_5_6}, {"fig5.8", figure_5_8}, {"fig5.9", figure_5_9}};

std::vector<io_step> procedure_steps(io_options const& options) {
  for (procedure_kind const& each : procedures) {
    if (each.name != options.procedure) continue;
    std::vector<io_step> steps = each.steps(options);
    io_only const& only = options.only;
    std::erase_if(steps, [&](io_step const& s) {
      return (only.drives != 0 && s.options.drives != only.drives) ||
             (only.threads != 0 && s.options.threads != only.threads) ||
             (only.block_bytes != 0 && s.options.block_bytes != only.block_bytes) ||
             (!only.preset.empty() && s.options.preset != only.preset);
    });
    if (steps.empty())
      refuse_plan("procedure " + options.procedure + " has no step with these drives, threads, block or preset");
    return steps;
  }
  refuse_plan("there is no procedure " + options.procedure + ": choose one of " + procedure_names());
}

template <class Kinds>
std::string names_of(Kinds const& kinds) {
  std::string all;
  for (auto const& each : kinds) all += std::string(all.empty() ? "" : ", ") + each.name;
  return all;
}

/// Nanoseconds of a drive's clock: linear between 512 bytes and 4 KiB, proportional beyond. 0: no limit.
double cost_ns(double iops_512, double iops_4k, u64 bytes) {
  if (iops_512 <= 0) iops_512 = iops_4k;
  if (iops_4k <= 0) iops_4k = iops_512;
  if (iops_512 <= 0) return 0;
  const double small = 1e9 / iops_512, page = 1e9 / iops_4k;
  if (bytes >= 4096) return page * static_cast<double>(bytes) / 4096;
  return small + (page - small) * static_cast<double>(bytes - 512) / 3584;
}

}  // namespace

std::vector<io_step> plan_of(io_options const& options) {
  if (!options.procedure.empty() && !options.sweep.empty()) refuse_plan("a sweep and a procedure at once: ask for one of them");
  if (!options.procedure.empty()) return procedure_steps(options);
  if (!options.sweep.empty()) return sweep_steps(options);
  return {{options, "", 0, "", false}};
}

double drive_limit(io_options const& options, double in_flight, u64 commands) {
  const drive_timing timing = drive_preset(options.preset);
  const double link = link_preset(options.link), service = static_cast<double>(timing.service_time_ns);
  const double write_share = options.write_percent / 100.0;
  const double cost = (1 - write_share) * cost_ns(timing.read_iops_512, timing.read_iops_4k, options.block_bytes) +
                      write_share * cost_ns(timing.write_iops_512, timing.write_iops_4k, options.block_bytes);
  // The longest of what a command takes of the drives' clocks, of their units and of the link.
  double each = cost / options.drives;
  if (timing.units != 0) each = std::max(each, service / timing.units / options.drives);
  if (link > 0) each = std::max(each, static_cast<double>(link_bytes(options.block_bytes)) / link * 1e9);
  const double all = static_cast<double>(commands);
  const double by_threads = all * service / std::max(in_flight, 1e-3);
  const double run = std::max(by_threads, service + all * each);
  return run > 0 ? all / run * 1e9 : 0;
}

std::string sweep_names() { return names_of(sweeps()); }
std::string procedure_names() { return names_of(procedures); }

}  // namespace penstock::bench
