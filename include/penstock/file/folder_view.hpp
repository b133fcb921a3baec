// The files of one folder for the threads of a kernel: names are resolved and files opened by the host, bytes come and go
// through one cache for all of them. What is POSIX has its name and its meaning; where it has not, docs/FILES.md says so.
//
// All calls are collective: every thread of the group makes them, with the same arguments, and gets the same answer. A thread
// alone passes lone_thread{}. Each ends in time, with an errno.
//
// Consistency (GPUfs, section 5.1: close to open). What is stored is seen by every group of the folder at once, and by others
// when the file was closed, or synced, after it. What others stored is seen by an open after their close, unless the file was
// open here then: descriptors of one file share its bytes.
#pragma once

#include "penstock/array/pinned_line.hpp"
#include "penstock/file/folder_state.hpp"
#include "penstock/group/warp.hpp"

namespace penstock {

struct open_result {
  file_descriptor file;
  u32 error = 0;  ///< an errno; 0: it is open

  PENSTOCK_FN bool ok() const { return error == 0; }
};

/// A number, or why there is none.
struct file_result {
  u64 value = 0;
  u32 error = 0;  ///< an errno; 0: none

  PENSTOCK_FN bool ok() const { return error == 0; }
};

struct file_facts {
  u64 size = 0;        ///< bytes
  u64 changed_ns = 0;  ///< since 1970
  u32 kind = 0;        ///< st_mode
  u32 error = 0;

  PENSTOCK_FN bool ok() const { return error == 0; }
};

/// Bytes of a file that stay in place while a group holds them. Each thread of the group keeps what it got.
struct mapped_bytes {
  char* bytes = nullptr;  ///< in local memory: other memory than the file's, so pointers of two maps have nothing in common
  u64 count = 0;          ///< as many may be used
  u32 error = 0;          ///< an errno; 0: none
  u32 flags = 0;
  u64 offset = 0;
  u64* entry = nullptr;  ///< in the thread that holds the line

  PENSTOCK_FN bool ok() const { return error == 0; }
};

/// Trivially copyable; the host-side `folder` owns what it points at.
struct folder_view : folder_state {
  /// Opens the file of a name below the folder, `path_bytes` bytes without a zero at their end. `flags`: of file_flag.
  /// Errors: those of open(2); EBUSY for a file that is open here in another way (file_flag::write_once); EXDEV where the name
  /// leads out of the folder; EROFS to write into a folder that was given to
  ///         read; ENODEV for what is neither file nor folder; ENFILE where as many are open as may be; ENOSPC where files that
  ///         are open leave no room in the line space; ETIMEDOUT.
  template <thread_group G>
  PENSTOCK_COLD open_result open(G g, char const* path, u32 path_bytes, u32 flags) const;

  /// Ends a descriptor. What was stored through it is with the host then; on the device for good after `sync` only.
  /// Errors: EBADF; EIO, ENOSPC for what could not be written: the descriptor is gone all the same. After ETIMEDOUT it may be.
  template <thread_group G>
  PENSTOCK_COLD u32 close(G g, file_descriptor const& file) const;

  /// Up to `count` bytes from `offset` on, to memory of the group's threads. Returns how many: fewer at the end of the file.
  /// Cost:   as array_view::read_span where the line is in a frame and `offset`, `count` and `to` are multiples of 16; else a
  ///         call, and one command for each line that is in no frame.
  /// Errors: EBADF for a descriptor that is closed or not to be read; EIO, ETIMEDOUT: what lies at `to` is undefined then.
  template <thread_group G>
  PENSTOCK_FN file_result pread(G g, file_descriptor const& file, void* to, u64 count, u64 offset) const {
    return read_hit(g, file, to, count, offset) ? file_result{count, 0} : pread_slowly(g, file, to, count, offset);
  }

  /// A pread of what lies whole in one line of the cache, and only that. False: it does not; what lies at `to` is undefined.
  template <thread_group G>
  PENSTOCK_FN bool read_hit(G const& g, file_descriptor const& file, void* to, u64 count, u64 offset) const {
    return (file.flags & file_flag::read) != 0 && can_read_hit(g, file, count, offset) &&
           file_bytes::read_hit(g, reader, file.first_byte + offset, static_cast<char*>(to), count);
  }

