#include "libs/bench/queue_litmus.hpp"

#include "libs/bench/queue_litmus_kernels.hpp"
#include "libs/media/modelled.hpp"
#include "libs/media/names.hpp"
#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"
#include "penstock/runtime/queue_pair.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace penstock::bench {

#if defined(PENSTOCK_HAS_CUDA)
template <class Order, class FarOrder>
kernel_facts pass_messages_cuda(executor& on, pass_messages<Order, FarOrder> const& body, u64 groups);
#endif

namespace {

constexpr u32 most_queues = 16384;

[[noreturn]] void refuse(std::string const& problem) { throw_bad_input("run", "the litmus test of queues", problem); }

template <class Order, class FarOrder>
kernel_facts pass(executor& on, pass_messages<Order, FarOrder> const& body, u64 groups) {
#if defined(PENSTOCK_HAS_CUDA)
  if (on.kind() == executor_kind::cuda) return pass_messages_cuda(on, body, groups);
#endif
  launch<1>(on, groups, body);
  return {};
}

/// The controllers are groups of the kernel, which serve only while it runs: here their rings are noted.
class far_ends final : public controller {
 public:
  void attach(queue_rings const& rings) override { rings_.push_back(rings); }
  void detach(u16) override {}
  void poll(u16) override {}
  void add_buffer(void*, u64) override {}
  controller_limits limits() const override {
    return {
        .queues = most_queues, .queue_entries = 16384, .transfer_bytes = message_words * sizeof(u64), .reaches_local = true};
  }
  std::string engine() const override { return "groups of the same kernel"; }

  std::vector<queue_rings> const& rings() const { return rings_; }

 private:
  std::vector<queue_rings> rings_;
};

/// What a direction is called, and which of the counts are its own.
struct direction {
  std::string_view id;
  u64 message_counts::* messages;
  u64 message_counts::* wrong;
};
constexpr direction submission{"litmus.queue_submission", &message_counts::commands, &message_counts::wrong_commands};
constexpr direction completion{"litmus.queue_completion", &message_counts::answers, &message_counts::wrong_answers};

template <class Order, class FarOrder>
class bench {
 public:
  using sink = basic_result_sink<Order>;

  bench(executor& on, queue_litmus_options const& options, u32 sharers)
      : on_(on), options_(options), positions_(on.memory(), memory_kind::local, options.queues),
        left_(on.memory(), memory_kind::local, options.queues), counts_(on.memory(), memory_kind::local, 1) {
    const u64 threads = u64{options.queues} * sharers * (cuda() ? 32 : 1);
    make_queues();
    results_ = {on.memory(), memory_kind::local, threads};
    seen_ = {on.memory(), memory_kind::local, threads};
    to_controller_ = {on.memory(), media::parse_place(options.data), message_words * threads};
    to_submitter_ = {on.memory(), media::parse_place(options.data), message_words * threads};
    data_.queues = views_.data();
    data_.rings = rings_.data();
    data_.positions = positions_.data();
    data_.left = left_.data();
    data_.queues_count = options.queues;
    data_.sharers = sharers;
    data_.looks_per_pause = cuda() ? 64 : 1;
    data_.threads = threads;
    data_.rounds = ceil_div(options.rounds, threads);
    data_.spoiled = std::min(options.spoiled, data_.rounds);
    data_.to_controller = to_controller_.data();
    data_.to_submitter = to_submitter_.data();
    data_.seen = seen_.data();
    data_.results = results_.data();
    data_.counts = counts_.data();
  }

  /// All repeats. Returns what they counted together.
  message_counts run() {
    for (u32 k = 0; k < options_.repeats; ++k) {
      ++data_.runs;
      const u64 start = now_ns();
      facts_ = pass(on_, pass_messages<Order, FarOrder>{data_}, groups());
      const double took = static_cast<double>(now_ns() - start);
      values_.push_back(static_cast<double>(data_.rounds * data_.threads) * 1e9 / took);
      data_.before += data_.rounds;
      counts_.read({&found_, 1});
      // A queue that was given up stays so.
      if (found_.unanswered != 0) break;
    }
    return found_;
  }

  measurement describe(direction const& way, std::string const& order) const {
    measurement m;
    m.id = std::string(way.id) + (order == "sound" ? "" : "." + order);
    m.unit = "messages/s";
    m.values = values_;
    m.verified = true;  // every word of every message was compared, whatever came of it
    m.registers = facts_.registers;
    m.sms = cuda() ? on_.units() : 0;
    m.warps = static_cast<unsigned>(groups());
    m.params = {{"executor", cuda() ? "cuda" : "cpu"},
                {"order", order},
                {"queues", std::to_string(data_.queues_count)},
                {"sharers", std::to_string(data_.sharers)},
                {"queue_depth", std::to_string(options_.queue_depth)},
                {"rings", options_.rings},
                {"data", options_.data}};
    m.details = {{"messages", static_cast<double>(found_.*way.messages)},
                 {"wrong", static_cast<double>(found_.*way.wrong)},
                 {"message_words", message_words}};
    if (order != "sound") {
      // A queue pair that sees its own words out of order gives its controller up: that is seen, too.
      m.details["insensitive"] = found_.*way.wrong + found_.unanswered == 0 ? 1 : 0;
      m.details["unanswered"] = static_cast<double>(found_.unanswered);
    }
    m.machine = describe_host();
    m.machine["device"] = on_.device();
    return m;
  }

 private:
  bool cuda() const { return on_.kind() == executor_kind::cuda; }
  u64 groups() const { return u64{data_.queues_count} * (1 + data_.sharers); }

