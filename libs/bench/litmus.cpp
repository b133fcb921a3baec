#include "libs/bench/litmus.hpp"

#include "libs/bench/litmus_kernels.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>

namespace penstock::bench {

#if defined(PENSTOCK_HAS_CUDA)
template <read_order Order>
kernel_facts race_refills_cuda(executor& on, race_refills<Order> const& body, u64 groups);
#endif

namespace {

constexpr u32 most_neighbours = 4;

[[noreturn]] void refuse_litmus(std::string const& problem) { throw_bad_input("run", "the litmus test", problem); }

template <read_order Order>
kernel_facts race(executor& on, race_refills<Order> const& body, u64 groups) {
#if defined(PENSTOCK_HAS_CUDA)
  if (on.kind() == executor_kind::cuda) return race_refills_cuda(on, body, groups);
#endif
  launch<1>(on, groups, body);
  return {};
}

class litmus_bench {
 public:
  litmus_bench(executor& on, litmus_options const& options)
      : on_(on), groups_(options.groups != 0 ? options.groups
                         : cuda()            ? on.units() * cuda_blocks_per_unit * 8
                                             : std::max(2u, on.units())),
        rounds_(ceil_div(options.rounds != 0 ? options.rounds
                         : cuda()            ? 100'000'000
                                             : 100'000,
                         groups_)),
        entries_(on.memory(), memory_kind::local, groups_),
        frames_(on.memory(), memory_kind::local, u64{groups_} * litmus_line_bytes),
        counts_(on.memory(), memory_kind::local, 1) {
    if (cuda() && groups_ > on.units() * cuda_blocks_per_unit * 8) {
      refuse_litmus(std::to_string(groups_) + " warps: at most " + std::to_string(on.units() * cuda_blocks_per_unit * 8) +
                    " run at once, and those that wait race with nobody");
    }
    reader_.entries = entries_.data();
    reader_.frames_base = reinterpret_cast<u64>(frames_.data());
    reader_.kind = array_kind::direct;
    reader_.hit_word = line_reader::readable_word;
    reader_.line_shift = ceil_log2(litmus_line_bytes);
    reader_.line_bytes = litmus_line_bytes;
    reader_.line_mask = litmus_line_bytes - 1;
    place_bits_ = std::max(1u, ceil_log2(groups_));
    reader_.place_mask = (1u << place_bits_) - 1;
  }

  template <read_order Order>
  measurement measure(std::string const& name, u32 repeats) {
    const litmus_counts none;
    counts_.write({&none, 1});
    litmus_counts counts;
    measurement m;
    kernel_facts facts;
    for (u32 k = 0; k < repeats; ++k) {
      const race_refills<Order> body{.reader = reader_,
                                     .place_bits = place_bits_,
                                     .lines = groups_,
                                     .before = k * rounds_,
                                     .rounds = rounds_,
                                     .neighbours = std::min(most_neighbours, groups_ - 1),
                                     .counts = counts_.data()};
      const u64 before = counts.refills, start = now_ns();
      facts = race(on_, body, groups_);
      const u64 took = now_ns() - start;
      counts_.read({&counts, 1});
      m.values.push_back(static_cast<double>(counts.refills - before) * 1e9 / static_cast<double>(took));
      if (counts.stuck != 0) {
        throw error(error_kind::world, "run the litmus test: order " + name + ": pins of " + std::to_string(counts.stuck) +
                                           " lines were not given back for a second");
      }
      if (counts.wrong == 0) continue;
      throw error(error_kind::world, "run the litmus test: order " + name + ": " + std::to_string(counts.wrong) + " of " +
                                         std::to_string(counts.accepted) + " reads were of another fill than their entry's");
    }
    m.id = "litmus." + name;
    m.unit = "refills/s";
    m.verified = true;
    m.registers = facts.registers;
    m.sms = cuda() ? on_.units() : 0;
    m.warps = groups_;
    m.params = {{"executor", cuda() ? "cuda" : "cpu"}, {"groups", std::to_string(groups_)}, {"order", name}};
    m.details = {{"refills", static_cast<double>(counts.refills)},
                 {"accepted", static_cast<double>(counts.accepted)},
                 {"rejected", static_cast<double>(counts.rejected)},
                 {"wrong", 0}};
    m.machine = describe_host();
    m.machine["device"] = on_.device();
    return m;
  }

 private:
  bool cuda() const { return on_.kind() == executor_kind::cuda; }

  executor& on_;
  u32 groups_;
  u64 rounds_;
  buffer<u64> entries_;
  buffer<u8> frames_;
  buffer<litmus_counts> counts_;
  line_reader reader_;
  u32 place_bits_ = 0;
};

}  // namespace

std::vector<measurement> run_litmus_benchmark(litmus_options const& options) {
  const std::vector<std::string> all = {"sound", "address", "data"};
  std::vector<std::string> const& orders = options.orders.empty() ? all : options.orders;
  for (auto const& name : orders) {
    if (std::find(all.begin(), all.end(), name) == all.end())
      refuse_litmus("no order " + name + ": choose of sound, address, data");
  }
  if (options.groups == 1) refuse_litmus("1 group races with nobody: ask for 2 or more");
  if (options.repeats == 0) refuse_litmus("0 repeats: ask for 1 or more");
  const auto on = open_executor(options.executor, 0, built_with_kernels);
  measurement_list found(options.found);
  for (u64 k = 0; k < orders.size(); ++k) {
    if (options.progress) options.progress(orders[k], k, orders.size());
    litmus_bench run(*on, options);
    if (orders[k] == "sound") found.add(run.measure<read_order::sound>("sound", options.repeats));
    if (orders[k] == "address") found.add(run.measure<read_order::address>("address", options.repeats));
    if (orders[k] == "data") found.add(run.measure<read_order::data>("data", options.repeats));
  }
  return found.take();
}

}  // namespace penstock::bench
