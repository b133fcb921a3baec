// Calls to a folder by one group, for a host that has the folder's name and its own buffers.
#pragma once

#include "libs/files/search_kernels.hpp"
#include "libs/kernels/folder_calls.hpp"

namespace penstock::files {

/// One call. `asked`: its paths and memory are in local memory, as the answer is.
struct make_call {
  folder_view folder;
  kernels::folder_request asked;
  kernels::folder_answer* answer;

  template <class Group>
  PENSTOCK_FN void operator()(Group const& g, grid_range) const {
    const kernels::folder_answer given = kernels::call_folder(g, &folder, asked);
    if (is_leader(g)) *answer = given;
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
