#include "penstock/host/error.hpp"
#include "penstock/runtime/queue_pair.hpp"

namespace penstock {
namespace {

/// Identifiers are slot + depth * generation in 16 bits (PROTOCOLS.md §3).
constexpr u32 most_depth = 16384;

void check_ring(char const* which, u32 entries, u32 least, u32 most) {
  if (entries >= least && entries <= most) return;
  throw_bad_input("create", "a queue pair",
                  std::string(which) + " of " + std::to_string(entries) + " entries: choose " + std::to_string(least) + " to " +
                      std::to_string(most));
}

}  // namespace

void check_queue_options(queue_options const& options, controller_limits const& limits) {
  check_ring("submission queue", options.depth, 2, std::min(most_depth, limits.queue_entries));
  if (options.cq_entries != 0) check_ring("completion queue", options.cq_entries, 2, limits.queue_entries);
  if (options.first_ticket % options.depth != 0) {
    throw_bad_input("create", "a queue pair", "the first ticket must be a multiple of the depth");
  }
  if (options.rings_on_host && !options.poll_in_place && limits.is_polled) {
    throw_bad_input("create", "a queue pair",
                    "the controller has no threads, and no thread of a GPU can poll it: give it some (software_options_for)");
  }
  if (options.bounce_bytes > limits.transfer_bytes) {
    throw_bad_input("create", "a queue pair",
                    "transfers of " + std::to_string(options.bounce_bytes) + " bytes: the controller takes at most " +
                        std::to_string(limits.transfer_bytes));
  }
}

}  // namespace penstock
