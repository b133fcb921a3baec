#include "libs/bench/own.hpp"

#include "libs/bench/own_kernels.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <iterator>
#include <memory>

namespace penstock::bench {

#if !defined(PENSTOCK_HAS_CUDA)
template <class Array>
kernel_facts run_reads_cuda(executor& on, u64 reads, read_own<Array> const& body) {
  return run_reads(on, reads, body);  // refuses
}
#endif

namespace {

[[noreturn]] void refuse_own(std::string const& problem) { throw_bad_input("measure", "an own policy and own fills", problem); }

constexpr char const* own_pattern_names[] = {"uniform", "zipf", "sequential"};

store_options store_of(executor const& on, own_options const& options) {
  const bool cuda = on.kind() == executor_kind::cuda;
  store_options store;
  store.bytes = options.bytes != 0 ? options.bytes : cuda ? 4ull << 30 : 16ull << 20;
  store.cache_bytes = options.cache_bytes != 0 ? options.cache_bytes : store.bytes / 8;
  store.line_bytes = options.line_bytes;
  store.directory = directory_kind::direct;  // its frames have numbers, which a policy names
  store.read_ahead_bytes = 0;                // a guess is the stock cache's alone
  return store;
}

cache_options options_of(store_options const& store) {
  cache_options cache;
  cache.bytes = store.cache_bytes;
  cache.line_bytes = store.line_bytes;
  cache.directory = store.directory;
  cache.read_ahead_bytes = 0;
  return cache;
}

dataset_spec computed_values(u64 bytes) {
  dataset_spec data{"computed values", bytes, {}};
  data.own_fills = true;
  return data;
}

/// A cache's rates in one pattern.
struct own_rates {
  std::vector<double> values;
  double misses = 0;
  kernel_facts facts;
};

class own_bench {
 public:
  own_bench(executor& on, own_options const& options)
      : on_(on), options_(options), stock_(on, store_of(on, options), options.progress),
        fifo_(on, store_of(on, options), options.progress),
        computed_(on, {computed_values(stock_.options().bytes)}, options_of(stock_.options())),
        fifo_view_(on.memory(), memory_kind::local, 1), computed_view_(on.memory(), memory_kind::local, 1),
        wrong_(on.memory(), memory_kind::local, 1) {
    const fifo_cache_view fifo = fifo_.cache().view().with(fifo_policy{fifo_.cache().view().policy});
    fifo_view_.write({&fifo, 1});
    const stamped_cache_view computed{computed_.view(), {}};
    computed_view_.write({&computed, 1});
    reads_ = options.reads != 0 ? options.reads : cuda() ? u64{1} << 24 : u64{1} << 17;
  }

  std::vector<measurement> measure() {
    measurement_list found(options_.found);
    for (own_pattern pattern : chosen()) {
      own_rates stock, fifo, computed;
      const u64 elements = stock_.elements();
      for (u32 turn = 0; turn <= options_.repeats; ++turn) {  // the first fills the caches
        if (options_.progress) options_.progress(name_of(pattern), turn, options_.repeats + 1);
        run(turn, pattern, stock_.array(), stock_.cache(), stock);
        run(turn, pattern, fifo_.cache().array_through<u64>(fifo_view_.data(), 0, 0, elements), fifo_.cache(), fifo);
        run(turn, pattern, computed_.array_through<u64>(computed_view_.data(), 0, 0, elements), computed_, computed);
      }
      found.add(described("policy", pattern, fifo, stock));
      found.add(described("fills", pattern, computed, stock));
    }
    return found.take();
  }

 private:
  bool cuda() const { return on_.kind() == executor_kind::cuda; }
  static char const* name_of(own_pattern pattern) { return own_pattern_names[static_cast<u32>(pattern)]; }

  std::vector<own_pattern> chosen() const {
    std::vector<own_pattern> all;
    for (std::string const& name : options_.patterns) {
      auto const* const known = std::find(std::begin(own_pattern_names), std::end(own_pattern_names), name);
      if (known == std::end(own_pattern_names)) {
        refuse_own("there is no pattern " + name + ": choose of uniform, zipf, sequential");
      }
      all.push_back(static_cast<own_pattern>(known - std::begin(own_pattern_names)));
    }
    if (all.empty()) all = {own_pattern::uniform, own_pattern::zipf, own_pattern::sequential};
    return all;
  }

  template <class Array>
  void run(u32 turn, own_pattern pattern, Array const& array, line_cache& cache, own_rates& rates) {
    const u64 line_elements = stock_.line_elements();
    const read_own<Array> body{array, pattern, turn * reads_, stock_.elements() / line_elements, line_elements, wrong_.data()};
    const u64 misses_before = cache.stats(0).misses;
    const u64 start = now_ns();
    rates.facts = cuda() ? run_reads_cuda(on_, reads_, body) : run_reads(on_, reads_, body);
    const u64 taken = std::max<u64>(1, now_ns() - start);
    cache.check_faults();
    u64 wrong = 0;
    wrong_.read({&wrong, 1});
    if (wrong != 0)
      throw error(error_kind::world, "measure own caches: " + std::to_string(wrong) + " wrong elements were read");
    if (turn == 0) return;
    rates.values.push_back(static_cast<double>(reads_) * 1e3 / static_cast<double>(taken));
    rates.misses += static_cast<double>(cache.stats(0).misses - misses_before);
  }

  measurement described(std::string const& what, own_pattern pattern, own_rates const& own, own_rates const& stock) const {
    const double reads = static_cast<double>(reads_) * options_.repeats;
    measurement m;
    m.id = "own." + what + "." + name_of(pattern);
    m.unit = "M reads/s";
    m.values = own.values;
    m.baseline = "the stock cache";
    m.baseline_values = stock.values;
    m.verified = true;  // run() throws where it is not
    m.registers = own.facts.registers;
    m.sms = cuda() ? on_.units() : 0;
    m.params = {{"executor", cuda() ? "cuda" : "cpu"},
                {"bytes", std::to_string(stock_.options().bytes)},
                {"cache_bytes", std::to_string(stock_.options().cache_bytes)},
                {"line_bytes", std::to_string(stock_.options().line_bytes)},
                {"reads", std::to_string(reads_)}};
    m.details = {{"misses_per_read", own.misses / reads},
                 {"misses_per_read_stock", stock.misses / reads},
                 {"registers_stock", static_cast<double>(stock.facts.registers)}};
    m.machine = describe_host();
    m.machine["device"] = on_.device();
    return m;
  }

  executor& on_;
  own_options const& options_;
  stamped_store stock_, fifo_;
  line_cache computed_;
  buffer<fifo_cache_view> fifo_view_;
  buffer<stamped_cache_view> computed_view_;
  buffer<u64> wrong_;
  u64 reads_ = 0;
};

}  // namespace

std::vector<measurement> run_own_benchmark(own_options const& options) {
  if (options.repeats == 0) refuse_own("0 repeats: ask for 1 or more");
  if (options.reads >> 40 != 0) refuse_own(std::to_string(options.reads) + " reads: ask for 2^40 or fewer");
  const auto on = open_executor(options.executor, 0, built_with_kernels);
  own_bench run(*on, options);
  return run.measure();
}

}  // namespace penstock::bench
