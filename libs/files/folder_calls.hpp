// Calls to a folder by one group, for a host that has the folder's name and its own buffers.
#pragma once

#include "libs/files/search_kernels.hpp"

namespace penstock::files {

enum class host_op : u32 { open, close, pread, pwrite, sync, truncate, size_of, stat, unlink, rename, list };

struct host_request {
  host_op op{};
  u32 flags = 0;
  file_descriptor file{};
  u64 offset = 0;  ///< `list`: the cursor; `truncate`: the size
  u64 count = 0;
  u32 path_bytes = 0, other_bytes = 0;
};

struct host_outcome {
  u32 error = 0;
  u32 kind = 0;
  u64 value = 0;
  u64 changed_ns = 0;  ///< `list`: the next cursor
  file_descriptor file{};
};

/// One call. `data`, `path`, `other`: in local memory, as the outcome is.
struct make_call {
  folder_view folder;
  host_request asked;
  char* path;
  char* other;
  char* data;
  host_outcome* outcome;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range) const {
    host_outcome given;
    switch (asked.op) {
      case host_op::open: {
        const open_result opened = folder.open(g, path, asked.path_bytes, asked.flags);
        given.error = opened.error;
        given.file = opened.file;
        break;
      }
      case host_op::close: given.error = folder.close(g, asked.file); break;
      case host_op::pread: take(given, folder.pread(g, asked.file, data, asked.count, asked.offset)); break;
      case host_op::pwrite: take(given, folder.pwrite(g, asked.file, data, asked.count, asked.offset)); break;
      case host_op::sync: given.error = folder.sync(g, asked.file); break;
      case host_op::truncate: given.error = folder.truncate(g, asked.file, asked.offset); break;
      case host_op::size_of: take(given, folder.size_of(asked.file)); break;
      case host_op::stat: {
        const file_facts facts = folder.stat(g, path, asked.path_bytes);
        given = {facts.error, facts.kind, facts.size, facts.changed_ns, {}};
        break;
      }
      case host_op::unlink: given.error = folder.unlink(g, path, asked.path_bytes); break;
      case host_op::rename: given.error = folder.rename(g, path, asked.path_bytes, other, asked.other_bytes); break;
      case host_op::list: {
        u64 cursor = asked.offset;
        take(given, folder.read_folder(g, path, asked.path_bytes, cursor, data));
        given.changed_ns = cursor;
        break;
      }
    }
    if (is_leader(g)) *outcome = given;
  }

 private:
  PENSTOCK_FN static void take(host_outcome& given, file_result const& got) {
    given.value = got.value;
    given.error = got.error;
  }
};

/// What became of a file that was to be staged.
struct staged_file {
  u64 bytes = 0;
  u32 error = 0;
};

/// Brings the lines of files into the cache, a group to a file.
struct stage_files {
  folder_view folder;
  char const* text;
  name_place const* names;
  staged_file* staged;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range range) const {
    for (u64 k = range.first; k < range.last; k += range.step) {
      const open_result opened = folder.open(g, text + names[k].begin, names[k].bytes, file_flag::read);
      staged_file result{0, opened.error};
      while (result.error == 0) {
        const mapped_bytes line = folder.map(g, opened.file, result.bytes, ~u64{0}, file_flag::read);
        result.error = line.error;
        if (line.count == 0) break;
        folder.unmap(g, opened.file, line);
        result.bytes += line.count;
      }
      if (opened.ok()) folder.close(g, opened.file);
      if (is_leader(g)) staged[k] = result;
    }
  }
};

}  // namespace penstock::files
