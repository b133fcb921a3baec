#include "kept_memory.hpp"

#include "../host/owned_file.hpp"
#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"
#include "row_array_state.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace penstock {
namespace rows {
namespace {

constexpr u64 granule = memory_resource::part_granule;

mapped_parts map(executor& on, kept_layout const& layout, std::span<int const> files) {
  // What lies everywhere stands before the parts, in memory of this process's own.
  std::vector<memory_part> parts;
  owned_file everywhere;
  if (layout.everywhere != 0) {
    everywhere = owned_file(on.memory().make_part(layout.everywhere_bytes()));
    parts.push_back({everywhere.get(), layout.everywhere_bytes()});
  }
  for (const int file : files) parts.push_back({file, layout.part_bytes()});
  return {on.memory(), std::move(parts)};
}

}  // namespace

u64 kept_layout::everywhere_bytes() const { return round_up(everywhere * row_bytes, granule); }
u64 kept_layout::part_bytes() const { return round_up((rows_in(0) + 1) * row_bytes, granule); }
u64 kept_layout::rows_in(u64 part) const {
  const u64 shared = rows - everywhere;
  return shared / processes + (part < shared % processes ? 1 : 0);
}
u64 kept_layout::first_slot(u64 part) const { return ceil_div(everywhere_bytes() + part * part_bytes(), row_bytes); }
u64 kept_layout::slot_of(u64 k) const {
  if (k < everywhere) return k;
  return first_slot((k - everywhere) % processes) + (k - everywhere) / processes;
}

kept_memory::kept_memory(executor& on, u64 rows, u64 row_bytes)
    : layout_{rows, row_bytes, 1, rows}, alone_(on.memory(), memory_kind::local, round_up(rows * row_bytes, 16)),
      taken_(on.memory(), memory_kind::local, 2) {}

kept_memory::kept_memory(executor& on, kept_layout const& layout, kept_together const& how)
    : layout_(layout), own_(how.own), together_(map(on, layout, how.parts)), taken_(on.memory(), memory_kind::local, 2) {}

void kept_memory::place(executor& on, std::vector<u32> const& slots) {
  slots_ = {on.memory(), memory_kind::local, slots.size()};
  slots_.write(slots);
}

own_slots kept_memory::own() const {
  const u64 first = layout_.first_slot(own_);
  return {layout_.everywhere, first, first + layout_.rows_in(own_)};
}

kept_reads kept_memory::reads(executor& on) const {
  u64 counts[2]{};
  on.memory().read(counts, taken_.data(), sizeof counts);
  return {counts[0] - counts[1], counts[1]};
}

}  // namespace rows

namespace {

// Rows to keep that are copied before progress is reported again.
constexpr u64 kept_at_once = 64ull << 20;

[[noreturn]] void refuse(std::string const& why) { throw_bad_input("keep", "rows of an array next to the kernels", why); }

rows::kept_layout checked_layout(u64 rows, u64 row_bytes, u64 processes, u64 everywhere) {
  if (processes == 0) refuse("no process has a part of them: give one for each");
  if (everywhere > rows) {
    refuse(std::to_string(everywhere) + " of " + std::to_string(rows) + " rows in every process: give fewer");
  }
  const rows::kept_layout layout{rows, row_bytes, processes, everywhere};
  if (layout.first_slot(processes) > 0xfffffffeu) refuse("there are too many: keep fewer");
  return layout;
}

}  // namespace

void row_array::state::keep(std::span<std::int64_t const> rows, rows::kept_memory made, row_progress const& watch) {
  rows::kept_layout const& layout = made.layout();
  std::vector<u32> slots(shape.rows, 0);
  for (u64 k = 0; k < rows.size(); ++k) {
    const std::int64_t row = rows[k];
    if (row < 0 || static_cast<u64>(row) >= shape.rows) {
      refuse("there is no row " + std::to_string(row) + ": give numbers from 0 to " + std::to_string(shape.rows - 1));
    }
    u32& slot = slots[static_cast<u64>(row)];
    if (slot != 0) refuse("row " + std::to_string(row) + " is named twice: name it once");
    slot = static_cast<u32>(layout.slot_of(k) + 1);
  }
  std::vector<std::int64_t> own(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(layout.everywhere));
  for (u64 k = layout.everywhere + made.own_part(); k < rows.size(); k += layout.processes) own.push_back(rows[k]);
  buffer<std::int64_t> numbers(on.memory(), memory_kind::local, own.size());
  numbers.write(own);
  const u64 each = std::max<u64>(1, kept_at_once / shape.row_bytes);
  // The rows that lie everywhere, and then those of the part: each side by side.
  struct run {
    u64 begin, end, slot;
  };
  for (run const& side :
       {run{0, layout.everywhere, 0}, run{layout.everywhere, own.size(), layout.first_slot(made.own_part())}}) {
    for (u64 first = side.begin; first < side.end; first += each) {
      const u64 count = std::min<u64>(each, side.end - first);
      std::byte* const to = made.data() + (side.slot + first - side.begin) * shape.row_bytes;
      gather({numbers.data() + first, count}, to, {.stream = on.stream()}, true).wait();
      if (watch) watch((first + count) * shape.row_bytes, own.size() * shape.row_bytes);
    }
  }
  made.place(on, slots);
  requested = 0;  // the gathers above are not the caller's
  kept.emplace(std::move(made));
  place.kept = kept->seen();
}

namespace {

void check_can_keep(row_array_options const& options, bool keeps) {
  if (options.writable) refuse("it is written to: open it read-only");
  if (options.where == placement::hbm) refuse("all of it lies there: choose another placement");
  if (keeps) refuse("some are kept already: open it anew");
}

}  // namespace

void row_array::keep_rows(std::span<std::int64_t const> rows, row_progress const& watch) {
  state& s = *state_;
  check_can_keep(s.options, s.kept.has_value());
  if (!rows.empty()) s.keep(rows, {s.on, rows.size(), s.shape.row_bytes}, watch);
}

int row_array::share_kept_rows(u64 rows, u32 processes, u64 everywhere) const {
  check_can_keep(state_->options, state_->kept.has_value());
  const u64 bytes = checked_layout(rows, state_->shape.row_bytes, processes, everywhere).part_bytes();
  return state_->on.memory().make_part(bytes);
}

void row_array::keep_rows_together(std::span<std::int64_t const> rows, kept_together const& how, row_progress const& watch) {
  state& s = *state_;
  check_can_keep(s.options, s.kept.has_value());
  const auto layout = checked_layout(rows.size(), s.shape.row_bytes, how.parts.size(), how.everywhere);
  if (how.own >= how.parts.size()) refuse("part " + std::to_string(how.own) + " of " + std::to_string(how.parts.size()));
  if (!rows.empty()) s.keep(rows, {s.on, layout, how}, watch);
}

kept_reads row_array::kept_rows_taken(void* stream) const {
  if (!state_->kept) return {};
  if (state_->device != nullptr) state_->device->finish(stream);
  return state_->kept->reads(state_->on);
}

}  // namespace penstock
