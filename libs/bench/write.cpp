// What may be expected. A line that is written whole is one Write, so it cannot beat the controller's ceiling for those; beside
// it, it is copied twice in memory (into its frame; into the buffer of its command), and a warp stores, claims and sends it in
// some microseconds, of which a GPU does thousands at once. So where the controller is what is slow (any real drive), random4k
// is to have 0.95 of the ceiling or more; where the modelled drive takes no time, the copies on the GPU's own memory share it
// with the drive's, and the ratio falls to the part that is left.
//
// An element of a line that is not in the cache costs a Read and a Write of the line: the floor of random8 is
// line / 8 x (1 - cache / data) bytes written for each byte changed (480 with 4 KiB lines and a cache of a sixteenth), its
// ceiling the rate of such pairs. Elements that follow each other share one pair for a line, so the floor of sequential8 is 1
// byte for each, in commands of 64 KiB: 1/16 command for a line.
#include "libs/bench/write.hpp"

#include "libs/bench/bare_driver.hpp"
#include "libs/bench/write_figures.hpp"
#include "libs/bench/write_kernels.hpp"
#include "libs/bench/write_media.hpp"
#include "libs/graph/parallel.hpp"
#include "libs/media/modelled.hpp"
#include "libs/media/names.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <atomic>
#include <optional>

namespace penstock::bench {
namespace {

[[noreturn]] void refuse_writes(std::string const& problem) { throw_bad_input("measure", "writes", problem); }

struct pattern_of {
  char const* name;
  bool whole;   ///< lines, else elements
  bool random;  ///< elements in any order
};
constexpr pattern_of patterns[] = {{"random4k", true, true}, {"random8", false, true}, {"sequential8", false, false}};

constexpr u32 usual_cuda_queues = 128;
constexpr u64 usual_command = 65536;

write_options checked(write_options options, executor const& on) {
  const bool cuda = on.kind() == executor_kind::cuda;
  media::check_block(options.line_bytes);
  if (options.controller != "model" && options.controller != "software") {
    refuse_writes("controller " + options.controller + ": choose model or software");
  }
  if (!options.file.empty() && options.controller != "software")
    refuse_writes("a file behind a modelled drive: ask for software");
  if (options.bytes == 0) options.bytes = cuda ? 4ull << 30 : 64ull << 20;
  if (!is_power_of_two(options.bytes) || options.bytes >> 35 != 0 || options.bytes < 16 * options.line_bytes) {
    refuse_writes(std::to_string(options.bytes) + " bytes of data: choose a power of two from 16 lines to 16 GiB");
  }
  if (options.cache_bytes == 0) options.cache_bytes = options.bytes / 16;
  if (options.cache_bytes >= options.bytes) refuse_writes("a cache that holds all of the data: ask for less");
  if (options.most_dirty_percent == 0 || options.most_dirty_percent > 100) {
    refuse_writes(std::to_string(options.most_dirty_percent) + " percent of the frames dirty: choose 1 to 100");
  }
  if (options.repeats == 0) refuse_writes("0 repeats: ask for 1 or more");
  const u64 all = options.bytes / sizeof(u64);
  if (options.elements == 0) options.elements = std::max<u64>(1, all / 64);
  if (options.elements > all) refuse_writes(std::to_string(options.elements) + " elements: there are " + std::to_string(all));
  if (options.queues == 0) options.queues = cuda ? usual_cuda_queues : on.units();
  for (auto const& name : options.patterns) {
    const bool known = std::any_of(std::begin(patterns), std::end(patterns), [&](auto const& p) { return name == p.name; });
    if (!known) refuse_writes("there is no pattern " + name + ": choose of random4k, random8, sequential8");
  }
  return options;
}

/// One pattern: a cache of its own, in turns with the bare client.
class write_bench {
 public:
  write_bench(executor& on, write_options const& options, write_media& media, pattern_of const& what)
      : on_(on), options_(options), media_(media), what_(what), problem_(on.memory(), memory_kind::local, 1),
        units_(media.units(options.sms)) {
    const u64 bytes = options.bytes;
    cache_options cache;
    cache.bytes = options.cache_bytes;
    cache.line_bytes = options.line_bytes;
    cache.directory = options.directory;
    cache.queues = options.queues;
    cache.queue_depth = options.queue_depth;
    cache.write_back.most_dirty = options.most_dirty_percent / 100.0;
    cache.write_back.command_bytes = options.command_bytes != 0 ? options.command_bytes
                                     : what.whole               ? options.line_bytes
                                                                : usual_command;
    cache.write_back.commands = options.slots;
    const volume_spec volume{volume_layout::single, {{&media.owner(), media.namespace_id()}}};
    cache_ = std::make_unique<line_cache>(on, std::vector<dataset_spec>{{"written", 2 * bytes, volume, true}}, cache);
    turn_.elements = bytes / sizeof(u64);
    turn_.first = turn_.elements;  // the second half
    turn_.array = cache_->writable<u64>(0, bytes, turn_.elements);
    turn_.problem = problem_.data();
    make_bare();
    job_.units = units_;
    // Groups wait for a line, or each lane for one of its own, and half of the frames may be dirty: a quarter of them is
    // theirs.
    const u64 lines_of_group = what.whole || !what.random ? 1 : 32;
    const u64 fit = u64{units_} * cuda_blocks_per_unit * (cuda_block_threads / 32);
    job_.groups = std::max<u64>(1, std::min(fit, cache_->view().frames / (4 * lines_of_group)));
    if (!cuda()) return;
    prepare_bare_cuda(on_, {bare_->data}, {bare_->data, {}});
    job_.only_prepares = true;
    store();
    job_.only_prepares = false;
  }

