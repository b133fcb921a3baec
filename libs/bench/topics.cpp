#include "libs/bench/topics.hpp"

#include "libs/bench/hit.hpp"
#include "libs/bench/io_plan.hpp"
#include "libs/bench/latency.hpp"
#include "libs/bench/litmus.hpp"
#include "libs/bench/miss.hpp"
#include "libs/bench/model.hpp"
#include "libs/bench/queue_litmus.hpp"
#include "libs/bench/soak.hpp"
#include "libs/bench/write.hpp"
#include "libs/media/names.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

namespace penstock::bench {
namespace {

[[noreturn]] void refuse(std::string const& what, std::string const& problem) { throw_bad_input("measure", what, problem); }

std::string text(option_texts const& given, std::string const& key, std::string const& otherwise) {
  const auto at = given.find(key);
  return at == given.end() ? otherwise : at->second;
}

u64 number(option_texts const& given, std::string const& key, u64 otherwise) {
  const auto at = given.find(key);
  if (at == given.end()) return otherwise;
  u64 value = 0;
  auto const& word = at->second;
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failed != std::errc{} || end != word.data() + word.size()) {
    refuse(key + "=" + word, "it is no whole number: give one such as " + std::to_string(otherwise));
  }
  return value;
}

u32 small(option_texts const& given, std::string const& key, u32 otherwise) {
  return static_cast<u32>(number(given, key, otherwise));
}

std::vector<std::string> words(option_texts const& given, std::string const& key) {
  std::vector<std::string> all;
  std::istringstream in(text(given, key, ""));
  for (std::string word; std::getline(in, word, ',');) all.push_back(word);
  return all;
}

u64 parsed(std::string const& key, std::string const& word, u64 otherwise) { return number({{key, word}}, key, otherwise); }

/// Numbers with commas between them.
std::vector<u32> numbers(option_texts const& given, std::string const& key, std::vector<u32> otherwise) {
  if (!given.contains(key)) return otherwise;
  std::vector<u32> all;
  for (auto const& word : words(given, key)) all.push_back(static_cast<u32>(parsed(key, word, 1)));
  if (all.empty()) refuse(key, "it names nothing: give numbers with commas between them");
  return all;
}

directory_kind directory(option_texts const& given, directory_kind otherwise) {
  const std::string name = text(given, "directory", "");
  if (name.empty()) return otherwise;
  return media::parse_directory(name);
}

ablations without(option_texts const& given) {
  ablations none;
  for (auto const& name : words(given, "ablate")) {
    if (name != "cache" && name != "coalescing" && name != "validation") {
      refuse("ablate " + name, "there is none of this name: choose of cache, coalescing, validation");
    }
    none.cache |= name == "cache";
    none.coalescing |= name == "coalescing";
    none.validation |= name == "validation";
  }
  return none;
}

/// -1 where none is named.
int device(option_texts const& given, std::string const& key) {
  return given.contains(key) ? static_cast<int>(std::min<u64>(number(given, key, 1), 1 << 20)) : -1;
}

std::vector<measurement> run_hit(option_texts const& given, progress_fn const& progress, found_fn const& found) {
  hit_options options;
  options.executor = text(given, "executor", options.executor);
  options.sm_share = small(given, "sm-share", 0);
  options.bytes = number(given, "mib", 0) << 20;
  options.line_bytes = number(given, "line", options.line_bytes);
  options.directory = directory(given, options.directory);
  options.step = number(given, "step", options.step);
  options.order = order_of(text(given, "order", "random"));
  options.repeats = small(given, "repeats", options.repeats);
  options.sms = small(given, "sms", 0);
  options.without = without(given);
  const std::string l2 = text(given, "l2", "off");
  if (l2 != "off" && l2 != "window") refuse("l2 " + l2, "there is no such way to use it: choose off or window");
  options.directory_in_l2 = l2 == "window";
  options.patterns = words(given, "patterns");
  options.progress = progress;
  options.found = found;
  return run_hit_benchmark(options);
}

std::vector<measurement> run_io(option_texts const& given, progress_fn const& progress, found_fn const& found) {
  io_options options;
  options.executor = text(given, "executor", options.executor);
  options.sm_share = small(given, "sm-share", 0);
  options.preset = text(given, "preset", options.preset);
  options.link = text(given, "link", options.link);
  options.media = text(given, "media", options.media);
  options.rings = text(given, "rings", options.rings);
  options.drives = small(given, "drives", options.drives);
  options.block_bytes = small(given, "block", options.block_bytes);
  options.queues = small(given, "queues", options.queues);
  options.queue_depth = small(given, "depth", options.queue_depth);
  options.first_ticket = number(given, "first-ticket", options.first_ticket);
  options.threads = number(given, "threads", options.threads);
  options.in_flight = small(given, "in-flight", options.in_flight);
  options.commands = number(given, "commands", options.commands);
  options.write_percent = small(given, "writes", options.write_percent);
  if (given.contains("reads")) {
    if (given.contains("writes")) refuse("reads", "writes are given, too: name one of the two");
    const u64 reads = number(given, "reads", 100);
    if (reads > 100) refuse("reads=" + std::to_string(reads), "percent go up to 100");
    options.write_percent = static_cast<u32>(100 - reads);
  }
  const std::string order = text(given, "order", "random");
  if (order != "random" && order != "sequential")
    refuse("order " + order, "there is none of this name: choose random or sequential");
  options.sequential = order == "sequential";
  options.sweep = text(given, "sweep", "");
  for (auto const& word : words(given, "values")) options.values.push_back(parsed("values", word, 1));
  options.procedure = text(given, "procedure", "");
  options.only = {small(given, "drives", 0), number(given, "threads", 0), small(given, "block", 0), text(given, "preset", "")};
  options.sms = small(given, "sms", options.sms);
  options.server_sms = small(given, "server-sms", options.server_sms);
  options.server_device = device(given, "server-device");
  options.drive_mib = number(given, "mib", options.drive_mib);
  options.repeats = small(given, "repeats", options.repeats);
  options.progress = progress;
  options.found = found;
  return run_io_benchmark(options);
}

std::vector<measurement> run_miss(option_texts const& given, progress_fn const& progress, found_fn const& found) {
  miss_options options;
  options.executor = text(given, "executor", options.executor);
  options.sm_share = small(given, "sm-share", 0);
  options.controller = text(given, "controller", options.controller);
  options.media = text(given, "media", options.media);
  options.preset = text(given, "preset", options.preset);
  options.bytes = number(given, "mib", 0) << 20;
  options.cache_bytes = number(given, "cache-mib", 0) << 20;
  options.line_bytes = number(given, "line", options.line_bytes);
  options.directory = directory(given, options.directory);
  options.queues = small(given, "queues", options.queues);
  options.queue_depth = small(given, "depth", options.queue_depth);
  options.controller_threads = small(given, "controller-threads", 0);
  options.server_sms = small(given, "server-sms", 0);
  options.server_device = device(given, "server-device");
  const std::string completion = text(given, "completion", "inline");
  if (completion != "inline" && completion != "service") {
    refuse("completion " + completion, "there is none of this name: choose inline or service");
  }
  if (completion == "inline" && given.contains("service-sms")) refuse("service-sms", "completion is inline: ask for service");
  if (completion == "service") options.service_sms = small(given, "service-sms", 1);
  options.sms = small(given, "sms", 0);
  options.threads = number(given, "threads", 0);
  options.step = number(given, "step", options.step);
  options.order = order_of(text(given, "order", "random"));
  options.width = small(given, "width", options.width);
  options.read_ahead_bytes = number(given, "ahead-kib", options.read_ahead_bytes >> 10) << 10;
  options.without = without(given);
  options.repeats = small(given, "repeats", options.repeats);
  options.patterns = words(given, "patterns");
  options.progress = progress;
  options.found = found;
  return run_miss_benchmark(options);
}

std::vector<measurement> run_latency(option_texts const& given, progress_fn const& progress, found_fn const& found) {
  latency_options options;
  options.executor = text(given, "executor", options.executor);
  options.controller = text(given, "controller", options.controller);
  options.preset = text(given, "preset", options.preset);
  options.media = text(given, "media", options.media);
  options.rings = text(given, "rings", options.rings);
  options.lines = numbers(given, "line", options.lines);
  options.directory = directory(given, options.directory);
  options.lanes = small(given, "lanes", options.lanes);
  options.samples = small(given, "samples", options.samples);
  options.cache_bytes = number(given, "cache-mib", 0) << 20;
  options.controller_threads = small(given, "controller-threads", 0);
  options.server_sms = small(given, "server-sms", 0);
  options.repeats = small(given, "repeats", options.repeats);
  options.progress = progress;
  options.found = found;
  return run_latency_benchmark(options);
}

std::vector<measurement> run_model(option_texts const& given, progress_fn const& progress, found_fn const& found) {
  model_bench_options options;
  options.executor = text(given, "executor", options.executor);
  options.preset = text(given, "preset", options.preset);
  options.media = text(given, "media", options.media);
  options.rings = text(given, "rings", options.rings);
  options.blocks = numbers(given, "block", options.blocks);
  options.queues = numbers(given, "queues", options.queues);
  options.server_sms = numbers(given, "server-sms", options.server_sms);
  options.servers = numbers(given, "servers", options.servers);
  options.kinds = words(given, "kinds");
  options.depths = numbers(given, "depths", {});
  options.queue_depth = small(given, "depth", options.queue_depth);
  options.batch = small(given, "batch", options.batch);
  options.commands = number(given, "commands", options.commands);
  options.samples = number(given, "samples", options.samples);
  options.drive_mib = number(given, "mib", options.drive_mib);
  options.sms = small(given, "sms", options.sms);
  options.repeats = small(given, "repeats", options.repeats);
  options.progress = progress;
  options.found = found;
  return run_model_benchmark(options);
}

topic hit_topic() {
  return {"hit",
          "reads of lines that are in the cache, beside the plain array",
          {{"executor", "auto, cpu or cuda"},
           {"sm-share", "SMs (CPU: threads) that the executor is bounded to, whatever the grid"},
           {"mib", "resident data, MiB, a power of two"},
           {"line", "bytes of a line"},
           {"directory", "auto, direct or set"},
           {"patterns", "of line, linear, random, hot16, strided, lines, coarsened"},
           {"order", "of whole lines: random, linear, strided or coarsened"},
           {"step", "of the patterns and orders strided and coarsened"},
           {"l2", "off, or window: the directory is kept in L2 (CUDA; a CPU takes no such wish)"},
           {"sms", "multiprocessors to use"},
           {"ablate", "features of the cache to disable: coalescing, validation"},
           {"repeats", "of each measurement"}},
          run_hit};
}

topic io_topic() {
  return {
      "io",
      "commands of threads through queues to modelled drives, without a cache",
      {{"executor", "auto, cpu or cuda"},
       {"sm-share", "SMs (CPU: threads) that the executor is bounded to, whatever the grid"},
       {"preset", "of the drives: none, p5800x, pm1735, 980pro, gen5; NAME-duplex"},
       {"link", "that the drives share: none, gen4x16, gen5x16"},
       {"media", "where the drives' bytes lie: hbm or host"},
       {"rings", "where the queues lie: hbm, or host for drives that reach host memory only"},
       {"drives", "1 to 16"},
       {"block", "bytes of a command"},
       {"queues", "over all drives"},
       {"depth", "entries of a queue"},
       {"first-ticket", "that a queue gives: near 2^32, to see its tickets pass that"},
       {"threads", "that issue commands"},
       {"in-flight", "commands that a thread sends before it waits for the first"},
       {"commands", "of one run"},
       {"writes", "percent of the commands"},
       {"reads", "likewise"},
       {"order", "of the blocks: random or sequential"},
       {"sweep", "over " + sweep_names()},
       {"values", "of the sweep, with commas"},
       {"procedure", "of the BaM dissertation: " + procedure_names() + "; drives, threads, block, preset choose of its steps"},
       {"sms", "multiprocessors that issue"},
       {"server-sms", "multiprocessors (CPU: threads) that serve"},
       {"server-device", "number of the GPU that serves, if it is another one"},
       {"mib", "of a drive, a power of two"},
       {"repeats", "of the measurement"}},
      run_io};
}

topic miss_topic() {
  return {"miss",
          "reads of lines that are not in the cache",
          {{"executor", "auto, cpu or cuda"},
           {"sm-share", "SMs (CPU: threads) that the executor is bounded to, whatever the grid"},
           {"controller", "model or software"},
           {"media", "of the modelled drive: hbm or host"},
           {"preset", "of the modelled drive: none, p5800x, pm1735, 980pro, gen5; NAME-duplex"},
           {"mib", "of data, a power of two"},
           {"cache-mib", "of the cache"},
           {"line", "bytes of a line"},
           {"directory", "auto, direct or set"},
           {"queues", "of the controller"},
           {"depth", "entries of a queue"},
           {"controller-threads", "of the software controller"},
           {"server-sms", "multiprocessors (CPU: threads) of the modelled drive"},
           {"server-device", "number of the GPU of the modelled drive, if it is another one"},
           {"completion", "inline: who waits completes; service: resident warps (CPU: threads) do"},
           {"service-sms", "multiprocessors (CPU: threads) of the service"},
           {"sms", "multiprocessors that ask"},
           {"threads", "that ask"},
           {"patterns", "of line, touch, and a thread per element: linear, strided, random, lines, coarsened"},
           {"order", "of whole lines: random, linear, strided or coarsened"},
           {"step", "of the patterns and orders strided and coarsened"},
           {"width", "lanes that walk along a line: 32, 16 or 8"},
           {"ahead-kib", "asked for ahead of reads along lines; 0: nothing"},
           {"ablate", "features of the cache to disable: cache, coalescing, validation"},
           {"repeats", "of each measurement"}},
          run_miss};
}

topic latency_topic() {
  return {"latency",
          "what one warp waits for one line that is not in the cache",
          {{"executor", "auto, cpu or cuda"},
           {"controller", "model or software"},
           {"preset", "of the modelled drive: none, p5800x, pm1735, 980pro, gen5; NAME-duplex"},
           {"media", "of the modelled drive: hbm or host"},
           {"rings", "of the modelled drive: hbm, or host for one that reaches host memory only"},
           {"line", "bytes of a line, one or more with commas"},
           {"directory", "auto, direct or set"},
           {"lanes", "that take part in the first access"},
           {"samples", "of each repeat"},
           {"cache-mib", "of the cache; fewer than the lines that are read: with evictions"},
           {"controller-threads", "of the software controller"},
           {"server-sms", "multiprocessors (CPU: threads) of the modelled drive"},
           {"repeats", "of each measurement"}},
          run_latency};
}

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

topic model_topic() {
  return {"model",
          "modelled drives under a client that does the least: their own ceiling and latency",
          {{"executor", "auto, cpu or cuda"},
           {"preset", "of the drive: none, p5800x, pm1735, 980pro, gen5; NAME-duplex"},
           {"media", "where the drive's bytes lie: hbm or host"},
           {"rings", "where the queues lie: hbm or host"},
           {"block", "bytes of a command, one or more with commas"},
           {"queues", "likewise"},
           {"server-sms", "multiprocessors (CPU: threads) that serve, likewise"},
           {"servers", "warps (CPU: threads) that may look after one queue, likewise"},
           {"kinds", "of read, write, read-latency, write-latency"},
           {"depths", "a curve over so many commands in flight over the queues, with commas: Little's law as the drive counts"},
           {"depth", "entries of a ring"},
           {"batch", "commands that one doorbell tells of"},
           {"commands", "of one run"},
           {"samples", "of a latency"},
           {"mib", "of the drive, a power of two"},
           {"sms", "multiprocessors that issue"},
           {"repeats", "of each measurement"}},
          run_model};
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

std::vector<measurement> run_write(option_texts const& given, progress_fn const& progress, found_fn const& found) {
  write_options options;
  options.executor = text(given, "executor", options.executor);
  options.controller = text(given, "controller", options.controller);
  options.media = text(given, "media", options.media);
  options.preset = text(given, "preset", options.preset);
  options.file = text(given, "file", "");
  const std::string direct = text(given, "direct", "no");
  if (direct != "no" && direct != "yes") refuse("direct " + direct, "choose yes or no");
  options.direct = direct == "yes";
  options.bytes = number(given, "mib", 0) << 20;
  options.cache_bytes = number(given, "cache-mib", 0) << 20;
  options.line_bytes = number(given, "line", options.line_bytes);
  options.directory = directory(given, options.directory);
  options.most_dirty_percent = small(given, "dirty", options.most_dirty_percent);
  options.command_bytes = number(given, "command", options.command_bytes);
  options.slots = small(given, "slots", options.slots);
  options.elements = number(given, "elements", options.elements);
  options.queues = small(given, "queues", options.queues);
  options.queue_depth = small(given, "depth", options.queue_depth);
  options.controller_threads = small(given, "controller-threads", 0);
  options.server_sms = small(given, "server-sms", 0);
  options.sms = small(given, "sms", 0);
  options.repeats = small(given, "repeats", options.repeats);
  options.patterns = words(given, "patterns");
  options.progress = progress;
  options.found = found;
  return run_write_benchmark(options);
}

topic write_topic() {
  return {"write",
          "stores through the cache until they are on storage, beside the controller's own ceiling, every byte checked",
          {{"executor", "auto, cpu or cuda"},
           {"controller", "model or software"},
           {"media", "of the modelled drive: hbm or host"},
           {"preset", "of the modelled drive: none, p5800x, pm1735, 980pro, gen5; NAME-duplex"},
           {"file", "that the software controller serves, made anew and removed; without it: host memory"},
           {"direct", "yes: O_DIRECT, bypassing the page cache; no"},
           {"mib", "of data, a power of two"},
           {"cache-mib", "of the cache"},
           {"line", "bytes of a line"},
           {"directory", "auto, direct or set"},
           {"dirty", "percent of the frames that may be"},
           {"command", "most bytes of one Write"},
           {"slots", "Writes of the cache that are under way at once"},
           {"elements", "of random8 and sequential8 in one turn"},
           {"queues", "of the cache, and as many of the bare client"},
           {"depth", "entries of a queue"},
           {"controller-threads", "of the software controller"},
           {"server-sms", "multiprocessors (CPU: threads) of the modelled drive"},
           {"sms", "multiprocessors that store"},
           {"patterns", "of random4k, random8, sequential8"},
           {"repeats", "of each measurement"}},
          run_write};
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

void check_options(topic const& t, option_texts const& given) {
  const auto unknown =
      std::find_if(given.begin(), given.end(), [&](auto const& option) { return !t.options.contains(option.first); });
  if (unknown == given.end()) return;
  refuse(t.name, "it has no option " + unknown->first + ": see penstock bench " + t.name + " --help");
}

}  // namespace

std::vector<topic> const& topics() {
  static const std::vector<topic> all = {hit_topic(),   io_topic(),     miss_topic(), latency_topic(),
                                         model_topic(), litmus_topic(), soak_topic(), write_topic()};
  return all;
}

std::vector<measurement> run_topic(std::string const& name, option_texts const& given, progress_fn const& progress,
                                   found_fn const& found) {
  std::string known;
  for (auto const& t : topics()) {
    if (!known.empty()) known += ", ";
    known += t.name;
    if (t.name != name) continue;
    check_options(t, given);
    return t.run(given, progress, found);
  }
  refuse(name, "there is no such topic: choose one of " + known);
}

}  // namespace penstock::bench
