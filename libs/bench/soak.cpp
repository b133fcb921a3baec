#include "libs/bench/soak.hpp"

#include "libs/bench/soak_accounts.hpp"
#include "libs/bench/write_figures.hpp"
#include "libs/media/names.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace penstock::bench {

kernel_facts run_soak_cpu(executor& on, soak_phase const& body);
kernel_facts run_soak_cuda(executor& on, soak_phase const& body);
void move_queues_cpu(executor& on, move_queues const& body);
void move_queues_cuda(executor& on, move_queues const& body);

namespace {

constexpr u32 flush_attempts = 100;
constexpr u32 cpu_queues = 4, cuda_queues = 8;
constexpr u32 queue_depth = 1024;
constexpr u32 threads_of_queue = 1;  // where kernels run elsewhere
constexpr u64 lates_of_timeout = 5;
constexpr u64 grace_ns = 60 * one_second_ns;  // past the deadline, for waits that are under way

[[noreturn]] void refuse_soak(std::string const& problem) { throw_bad_input("run", "the soak", problem); }
[[noreturn]] void fail(std::string const& what) { throw error(error_kind::world, "run the soak: " + what); }

double share_of(u32 ppm) { return ppm / 1e6; }

/// A drive that fails as planned, but for its admin queue. Each life of each queue has faults of its own: a model of the same
/// seed would fail the same commands after each reset.
class failing_drive final : public controller {
 public:
  failing_drive(model_options const& options, std::span<std::byte> media)
      : options_(options), media_(media), admin_({}), queues_(most_queues + 1) {
    admin_.add_namespace(media);
  }

  void attach(queue_rings const& rings) override {
    if (rings.id == 0) return admin_.attach(rings);
    model_options of_life = options_;
    of_life.faults.seed = soak_draw(options_.faults.seed, rings.id, lives_++);
    auto& queue = queues_.at(rings.id);
    queue = std::make_unique<model_controller>(of_life);
    queue->add_namespace(media_);
    queue->attach(rings);
  }
  void detach(u16 id) override {
    if (id == 0) return admin_.detach(id);
    auto& queue = queues_.at(id);
    queue->detach(id);
    add_to(past_, queue->counts());
    queue.reset();
  }
  void poll(u16 id) override { id == 0 ? admin_.poll(id) : queues_[id]->poll(id); }
  void add_buffer(void*, u64) override {}
  controller_limits limits() const override { return admin_.limits(); }
  std::string engine() const override { return admin_.engine(); }

  /// REQUIRES: nobody attaches or detaches meanwhile.
  model_counts counts() const {
    model_counts sum = past_;
    for (auto const& queue : queues_) {
      if (queue) add_to(sum, queue->counts());
    }
    return sum;
  }

 private:
  static constexpr u32 most_queues = 64;

  model_options options_;
  std::span<std::byte> media_;
  model_controller admin_;
  std::vector<std::unique_ptr<model_controller>> queues_;  ///< by identifier
  model_counts past_;
  u64 lives_ = 0;
};

/// Ends the process when what it watches does not end. Nothing else can end a kernel that hangs.
class watchdog {
 public:
  explicit watchdog(u64 patience_ns) : thread_([this, patience_ns] { watch(patience_ns); }) {}
  ~watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    told_.notify_one();
    thread_.join();
  }

 private:
  void watch(u64 patience_ns) {
    std::unique_lock lock(mutex_);
    if (told_.wait_for(lock, std::chrono::nanoseconds(patience_ns), [this] { return over_; })) return;
    std::fprintf(stderr, "run the soak: it hangs: some wait has not ended %u s after the run's deadline\n",
                 static_cast<u32>(grace_ns / one_second_ns));
    std::_Exit(EXIT_FAILURE);
  }

  std::mutex mutex_;
  std::condition_variable told_;
  bool over_ = false;
  std::thread thread_;
};