  /// Stores `count` bytes at `offset`, or behind the last one (file_flag::append), from memory of the group's threads. Returns
  /// how many. Lines that are covered whole are not read.
  /// Errors: EBADF; EFBIG beyond what the file may have (`range_bytes`); EIO, ENOSPC, ETIMEDOUT: some may be stored then.
  template <thread_group G>
  PENSTOCK_COLD file_result pwrite(G g, file_descriptor const& file, void const* from, u64 count, u64 offset) const;

  /// Holds the bytes from `offset` on in place, as many of `count` as lie in one line of the cache and in the file (none at its
  /// end), to read or, with file_flag::write, also to store into: GPUfs's gmmap. All members get the same bytes, which outlive
  /// a close. What is stored is seen by others at once; a sync writes it if it was unmapped before.
  /// Errors: EBADF for a descriptor that is closed or not for `flags`; EINVAL; ENOMEM where all frames are held; EIO,
  /// ETIMEDOUT.
  template <thread_group G>
  PENSTOCK_FN mapped_bytes map(G g, file_descriptor const& file, u64 offset, u64 count, u32 flags) const {
    u64 size = 0;
    if (flags != file_flag::read || (file.flags & flags) == 0 || !find_size_to_read(g, file, size) || offset >= size) {
      return map_slowly(g, file, offset, count, flags);
    }
    const held_line held = pin_at_once<read_order::sound>(g, reader, line_at(file, offset));
    if (held.frame == 0) return map_slowly(g, file, offset, count, flags);
    if (held.hits != 0) reader.counters.add(counter::hits, held.hits);
    return mapped_in(held, file, offset, count < size - offset ? count : size - offset, flags);
  }

  /// Lets go of them. A truncation of what is mapped waits for it; a file that is mapped to write stays open until it.
  /// Errors: those of `close`, where it was the last that kept the file open.
  template <thread_group G>
  PENSTOCK_FN u32 unmap(G g, file_descriptor const& file, mapped_bytes const& mapped) const {
    if ((mapped.flags & file_flag::write) != 0) return unmap_stored(g, file, mapped);
    if (mapped.bytes == nullptr) return 0;
    converge_after_call(g);  // every member's loads are done
    if (mapped.entry != nullptr) reader.cache->unpin(mapped.entry);
    return 0;
  }

  /// All that was stored before, by any group, is on the device for good when this returns 0 (fsync).
  /// Errors: EBADF; EIO, ENOSPC, ETIMEDOUT for what could not be written.
  template <thread_group G>
  PENSTOCK_COLD u32 sync(G g, file_descriptor const& file) const;

  /// Makes the file `size` bytes long: what follows them is gone, what it gets is zeros. Of what others store behind them
  /// meanwhile a part may be gone, too.
  /// Errors: EBADF; EFBIG; those of ftruncate(2). ETIMEDOUT where others kept what was to go mapped: the file has its new size,
  ///         and what they had may be there again when it grows.
  template <thread_group G>
  PENSTOCK_COLD u32 truncate(G g, file_descriptor const& file, u64 size) const;

  /// Bytes of an open file. Of one thread.
  PENSTOCK_FN file_result size_of(file_descriptor const& file) const {
    const u64 word = load_word(file);
    return is_open(file, word) ? file_result{word & size_mask, 0} : file_result{0, EBADF};
  }

  /// What is known of a name. Errors: those of stat(2), EXDEV.
  template <thread_group G>
  PENSTOCK_COLD file_facts stat(G g, char const* path, u32 path_bytes) const;

  /// Takes a name away; descriptors of the file stay. Errors: those of unlink(2), EXDEV, EROFS.
  template <thread_group G>
  PENSTOCK_COLD u32 unlink(G g, char const* path, u32 path_bytes) const;

  /// Gives a file another name, at once; a file that had it loses it. Errors: those of rename(2), EXDEV, EROFS.
  template <thread_group G>
  PENSTOCK_COLD u32 rename(G g, char const* from, u32 from_bytes, char const* to, u32 to_bytes) const;

  /// Bytes that read_folder may give at once.
  static constexpr u64 max_entry_bytes = 2 * max_path_bytes;