  measurement measure() {
    media_.start();
    const u64 writes = bare_->calibrated(true), reads = what_.whole ? 0 : bare_->calibrated(false);
    measurement m;
    kernel_facts facts;
    write_account account;
    for (u32 k = 0; k <= options_.repeats; ++k) {
      if (options_.progress) options_.progress(what_.name, k, options_.repeats + 1);
      const double ceiling = ceiling_of(bare_->rate(writes, true), what_.whole ? 0 : bare_->rate(reads, false));
      const cache_stats before = cache_->stats(0);
      const u64 start = now_ns();
      ++turn_.number;
      facts = store();
      const u64 stored = now_ns();
      cache_->flush();
      const u64 done = now_ns();
      check_problem();
      if (k == 0) continue;
      account.kernel_seconds += static_cast<double>(stored - start) * 1e-9;
      account.seconds += static_cast<double>(done - start) * 1e-9;
      account.add(cache_->stats(0), before);
      m.values.push_back(amount() / static_cast<double>(done - start) * (what_.whole ? 1 : 1e9));
      m.baseline_values.push_back(ceiling);
    }
    media_.stop();
    verify();
    account.threads = cuda() ? job_.groups * 32 : on_.units();
    account.capacity = drive_capacity(options_.controller == "model" ? options_.preset : "none");
    if (account.capacity == 0) account.capacity = 2 * static_cast<double>(options_.bytes);
    describe(m, facts, account);
    return m;
  }

 private:
  bool cuda() const { return on_.kind() == executor_kind::cuda; }

  void make_bare() {
    const bool near = media_.owner().limits().reaches_local;
    bare_options queues;
    queues.namespace_id = media_.namespace_id();
    queues.block_bytes = static_cast<u32>(options_.line_bytes);
    queues.queues = options_.queues;
    queues.first_queue_id = options_.queues + 1;
    queues.entries = options_.queue_depth;
    const u32 batch = usual_batch(on_, queues.entries);
    queues.commands = batch * most_batches_in_flight;
    queues.rings = queues.data = near ? memory_kind::local : memory_kind::shared;
    queues.poll_in_place = media_.polled();
    bare_.emplace(on_, media_.owner(), queues, batch, options_.bytes / options_.line_bytes, units_);
  }

  kernel_facts store() {
    const u32 line_elements = static_cast<u32>(options_.line_bytes / sizeof(u64));
    if (what_.whole) {
      const u64 lines = turn_.elements / line_elements;
      const write_lines body{turn_, pattern{turn_.elements, line_elements}.sequence(lines), line_elements};
      return cuda() ? run_writes_cuda(on_, job_, lines, body) : run_writes_cpu(on_, job_, lines, body);
    }
    const write_elements body{turn_, options_.elements, what_.random};
    return cuda() ? run_writes_cuda(on_, job_, body) : run_writes_cpu(on_, job_, body);
  }

  /// Of one turn, in bytes or elements.
  double amount() const { return what_.whole ? static_cast<double>(options_.bytes) : static_cast<double>(options_.elements); }

  /// In the unit of the measurement, from commands/s.
  double ceiling_of(double writes, double reads) const {
    if (what_.whole) return writes * static_cast<double>(options_.line_bytes) * 1e-9;
    const double pairs = 1 / (1 / writes + 1 / reads);
    return what_.random ? pairs : pairs * static_cast<double>(options_.line_bytes) / sizeof(u64);
  }

