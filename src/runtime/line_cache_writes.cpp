// The write side of a line_cache: its memory, flush and discard.
#include "cache_room.hpp"
#include "penstock/host/error.hpp"
#include "write_back_launch.hpp"

#include <algorithm>
#include <exception>

namespace penstock {
namespace {

u64 share_of_frames(double share, u64 frames, char const* name) {
  if (!(share > 0) || !(share <= 1)) {
    throw_bad_input("create", "a cache",
                    std::string("write_back.") + name + " of " + std::to_string(share) +
                        ": a share of the frames lies above 0 and goes up to 1");
  }
  return std::max<u64>(1, static_cast<u64>(share * static_cast<double>(frames)));
}

std::string bytes_from(u64 first, u64 last) { return " bytes " + std::to_string(first) + " to " + std::to_string(last); }

}  // namespace

void line_cache::make_writes() {
  if (std::none_of(specs_.begin(), specs_.end(), [](dataset_spec const& d) { return d.writable; })) return;
  if (!view_.looks_up)
    throw_bad_input("create", "a cache", "without a cache nothing can be written: keep it, or open read-only");
  write_back_options const& options = options_.write_back;
  const bool cuda = on_.kind() == executor_kind::cuda;
  bool far = false;
  u64 transfer = ~u64{0};
  for (controller const* owner : controllers_) {
    far |= cuda && !owner->limits().reaches_local;
    transfer = std::min(transfer, owner->limits().transfer_bytes);
  }
  const write_room room = write_room_for(on_, options_, view_.frames, transfer);
  write_back_view& writes = view_.writes;
  writes.run_lines = room.run_lines;
  writes.slots_count = room.slots;
  writes.most_dirty = share_of_frames(options.most_dirty, view_.frames, "most_dirty");
  writes.clean_to = writes.most_dirty - writes.most_dirty / 8;
  writes.clean_from = std::min(writes.most_dirty, share_of_frames(options.clean_from, view_.frames, "clean_from"));
  if (options.bytes_per_second != 0)
    writes.ns_per_line = std::max<u64>(1, options_.line_bytes * one_second_ns / options.bytes_per_second);

  using enum memory_kind;
  memory_resource& memory = on_.memory();
  write_slots_ = {memory, local, room.slots};
  write_entries_ = {memory, local, room.entries()};
  write_state_ = {memory, local, 1};
  write_buffers_ = {memory, far ? shared : local, room.buffer_bytes()};
  flush_report_ = {memory, local, 1};
  device_flush_ = {memory, local, 1};
  write_lists_ = {memory, far ? shared : local, room.list_words()};
  std::vector<u64> lists(room.list_words());
  writes.buffers = reinterpret_cast<u64>(write_buffers_.data());
  for (u64 s = 0; s < room.slots && room.run_bytes > 2 * nvme::page_bytes; ++s) {
    nvme::write_prp_list(lists.data() + s * write_room::words_per_list, writes.buffers + s * room.run_bytes, room.run_bytes);
  }
  write_lists_.write(lists);
  writes.slots = write_slots_.data();
  writes.entries = write_entries_.data();
  writes.state = write_state_.data();
  writes.lists = reinterpret_cast<u64>(write_lists_.data());
  for (controller* owner : controllers_) owner->add_buffer(write_buffers_.data(), write_buffers_.bytes());
  prepare_write_back(on_);
}

void line_cache::check_writable(u32 dataset) const {
  if (specs_.at(dataset).writable) return;
  throw_bad_input("write", specs_[dataset].name, "it was opened read-only: open it as writable");
}

line_range line_cache::range_of(u32 dataset, u64 offset, u64 bytes, char const* operation) const {
  check_writable(dataset);
  dataset_view const& data = datasets_[dataset];
  if (offset > data.bytes || bytes > data.bytes - offset) {
    throw_bad_input(operation, specs_[dataset].name,
                    std::to_string(bytes) + " bytes at byte " + std::to_string(offset) + ": it has only " +
                        std::to_string(data.bytes) + " bytes");
  }
  const u64 first = data.first_line + (offset >> view_.line_shift);
  return {dataset, first, data.first_line + ceil_div(offset + bytes, options_.line_bytes)};
}

flush_report line_cache::read_report() const {
  flush_report report;
  on_.memory().read(&report, flush_report_.data(), sizeof report);
  return report;
}

void line_cache::reset_report() {
  const flush_report fresh;
  flush_report_.write({&fresh, 1});
}

void line_cache::flush_device(u32 dataset) {
  launch_flush_device(on_, {view_copy_.data(), flush_report_.data(), device_flush_.data(), {dataset, 0, 0}});
  const flush_report report = read_report();
  if (report.failure == 0) return;
  throw_status("flush", specs_[dataset].name + ", of which nothing is sure that was written since the last good flush",
               unpack_status(report.failure));
}

void line_cache::flush(u32 dataset, u64 offset, u64 bytes) {
  const line_range range = range_of(dataset, offset, bytes, "flush");
  if (range.first == range.last) return;
  reset_report();
  launch_flush_lines(on_, {view_copy_.data(), flush_report_.data(), nullptr, range}, flush_items(view_, range));
  const flush_report report = read_report();
  if (report.failure == 0) return flush_device(dataset);
  const u64 first = (report.first_failed - datasets_[dataset].first_line) << view_.line_shift;
  const u64 end = (report.last_failed + 1 - datasets_[dataset].first_line) << view_.line_shift;
  const status why = unpack_status(report.failure);
  throw error(error_kind::world,
              "write " + specs_[dataset].name + bytes_from(first, std::min(end, datasets_[dataset].bytes) - 1) + ": " +
                  describe(why) + ": " + std::to_string(report.failed_lines) +
                  " lines stay in the cache; remove the cause and flush again",
              errno_of(why));
}

void line_cache::flush() {
  const u64 before = writes_so_far();
  std::exception_ptr first;
  for (dataset_view const& data : datasets_) {
    if (!data.writable) continue;
    try {
      flush(data.index, 0, data.bytes);
    } catch (error const&) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
  flushed_writes_ = before;
}

void line_cache::clean_beside(void* stream) {
  constexpr u64 cleaning_groups = 1024, longest_ns = 10 * one_millisecond_ns;
  if (view_.writes.slots_count == 0) return;
  launch_clean_beside(on_, stream, view_copy_.data(), on_.kind() == executor_kind::cuda ? cleaning_groups : 1, longest_ns);
}

void line_cache::discard(u32 dataset, u64 offset, u64 bytes) {
  const line_range range = range_of(dataset, offset, bytes, "discard");
  if (range.first == range.last) return;
  reset_report();
  launch_discard_lines(on_, {view_copy_.data(), flush_report_.data(), nullptr, range}, flush_items(view_, range));
  const flush_report report = read_report();
  if (report.failure == 0) return;
  throw_status("discard", std::to_string(report.failed_lines) + " lines of " + specs_[dataset].name + ", which are held",
               unpack_status(report.failure));
}

void line_cache::forgive_writes() {
  if (write_state_.size() == 0) return;
  clear_word(write_state_.data()->failures);
  clear_word(write_state_.data()->verdict);
}

u64 line_cache::least_clean_frames() const {
  if (write_state_.size() == 0) return view_.frames;
  write_state now;
  if (on_.kind() == executor_kind::cpu) {
    now.most_busy = device_ref<u64>(write_state_.data()->most_busy).load(relaxed);  // threads of a queue_service may count
  } else {
    on_.memory().read(&now, write_state_.data(), sizeof now);
  }
  return view_.frames - std::min<u64>(now.most_busy, view_.frames);
}

u64 line_cache::writes_so_far() const {
  u64 total = 0;
  for (dataset_view const& data : datasets_) {
    if (data.writable) total += stats(data.index).writes;
  }
  return total;
}

}  // namespace penstock