  void make_queues() {
    queue_options queue;
    queue.depth = options_.queue_depth;
    queue.timeout_ns = message_timeout_ns;
    queue.rings = media::parse_place(options_.rings);
    queue.rings_on_host = cuda() && queue.rings == memory_kind::shared;
    queue.poll_in_place = false;
    std::vector<queue_pair_view<sink>> views;
    for (u32 q = 0; q < options_.queues; ++q) {
      queues_.push_back(std::make_unique<queue_pair<sink>>(on_.memory(), ends_, static_cast<u16>(q + 1), queue));
      views.push_back(queues_.back()->view());
    }
    views_ = {on_.memory(), memory_kind::local, views.size()};
    views_.write(views);
    rings_ = {on_.memory(), memory_kind::local, views.size()};
    rings_.write(ends_.rings());
  }

  executor& on_;
  queue_litmus_options options_;
  far_ends ends_;
  buffer<far_position> positions_;
  buffer<u32> left_;
  buffer<message_counts> counts_;
  buffer<u32> results_;
  buffer<u64> seen_, to_controller_, to_submitter_;
  std::vector<std::unique_ptr<queue_pair<sink>>> queues_;
  buffer<queue_pair_view<sink>> views_;
  buffer<queue_rings> rings_;
  message_data<Order> data_;
  message_counts found_;
  std::vector<double> values_;
  kernel_facts facts_;
};

std::string of(u64 wrong, u64 all) { return std::to_string(wrong) + " of " + std::to_string(all); }

void run_sound(executor& on, queue_litmus_options const& options, measurement_list& found) {
  bench<sound_queue_order, sound_far_order> bench(on, options, options.sharers);
  const message_counts all = bench.run();
  if (all.wrong_commands + all.wrong_answers + all.unanswered != 0) {
    throw error(error_kind::world, "run the litmus test of queues: order sound: " + of(all.wrong_commands, all.commands) +
                                       " messages to controllers and " + of(all.wrong_answers, all.answers) +
                                       " messages back were of another round, and " + std::to_string(all.unanswered) +
                                       " commands were not answered");
  }
  found.add(bench.describe(submission, "sound"));
  found.add(bench.describe(completion, "sound"));
}

// With one group to a queue a slot is always the same thread's, so that a context of another round is no other context: what
// is lost is data, and no command. (With more, a stale context would end another thread's command.)
template <class Order, class FarOrder>
void run_without(executor& on, queue_litmus_options const& options, direction const& way, std::string const& order,
                 measurement_list& found) {
  bench<Order, FarOrder> bench(on, options, 1);
  bench.run();
  found.add(bench.describe(way, order));
}

u64 groups_of(queue_litmus_options const& options) { return u64{options.queues} * (1 + options.sharers); }

queue_litmus_options checked(executor const& on, queue_litmus_options options) {
  const bool cuda = on.kind() == executor_kind::cuda;
  if (options.queues == 0) options.queues = cuda ? 4 * on.units() : 1;
  if (options.rounds == 0) options.rounds = cuda ? 100'000'000 : 100'000;
  const u32 lanes = cuda ? 32 : 1;
  if (!is_power_of_two(options.queue_depth) || options.queue_depth < 2 || options.queue_depth < lanes) {
    refuse("queues of " + std::to_string(options.queue_depth) + " entries: choose a power of two from " +
           std::to_string(std::max(2u, lanes)) + " on, so that a slot is always the same lane's");
  }
  const u64 most = cuda ? u64{on.units()} * cuda_blocks_per_unit * (cuda_block_threads / 32) : on.units();
  if (groups_of(options) > most) {
    refuse(std::to_string(options.queues) + " queues with a controller and " + std::to_string(options.sharers) +
           " submitters each: at most " + std::to_string(most) + " groups run at once, and all of these wait for each other");
  }
  media::parse_place(options.rings);
  media::parse_place(options.data);
  return options;
}

}  // namespace

std::vector<measurement> run_queue_litmus(queue_litmus_options const& asked) {
  const std::vector<std::string> all = {"sound", "relaxed", "unordered"};
  std::vector<std::string> const& orders = asked.orders.empty() ? all : asked.orders;
  for (auto const& name : orders) {
    if (std::find(all.begin(), all.end(), name) == all.end()) {
      refuse("no order " + name + ": choose of sound, relaxed, unordered");
    }
  }
  if (asked.sharers == 0 || asked.sharers > 31) refuse(std::to_string(asked.sharers) + " sharers: choose 1 to 31");
  if (asked.queues > most_queues)
    refuse(std::to_string(asked.queues) + " queues: choose at most " + std::to_string(most_queues));
  if (asked.repeats == 0) refuse("0 repeats: ask for 1 or more");
  // Of the CPU a thread for each group, for they wait for each other.
  const u32 threads = std::max(1u, asked.queues) * (1 + asked.sharers);
  const auto on = open_executor(asked.executor, threads, built_with_kernels);
  const queue_litmus_options options = checked(*on, asked);
  measurement_list found(asked.found);
  for (u64 k = 0; k < orders.size(); ++k) {
    if (asked.progress) asked.progress(orders[k], k, orders.size());
    if (orders[k] == "sound") run_sound(*on, options, found);
    if (orders[k] == "relaxed") {
      run_without<relaxed_submission, sound_far_order>(*on, options, submission, "relaxed", found);
      run_without<relaxed_completion, sound_far_order>(*on, options, completion, "relaxed", found);
    }
    if (orders[k] == "unordered") {
      run_without<relaxed_submission, relaxed_tail>(*on, options, submission, "unordered", found);
      run_without<relaxed_completion, relaxed_posting>(*on, options, completion, "unordered", found);
    }
  }
  return found.take();
}

}  // namespace penstock::bench
