// What a cache knows of one dataset that it serves.
#pragma once

#include "penstock/cache/fill_source.hpp"
#include "penstock/core/counters.hpp"
#include "penstock/core/status.hpp"
#include "penstock/queue/volume.hpp"

namespace penstock {

/// Whose lines give their frames up first. A number that is greater gives up later.
enum class advice : u32 {
  stream,  ///< read once: first, also if it was used
  normal,  ///< by the clock
  keep,    ///< read again and again: after the others
};

/// How the commands that bring a dataset's lines in end. In local memory.
struct alignas(128) dataset_health {
  u32 failures = 0;  ///< since the last that did not fail
  u32 verdict = 0;   ///< packed status of the last, once they are too many: the dataset is `failed`

  PENSTOCK_FN status failed() { return unpack_status(device_ref<u32>(verdict).load(relaxed)); }
  /// Something has failed since the last that did not.
  PENSTOCK_FN bool is_troubled() {
    return (device_ref<u32>(failures).load(relaxed) | device_ref<u32>(verdict).load(relaxed)) != 0;
  }
  PENSTOCK_FN void note_success() {
    if (device_ref<u32>(failures).load(relaxed) != 0) device_ref<u32>(failures).store(0, relaxed);
  }
  PENSTOCK_FN void note_failure(status why, u32 fails_after) {
    if (device_ref<u32>(failures).fetch_add(1, relaxed) + 1 >= fails_after && fails_after != 0) {
      device_ref<u32>(verdict).store(pack(why), relaxed);
    }
  }
};

/// One dataset (a file, a namespace) that a cache serves: its lines in the cache's line space, and where they lie.
/// In the order of what a miss needs, as basic_line_cache_view.
struct alignas(128) dataset_view {
  u64 first_line = 0;
  u64 bytes = 0;                     ///< its last line may be cut short
  u64 memory = 0;                    ///< where it lies, for kernels to copy from, or `made`; 0: on a volume
  dataset_health* health = nullptr;  ///< null: not kept
  counter_set_view counters;
  u32 index = 0;   ///< in the cache
  u32 part = ~0u;  ///< its lines take frames below this number (`direct`), or ways of each set; for a share of the cache
  volume_view volume;
  u64 lines = 0;
  bool writable = false;
  advice advised = advice::normal;

  /// Instead of an address: it lies nowhere, its lines are made (coalesce/own_fill.hpp).
  static constexpr u64 made = 1;

  PENSTOCK_FN fill_source source() const { return memory != 0 ? fill_source::memory : fill_source::commands; }
};

}  // namespace penstock
