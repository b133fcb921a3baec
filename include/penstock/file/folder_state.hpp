// What a folder's calls share in a kernel, and what they are made of: sizes, dirty parts, users, and calls to the host.
//
// All functions that take a group are collective; each change of a shared word is the leader's, and all members go through the
// loops around it, as in call_slots::acquire.
#pragma once

#include "penstock/file/call_slot.hpp"
#include "penstock/file/dirty_parts.hpp"
#include "penstock/file/file_bytes.hpp"
#include "penstock/file/open_file.hpp"

namespace penstock {

/// Trivially copyable; the base of folder_view, whose public calls are made of this.
struct folder_state {
  line_reader reader;  ///< of all files
  call_slots calls;
  open_file_table table;
  u64 space_bytes = 0;  ///< of the line space

 protected:
  PENSTOCK_FN static u64 word_of(u32 generation, u64 size) { return u64{generation} << size_bits | size; }

  PENSTOCK_FN bool is_open(file_descriptor const& file, u64 word) const {
    return file.generation != 0 && word >> size_bits == file.generation && (word & size_mask) != open_file_table::unknown_size;
  }
  PENSTOCK_FN u64 load_word(file_descriptor const& file) const {
    return device_ref<u64>(table.files[file.slot].size).load(acquire);
  }

  /// False: the descriptor is closed. The same for all members, whatever others do to the word meanwhile.
  template <thread_group G>
  PENSTOCK_FN bool find_size(G const& g, file_descriptor const& file, u64& size) const {
    const u64 word = from_leader(g, load_word(file));
    size = word & size_mask;
    return is_open(file, word);
  }

  /// The same for reads of bytes, without an acquire: a load of bytes that comes before the look at the word reads what the
  /// file had then, when the descriptor was open, too (generations only grow), and what another thread's sync or atomic has
  /// ordered before this call is before both.
  template <thread_group G>
  PENSTOCK_FN bool find_size_to_read(G const& g, file_descriptor const& file, u64& size) const {
    const u64 word = load_size_word(g, file);
    size = word & size_mask;
    return is_open(file, word);
  }
  template <thread_group G>
  PENSTOCK_FN bool can_read_hit(G const& g, file_descriptor const& file, u64 count, u64 offset) const {
    u64 size = 0;
    return find_size_to_read(g, file, size) && offset <= size && count <= size - offset;
  }

  template <thread_group G>
  PENSTOCK_FN u64 load_size_word(G const& g, file_descriptor const& file) const {
    return from_leader(g, device_ref<u64>(table.files[file.slot].size).load(relaxed));
  }
  template <thread_group G>
  PENSTOCK_FN bool change_size_word(G const& g, file_descriptor const& file, u64 seen, u64 size) const {
    const u64 next = word_of(file.generation, size);
    return from_leader(
               g, is_leader(g) &&
                      device_ref<u64>(table.files[file.slot].size).compare_exchange_strong(seen, next, acq_rel, relaxed)) != 0;
  }

  /// The size of an open file before.
  template <thread_group G>
  PENSTOCK_FN u64 set_size(G const& g, file_descriptor const& file, u64 size) const {
    for (;;) {
      const u64 seen = load_size_word(g, file);
      if (seen >> size_bits != file.generation || change_size_word(g, file, seen, size)) return seen & size_mask;
    }
  }

  /// Makes the file as long as `count` bytes at `begin` need, which `append` sets. An errno.
  template <thread_group G>
  PENSTOCK_FN u32 claim_bytes(G const& g, file_descriptor const& file, u64 count, u64& begin) const {
    for (;;) {
      const u64 seen = load_size_word(g, file), size = seen & size_mask;
      if (seen >> size_bits != file.generation) return EBADF;
      if ((file.flags & file_flag::append) != 0) begin = size;
      if (begin > file.range_bytes || count > file.range_bytes - begin) return EFBIG;
      if (begin + count <= size || change_size_word(g, file, seen, begin + count)) return 0;
    }
  }

  template <thread_group G>
  PENSTOCK_FN file_call::request request_of(G const& g, file_op op, file_descriptor const& file) const {
    // The count first: a size that is older than it is not taken for one that followed the truncation.
    const u32 cuts = static_cast<u32>(from_leader(g, device_ref<u32>(table.files[file.slot].truncations).load(acquire)));
    u64 size = 0;
    find_size(g, file, size);
    return {static_cast<u32>(op), cuts, file.slot, file.generation, size, 0, 0};
  }

  struct no_use {
    PENSTOCK_FN void operator()(u32, u64) const {}
  };

