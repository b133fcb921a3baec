// `penstock::files`: a parameter of a kernel of the user's own. The files of a folder that penstock.fs.mount has mounted,
// opened, read and written by the kernel's threads (docs/FILES.md). Trivially copyable; passed by value.
//
// A thread calls alone by `fs.open(...)`; all threads of a warp call together, with the same arguments, by
// `fs.warp().open(...)`, and get the same answer. Errors are errnos in the answer: none of them stops a launch.
#pragma once

#include "penstock/kernels/calls.hpp"

namespace penstock {
namespace kernels {

struct one_thread {
  static constexpr bool is_warp = false;
};
struct whole_warp {
  static constexpr bool is_warp = true;
};

PENSTOCK_KERNEL_FN constexpr u32 length_of(char const* text) {
  u32 length = 0;
  while (text[length] != 0) ++length;
  return length;
}

/// Of a mode as Python's open and penstock.fs have it: r, w, a, x, with + or without, and o (write once). 0 for any other.
PENSTOCK_KERNEL_FN constexpr u32 open_bits_of(char const* mode) {
  const char first = mode[0];
  const bool both = first != 0 && mode[1] == '+';
  if (first == 0 || mode[both ? 2 : 1] != 0) return 0;
  if (first == 'r') return both ? to_read | to_write : to_read;
  if (first == 'o') return both ? 0 : to_write | to_create | write_once;
  const u32 bits = to_write | to_create | (both ? u32{to_read} : 0);
  if (first == 'w') return bits | to_cut;
  if (first == 'a') return bits | at_end;
  return first == 'x' ? bits | only_new : 0;
}

/// An open file, or why there is none.
struct opened_file {
  file_words words{};
  int error = 0;  ///< an errno; 0: it is open

  PENSTOCK_KERNEL_FN bool ok() const { return error == 0; }
};

/// A number of bytes, or why there is none.
struct file_count {
  u64 value = 0;
  int error = 0;

  PENSTOCK_KERNEL_FN bool ok() const { return error == 0; }
};

struct name_facts {
  u64 size = 0;        ///< bytes
  u64 changed_ns = 0;  ///< since 1970
  u32 mode = 0;        ///< as stat(2) has it
  int error = 0;

  PENSTOCK_KERNEL_FN bool ok() const { return error == 0; }
};

/// Bytes of a file in place in the cache, until `unmap`.
struct held_bytes {
  char* bytes = nullptr;
  u64 count = 0;  ///< as many may be used: to the end of the line, or of the file
  int error = 0;
  u32 flags = 0;
  u64 offset = 0;
  void* entry = nullptr;

  PENSTOCK_KERNEL_FN bool ok() const { return error == 0; }
};

/// A name of a folder, as `read_folder` gives them one after the other; the next begins `bytes` later.
struct folder_name {
  u64 inode;
  u16 bytes;       ///< of this entry
  u16 name_bytes;  ///< without the zero behind it
  u32 mode;        ///< the type bits of st_mode; 0: the file system does not say

  PENSTOCK_KERNEL_FN char const* name() const { return reinterpret_cast<char const*>(this + 1); }
};

/// The calls, by a thread alone or by a warp. Paths and modes end with a zero.
template <class Group>
class folder_calls {
 public:
  /// Errors: those of open(2), of a name that leads out of the folder EXDEV, to write where it was mounted to read EROFS;
  /// EINVAL for another mode.
  PENSTOCK_KERNEL_FN opened_file open(char const* path, char const* mode = "r") const {
    folder_request asked = about(folder_op::open, path);
    asked.flags = open_bits_of(mode);
    const folder_answer given = call(asked);
    return {given.file, static_cast<int>(given.error)};
  }
  /// What was stored is with the host then. Once for each open. Returns an errno.
  PENSTOCK_KERNEL_FN int close(opened_file const& file) const { return of_error(about(folder_op::close, file)); }

  /// Up to `count` bytes from `offset` on; fewer at the end of the file.
  PENSTOCK_KERNEL_FN file_count pread(opened_file const& file, void* to, u64 count, u64 offset) const {
    if (read_file_hit<Group::is_warp>(folder_, file.words, offset, count, to)) return {count, 0};
    return moved(folder_op::pread, file, to, count, offset);
  }
  /// In mode "a" behind the last byte.
  PENSTOCK_KERNEL_FN file_count pwrite(opened_file const& file, void const* from, u64 count, u64 offset) const {
    return moved(folder_op::pwrite, file, const_cast<void*>(from), count, offset);
  }

