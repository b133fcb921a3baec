#include "libs/bench/bare_driver.hpp"

#include "penstock/core/clock.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>

namespace penstock::bench {

u32 most_batch_of(u32 entries) { return entries / (2 * most_batches_in_flight); }

u32 usual_batch(executor const& on, u32 entries) {
  return std::min(most_batch_of(entries), on.kind() == executor_kind::cuda ? 128u : 32u);
}

bare_driver::bare_driver(executor& on, controller& owner, bare_options const& queues, u32 batch, u64 blocks, u32 units)
    : used(queues.queues), on_(on), wrong_(on.memory(), memory_kind::local, 1), queues_(on, owner, queues), units_(units) {
  data.queues = queues_.view();
  data.batch = batch;
  data.blocks = blocks;
  // A look at a ring in HBM takes half a microsecond; a CPU has others to let work.
  data.looks_per_pause = on.kind() == executor_kind::cuda ? 1024 : 1;
  data.wrong = wrong_.data();
}

kernel_facts bare_driver::run(u64 batches, bool writes, bool whole) {
  data.batches = batches;
  data.writes = writes;
  data.whole = whole;
  const drive_queues body{data};
  data.first += batches * used;
  const bool cuda = on_.kind() == executor_kind::cuda;
  const kernel_facts facts = cuda ? drive_queues_cuda(on_, used, units_, body) : drive_queues_cpu(on_, used, units_, body);
  check_wrong(batches * data.batch * used);
  return facts;
}

u64 bare_driver::calibrated(bool writes) {
  for (u64 batches = 4;; batches *= 2) {
    const u64 start = now_ns();
    run(batches, writes, false);
    if (now_ns() - start > 50'000'000 || batches >= 1ull << 24) return batches;
  }
}

double bare_driver::rate(u64 batches, bool writes) {
  const u64 start = now_ns();
  run(batches, writes, false);
  return static_cast<double>(batches * data.batch * used) / static_cast<double>(now_ns() - start) * 1e9;
}

void bare_driver::check_wrong(u64 commands) {
  u64 wrong = 0;
  on_.memory().read(&wrong, wrong_.data(), sizeof wrong);
  if (wrong == 0) return;
  throw error(error_kind::world, "measure a controller: " + std::to_string(wrong) + " of " + std::to_string(commands) +
                                     " commands failed, brought wrong bytes or were not answered in time");
}

}  // namespace penstock::bench
