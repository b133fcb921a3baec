// Calls on an array of rows.
#include "penstock/rows/row_array.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/executor/kept_for_graphs.hpp"
#include "penstock/host/error.hpp"
#include "row_array_state.hpp"

#include <cerrno>
#include <cstring>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include <sys/stat.h>

namespace penstock {
namespace {

using rows::row_report;

// So many SMs keep a PCIe Gen5 link busy; more of them spread what is asked for over more pages at once, and are slower. Of
// rows so narrow that their numbers are as long, the SMs have the work.
constexpr u32 host_units = 16;
// Where the rows that are asked for most lie next to the kernels.
constexpr u32 kept_units = 32;
// Where other processes' memory has a part of them: the link between GPUs takes more.
constexpr u32 kept_together_units = 64;
constexpr u64 most_narrow_row = 16;

// Less is over before the system would have answered.
constexpr u64 least_expected_bytes = 4ull << 20;

// From here on copy engines are faster, by 4 to 6 % (docs/ARRAYS.md).
constexpr u64 least_copied_row = 1ull << 20;

u64 bytes_of(number_kind kind) {
  return kind == number_kind::int64 || kind == number_kind::uint64 || kind == number_kind::float64 ? 8 : 4;
}

}  // namespace

void row_array::state::check_faults() {
  if (cache == nullptr) return;
  try {
    cache->check_faults();
  } catch (error const&) {
    check_stored();
    throw;
  }
}

void row_array::state::check_stored() const {
  struct stat about{};
  for (u64 m = 0; volume && m < volume->members.size(); ++m) {
    std::string const& path = volume->members[m];
    if (::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
    const u64 size = static_cast<u64>(about.st_size);
    if (size < volume->member_bytes) throw rows::member_too_short(path, size, volume->member_bytes);
  }
  const bool known = !stored_path.empty() && ::stat(stored_path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
  if (!known || static_cast<u64>(about.st_size) >= stored_end) return;
  throw rows::too_short(stored_path, static_cast<u64>(about.st_size), stored_end);
}

void row_array::state::flush_cache() {
  check_stored();  // a write behind the end would put zeros where rows were
  try {
    cache->flush();
  } catch (error const& problem) {
    if (problem.code() != ENOSPC || stored_path.empty()) throw;
    throw rows::no_room(stored_path, stored_end, "flush again: what is not written back stays in the cache");
  }
}

void row_array::state::check_file() const {
  if (file && file->was_cut()) file->check();
  if (watched && watched->was_cut()) {
    throw error(error_kind::world,
                "read an array in memory: the file that its memory maps was cut short: write the file "
                "anew and open it again",
                EIO);
  }
}

row_call row_array::state::gather(row_list const& list, void* out, row_call_options const& how, bool marked) {
  if (how.order == gather_order::copy_engine) check_copies(how);
  // To learn the list it waits for the stream, which nobody expects of a call that does not wait.
  const rows::row_place from = place.seen_by(list, "gather");
  const bool copies = how.order == gather_order::copy_engine || (!marked && copies_by_itself(from, how));
  if (device == nullptr) expect_on_cpu(list, from, out);
  requested.fetch_add(list.count * from.row_bytes, std::memory_order_relaxed);
  const auto launch = [&](rows::row_launch const& asked) {
    if (from.kept.slots != nullptr) rows::launch_count_kept(on, asked, from, kept->own(), kept->taken());
    if (is_one_copy(list, from, how)) {
      return device->copy(out, address_in(from, list), list.count * from.row_bytes, how.stream);
    }
    if (copies) return device->copied_gather(asked, from, out);
    if (sorts(list, from, how.order)) {
      rows::row_launch helped = asked;
      if (shares(list, from, how)) helped.helpers = options.gather_threads;
      return device->sorted_gather(on, helped, from, out);
    }
    rows::launch_gather(on, asked, from, out);
  };
  return call("gather", list, {"the result", out, list.count * from.row_bytes}, how, launch, marked);
}

void row_array::state::note_stored(u64 count, u64 row_bytes, void* stream) {
  if (device == nullptr || cache == nullptr || device->is_captured(stream)) return;
  const u64 lines_stored = count * ceil_div(row_bytes, options.cache.line_bytes);
  const u64 often = cache->view().writes.most_dirty / 32;
  if (stored_since_cleaning.fetch_add(lines_stored, std::memory_order_relaxed) + lines_stored < often) return;
  stored_since_cleaning.store(0, std::memory_order_relaxed);
  cache->clean_beside(device->beside(stream));
}

bool row_array::state::copies_by_itself(rows::row_place const& from, row_call_options const& how) const {
  return from.kept.slots == nullptr && device != nullptr && how.order == gather_order::automatic &&
         options.where == placement::host && from.row_bytes >= least_copied_row && !device->is_captured(how.stream);
}

void row_array::state::expect_on_cpu(row_list const& list, rows::row_place const& from, void* out) const {
  const u64 bytes = list.count * from.row_bytes;
  if (bytes < least_expected_bytes) return;
  rows::expect_stores(out, bytes);
  if (file && from.address != 0 && rows::is_run(list, from)) file->expect(address_in(from, list), bytes);
}

bool row_array::state::is_one_copy(row_list const& list, rows::row_place const& at, row_call_options const& how) const {
  return device != nullptr && at.address != 0 && rows::is_run(list, at) && !device->is_captured(how.stream);
}

void* row_array::state::address_in(rows::row_place const& at, row_list const& list) {
  return reinterpret_cast<void*>(at.address + list.grid.first * at.pitch);
}

void row_array::state::check_copies(row_call_options const& how) const {
  if (device == nullptr) throw_bad_input("gather", "rows by copy engines", "the CPU executor has none: choose another order");
  if (cache != nullptr) throw_bad_input("gather", "rows by copy engines", "they lie behind a cache: choose another order");
  if (device->is_captured(how.stream)) {
    throw_bad_input("gather", "rows by copy engines", "a graph cannot wait for their numbers: choose another order");
  }
}

struct row_call::state {
  row_array::state* owner = nullptr;
  char const* operation = "";
  row_report* report = nullptr;
  std::mutex waiting;  ///< of waits, which take turns: the first has the outcome
  std::mutex marking;  ///< of the mark, which other threads ask while one waits
  void* mark = nullptr;
  bool keeps_report = false;  ///< kernels that were not waited for may write to it: it is never another call's
  bool captured = false;      ///< its kernels run whenever a graph does
  std::shared_ptr<row_array::state> kept = {};  ///< the owner, of a call that may outlive the array; until it was waited for
  std::optional<u64> told = {};                 ///< by a wait that gave the owner up
  std::exception_ptr failure = {};              ///< likewise

  /// Waits, and what came of it. Throws as row_call::wait.
  std::optional<u64> outcome();
  /// REQUIRES: nothing of the call runs.
  void give_up_owner() {
    if (!keeps_report) owner->reports.give_back(report);
    owner = nullptr;
  }

  ~state() {
    if (owner == nullptr || keeps_report || owner->process != ::getpid()) return;
    if (mark != nullptr) {
      // A kernel may still tell: its report is not another call's yet.
      try {
        owner->device->await(mark);
      } catch (error const&) {}
      owner->device->forget(mark);
    }
    owner->reports.give_back(report);
  }
};

row_call::row_call(std::unique_ptr<state> own) : state_(std::move(own)) {}
row_call::row_call(row_call&&) noexcept = default;
row_call& row_call::operator=(row_call&&) noexcept = default;
row_call::~row_call() = default;

namespace {

/// The position that a report tells of. Throws for a row that could not be read or stored. file: empty for memory.
std::optional<u64> told_by(row_report const& report, char const* operation, std::string const& file, u64 end) {
  if (report.failure != 0) {
    const status failure = unpack_status(report.failure);
    if (errno_of(failure) == ENOSPC && !file.empty()) throw rows::no_room(file, end, "store again");
    throw_status(operation, "rows of an array", failure);
  }
  return report.first_bad == ~0ull ? std::nullopt : std::optional<u64>(report.first_bad);
}

}  // namespace

std::optional<u64> row_call::wait() {
  if (state_->captured) return std::nullopt;
  const std::lock_guard turn(state_->waiting);
  if (state_->failure != nullptr) std::rethrow_exception(state_->failure);
  if (state_->owner == nullptr) return state_->told;
  if (state_->kept == nullptr) return state_->outcome();
  // Whoever holds the call longer does not hold the array's file.
  const auto kept = std::move(state_->kept);
  try {
    state_->told = state_->outcome();
  } catch (...) {
    state_->failure = std::current_exception();
  }
  state_->give_up_owner();
  if (state_->failure != nullptr) std::rethrow_exception(state_->failure);
  return state_->told;
}

std::optional<u64> row_call::state::outcome() {
  row_array::state& from = *owner;
  if (mark != nullptr) {
    from.device->await(mark);
    const std::lock_guard lock(marking);
    from.device->forget(std::exchange(mark, nullptr));
  }
  from.check_faults();
  from.check_file();
  if (report->failure != 0) from.check_stored();
  return told_by(*report, operation, from.stored_path, from.stored_end);
}

bool row_call::is_done() const {
  const std::lock_guard lock(state_->marking);
  return state_->mark == nullptr || state_->owner->device->is_done(state_->mark);
}

void row_call::order_before(void* stream) {
  const std::lock_guard lock(state_->marking);
  if (state_->mark != nullptr) state_->owner->device->order_before(state_->mark, stream);
}

template <class Launch>
row_call row_array::state::call(char const* operation, row_list const& list, rows::argument const& memory,
                                row_call_options const& how, Launch const& launch, bool marked) {
  if (list.item_bytes != 4 && list.item_bytes != 8) {
    throw_bad_input(operation, "rows", std::to_string(list.item_bytes) + "-byte indices: give int32 or int64");
  }
  if (list.count != 0 && list.grid.levels == 0 && list.data == nullptr) {
    throw_bad_input(operation, "rows", "their numbers have no memory: give others");
  }
  auto made = begin(operation);
  const u64 row_bytes = list.part.pitch != 0 ? list.part.bytes : shape.row_bytes;
  const bool bound_by_link = options.where == placement::host && row_bytes > most_narrow_row;
  const bool together = kept && kept->layout().processes > 1;
  const u32 enough = together ? kept_together_units : kept ? kept_units : host_units;
  const u32 units = how.units == 0 && bound_by_link ? enough : how.units;
  if (list.count != 0) {
    const u64 listed = list.grid.levels == 0 ? list.count * list.item_bytes : 0;
    const rows::watched_argument numbers(device == nullptr, {"the row numbers", list.data, listed});
    const rows::watched_argument other(device == nullptr, memory);
    numbers.look(operation);
    other.look(operation);
    launch(rows::row_launch{list, made->report, how.stream, units});
    numbers.check(operation);
    other.check(operation);
  }
  return on_stream(std::move(made), how.stream, marked);
}

std::unique_ptr<row_call::state> row_array::state::begin(char const* operation) {
  if (file) file->check();
  if (options.writable) check_stored();
  auto made = std::make_unique<row_call::state>();
  made->report = reports.take();
  made->owner = this;
  made->operation = operation;
  made->keeps_report = true;  // a launch that fails may have kernels on the stream already
  return made;
}

row_call row_array::state::on_stream(std::unique_ptr<row_call::state> made, void* stream, bool marked) {
  made->keeps_report = made->captured = device != nullptr && device->is_captured(stream);
  if (made->captured) {
    reports.keep(made->report);
    device->keep_for_graph(stream, shared_from_this());
  }
  if (device != nullptr && marked && !made->captured) made->mark = device->mark(stream);
  return row_call(std::move(made));
}

row_array::row_array(executor& on, row_shape const& shape, row_source const& source, row_array_options const& options,
                     row_progress const& watch)
    : state_((drop_kept(), std::make_shared<state>(on, shape, source, options, watch))) {}
row_array::~row_array() {
  // In a process that was forked: the threads and the GPU that it would wait for are its parent's.
  if (state_ != nullptr && state_->process != ::getpid()) static_cast<void>(new std::shared_ptr<state>(std::move(state_)));
}

row_shape row_array::shape() const { return state_->shape; }
placement row_array::where() const { return state_->options.where; }

row_call row_array::gather(row_list const& list, void* out, row_call_options const& how) {
  return state_->gather(list, out, how, true);
}

std::optional<u64> row_array::gather_now(row_list const& list, void* out, row_call_options const& how) {
  row_call call = state_->gather(list, out, how, false);
  if (call.state_->captured) return std::nullopt;
  if (state_->device != nullptr) state_->device->finish(how.stream);
  return call.wait();
}

std::optional<u64> row_array::check_replays(void* stream) {
  if (state_->device == nullptr) return std::nullopt;
  if (state_->device->is_captured(stream)) {
    throw_bad_input("check replays", "of an array", "the stream is being captured: ask when the graph has run");
  }
  state_->device->finish(stream);
  state_->check_faults();
  return told_by(state_->reports.collect(), "replay a call on", state_->stored_path, state_->stored_end);
}

namespace {

/// All but the report and the shape. Throws bad_input as `lend`.
void describe(rows::row_place const& place, bool writable, u64 element_bytes, bool stores, kernels::array_descriptor& to) {
  if (stores && !writable) {
    throw_bad_input("write to", "an array from a kernel", "it was opened read-only: open it as writable");
  }
  const u64 first = place.address != 0 ? place.address : place.origin;
  if (first % std::min<u64>(element_bytes, 16) != 0) {
    throw_bad_input("lend", "an array to a kernel",
                    "its elements are not aligned to their size: copy the array to a file of its own");
  }
  to.memory = reinterpret_cast<void*>(place.address);
  to.bytes = place.bytes;
  to.origin = place.reader.base + place.origin;
  std::memcpy(to.reader, &place.reader, sizeof to.reader);
}

}  // namespace

row_call row_array::lend(kernels::array_descriptor& to, u64 element_bytes, bool stores, void* stream,
                         std::function<void()> const& launch) {
  describe(state_->place, state_->options.writable, element_bytes, stores, to);
  auto made = state_->begin("run a kernel over");
  made->kept = state_;
  to.report = reinterpret_cast<kernels::launch_report*>(made->report);
  launch();
  return state_->on_stream(std::move(made), stream, true);
}

void row_array::lend_for_good(kernels::array_descriptor& to, u64 element_bytes, bool stores) {
  describe(state_->place, state_->options.writable, element_bytes, stores, to);
  rows::row_report* const report = state_->reports.take();
  state_->reports.keep(report);
  to.report = reinterpret_cast<kernels::launch_report*>(report);
}

std::vector<row_call> gather_all(std::span<row_gather const> gathers, row_call_options const& how) {
  std::vector<row_call> calls;
  std::vector<rows::joined_gather> joined;
  std::vector<row_call::state*> waiting;
  u32 units = how.units;
  const auto launch_joined = [&] {
    if (joined.empty()) return;
    row_array::state& first = *waiting.front()->owner;
    rows::launch_joined(first.on, {.list = {}, .report = nullptr, .stream = how.stream, .units = units}, joined);
    for (row_call::state* call : waiting) {
      call->keeps_report = call->captured;
      if (!call->captured) call->mark = first.device->mark(how.stream);
    }
    joined.clear();
    waiting.clear();
  };
  for (row_gather const& each : gathers) {
    row_array::state& from = *each.from->state_;
    const bool joins = from.device != nullptr && from.place.address != 0 && how.order != gather_order::copy_engine &&
                       each.rows.grid.levels == 0 && each.rows.part.pitch == 0 &&
                       from.shape.row_bytes <= rows::most_joined_row && !from.sorts(each.rows, from.place, how.order);
    if (!joins) {
      calls.push_back(from.gather(each.rows, each.out, how, true));
      continue;
    }
    const auto join = [&](rows::row_launch const& asked) {
      if (asked.units != units) launch_joined();
      units = asked.units;
      if (from.place.kept.slots != nullptr) {
        rows::launch_count_kept(from.on, asked, from.place, from.kept->own(), from.kept->taken());
      }
      joined.push_back({asked.list, asked.report, from.place, each.out});
    };
    from.requested.fetch_add(each.rows.count * from.shape.row_bytes, std::memory_order_relaxed);
    calls.push_back(from.call("gather", each.rows, {}, how, join, false));
    if (each.rows.count == 0) continue;
    row_call::state& call = *calls.back().state_;
    call.keeps_report = true;  // until its kernel is on the stream and marked
    waiting.push_back(&call);
    if (joined.size() == rows::most_joined) launch_joined();
  }
  launch_joined();
  return calls;
}

row_call row_array::prefetch(row_list const& list, row_call_options const& how) {
  const bool awaits = state_->device != nullptr;  // a CPU has no one else to go on meanwhile
  const rows::row_place from = state_->place.seen_by(list, "prefetch");
  return state_->call("prefetch", list, {}, how,
                      [&](rows::row_launch const& launch) { rows::launch_prefetch(state_->on, launch, from, awaits); });
}

row_call row_array::scatter(row_list const& list, void const* values, row_call_options const& how) {
  if (!state_->options.writable) throw_bad_input("scatter", "rows", "the array was opened read-only: open it as writable");
  const rows::row_place to = state_->place.seen_by(list, "scatter");
  const rows::argument stored{"the values", values, list.count * to.row_bytes};
  row_call call = state_->call("scatter", list, stored, how, [&](rows::row_launch const& launch) {
    if (state_->is_one_copy(list, to, how)) {
      return state_->device->copy(state_->address_in(to, list), values, list.count * to.row_bytes, how.stream);
    }
    rows::launch_scatter(state_->on, launch, to, values);
  });
  state_->note_stored(list.count, to.row_bytes, how.stream);
  return call;
}

row_call row_array::add(row_list const& list, number_kind kind, void const* values, row_call_options const& how) {
  if (!state_->options.writable) throw_bad_input("add to", "rows", "the array was opened read-only: open it as writable");
  const rows::row_place to = state_->place.seen_by(list, "add to");
  if (to.row_bytes % bytes_of(kind) != 0 || to.pitch % bytes_of(kind) != 0) {
    throw_bad_input("add to", "rows", "rows of " + std::to_string(to.row_bytes) + " bytes hold no whole number of them");
  }
  if (!adds_in_place(kind) || list.part.offset % bytes_of(kind) != 0) {
    throw_bad_input("add to", "rows", "its numbers are not aligned to their size: copy the array to a file of its own");
  }
  const rows::argument added{"the values", values, list.count * to.row_bytes};
  row_call call = state_->call("add to", list, added, how,
                               [&](rows::row_launch const& launch) { rows::launch_add(state_->on, launch, to, kind, values); });
  state_->note_stored(list.count, to.row_bytes, how.stream);
  return call;
}

bool row_array::adds_in_place(number_kind kind) const {
  const u64 first = state_->place.address != 0 ? state_->place.address : state_->place.origin;
  return first % bytes_of(kind) == 0;
}

void row_array::flush() {
  state_->check_file();
  if (state_->device != nullptr) state_->device->finish_beside();
  if (state_->cache != nullptr && state_->options.writable) state_->flush_cache();
  if (state_->file && state_->options.writable) state_->file->sync();
}

void row_array::check_file() const {
  if (state_->file) state_->file->check();
  if (state_->watched) static_cast<void>(state_->watched->is_cut());
  state_->check_stored();
  state_->check_file();
}

void row_array::move_memory(void* to) { state_->move_memory(to); }

void row_array::give_up_writing() {
  if (state_.use_count() != 1) return;
  if (state_->file) state_->file->give_up_writing();
  if (state_->controller) state_->controller->give_up_writing();
}

line_cache* row_array::cache() const { return state_->cache.get(); }
u64 row_array::cached_origin() const { return state_->place.origin; }

std::optional<cache_stats> row_array::stats() const {
  if (state_->cache == nullptr) return std::nullopt;
  return state_->cache->stats(0);
}

u64 row_array::bytes_requested() const { return state_->requested.load(std::memory_order_relaxed); }

void* row_array::host_address() const {
  if (state_->options.where == placement::hbm || state_->cache != nullptr) return nullptr;
  return reinterpret_cast<void*>(state_->place.address);
}

void* row_array::storable_address() const {
  const bool file_only_read = state_->file && !state_->options.writable;
  if (host_address() == nullptr || !file_only_read) return host_address();
  return state_->file->own_data();
}

void* row_array::kernel_address() const { return reinterpret_cast<void*>(state_->place.address); }

}  // namespace penstock