  template <thread_group G, class Use = no_use>
  PENSTOCK_FN u32 call_with_name(G const& g, file_call::request const& asked, char const* path, char const* other,
                                 file_call::answer& given, Use const& use = {}) const {
    if (asked.path_bytes >= max_path_bytes || asked.other_bytes >= max_path_bytes) return ENAMETOOLONG;
    const u32 slot = calls.acquire(g);
    if (slot == call_slots::none) return ETIMEDOUT;
    const bool over = calls.call(g, slot, asked, path, other, given);
    if (over && given.error == 0) use(slot, given.size);
    if (over) calls.release(g, slot);
    return given.error;
  }

  /// Names that were known before are asked for again.
  template <thread_group G>
  PENSTOCK_FN u32 change_names(G const& g, file_call::request const& asked, char const* path, char const* other) const {
    file_call::answer given;
    const u32 error = call_with_name(g, asked, path, other, given);
    if (error == 0 && is_leader(g)) table.forget_names(given.number);
    converge_after_call(g);
    return error;
  }

  PENSTOCK_FN line_range lines_of(u64 begin, u64 end) const {
    const u64 last =
        end > begin ? value(reader.line_of(reader.base + end - 1)) + 1 : value(reader.line_of(reader.base + begin));
    return {reader.dataset, value(reader.line_of(reader.base + begin)), last};
  }

  PENSTOCK_FN dirty_parts dirty_parts_of(file_descriptor const& file) const {
    return dirty_parts(table.files[file.slot], file.range_bytes, reader.line_bytes);
  }

  /// What was stored into a file goes to the host. An errno. Collective.
  template <thread_group G>
  PENSTOCK_FN u32 write_back(G const& g, file_descriptor const& file) const {
    const dirty_parts dirty = dirty_parts_of(file);
    const u32 parts = static_cast<u32>(from_leader(g, is_leader(g) ? dirty.begin_flush() : 0));
    if (parts == 0) return 0;
    converge_after_call(g);  // what the leader has acquired is every member's
    const u32 slot = calls.acquire(g);
    u32 error = ETIMEDOUT, failed = parts;
    if (slot != call_slots::none) {
      error = flush_parts(g, slot, file, parts, dirty.part_bytes());
      failed = error != 0 ? parts : 0;
      calls.release(g, slot);
    }
    if (is_leader(g)) dirty.end_flush(failed);
    return error;
  }

  /// Flushes parts that follow each other together. Collective.
  template <thread_group G>
  PENSTOCK_FN u32 flush_parts(G const& g, u32 slot, file_descriptor const& file, u32 parts, u64 part_bytes) const {
    flush_report& report = calls.slots[slot].report;
    for (u32 first = 0; first < dirty_parts::parts;) {
      u32 last = first;
      while (last < dirty_parts::parts && (parts >> last & 1) != 0) ++last;
      // Not only as far as the file: what was stored into a map that was cut is not to stay behind.
      const u64 begin = first * part_bytes, whole = last * part_bytes,
                end = whole < file.range_bytes ? whole : file.range_bytes;
      if (begin < end) {
        const line_range range = lines_of(file.first_byte + begin, file.first_byte + end);
        flush_lines(g, *reader.cache, range, report, 0, flush_items(*reader.cache, range));
      }
      first = last + 1;
    }
    converge_after_call(g);
    const status why = unpack_status(static_cast<u32>(from_leader(g, device_ref<u32>(report.failure).load(relaxed))));
    return call_slots::error_of(why);
  }

  /// Forgets whole lines of a part of the line space, and zeros what is left of its first. An errno. Collective.
  template <thread_group G>
  PENSTOCK_FN u32 forget_bytes(G const& g, u32 slot, u64 begin, u64 end) const {
    const u64 line = reader.line_bytes, whole = (begin + line - 1) / line * line;
    flush_report& report = calls.slots[slot].report;
    status outcome{};
    if (whole < end) {
      const line_range range = lines_of(whole, end);
      discard_lines(g, *reader.cache, range, report, 0, flush_items(*reader.cache, range));
      converge_after_call(g);
      outcome = unpack_status(static_cast<u32>(from_leader(g, device_ref<u32>(report.failure).load(relaxed))));
    }
    if (whole > begin && outcome.ok()) outcome = file_bytes::clear(g, reader, space_bytes, begin, whole - begin);
    return call_slots::error_of(outcome);
  }

