// Topics of emulated drives, without a cache.
#include "libs/bench/io_plan.hpp"
#include "libs/bench/model.hpp"
#include "libs/bench/option_values.hpp"
#include "libs/bench/topic_list.hpp"

namespace penstock::bench {
namespace {

using namespace option_values;

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

}  // namespace

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

}  // namespace penstock::bench