soak_options completed(soak_options options, executor const& on) {
  const bool cuda = on.kind() == executor_kind::cuda;
  const u64 width = cuda ? 32 : 1;
  if (options.threads == 0) options.threads = cuda ? on.units() * 32 * 32 : on.units();
  if (options.bytes == 0) options.bytes = cuda ? 1ull << 30 : 16ull << 20;
  if (options.cache_bytes == 0) options.cache_bytes = options.bytes / 16;
  if (options.phase == 0) options.phase = cuda ? 10'000'000 : 25'000;
  if (options.seconds == 0) options.seconds = 60 + options.operations / 50'000;
  if (options.threads % width != 0) refuse_soak(std::to_string(options.threads) + " threads: ask for whole warps of 32");
  const u64 half = options.bytes / 2;
  if (!is_power_of_two(options.bytes) || half / 8 < options.threads || half / options.line_bytes < options.threads / width) {
    refuse_soak(std::to_string(options.bytes) + " bytes for " + std::to_string(options.threads) +
                " threads: ask for a power of two, with two lines or more for each group");
  }
  if (options.cache_bytes >= half) refuse_soak("a cache of half the data and more brings nothing in: ask for less");
  if (options.operations == 0 || options.timeout_ms == 0) refuse_soak("0 operations or a timeout of 0 ms: ask for 1 or more");
  for (const u32 ppm : {options.cold_ppm, options.error_ppm, options.delay_ppm, options.drop_ppm, options.late_ppm}) {
    if (ppm > 1'000'000) refuse_soak(std::to_string(ppm) + " of a million: at most all");
  }
  return options;
}

model_options drive_of(soak_options const& options, bool cuda) {
  const u64 timeout = options.timeout_ms * one_millisecond_ns;
  model_options drive;
  drive.service_time_ns = 2'000;
  drive.threads = cuda ? threads_of_queue : 0;
  fault_plan& plan = drive.faults;
  plan.seed = options.seed;
  plan.error = share_of(options.error_ppm);
  // Half of them may be over soon, and are tried again.
  plan.error_codes = {nvme::code::unrecovered_read_error, nvme::code::internal_error};
  plan.delay = share_of(options.delay_ppm);
  plan.delay_ns = timeout / 100;
  plan.drop = share_of(options.drop_ppm);
  plan.reorder = true;
  plan.late = share_of(options.late_ppm);
  plan.late_ns = lates_of_timeout * timeout;
  return drive;
}

class soak_bench {
 public:
  soak_bench(executor& on, soak_options const& options)
      : on_(on), options_(options), media_(options.bytes / sizeof(u64)),
        drive_(drive_of(options, cuda()), std::as_writable_bytes(std::span(media_))),
        counts_(on.memory(), memory_kind::local, 1) {
    for (u64 i = 0; i < media_.size(); ++i) media_[i] = written_value(i, 0);
    cache_options cache;
    cache.bytes = options.cache_bytes;
    cache.line_bytes = options.line_bytes;
    cache.queues = cuda() ? cuda_queues : cpu_queues;
    cache.queue_depth = queue_depth;
    cache.timeout_ns = options.timeout_ms * one_millisecond_ns;
    cache.directory = options.directory;
    const volume_spec volume{volume_layout::single, {{&drive_, 1}}};
    cache_ = std::make_unique<line_cache>(on, std::vector<dataset_spec>{{"soaked", options.bytes, volume, true}}, cache);
    data_.array = cache_->writable<u64>(0, 0, media_.size());
    data_.elements = media_.size() / 2;
    data_.line_elements = static_cast<u32>(options.line_bytes / sizeof(u64));
    data_.lines = data_.elements / data_.line_elements;
    data_.hot_elements = options.cache_bytes / sizeof(u64) / 2;
    data_.cold_ppm = options.cold_ppm;
    data_.threads = options.threads;
    data_.groups = cuda() ? options.threads / 32 : options.threads;
    data_.seed = options.seed;
    data_.counts = counts_.data();
    last_ = {on.memory(), memory_kind::local, data_.words_of_last()};
    data_.last = last_.data();
  }

