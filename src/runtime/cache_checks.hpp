// What a cache refuses before it makes room: options and datasets that cannot be.
#pragma once

#include "penstock/core/bits.hpp"
#include "penstock/runtime/identify.hpp"
#include "penstock/runtime/line_cache.hpp"

namespace penstock {

/// The number of frames. Throws bad_input for lines and sizes that cannot be.
u64 checked_frames(cache_options const& options);

inline u64 lines_of(dataset_spec const& spec, u64 line) { return ceil_div(spec.bytes, line); }

/// Throws bad_input for a volume that cannot be, and for memory that a cache does not serve.
void check_volume(dataset_spec const& spec, u64 line);
/// Throws bad_input where member m, a namespace as it was found, cannot hold its share of the dataset.
void check_member(dataset_spec const& spec, u32 m, namespace_facts const& facts, u64 line);

}  // namespace penstock