  /// Gives the host back what the last user of a file owes, and before it all that was stored. Without `debt.opens` nothing is
  /// done. An errno. Collective.
  template <thread_group G>
  PENSTOCK_FN u32 give_back(G const& g, u32 file_slot, host_debt const& debt) const {
    if (debt.opens == 0) return 0;
    file_descriptor file = table.descriptor_of(file_slot, debt.generation, 0);
    file.first_byte = from_leader(g, file.first_byte);
    file.range_bytes = from_leader(g, file.range_bytes);
    const u32 lost = write_back(g, file);
    const u32 slot = calls.acquire(g);
    if (slot == call_slots::none) {
      if (is_leader(g)) table.owe_again(file.slot, debt);
      return ETIMEDOUT;
    }
    file_call::request asked = request_of(g, file_op::close, file);
    asked.opens = debt.opens;
    file_call::answer given;
    const bool over = calls.call(g, slot, asked, nullptr, nullptr, given);
    const bool closed = given.generation > file.generation;
    if (closed && is_leader(g)) table.end_generation(file.slot, given.generation);
    // Nobody could write it any more: it must not be in the way of what can be.
    if (closed && lost != 0) forget_bytes(g, slot, file.first_byte, file.first_byte + file.range_bytes);
    if (over) calls.release(g, slot);
    return given.error != 0 ? given.error : lost;
  }

  /// One user more, beside that of the descriptor. False: it is over.
  template <thread_group G>
  PENSTOCK_FN bool keep_open(G const& g, file_descriptor const& file) const {
    host_debt debt;
    const bool kept = from_leader(g, is_leader(g) && table.add_user_again(file, debt)) != 0;
    give_back(g, file.slot, debt_of_all(g, debt));
    return kept;
  }
  /// The end of one. An errno.
  template <thread_group G>
  PENSTOCK_FN u32 end_use(G const& g, file_descriptor const& file) const {
    host_debt debt;
    if (is_leader(g)) table.remove_user(file, debt);
    return give_back(g, file.slot, debt_of_all(g, debt));
  }

  /// The leader's.
  template <thread_group G>
  PENSTOCK_FN static host_debt debt_of_all(G const& g, host_debt const& mine) {
    const u64 word = from_leader(g, u64{mine.generation} << 32 | mine.opens);
    return {static_cast<u32>(word >> 32), static_cast<u32>(word)};
  }

  /// An errno. Where the line space is full, room is made. Collective.
  template <thread_group G>
  PENSTOCK_FN u32 open_on_host(G const& g, char const* path, u32 path_bytes, u32 flags, file_call::answer& given) const {
    const file_call::request asked{static_cast<u32>(file_op::open), flags, 0, 0, 0, path_bytes, 0};
    for (backoff wait(calls.timeout_ns);;) {
      u32 kept = 0;
      const auto forget = [&](u32 slot, u64 bytes) {
        for (u64 at = 0; given.generation == 0 && at < bytes; at += sizeof(extent_to_forget)) {
          kept |= forget_extent(g, slot, calls.records[slot].path + at);
        }
      };
      const u32 error = call_with_name(g, asked, path, nullptr, given, forget);
      if (error != 0 || given.generation != 0) return error;
      if (given.number == 0) {  // others make room
        if (from_leader(g, wait.pause()) == 0) return ENOSPC;
        continue;
      }
      file_call::request made{static_cast<u32>(file_op::room_made), kept, 0, 0, given.number, 0, 0};
      if (call_with_name(g, made, nullptr, nullptr, given) != 0 || kept != 0) return ENOSPC;
    }
  }

  /// Not 0: a line is in the cache still. Collective.
  template <thread_group G>
  PENSTOCK_FN u32 forget_extent(G const& g, u32 slot, char const* extent) const {
    const u64 begin = from_leader(g, is_leader(g) ? call_slots::load_word(extent) : 0);
    const u64 bytes = from_leader(g, is_leader(g) ? call_slots::load_word(extent + sizeof(u64)) : 0);
    return forget_bytes(g, slot, begin, begin + bytes);
  }

  /// A descriptor of a file that is open here under this name; of generation 0 where the host must be asked. Collective.
  template <thread_group G>
  PENSTOCK_FN file_descriptor open_known(G const& g, char const* path, u32 path_bytes, u32 flags, name_hash& name) const {
    file_descriptor file;
    host_debt debt;
    bool found = false;
    if (is_leader(g)) {
      name = table.hasher(path, path_bytes);
      if ((flags & file_flag::write_once) != 0) name.part[0] = ~name.part[0];  // leads to no file that is open in another way
      found = (flags & file_flag::exclusive) == 0 && table.add_user_by_name(name, flags, file, debt);
    }
    file.slot = static_cast<u32>(from_leader(g, file.slot));
    give_back(g, file.slot, debt_of_all(g, debt));
    file.generation = static_cast<u32>(from_leader(g, found ? file.generation : 0));
    file.first_byte = from_leader(g, file.first_byte);
    file.range_bytes = from_leader(g, file.range_bytes);
    file.flags = flags;
    return file;
  }
};

}  // namespace penstock