  measurement run() {
    const u64 begun = now_ns();
    const u64 deadline = begun + options_.seconds * one_second_ns;
    const watchdog watch(options_.seconds * one_second_ns + grace_ns);
    u64 in_kernels = 0;
    for (u64 phase = 0; account_.program.operations < options_.operations; ++phase) {
      if (options_.progress) options_.progress("soak", account_.program.operations, options_.operations);
      const u64 start = now_ns();
      data_.patience_ns = deadline > start ? deadline - start : 0;
      run_phase(phase);
      in_kernels += now_ns() - start;
      store_everything();
      check_media();
    }
    return result(now_ns() - begun, in_kernels);
  }

 private:
  bool cuda() const { return on_.kind() == executor_kind::cuda; }

  void run_phase(u64 phase) {
    const u64 left = options_.operations - account_.program.operations;
    const u64 first = rounds_;
    rounds_ += ceil_div(std::min(options_.phase, left), u64{options_.threads});
    const soak_phase body{data_, first, rounds_};
    facts_ = cuda() ? run_soak_cuda(on_, body) : run_soak_cpu(on_, body);
    counts_.read({&account_.program, 1});
    soak_counts const& seen = account_.program;
    if (seen.wrong != 0) {
      fail("element " + std::to_string(seen.element) + " was " + std::to_string(seen.value >> 32) + ":" +
           std::to_string(seen.value & 0xffffffffu) + " and may be " + std::to_string(seen.element + 1) + ":" +
           std::to_string(seen.least) + " to " + std::to_string(seen.most) + "; " + std::to_string(seen.wrong) +
           " such values, seed " + std::to_string(options_.seed) + ", phase " + std::to_string(phase));
    }
    if (seen.late != 0) fail("it took longer than " + std::to_string(options_.seconds) + " s: ask for fewer operations");
    try {
      cache_->check_faults();
    } catch (error const&) {}  // counted by whoever met it
  }

  /// Until every command is over for those who wait; then what only a reset makes whole is reset.
  void mend() {
    backoff wait(10 * one_second_ns + 10 * options_.timeout_ms * one_millisecond_ns);
    for (bool in_time = true;; in_time = wait.pause()) {
      const move_queues body{cache_->kernel_view(), 16};
      cuda() ? move_queues_cuda(on_, body) : move_queues_cpu(on_, body);
      account_.queues = sum_of(cache_->queues());
      if (all_told(account_.queues)) break;
      if (!in_time) fail("commands have no outcome long after their deadline");
    }
    for (queue_counts const& q : cache_->queues()) account_.given_up += !q.failure.ok();
    resets_ += cache_->recover().queues;
    account_.queues = sum_of(cache_->queues());
    account_.drive = drive_.counts();
    account_.cache = cache_->stats(0);
    check_account(account_, options_.line_bytes, !cuda());
  }

  /// A flush may meet faults of its own: what it leaves is in the cache still, and another one stores it.
  void store_everything() {
    for (u32 attempt = 0;; ++attempt) {
      mend();
      ++account_.flushes;
      try {
        cache_->flush();
        break;
      } catch (error const& failed) {
        ++account_.failed_flushes;
        if (failed.kind() != error_kind::world) throw;
        if (attempt == flush_attempts) fail(std::to_string(flush_attempts) + " flushes failed in a row: " + failed.what());
      }
    }
    mend();
  }

  void check_media() {
    std::vector<u32> last(last_.size());
    last_.read(last);
    u64 stores = 0;
    for (const u32 n : last) stores += n;
    if (stores != account_.program.stored + account_.program.spans) {
      fail(std::to_string(stores) + " stores were recorded and " +
           std::to_string(account_.program.stored + account_.program.spans) + " were told to be good");
    }
    for (u64 i = 0; i < media_.size(); ++i) {
      const u64 wanted =
          written_value(i, last[i < data_.elements ? i : data_.elements + (i - data_.elements) / data_.line_elements]);
      if (media_[i] == wanted) continue;
      fail("after a flush element " + std::to_string(i) + " is " + std::to_string(media_[i] >> 32) + ":" +
           std::to_string(media_[i] & 0xffffffffu) + " in storage, not " + std::to_string(wanted >> 32) + ":" +
           std::to_string(wanted & 0xffffffffu) + "; seed " + std::to_string(options_.seed));
    }
  }

