#include "software_queue.hpp"

#include "prp_reader.hpp"

#include "penstock/core/clock.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/uio.h>

namespace penstock::controllers {
namespace {

// A pass ends after so many commands: completions of the engine must not wait behind a deep ring.
constexpr u32 commands_per_pass = 64;

constexpr u64 transient_timeout_ns = 5 * one_second_ns;

// A kernel writes to a frame while validated reads look at it. ThreadSanitizer takes that for a race, so its build reads
// elsewhere.
#ifdef PENSTOCK_TSAN
constexpr bool always_bounce = true;
#else
constexpr bool always_bounce = false;
#endif

void count(u64& counter, u64 by = 1) { device_ref<u64>(counter).store(counter + by, relaxed); }

bool transient(int error) {
  // ECANCELED: the thread that submitted the call has ended, and the kernel gave it up.
  return error == EINTR || error == EAGAIN || error == ECANCELED;
}

u16 status_of(int error, action what) {
  if (what == action::read) return nvme::code::unrecovered_read_error;
  return error == ENOSPC || error == EDQUOT || error == EFBIG ? nvme::code::capacity_exceeded : nvme::code::write_fault;
}

bool aligned(pieces const& data, u64 alignment) {
  return std::all_of(data.begin(), data.end(), [&](iovec const& piece) {
    return reinterpret_cast<u64>(piece.iov_base) % alignment == 0 && piece.iov_len % alignment == 0;
  });
}

}  // namespace

software_queue::software_queue(queue_rings const& rings, std::shared_ptr<software_media const> media,
                               std::unique_ptr<transfer_engine> engine, software_queue_counts& counts)
    : ring_(rings), media_(std::move(media)), engine_(std::move(engine)), counts_(counts),
      refused_before_(counts.refused_doorbells) {
  // More than commands are taken on with: a copy that fails is handed on, and others wait meanwhile.
  const u32 most_in_flight = engine_ == nullptr ? 0 : rings.sq_entries + most_waiting;
  for (u32 k = 0; k < most_in_flight; ++k) free_.push_back(transfers_.emplace_back(std::make_unique<transfer>()).get());
  for (auto const& space : media_->spaces) {
    if (space->files() != nullptr) pass_ = space->files()->add_queue();
  }
}

bool software_queue::serve() {
  bool moved = ring_.congested() && ring_.drain();
  if (engine_ != nullptr) moved |= finish_ended();
  u32 fetched = 0;
  if (pass_ != nullptr) pass_->begin();  // files of a folder that it finds stay open until its end
  serve_pass(fetched);
  if (pass_ != nullptr) pass_->end();
  if (engine_ != nullptr && free_.size() != transfers_.size()) engine_->submit();
  if (fetched != 0) count(counts_.commands, fetched);
  const u64 refused = refused_before_ + ring_.refused_doorbells();
  if (refused != counts_.refused_doorbells) count(counts_.refused_doorbells, refused - counts_.refused_doorbells);
  return moved || fetched != 0;
}

void software_queue::serve_pass(u32& fetched) {
  nvme::submission_entry command;
  while (fetched < commands_per_pass && !ring_.congested() && (engine_ == nullptr || free_.size() > waiting_count_) &&
         ring_.fetch(command)) {
    if (fetched++ == 0) now_ms_ = coarse_now_ms();
    start(command);
  }
  copy_waiting();
}

bool software_queue::quiesce(u64 deadline_ns) {
  if (engine_ != nullptr && !engine_->quiesce(deadline_ns)) return false;
  engine_ = nullptr;
  return true;
}

void software_queue::start(nvme::submission_entry const& command) {
  const decoded_command request = decode(command, ring_.id(), media_->shapes, media_->limits.transfer_bytes);
  if (request.status != nvme::code::success) return ring_.complete(command.command_id, request.status);
  switch (request.what) {
    case action::read:
    case action::write: return start_data(request, command);
    case action::identify:
      return ring_.complete(command.command_id,
                            answer_identify(command, media_->shapes, media_->limits, "Penstock software controller"));
    case action::flush: break;
  }
  storage_namespace const& space = *media_->spaces[request.index];
  // Of a folder each file is synced by a call of its own.
  if (space.memory() != nullptr || space.files() != nullptr) return ring_.complete(command.command_id, nvme::code::success);
  hand_on(space, request, command.command_id, scratch_);
}

void software_queue::start_data(decoded_command const& asked, nvme::submission_entry const& command) {
  decoded_command request = asked;
  if (const u16 status = read_prps(command, request.bytes, scratch_); status != nvme::code::success) {
    return ring_.complete(command.command_id, status);
  }
  storage_namespace const* found = media_->spaces[request.index].get();
  if (found->files() != nullptr) {
    found = found->files()->find(asked.offset, request.offset);
    // What is read ahead of a file may belong to one that is not open yet: a waiter for the line, in the file that was opened
    // since, retries.
    if (found == nullptr && request.what == action::read) {
      return ring_.complete(command.command_id, nvme::code::namespace_not_ready);
    }
    if (found == nullptr || (request.what == action::write && found->shape().read_only)) {
      return ring_.complete(command.command_id, status_of(EBADF, request.what));
    }
  }
  storage_namespace const& space = *found;
  if (request.what == action::read && space.is_written_once()) {
    zero_pieces(scratch_, 0, request.bytes);
    return ring_.complete(command.command_id, nvme::code::success);
  }
  if (request.what == action::write && space.memory() != nullptr) {
    count(counts_.copied);
    move_memory(request, space.shape(), space.memory() + request.offset, scratch_);
    return ring_.complete(command.command_id, nvme::code::success);
  }
  if (copies(space, request)) return copy_later(space, request, command.command_id);
  if (read_at_once(space, request)) {
    count(counts_.copied);
    return ring_.complete(command.command_id, nvme::code::success);
  }
  hand_on(space, request, command.command_id, scratch_);
}

// What is in the page cache, of a file that is not mapped, has grown since or is read there for the first time: one system
// call, and no wait.
bool software_queue::read_at_once(storage_namespace const& space, decoded_command const& request) {
  const bool buffered = space.grows() || (space.map() != nullptr && !space.direct());
  if (!buffered || request.what != action::read || always_bounce) return false;
  int flags = space.read_flags();
  const u64 asked = space.grows() ? request.bytes : space.valid_bytes(request.offset, request.bytes);
  u64 done = 0;
  pieces rest;
  while (done < asked) {
    if (flags == storage_namespace::no_read) return false;
    cut_pieces(scratch_, done, asked - done, rest);
    constexpr u64 most_pieces = 1024;  // IOV_MAX of Linux
    const long got = preadv2(space.file(), rest.data(), static_cast<int>(std::min<u64>(rest.size(), most_pieces)),
                             static_cast<off_t>(space.first_byte() + request.offset + done), flags);
    if (got < 0 && errno == EOPNOTSUPP && flags == RWF_NOWAIT) {
      space.note_no_wait_refused();
      flags = space.read_flags();
      continue;
    }
    if (got < 0) return false;
    if (got == 0 && (!space.grows() || space.was_cut(request.offset + done))) return false;
    if (got == 0) break;  // the end of the file
    done += static_cast<u64>(got);
  }
  if (done != request.bytes) zero_pieces(scratch_, done, request.bytes);
  return true;
}

bool software_queue::copies(storage_namespace const& space, decoded_command const& request) const {
  if (space.memory() != nullptr) return true;
  page_cache_map* map = space.map();
  if (map == nullptr || (space.grows() && request.offset + request.bytes > space.mapped_bytes())) return false;
  const u64 offset = space.first_byte() + request.offset;
  const u64 valid = space.valid_bytes(request.offset, request.bytes);
  const bool can_read = request.what == action::read && !space.direct() && space.read_flags() != storage_namespace::no_read;
  if (can_read && map->is_new(offset)) return false;
  return (request.what == action::read || map->takes_stores(offset, valid)) && map->resident(offset, valid, now_ms_);
}

void software_queue::copy_later(storage_namespace const& space, decoded_command const& request, u16 command_id) {
  waiting_copy& last = waiting_[waiting_count_++];
  last.command_id = command_id;
  last.request = request;
  last.space = &space;
  last.bytes = space.memory() != nullptr ? space.memory() + request.offset
                                         : space.map()->address_of(space.first_byte() + request.offset);
  last.data.swap(scratch_);
  if (waiting_count_ == most_waiting) copy_waiting();
}

void software_queue::copy_waiting() {
  constexpr u32 ahead = 2;
  for (u32 k = 0; k < waiting_count_; ++k) __builtin_prefetch(waiting_[k].bytes);
  for (u32 k = 0; k < waiting_count_; ++k) {
    waiting_copy& now = waiting_[k];
    std::byte const* next = nullptr;
    if (k + 1 < waiting_count_) {
      waiting_copy const& later = waiting_[std::min(k + ahead, waiting_count_ - 1)];
      if (later.request.what == action::write) prefetch_pieces(later.data);
      next = later.bytes;
    }
    if (copy_now(*now.space, now.request, now.data, next)) {
      count(counts_.copied);
      ring_.complete(now.command_id, nvme::code::success);
    } else {
      hand_on(*now.space, now.request, now.command_id, now.data);  // whose errno says what was in the way
    }
  }
  waiting_count_ = 0;
}

bool software_queue::copy_now(storage_namespace const& space, decoded_command const& request, pieces const& data,
                              void const* next) const {
  const u64 valid = space.valid_bytes(request.offset, request.bytes);
  if (space.memory() != nullptr) {
    copy_to_pieces(data, space.memory() + request.offset, valid, request.bytes, next);
    return true;
  }
  const u64 offset = space.first_byte() + request.offset;
  return request.what == action::write ? space.map()->store(offset, valid, data, next)
                                       : space.map()->copy(offset, valid, request.bytes, data, next);
}

void software_queue::hand_on(storage_namespace const& space, decoded_command const& request, u16 command_id, pieces& data) {
  count(counts_.handed_on);
  if (space.grows()) space.note_call();
  transfer& work = *free_.back();
  free_.pop_back();
  work.what = request.what;
  work.command_id = command_id;
  work.space = &space;
  work.offset = request.offset;
  work.bytes = request.bytes;
  work.done = 0;
  work.give_up_ns = 0;
  // Reads ask for whole blocks, as direct I/O must; the end of the file cuts them. Writes must not make the file longer.
  work.asked = request.what == action::write ? space.valid_bytes(request.offset, request.bytes) : request.bytes;
  if (work.what == action::write && space.grows()) space.note_write(work.offset + work.asked);
  work.file = file_index(request.index, false);
  work.descriptor = space.grows() ? space.file() : -1;
  if (request.what != action::flush) {
    work.data.swap(data);
    work.through_bounce = always_bounce || (space.direct() && !aligned(work.data, space.memory_alignment()));
    if (work.through_bounce) work.reserve_bounce(work.bytes);
    if (work.through_bounce && request.what == action::write) copy_from_pieces(work.bounce, work.data, work.asked);
  }
  start_call(work);
}

void software_queue::start_call(transfer& work) {
  if (work.what != action::flush) {
    u64 bytes = work.asked - work.done;
    if (work.space->is_written_once()) {
      const byte_run run = nonzero_run_of(work);
      work.done = run.begin;
      bytes = run.end - run.begin;
      if (bytes == 0) return finish(work, nvme::code::success);
    }
    if (work.what == action::write) {
      const u64 at = work.offset + work.done, tail = work.space->tail_begin();
      work.file = file_index(work.file / 2, at >= tail);
      if (at < tail) bytes = std::min(bytes, tail - at);
    }
    if (work.through_bounce) {
      work.rest.assign(1, {work.bounce + work.done, bytes});
    } else {
      cut_pieces(work.data, work.done, bytes, work.rest);
    }
  }
  engine_->start(work);
}

byte_run software_queue::nonzero_run_of(transfer const& work) {
  if (!work.through_bounce) return find_nonzero(work.data, work.done, work.asked);
  return find_nonzero({{work.bounce, work.asked}}, work.done, work.asked);
}

bool software_queue::finish_ended() {
  transfer* ended = engine_->reap();
  const bool moved = ended != nullptr;
  while (ended != nullptr) {
    transfer* next = ended->next;  // starting it again, in advance, may put it into another list
    advance(*ended);
    ended = next;
  }
  return moved;
}

void software_queue::advance(transfer& work) {
  if (work.result < 0) return retry_or_fail(work, static_cast<int>(-work.result));
  if (work.what == action::flush) return finish(work, nvme::code::success);
  work.done += static_cast<u64>(work.result);
  const bool at_end = work.what == action::read && work.offset + work.done >= work.space->shape().bytes;
  if (work.done >= work.asked || at_end) return finish(work, nvme::code::success);
  const bool at_its_end = work.result == 0 && work.what == action::read && work.space->grows();
  if (at_its_end && !work.space->was_cut(work.offset + work.done)) {
    work.asked = work.done;  // zeros follow its end
    return finish(work, nvme::code::success);
  }
  if (work.result == 0) return finish(work, status_of(EIO, work.what));  // the file is shorter than it was
  start_call(work);
}

void software_queue::retry_or_fail(transfer& work, int error) {
  if (!transient(error)) return finish(work, status_of(error, work.what));
  const u64 now = now_ns();
  if (work.give_up_ns == 0) work.give_up_ns = now + transient_timeout_ns;
  if (now >= work.give_up_ns) return finish(work, status_of(error, work.what));
  start_call(work);
}

void software_queue::finish(transfer& work, u16 status) {
  if (status == nvme::code::success && work.what != action::flush) {
    if (work.what == action::read) deliver(work);
    page_cache_map* const map = work.space->map();
    if (map != nullptr && !(work.space->grows() && work.offset + work.bytes > work.space->mapped_bytes())) {
      map->note_moved(work.space->first_byte() + work.offset, work.space->valid_bytes(work.offset, work.bytes));
    }
  }
  if (work.space->grows()) work.space->note_call_ended();
  free_.push_back(&work);
  ring_.complete(work.command_id, status);
}

void software_queue::deliver(transfer const& work) const {
  const u64 valid = work.space->grows() ? work.asked : work.space->valid_bytes(work.offset, work.bytes);
  if (work.through_bounce) {
    copy_to_pieces(work.data, work.bounce, valid, work.bytes);
  } else if (valid != work.bytes) {
    zero_pieces(work.data, valid, work.bytes);
  }
}

}  // namespace penstock::controllers
