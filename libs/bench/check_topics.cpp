// Topics that look for what is wrong: memory orders, a drive that fails, configurations that are slow.
#include "libs/bench/cliffs.hpp"
#include "libs/bench/litmus.hpp"
#include "libs/bench/option_values.hpp"
#include "libs/bench/queue_litmus.hpp"
#include "libs/bench/soak.hpp"
#include "libs/bench/topic_list.hpp"

#include <set>

namespace penstock::bench {
namespace {

using namespace option_values;

std::vector<measurement> run_queue_test(option_texts const& given, progress_fn const& progress, found_fn const& found) {
  queue_litmus_options options;
  options.executor = text(given, "executor", options.executor);
  options.rounds = number(given, "rounds", 0);
  options.queues = small(given, "queues", 0);
  options.sharers = small(given, "sharers", options.sharers);
  options.queue_depth = small(given, "depth", options.queue_depth);
  options.rings = text(given, "rings", options.rings);
  options.data = text(given, "data", options.data);
  options.orders = words(given, "orders");
  options.spoiled = number(given, "spoiled", 0);
  options.repeats = small(given, "repeats", options.repeats);
  options.progress = progress;
  options.found = found;
  return run_queue_litmus(options);
}

std::vector<measurement> run_litmus(option_texts const& given, progress_fn const& progress, found_fn const& found) {
  const std::string test = text(given, "test", "reads");
  const std::set<std::string> both = {"test", "executor", "rounds", "orders", "repeats"};
  for (auto const& [key, value] : given) {
    if (both.contains(key) || (key == "groups") == (test == "reads")) continue;
    std::string given_as = key;
    given_as.append("=").append(value);
    refuse(given_as, "it is no option of the litmus test of " + test + ": leave it out, or choose the other test");
  }
  if (test == "queue") return run_queue_test(given, progress, found);
  if (test != "reads") refuse("test " + test, "there is none of this name: choose reads or queue");
  litmus_options options;
  options.executor = text(given, "executor", options.executor);
  options.rounds = number(given, "rounds", 0);
  options.groups = small(given, "groups", 0);
  options.orders = words(given, "orders");
  options.repeats = small(given, "repeats", options.repeats);
  options.progress = progress;
  options.found = found;
  return run_litmus_benchmark(options);
}

std::vector<measurement> run_soak(option_texts const& given, progress_fn const& progress, found_fn const& found) {
  soak_options options;
  options.executor = text(given, "executor", options.executor);
  options.operations = number(given, "operations", options.operations);
  options.phase = number(given, "phase", options.phase);
  options.seed = number(given, "seed", options.seed);
  options.threads = small(given, "threads", options.threads);
  options.bytes = number(given, "mib", 0) << 20;
  options.cache_bytes = number(given, "cache-kib", 0) << 10;
  options.line_bytes = number(given, "line", options.line_bytes);
  options.directory = directory(given, options.directory);
  options.cold_ppm = small(given, "cold", options.cold_ppm);
  options.error_ppm = small(given, "errors", options.error_ppm);
  options.delay_ppm = small(given, "delays", options.delay_ppm);
  options.drop_ppm = small(given, "drops", options.drop_ppm);
  options.late_ppm = small(given, "lates", options.late_ppm);
  options.timeout_ms = number(given, "timeout-ms", options.timeout_ms);
  options.seconds = number(given, "seconds", options.seconds);
  options.progress = progress;
  options.found = found;
  return run_soak_benchmark(options);
}

std::vector<measurement> run_cliffs(option_texts const& given, progress_fn const& progress, found_fn const& found) {
  cliffs_options options;
  options.executor = text(given, "executor", options.executor);
  options.configs = number(given, "configs", options.configs);
  options.seed = number(given, "seed", options.seed);
  options.bytes = number(given, "mib", 0) << 20;
  options.shown = number(given, "worst", options.shown);
  options.folder = text(given, "folder", options.folder);
  options.progress = progress;
  options.found = found;
  return run_cliffs_benchmark(options);
}

}  // namespace

topic litmus_topic() {
  return {"litmus",
          "whether reads without a pin ever see another fill's bytes, or messages through queues arrive late, in each order",
          {{"test", "reads: against refills; queue: messages to controllers and back. Without it reads"},
           {"executor", "auto, cpu or cuda"},
           {"rounds", "refills in all; of queue: commands, each a message both ways"},
           {"groups", "of reads: warps (CPU: items) that refill and read"},
           {"orders",
            "reads: of sound, address, data; queue: of sound, relaxed (in the queue), unordered (in the controller, too)"},
           {"queues", "of queue: how many, each with a controller that is a warp (CPU: a thread)"},
           {"sharers", "of queue: warps (CPU: threads) that submit to one queue in the order sound"},
           {"depth", "of queue: entries of a ring"},
           {"rings", "of queue: where rings and doorbells lie: hbm or host"},
           {"data", "of queue: where messages lie, likewise"},
           {"spoiled", "of queue: first rounds of each thread whose data nobody writes: all of them must be found"},
           {"repeats", "of each order"}},
          run_litmus};
}

topic soak_topic() {
  return {
      "soak",
      "reads and writes over a drive that fails, delays, reorders and loses commands: every byte checked, every fault found "
      "again in the counters",
      {{"executor", "auto, cpu or cuda"},
       {"operations", "in all"},
       {"phase", "operations between two flushes"},
       {"seed", "of operations and faults"},
       {"threads", "that read and write"},
       {"mib", "of data, a power of two"},
       {"cache-kib", "of the cache"},
       {"line", "bytes of a line"},
       {"directory", "auto, direct or set"},
       {"cold", "operations that go anywhere, per million"},
       {"errors", "commands that end with one, per million"},
       {"delays", "that take longer, likewise"},
       {"drops", "that are never answered, likewise"},
       {"lates", "that are served after they were given up, likewise"},
       {"timeout-ms", "of a command"},
       {"seconds", "that it may take"}},
      run_soak};
}

topic cliffs_topic() {
  return {"cliffs",
          "random configurations of pattern, access, source, line, cache and threads, each beside what bounds it, worst first",
          {{"executor", "auto, cpu or cuda"},
           {"configs", "how many are drawn; 40"},
           {"seed", "of the first; one that a result names is repeated by configs=1"},
           {"mib", "of data, a power of two; 64, on a GPU 1024"},
           {"worst", "how many are shown; 20"},
           {"folder", "for a file of the data; TMPDIR or /tmp"}},
          run_cliffs};
}

}  // namespace penstock::bench