  measurement result(u64 took, u64 in_kernels) const {
    soak_account const& a = account_;
    const auto number = [](u64 n) { return static_cast<double>(n); };
    measurement m;
    m.id = "fault.soak";
    m.unit = "operations/s";
    m.values = {number(a.program.operations) * 1e9 / number(took)};
    m.verified = true;
    m.registers = facts_.registers;
    m.sms = cuda() ? on_.units() : 0;
    m.warps = static_cast<u32>(data_.groups);
    m.params = {{"executor", cuda() ? "cuda" : "cpu"},
                {"threads", std::to_string(options_.threads)},
                {"line", std::to_string(options_.line_bytes)},
                {"directory", media::name_of(cache_->directory())},
                {"errors_ppm", std::to_string(options_.error_ppm)},
                {"delays_ppm", std::to_string(options_.delay_ppm)},
                {"drops_ppm", std::to_string(options_.drop_ppm)},
                {"lates_ppm", std::to_string(options_.late_ppm)}};
    m.details = {{"operations", number(a.program.operations)},
                 {"failed_operations", number(a.program.failed)},
                 {"stored", number(a.program.stored)},
                 {"spans", number(a.program.spans)},
                 {"seed", number(options_.seed)},
                 {"wrong", 0},
                 {"seconds", number(took) * 1e-9},
                 {"seconds_in_kernels", number(in_kernels) * 1e-9},
                 {"commands", number(a.queues.commands)},
                 {"injected_errors", number(a.drive.errors)},
                 {"injected_delays", number(a.drive.delays)},
                 {"injected_drops", number(a.drive.drops)},
                 {"injected_lates", number(a.drive.lates)},
                 {"errors", number(a.queues.errors)},
                 {"expired", number(a.queues.expired)},
                 {"strays", number(a.queues.strays)},
                 {"reset", number(a.queues.reset)},
                 {"failed", number(a.queues.failed)},
                 {"queues_given_up", number(a.given_up)},
                 {"queue_resets", number(resets_)},
                 {"hits", number(a.cache.hits)},
                 {"fills", number(a.cache.fills)},
                 {"refills", number(a.cache.refills)},
                 {"evictions", number(a.cache.evictions)},
                 {"write_commands", number(a.cache.write_commands)},
                 {"write_errors", number(a.cache.write_errors)},
                 {"flushes", number(a.flushes)},
                 {"failed_flushes", number(a.failed_flushes)}};
    write_account writes;
    writes.kernel_seconds = number(in_kernels) * 1e-9;
    writes.threads = options_.threads;
    writes.seconds = number(took) * 1e-9;
    writes.capacity = number(options_.bytes);
    writes.add(a.cache);
    describe_writes(m.details, *cache_, writes);
    m.machine = describe_host();
    m.machine["device"] = on_.device();
    return m;
  }

  executor& on_;
  soak_options options_;
  std::vector<u64> media_;
  failing_drive drive_;
  buffer<soak_counts> counts_;
  buffer<u32> last_;
  std::unique_ptr<line_cache> cache_;
  soak_data data_;
  soak_account account_;
  kernel_facts facts_;
  u64 rounds_ = 0;  ///< of each thread
  u64 resets_ = 0;
};

}  // namespace

std::vector<measurement> run_soak_benchmark(soak_options const& options) {
  const u32 cpu_threads = options.threads != 0 ? options.threads : 8;
  const auto on = open_executor(options.executor, cpu_threads, built_with_kernels);
  measurement_list found(options.found);
  soak_bench run(*on, completed(options, *on));
  found.add(run.run());
  return found.take();
}

}  // namespace penstock::bench