  /// The next names of a folder, as folder_entry one after the other, aligned to 8: to `to`, which has room for
  /// max_entry_bytes. `cursor`: 0 at first, then as this leaves it. Returns bytes; 0 at the end.
  /// Errors: those of open(2) and getdents(2).
  template <thread_group G>
  PENSTOCK_COLD file_result read_folder(G g, char const* path, u32 path_bytes, u64& cursor, void* to) const;

  // What is left of `pread`, `map` and `unmap` behind their hits, which are in the caller's registers.
  template <thread_group G>
  PENSTOCK_COLD file_result pread_slowly(G g, file_descriptor const& file, void* to, u64 count, u64 offset) const;
  template <thread_group G>
  PENSTOCK_COLD mapped_bytes map_slowly(G g, file_descriptor const& file, u64 offset, u64 count, u32 flags) const;
  template <thread_group G>
  PENSTOCK_COLD u32 unmap_stored(G g, file_descriptor const& file, mapped_bytes const& mapped) const;

 private:
  PENSTOCK_FN line_id line_at(file_descriptor const& file, u64 offset) const {
    return reader.line_of(reader.base + file.first_byte + offset);
  }
  PENSTOCK_FN mapped_bytes mapped_in(held_line const& held, file_descriptor const& file, u64 offset, u64 count,
                                     u32 flags) const;
};

PENSTOCK_FN inline mapped_bytes folder_view::mapped_in(held_line const& held, file_descriptor const& file, u64 offset,
                                                       u64 count, u32 flags) const {
  const u64 within = (file.first_byte + offset) % reader.line_bytes, in_line = reader.line_bytes - within;
  mapped_bytes mapped;
  mapped.bytes = reinterpret_cast<char*>(held.frame + within);
  mapped.count = count < in_line ? count : in_line;
  mapped.flags = flags;
  mapped.offset = offset;
  mapped.entry = held.entry;
  return mapped;
}

template <thread_group G>
PENSTOCK_COLD open_result folder_view::open(G g, char const* path, u32 path_bytes, u32 flags) const {
  open_result result;
  if (path_bytes >= max_path_bytes) return {{}, ENAMETOOLONG};
  if (!are_open_flags_valid(flags)) return {{}, EINVAL};
  name_hash name{};
  result.file = open_known(g, path, path_bytes, flags, name);
  if (result.file.generation == 0) {
    file_call::answer given;
    result.error = open_on_host(g, path, path_bytes, flags, given);
    if (!result.ok()) return {{}, result.error};
    if (is_leader(g)) table.add_user(given, flags, name);
    converge_after_call(g);
    result.file = {given.first_byte, given.range_bytes, given.slot, given.generation, flags};
  }
  u64 size = 0;  // of a file that is open already the word knows it better than the host
  if ((flags & file_flag::truncate) != 0 && find_size(g, result.file, size) && size != 0) {
    result.error = truncate(g, result.file, 0);
    if (!result.ok()) close(g, result.file);
  }
  return result;
}

template <thread_group G>
PENSTOCK_COLD u32 folder_view::close(G g, file_descriptor const& file) const {
  u64 size = 0;
  if (!find_size(g, file, size)) return EBADF;
  const u32 lost = (file.flags & file_flag::write) != 0 ? write_back(g, file) : 0;
  host_debt debt;
  const bool had = from_leader(g, is_leader(g) && table.remove_user(file, debt)) != 0;
  const u32 error = give_back(g, file.slot, debt_of_all(g, debt));
  if (!had) return EBADF;
  return error != 0 ? error : lost;
}

template <thread_group G>
PENSTOCK_COLD file_result folder_view::pread_slowly(G g, file_descriptor const& file, void* to, u64 count, u64 offset) const {
  u64 size = 0;
  if ((file.flags & file_flag::read) == 0 || !find_size(g, file, size)) return {0, EBADF};
  if (offset >= size || count == 0) return {};
  const u64 wanted = count < size - offset ? count : size - offset;
  const status outcome = file_bytes::read(g, reader, space_bytes, file.first_byte + offset, static_cast<char*>(to), wanted);
  return outcome.ok() ? file_result{wanted, 0} : file_result{0, call_slots::error_of(outcome)};
}

template <thread_group G>
PENSTOCK_COLD file_result folder_view::pwrite(G g, file_descriptor const& file, void const* from, u64 count, u64 offset) const {
  u64 size = 0;
  if ((file.flags & file_flag::write) == 0 || !find_size(g, file, size)) return {0, EBADF};
  if (count == 0) return {};
  // The size first: the last close cuts the file behind its size, and so counts these bytes.
  u64 begin = offset;
  const u32 error = claim_bytes(g, file, count, begin);
  if (error != 0) return {0, error};
  const absent_lines absent = (file.flags & file_flag::write_once) != 0 ? absent_lines::are_zeros : absent_lines::are_read;
  const status outcome =
      file_bytes::write(g, reader, space_bytes, file.first_byte + begin, static_cast<char const*>(from), count, absent);
  converge_after_call(g);  // every member's lines are dirty before a sync may look for them
  if (is_leader(g)) dirty_parts_of(file).add(begin, count);
  return outcome.ok() ? file_result{count, 0} : file_result{0, call_slots::error_of(outcome)};
}

template <thread_group G>
PENSTOCK_COLD mapped_bytes folder_view::map_slowly(G g, file_descriptor const& file, u64 offset, u64 count, u32 flags) const {
  constexpr u32 both = file_flag::read | file_flag::write;
  if (flags == 0 || (flags & ~both) != 0) return {nullptr, 0, EINVAL};
  u64 size = 0;
  if ((file.flags & flags) != flags || !find_size(g, file, size)) return {nullptr, 0, EBADF};
  if (offset >= size || count == 0) return {};
  const bool to_write = (flags & file_flag::write) != 0;
  if (to_write && !keep_open(g, file)) return {nullptr, 0, EBADF};
  const held_line held = pin_slowly(g, *reader.cache, reader.dataset, line_at(file, offset));
  converge_after_call(g);
  if (!held.error.ok()) {
    if (to_write) end_use(g, file);
    return {nullptr, 0, call_slots::error_of(held.error)};
  }
  if (held.hits != 0) reader.counters.add(counter::hits, held.hits);
  if (to_write) order_claim_before_bytes();
  return mapped_in(held, file, offset, count < size - offset ? count : size - offset, flags);
}

template <thread_group G>
PENSTOCK_COLD u32 folder_view::unmap_stored(G g, file_descriptor const& file, mapped_bytes const& mapped) const {
  converge_after_call(g);  // every member's loads and stores are done
  unpin_stored(g, *reader.cache, reader.dataset, mapped.entry, false);
  converge_after_call(g);
  if (is_leader(g)) dirty_parts_of(file).add(mapped.offset, mapped.count);
  return end_use(g, file);
}

template <thread_group G>
PENSTOCK_COLD u32 folder_view::sync(G g, file_descriptor const& file) const {
  u64 size = 0;
  if (!find_size(g, file, size)) return EBADF;
  const u32 lost = write_back(g, file);
  const u32 slot = calls.acquire(g);
  if (slot == call_slots::none) return ETIMEDOUT;
  file_call::answer given;
  if (calls.call(g, slot, request_of(g, file_op::sync, file), nullptr, nullptr, given)) calls.release(g, slot);
  return given.error != 0 ? given.error : lost;
}

template <thread_group G>
PENSTOCK_COLD u32 folder_view::truncate(G g, file_descriptor const& file, u64 size) const {
  u64 before = 0;
  if ((file.flags & file_flag::write) == 0 || !find_size(g, file, before)) return EBADF;
  if (size > file.range_bytes) return EFBIG;
  const u32 slot = calls.acquire(g);
  if (slot == call_slots::none) return ETIMEDOUT;
  before = set_size(g, file, size);
  if (is_leader(g)) device_ref<u32>(table.files[file.slot].truncations).fetch_add(1, release);
  u32 error = 0;
  if (size < before) {
    error = forget_bytes(g, slot, file.first_byte + size, file.first_byte + before);
    if (is_leader(g)) dirty_parts_of(file).add(size, before - size);  // of its first line the rest is zeros now
  }
  file_call::request asked = request_of(g, file_op::truncate, file);
  asked.number = size;
  file_call::answer given;
  if (calls.call(g, slot, asked, nullptr, nullptr, given)) calls.release(g, slot);
  return given.error != 0 ? given.error : error;
}

template <thread_group G>
PENSTOCK_COLD file_facts folder_view::stat(G g, char const* path, u32 path_bytes) const {
  file_call::answer given;
  file_facts facts;
  facts.error = call_with_name(g, {static_cast<u32>(file_op::stat), 0, 0, 0, 0, path_bytes, 0}, path, nullptr, given);
  if (!facts.ok()) return facts;
  facts.size = given.size;
  facts.changed_ns = given.number;
  facts.kind = given.kind;
  u64 size = 0;
  file_descriptor open;
  open.slot = given.slot;
  open.generation = given.generation;
  // The host knows the size of an open file from opens, closes and truncations; stores have made it longer since. Its opener
  // may not have raised its word yet.
  if (given.slot != ~0u && find_size(g, open, size) && size > facts.size) facts.size = size;
  return facts;
}

template <thread_group G>
PENSTOCK_COLD u32 folder_view::unlink(G g, char const* path, u32 path_bytes) const {
  return change_names(g, {static_cast<u32>(file_op::unlink), 0, 0, 0, 0, path_bytes, 0}, path, nullptr);
}

template <thread_group G>
PENSTOCK_COLD u32 folder_view::rename(G g, char const* from, u32 from_bytes, char const* to, u32 to_bytes) const {
  return change_names(g, {static_cast<u32>(file_op::rename), 0, 0, 0, 0, from_bytes, to_bytes}, from, to);
}

template <thread_group G>
PENSTOCK_COLD file_result folder_view::read_folder(G g, char const* path, u32 path_bytes, u64& cursor, void* to) const {
  for (;;) {
    file_call::answer given;
    const file_call::request asked{static_cast<u32>(file_op::read_folder), 0, 0, 0, cursor, path_bytes, 0};
    const auto take_entries = [&](u32 slot, u64 bytes) {
      converge_after_call(g);
      for (u64 at = 8 * index_in(g); at < bytes; at += 8 * penstock::size(g)) {
        *reinterpret_cast<u64*>(static_cast<char*>(to) + at) = call_slots::load_word(calls.records[slot].path + at);
      }
    };
    const u32 error = call_with_name(g, asked, path, nullptr, given, take_entries);
    if (error != 0) return {0, error};
    cursor = given.number;
    if (given.size != 0 || given.kind == 0) return {given.size, 0};  // else there were only "." and ".."
  }
}

#if PENSTOCK_SEPARATE_DEVICE_CODE
#define PENSTOCK_FILE_CALLS(G)                                                                                         \
  extern template PENSTOCK_FN open_result folder_view::open(G, char const*, u32, u32) const;                           \
  extern template PENSTOCK_FN u32 folder_view::close(G, file_descriptor const&) const;                                 \
  extern template PENSTOCK_FN file_result folder_view::pread_slowly(G, file_descriptor const&, void*, u64, u64) const; \
  extern template PENSTOCK_FN file_result folder_view::pwrite(G, file_descriptor const&, void const*, u64, u64) const; \
  extern template PENSTOCK_FN mapped_bytes folder_view::map_slowly(G, file_descriptor const&, u64, u64, u32) const;    \
  extern template PENSTOCK_FN u32 folder_view::unmap_stored(G, file_descriptor const&, mapped_bytes const&) const;     \
  extern template PENSTOCK_FN u32 folder_view::sync(G, file_descriptor const&) const;                                  \
  extern template PENSTOCK_FN u32 folder_view::truncate(G, file_descriptor const&, u64) const;                         \
  extern template PENSTOCK_FN file_facts folder_view::stat(G, char const*, u32) const;                                 \
  extern template PENSTOCK_FN u32 folder_view::unlink(G, char const*, u32) const;                                      \
  extern template PENSTOCK_FN u32 folder_view::rename(G, char const*, u32, char const*, u32) const;                    \
  extern template PENSTOCK_FN file_result folder_view::read_folder(G, char const*, u32, u64&, void*) const
PENSTOCK_FILE_CALLS(warp);
PENSTOCK_FILE_CALLS(lone_thread);
#undef PENSTOCK_FILE_CALLS
#endif

}  // namespace penstock
