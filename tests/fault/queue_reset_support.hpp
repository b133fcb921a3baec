// What tests of resets have in common: controllers that serve or only fetch, and what must hold of a queue afterwards.
#pragma once

#include "penstock/host/error.hpp"
#include "queue_fault_bed.hpp"
#include "step_controller.hpp"

#include <string>

namespace penstock::test {

inline void serve_reads(step_controller& c) {
  while (auto const* command = c.fetch()) {
    u64* words = reinterpret_cast<u64*>(command->prp1);
    const u64 first = value(nvme::starting_lba(*command)) * block_words;
    for (u32 w = 0; w < block_words; ++w) device_ref<u64>(words[w]).store(stamp(first + w), release);
    c.post(command->command_id);
  }
}

inline void fetch_all(step_controller& c) {
  while (c.fetch() != nullptr) {}
}

/// Each command published is in one of four counts.
inline void expect_all_counted(fault_bed const& bed) {
  const queue_counts c = bed.counts();
  EXPECT_EQ(c.commands, c.completions - c.strays + c.expired + c.failed + c.reset);
}

/// Commands first to first + count - 1 are served, and their data is right: some laps of any ring of a few entries.
inline void expect_served(fault_bed& bed, u32 first, u32 count) {
  for (u32 k = first; k < first + count; ++k) {
    ASSERT_EQ(bed.run(k, k), status{}) << k;
    ASSERT_TRUE(bed.data_right(k)) << k;
  }
  expect_all_counted(bed);
}

inline std::string refused(fault_bed& bed, u64 timeout_ns, int code) {
  try {
    bed.reset(timeout_ns);
  } catch (error const& why) {
    EXPECT_EQ(why.kind(), error_kind::world);
    EXPECT_EQ(why.code(), code);
    return why.what();
  }
  return "";
}

}  // namespace penstock::test
