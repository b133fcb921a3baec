#include "libs/bench/stamped_store.hpp"

#include "libs/graph/parallel.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace penstock::bench {
namespace {

store_options checked(store_options options) {
  if (options.bytes >> 35 != 0) {
    throw_bad_input("measure", std::to_string(options.bytes) + " bytes of data", "choose 32 GiB or less");
  }
  if (!is_power_of_two(options.bytes) || options.bytes < 16 * options.line_bytes) {
    throw_bad_input("measure", std::to_string(options.bytes) + " bytes of data",
                    "choose a power of two of at least 16 lines of " + std::to_string(options.line_bytes) + " bytes");
  }
  return options;
}

constexpr std::pair<char const*, line_order> orders[] = {{"random", line_order::random},
                                                         {"linear", line_order::linear},
                                                         {"strided", line_order::strided},
                                                         {"coarsened", line_order::coarsened}};

}  // namespace

line_order order_of(std::string const& name) {
  for (auto const& [known, order] : orders) {
    if (name == known) return order;
  }
  throw_bad_input("measure", "order " + name, "there is none of this name: choose random, linear, strided or coarsened");
}

std::string order_suffix(line_order order) {
  return order == line_order::random ? "" : std::string(".") + orders[static_cast<u32>(order)].first;
}

stamped_store::stamped_store(executor& on, store_options const& options, progress_fn const& progress)
    : on_(on), options_(checked(options)), values_(options.bytes / sizeof(u64)) {
  const unsigned workers = graph::worker_count(0);
  constexpr u64 piece = 1 << 20;
  graph::progress_meter meter([&](u64 done, u64 total) {
    if (progress) progress("making data", done, total);
  });
  graph::parallel_for(ceil_div(values_.size(), piece), workers, meter, [&](u64 k) {
    const u64 end = std::min<u64>(values_.size(), (k + 1) * piece);
    for (u64 i = k * piece; i < end; ++i) values_[i] = value_at(i);
  });
  plain_ = {on.memory(), memory_kind::local, values_.size()};
  plain_.write(values_);
  cache_options cache;
  cache.bytes = options_.cache_bytes;
  cache.line_bytes = options_.line_bytes;
  cache.directory = options_.directory;
  cache.queues = options_.queues;
  cache.queue_depth = options_.queue_depth;
  cache.without = options_.without;
  cache.read_ahead_bytes = options_.read_ahead_bytes;
  cache.directory_in_l2 = options_.directory_in_l2;
  volume_spec::member member;
  if (options_.modelled) {
    server_ = std::make_unique<model_server>(
        on, model_server_options{.units = options_.server_units, .device = options_.server_device});
    media_ = {server_->memory(), options_.media, values_.size()};
    media_.write(values_);
    values_ = {};
    model_drive& drive = server_->add_drive({.timing = drive_preset(options_.preset), .faults = {}});
    member = {&drive, drive.add_namespace(media_.data(), media_.bytes())};
  } else {
    software_options software;
    if (on.kind() == executor_kind::cuda) {
      software.threads = options_.threads != 0 ? options_.threads : std::max(1u, workers - std::min(workers / 4, 2u));
    }
    controller_ = std::make_unique<software_controller>(software);
    member = {controller_.get(), controller_->add_namespace(std::as_writable_bytes(std::span(values_)))};
  }
  cache_ = std::make_unique<line_cache>(
      on, std::vector<dataset_spec>{{"known values", options.bytes, {volume_layout::single, {member}}}}, cache);
}

void note_ablations(ablations const& without, std::map<std::string, std::string>& params) {
  if (without.cache) params["without_cache"] = "1";
  if (without.coalescing) params["without_coalescing"] = "1";
  if (without.validation) params["without_validation"] = "1";
}

}  // namespace penstock::bench