  /// Holds as many of `count` bytes as lie in one line of the cache; to store into with `writable`. By `unmap` they are let go.
  PENSTOCK_KERNEL_FN held_bytes map(opened_file const& file, u64 offset, u64 count, bool writable = false) const {
    folder_request asked = about(folder_op::map, file);
    asked.offset = offset;
    asked.count = count;
    asked.flags = writable ? to_read | to_write : to_read;
    const folder_answer given = call(asked);
    const u32 flags = given.memory != nullptr ? asked.flags : 0;  // of nothing, `unmap` lets nothing go
    return {static_cast<char*>(given.memory), given.value, static_cast<int>(given.error), flags, offset, given.entry};
  }
  PENSTOCK_KERNEL_FN int unmap(opened_file const& file, held_bytes const& held) const {
    folder_request asked = about(folder_op::unmap, file);
    asked.offset = held.offset;
    asked.count = held.count;
    asked.flags = held.flags;
    asked.memory = held.bytes;
    asked.entry = held.entry;
    return of_error(asked);
  }

  /// As fsync(2).
  PENSTOCK_KERNEL_FN int sync(opened_file const& file) const { return of_error(about(folder_op::sync, file)); }
  PENSTOCK_KERNEL_FN int truncate(opened_file const& file, u64 size) const {
    folder_request asked = about(folder_op::truncate, file);
    asked.offset = size;
    return of_error(asked);
  }
  PENSTOCK_KERNEL_FN file_count size_of(opened_file const& file) const {
    const folder_answer given = call(about(folder_op::size_of, file));
    return {given.value, static_cast<int>(given.error)};
  }

  PENSTOCK_KERNEL_FN name_facts stat(char const* path) const {
    const folder_answer given = call(about(folder_op::stat, path));
    return {given.value, given.time, given.kind, static_cast<int>(given.error)};
  }
  PENSTOCK_KERNEL_FN int unlink(char const* path) const { return of_error(about(folder_op::unlink, path)); }
  PENSTOCK_KERNEL_FN int rename(char const* from, char const* to) const {
    folder_request asked = about(folder_op::rename, from);
    asked.other = to;
    asked.other_bytes = length_of(to);
    return of_error(asked);
  }

  /// The next names of a folder, each a folder_name and its text: to `to`, which is aligned to 8 and has room for 8192 bytes.
  /// `cursor` is 0 at first, then as this leaves it. Returns bytes; 0 at the end.
  PENSTOCK_KERNEL_FN file_count read_folder(char const* path, u64& cursor, void* to) const {
    folder_request asked = about(folder_op::list, path);
    asked.offset = cursor;
    asked.memory = to;
    const folder_answer given = call(asked);
    if (given.error == 0) cursor = given.time;
    return {given.value, static_cast<int>(given.error)};
  }

 protected:
  void const* folder_;  ///< a folder_view

 private:
  PENSTOCK_KERNEL_FN static folder_request about(folder_op op, char const* path) {
    folder_request asked;
    asked.op = op;
    asked.path = path;
    asked.path_bytes = length_of(path);
    return asked;
  }
  PENSTOCK_KERNEL_FN static folder_request about(folder_op op, opened_file const& file) {
    folder_request asked;
    asked.op = op;
    asked.file = file.words;
    return asked;
  }
  PENSTOCK_KERNEL_FN file_count moved(folder_op op, opened_file const& file, void* memory, u64 count, u64 offset) const {
    folder_request asked = about(op, file);
    asked.memory = memory;
    asked.count = count;
    asked.offset = offset;
    const folder_answer given = call(asked);
    return {given.value, static_cast<int>(given.error)};
  }
  PENSTOCK_KERNEL_FN int of_error(folder_request const& asked) const { return static_cast<int>(call(asked).error); }
  PENSTOCK_KERNEL_FN folder_answer call(folder_request const& asked) const {
    folder_answer given;
    call_folder<Group::is_warp>(folder_, asked, given);
    return given;
  }
};

}  // namespace kernels

class files : public kernels::folder_calls<kernels::one_thread> {
 public:
  class by_warp : public kernels::folder_calls<kernels::whole_warp> {
   public:
    PENSTOCK_KERNEL_FN explicit by_warp(void const* folder) { folder_ = folder; }
  };

  PENSTOCK_KERNEL_FN by_warp warp() const { return by_warp(folder_); }
};

}  // namespace penstock
