// Topics of the cache without faults: hits, misses, the latency of one miss, write-back.
#include "libs/bench/files.hpp"
#include "libs/bench/gpufs.hpp"
#include "libs/bench/grep.hpp"
#include "libs/bench/hit.hpp"
#include "libs/bench/latency.hpp"
#include "libs/bench/miss.hpp"
#include "libs/bench/option_values.hpp"
#include "libs/bench/own.hpp"
#include "libs/bench/topic_list.hpp"
#include "libs/bench/write.hpp"

namespace penstock::bench {
namespace {

using namespace option_values;

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

std::vector<measurement> run_own(option_texts const& given, progress_fn const& progress, found_fn const& found) {
  own_options options;
  options.executor = text(given, "executor", options.executor);
  options.bytes = number(given, "mib", 0) << 20;
  options.cache_bytes = number(given, "cache-mib", 0) << 20;
  options.line_bytes = number(given, "line", options.line_bytes);
  options.reads = number(given, "reads", 0);
  options.patterns = words(given, "patterns");
  options.repeats = small(given, "repeats", options.repeats);
  options.progress = progress;
  options.found = found;
  return run_own_benchmark(options);
}

std::vector<measurement> run_files(option_texts const& given, progress_fn const& progress, found_fn const& found) {
  files_options options;
  options.executor = text(given, "executor", options.executor);
  options.folder = text(given, "folder", options.folder);
  options.bytes = number(given, "mib", 0) << 20;
  options.cache_bytes = number(given, "cache-mib", 0) << 20;
  options.line_bytes = small(given, "line", options.line_bytes);
  options.files = small(given, "files", options.files);
  options.host_threads = small(given, "host-threads", options.host_threads);
  options.call_threads = small(given, "call-threads", options.call_threads);
  options.repeats = small(given, "repeats", options.repeats);
  options.patterns = words(given, "patterns");
  options.progress = progress;
  options.found = found;
  return run_files_benchmark(options);
}

std::vector<measurement> run_grep(option_texts const& given, progress_fn const& progress, found_fn const& found) {
  grep_options options;
  options.executor = text(given, "executor", options.executor);
  options.folder = text(given, "folder", options.folder);
  options.pattern = text(given, "pattern", options.pattern);
  options.cache_bytes = number(given, "cache-mib", 0) << 20;
  options.line_bytes = number(given, "line", 0);
  options.host_threads = small(given, "host-threads", 0);
  options.repeats = small(given, "repeats", options.repeats);
  options.progress = progress;
  options.found = found;
  return run_grep_benchmark(options);
}

std::vector<measurement> run_gpufs(option_texts const& given, progress_fn const& progress, found_fn const& found) {
  gpufs_bench_options options;
  options.executor = text(given, "executor", options.executor);
  options.folder = text(given, "folder", options.folder);
  options.bytes = number(given, "mib", 0) << 20;
  options.cache_bytes = number(given, "cache-mib", 0) << 20;
  options.page_bytes = small(given, "line", options.page_bytes);
  options.threads = small(given, "threads", options.threads);
  options.groups = small(given, "groups", options.groups);
  options.workers = small(given, "workers", options.workers);
  options.order = text(given, "order", options.order);
  options.repeats = small(given, "repeats", options.repeats);
  options.patterns = words(given, "patterns");
  options.progress = progress;
  options.found = found;
  return run_gpufs_benchmark(options);
}

}  // namespace

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

topic own_topic() {
  return {"own",
          "reads through a cache with an own policy (FIFO) and with own fills (computed lines), beside the stock cache",
          {{"executor", "auto, cpu or cuda"},
           {"mib", "of data, a power of two"},
           {"cache-mib", "of each cache"},
           {"line", "bytes of a line"},
           {"reads", "of each repeat, of 8 bytes"},
           {"patterns", "of uniform, zipf, sequential"},
           {"repeats", "of each measurement"}},
          run_own};
}

topic files_topic() {
  return {"files",
          "calls of files by groups, beside the array over the same file and beside threads of the host",
          {{"executor", "auto, cpu or cuda"},
           {"folder", "where the files are made, and removed again"},
           {"mib", "of the large file"},
           {"cache-mib", "of the patterns with misses"},
           {"line", "bytes of a line"},
           {"files", "small ones that are opened"},
           {"host-threads", "of the baselines: opens, batched copies (CUDA)"},
           {"call-threads", "that answer calls; 0: the default"},
           {"patterns", "of read4k.warm, read4k.cold, read4k.skewed, open.known, open.new, roundtrip"},
           {"repeats", "of each measurement"}},
          run_files};
}

topic grep_topic() {
  return {"grep",
          "a search of the text files below a folder, beside threads of the host that map them",
          {{"executor", "auto, cpu or cuda"},
           {"folder", "to search"},
           {"pattern", "text to find"},
           {"cache-mib", "of the cache of files"},
           {"line", "bytes of a line"},
           {"host-threads", "of the baseline; 0: one per core"},
           {"repeats", "of each measurement"}},
          run_grep};
}

topic gpufs_topic() {
  return {"gpufs",
          "GPUfs before and after each of its optimizations, beside files of Penstock",
          {{"executor", "auto, cpu or cuda"},
           {"folder", "where the files are made, and removed again"},
           {"mib", "of the file, a power of two"},
           {"cache-mib", "of the patterns that evict"},
           {"line", "bytes of a page of GPUfs, and of Penstock's lines"},
           {"threads", "of the CPU executor"},
           {"groups", "blocks of the GPU that run at once, and eight times as many warps"},
           {"workers", "host threads that read the file, 1 to 8; CPU without it: threads read in place"},
           {"order", "random, skewed (three of four to a sixteenth), zipf or linear"},
           {"patterns", "of directory, allocator, allocators, batching, level (CUDA), original, insert, page, workers"},
           {"repeats", "of each measurement"}},
          run_gpufs};
}

}  // namespace penstock::bench
