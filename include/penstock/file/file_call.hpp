// What a kernel asks the host to do with names and descriptors: one record a call, in memory that both reach. The thread fills
// it, a command of the call's queue names it, the host answers in place and completes the command.
//
// Names are resolved by the host below the folder's root, and nothing outside of it is reached: not by "..", by an absolute
// name, or by a symbolic link that leads there.
#pragma once

#include "penstock/core/config.hpp"

#include <cerrno>

namespace penstock {

/// How a file is opened. A name in POSIX is beside each.
namespace file_flag {
inline constexpr u32 read = 1;
inline constexpr u32 write = 2;
inline constexpr u32 create = 4;      ///< O_CREAT
inline constexpr u32 truncate = 8;    ///< O_TRUNC
inline constexpr u32 append = 16;     ///< O_APPEND: `pwrite` ignores its offset
inline constexpr u32 exclusive = 32;  ///< O_EXCL, with `create`
/// GPUfs's O_GWRONCE: what is stored is never read here, and only bytes that are not zero reach the file, so others may store
/// into what lies beside them meanwhile.
inline constexpr u32 write_once = 64;
inline constexpr u32 all = 127;
}  // namespace file_flag

/// Whether flags go together (open(2): EINVAL).
PENSTOCK_FN constexpr bool are_open_flags_valid(u32 flags) {
  using namespace file_flag;
  if ((flags & ~all) != 0 || (flags & (read | write)) == 0) return false;
  if ((flags & write) == 0 && (flags & (create | truncate | append | write_once)) != 0) return false;
  if ((flags & write_once) != 0 && (flags & (read | append)) != 0) return false;
  return (flags & exclusive) == 0 || (flags & create) != 0;
}

/// Bytes of a name, its end included (PATH_MAX).
inline constexpr u32 max_path_bytes = 4096;
/// Opens of one file that the host answers before a close gives some back (EMFILE).
inline constexpr u32 max_host_opens = 1u << 22;
/// Bits of a word of a file's size that hold the size; those above hold the generation of its descriptor.
inline constexpr u32 size_bits = 48;
inline constexpr u64 size_mask = (1ull << size_bits) - 1;

enum class file_op : u32 { open, close, sync, truncate, stat, unlink, rename, read_folder, room_made };

/// One call. The thread stores all but `answer`, the host that.
struct alignas(128) file_call {
  struct request {
    u32 op = 0;     ///< file_op
    u32 flags = 0;  ///< of `open`
    u32 slot = 0;   ///< of the descriptor
    u32 generation = 0;
    /// `close`, `sync`, `truncate`: the file's size; `read_folder`: the cursor; `room_made`: the ticket, where all was
    /// forgotten
    u64 number = 0;
    u32 path_bytes = 0;
    u32 other_bytes = 0;  ///< `rename`: of the new name
    u64 opens = 0;        ///< `close`: so many opens that the host has answered are over
  };
  struct answer {
    u32 error = 0;  ///< an errno
    u32 slot = 0;
    u32 generation = 0;   ///< `open`: 0 with no error asks to make room: see extent_to_forget
    u32 kind = 0;         ///< `stat`: st_mode
    u64 first_byte = 0;   ///< `open`: of the file in the line space
    u64 range_bytes = 0;  ///< as many may it have
    u64 size = 0;         ///< of the file; `read_folder`: bytes of entries
    /// `stat`: time of the last change in ns. `read_folder`: the next cursor. `unlink`, `rename`: how many names the folder has
    /// taken away; `open`: how many it had when it looked the name up.
    u64 number = 0;
  };
  request asked;
  alignas(64) answer given;
  char path[max_path_bytes];
  char other[max_path_bytes];  ///< `read_folder` answers with entries in both
};
static_assert(sizeof(file_call::request) == 40 && sizeof(file_call::answer) == 48);

/// What an `open` that found no room in the line space is answered with, in `path` and `other`, `size` bytes of them: the
/// caller forgets all lines of these parts, says so by `room_made` with the answer's `number`, and opens again.
struct extent_to_forget {
  u64 first_byte = 0;
  u64 bytes = 0;
};
inline constexpr u32 max_extents_to_forget = 2 * max_path_bytes / sizeof(extent_to_forget);

/// One name of a folder, as `read_folder` gives them one after the other; the next begins `bytes` later.
struct folder_entry {
  u64 inode = 0;
  u16 bytes = 0;       ///< of this entry, a multiple of 8
  u16 name_bytes = 0;  ///< without the zero behind it
  u32 kind = 0;        ///< st_mode's file type bits; 0: the file system does not say
  // the name follows
};
static_assert(sizeof(folder_entry) == 16);

}  // namespace penstock