  void check_problem() {
    cache_->check_faults();
    u32 worst = 0;
    problem_.read({&worst, 1});
    if (worst != 0) throw_status("measure writes", what_.name, unpack_status(worst));
  }

  /// Every word of the second half: what the last turn stored, and where it stored nothing what was there before.
  void verify() const {
    constexpr u64 piece = 1 << 18;
    std::vector<bool> stored(what_.whole ? 0 : turn_.elements);
    const write_elements which{turn_, options_.elements, what_.random};
    for (u64 k = 0; k < options_.elements && !what_.whole; ++k) stored[which.place(k)] = true;
    std::atomic<u64> wrong{0};
    graph::progress_meter quiet;
    graph::parallel_for(ceil_div(turn_.elements, piece), graph::worker_count(0), quiet, [&](u64 p) {
      const u64 first = p * piece;
      std::vector<u64> words(std::min(piece, turn_.elements - first));
      media_.read(first * sizeof(u64), words);
      u64 bad = 0;
      for (u64 k = 0; k < words.size(); ++k) {
        const bool changed = what_.whole || stored[first + k];
        bad += words[k] != written_at(turn_.first + first + k, changed ? turn_.number : 0);
      }
      wrong += bad;
    });
    if (wrong == 0) return;
    throw error(error_kind::world, std::string("measure writes: ") + what_.name + ": after the flush " +
                                       std::to_string(wrong.load()) + " words in storage are not what was stored");
  }

  void describe(measurement& m, kernel_facts facts, write_account const& account) const {
    const u64 line = options_.line_bytes;
    const std::string size = line % 1024 == 0 ? std::to_string(line / 1024) + "k" : std::to_string(line);
    m.id = what_.whole ? "write.random" + size : std::string("write.") + what_.name;
    m.unit = what_.whole ? "GB/s" : "elements/s";
    m.baseline = what_.whole ? "Writes of a bare client" : "a Read and a Write of a bare client for each line";
    m.verified = true;  // verify throws where it is not
    m.registers = facts.registers;
    m.sms = cuda() ? units_ : 0;
    m.warps = static_cast<unsigned>(cuda() ? job_.groups : on_.units());
    m.bytes = {{"written", static_cast<double>(account.bytes_written)}};
    m.params = {{"executor", cuda() ? "cuda" : "cpu"},
                {"controller", media_.engine()},
                {"media", options_.controller == "model" ? options_.media
                          : options_.file.empty()        ? "memory"
                                                         : "file"},
                {"preset", options_.controller == "model" ? options_.preset : "none"},
                {"line_bytes", std::to_string(line)},
                {"bytes", std::to_string(options_.bytes)},
                {"cache_bytes", std::to_string(options_.cache_bytes)},
                {"most_dirty_percent", std::to_string(options_.most_dirty_percent)},
                {"command_bytes", std::to_string(cache_->view().writes.run_lines * line)},
                {"directory", media::name_of(cache_->directory())},
                {"slots", std::to_string(cache_->view().writes.slots_count)},
                {"queues", std::to_string(options_.queues)},
                {"queue_depth", std::to_string(options_.queue_depth)}};
    if (!what_.whole) m.params["elements"] = std::to_string(options_.elements);
    describe_writes(m.details, *cache_, account);
    m.machine = describe_host();
    m.machine["device"] = on_.device();
  }

  executor& on_;
  write_options const& options_;
  write_media& media_;
  pattern_of what_;
  buffer<u32> problem_;
  u32 units_;
  std::unique_ptr<line_cache> cache_;
  std::optional<bare_driver> bare_;  ///< after what its commands may touch
  write_turn turn_;
  write_job job_;
};

}  // namespace

std::vector<measurement> run_write_benchmark(write_options const& asked) {
  const auto on = open_executor(asked.executor, 0, built_with_kernels);
  const write_options options = checked(asked, *on);
  measurement_list found(options.found);
  for (pattern_of const& each : patterns) {
    const bool wanted = std::find(options.patterns.begin(), options.patterns.end(), each.name) != options.patterns.end();
    if (!wanted && !options.patterns.empty()) continue;
    write_media media(*on, options);  // as it was before
    write_bench run(*on, options, media, each);
    found.add(run.measure());
  }
  return found.take();
}

}  // namespace penstock::bench
