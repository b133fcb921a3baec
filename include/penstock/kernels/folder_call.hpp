// A kernel's call to a mounted folder, as words: the same for nvcc, NVRTC and a host compiler.
#pragma once

#include "penstock/kernels/descriptor.hpp"

namespace penstock::kernels {

enum class folder_op : u32 { open, close, pread, pwrite, map, unmap, sync, truncate, size_of, stat, unlink, rename, list };

/// A file_descriptor (file/open_file.hpp).
struct file_words {
  u64 first_byte = 0;
  u64 range_bytes = 0;
  u32 slot = 0;
  u32 generation = 0;  ///< 0: none
  u32 flags = 0;
  u32 reserved = 0;
};
static_assert(sizeof(file_words) == 32, "kernels and the library share this layout");

/// Bits of file_flag (file/file_call.hpp) that a kernel chooses by a mode.
enum open_bits : u32 { to_read = 1, to_write = 2, to_create = 4, to_cut = 8, at_end = 16, only_new = 32, write_once = 64 };

struct folder_request {
  folder_op op{};
  u32 flags = 0;  ///< open_bits: of `open`, `map`, `unmap`
  file_words file{};
  u64 offset = 0;  ///< `list`: the cursor; `truncate`: the size
  u64 count = 0;
  char const* path = nullptr;
  char const* other = nullptr;  ///< `rename`: the new name
  u32 path_bytes = 0, other_bytes = 0;
  void* memory = nullptr;  ///< `pread`, `list`: to; `pwrite`: from; `unmap`: what is held
  void* entry = nullptr;   ///< `unmap`: as `map` gave it
};

struct folder_answer {
  u32 error = 0;  ///< an errno
  u32 kind = 0;   ///< `stat`: st_mode
  u64 value = 0;  ///< bytes
  u64 time = 0;   ///< `stat`: of the last change, ns since 1970; `list`: the next cursor
  file_words file{};
  void* memory = nullptr;  ///< `map`
  void* entry = nullptr;   ///< `map`
};

}  // namespace penstock::kernels
