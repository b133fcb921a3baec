// Where the rows lie that an array keeps next to the kernels: in memory of this process alone, or in parts of several.
#pragma once

#include "penstock/executor/executor.hpp"
#include "penstock/rows/row_array.hpp"
#include "row_job.hpp"

#include <vector>

namespace penstock::rows {

/// Slots of `rows` kept rows of one size in `processes` parts side by side, which begin after what lies everywhere. A part
/// begins with the first multiple of a row in it, so that a slot says where a row lies.
struct kept_layout {
  u64 rows = 0, row_bytes = 0;
  u64 processes = 1, everywhere = 0;

  /// Bytes of what lies in each process, and of a part: multiples of memory_resource::part_granule.
  u64 everywhere_bytes() const;
  u64 part_bytes() const;
  /// Of the row at position k of the list.
  u64 slot_of(u64 k) const;
  u64 first_slot(u64 part) const;
  u64 rows_in(u64 part) const;
};

/// Owns that memory and the look-up table.
class kept_memory {
 public:
  kept_memory(executor& on, u64 rows, u64 row_bytes);
  /// Throws bad_input for parts that are not those of the layout.
  kept_memory(executor& on, kept_layout const& layout, kept_together const& how);

  kept_layout const& layout() const { return layout_; }
  /// Part of this process: the rows everywhere + own + n * processes of the list.
  u64 own_part() const { return own_; }
  std::byte* data() const { return alone_.data() != nullptr ? alone_.data() : together_.data(); }
  /// `slots`: one more than the slot of each row of the array that is kept, 0 for the others.
  void place(executor& on, std::vector<u32> const& slots);

  own_slots own() const;
  u64* taken() const { return taken_.data(); }
  kept_rows seen() const { return {slots_.data(), reinterpret_cast<u64>(data())}; }
  kept_reads reads(executor& on) const;

 private:
  kept_layout layout_;
  u64 own_ = 0;
  buffer<std::byte> alone_;
  mapped_parts together_;
  buffer<u32> slots_;
  buffer<u64> taken_;  ///< rows of gathers: kept ones, and those of them that others have
};

}  // namespace penstock::rows
