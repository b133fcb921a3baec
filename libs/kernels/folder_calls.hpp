// A call to a folder as words, made by a group: of kernels of the user's own, and of the host (libs/files).
#pragma once

#include "penstock/file/folder_view.hpp"
#include "penstock/kernels/folder_call.hpp"

#include <bit>

namespace penstock::kernels {

static_assert(u32{to_read} == file_flag::read && u32{to_write} == file_flag::write && u32{to_create} == file_flag::create &&
              u32{to_cut} == file_flag::truncate && u32{at_end} == file_flag::append && u32{only_new} == file_flag::exclusive &&
              u32{write_once} == file_flag::write_once);

PENSTOCK_FN inline file_descriptor descriptor_of(file_words const& words) {
  return {words.first_byte, words.range_bytes, words.slot, words.generation, words.flags};
}
PENSTOCK_FN inline file_words words_of(file_descriptor const& file) {
  return {file.first_byte, file.range_bytes, file.slot, file.generation, file.flags, 0};
}

PENSTOCK_FN inline folder_answer answer_of(file_result const& got) { return {.error = got.error, .value = got.value}; }

/// Collective, as the call of folder_view is. `Missed`: a pread of which the caller knows that it is no hit.
template <bool Missed = false, thread_group G>
PENSTOCK_FN folder_answer call_folder(G const& g, void const* folder, folder_request const& asked) {
  folder_view const& view = *static_cast<folder_view const*>(folder);
  const file_descriptor file = descriptor_of(asked.file);
  switch (asked.op) {
    case folder_op::open: {
      const open_result opened = view.open(g, asked.path, asked.path_bytes, asked.flags);
      return {.error = opened.error, .file = words_of(opened.file)};
    }
    case folder_op::close: return {.error = view.close(g, file)};
    case folder_op::pread:
      if constexpr (Missed) return answer_of(view.pread_slowly(g, file, asked.memory, asked.count, asked.offset));
      return answer_of(view.pread(g, file, asked.memory, asked.count, asked.offset));
    case folder_op::pwrite: return answer_of(view.pwrite(g, file, asked.memory, asked.count, asked.offset));
    case folder_op::map: {
      const mapped_bytes held = view.map(g, file, asked.offset, asked.count, asked.flags);
      return {.error = held.error, .value = held.count, .memory = held.bytes, .entry = held.entry};
    }
    case folder_op::unmap: {
      auto* const bytes = static_cast<char*>(asked.memory);
      auto* const entry = static_cast<penstock::u64*>(asked.entry);
      return {.error = view.unmap(g, file, {bytes, asked.count, 0, asked.flags, asked.offset, entry})};
    }
    case folder_op::sync: return {.error = view.sync(g, file)};
    case folder_op::truncate: return {.error = view.truncate(g, file, asked.offset)};
    case folder_op::size_of: return answer_of(view.size_of(file));
    case folder_op::stat: {
      const file_facts facts = view.stat(g, asked.path, asked.path_bytes);
      return {.error = facts.error, .kind = facts.kind, .value = facts.size, .time = facts.changed_ns};
    }
    case folder_op::unlink: return {.error = view.unlink(g, asked.path, asked.path_bytes)};
    case folder_op::rename: return {.error = view.rename(g, asked.path, asked.path_bytes, asked.other, asked.other_bytes)};
    case folder_op::list: {
      penstock::u64 cursor = asked.offset;
      const file_result got = view.read_folder(g, asked.path, asked.path_bytes, cursor, asked.memory);
      return {.error = got.error, .value = got.value, .time = cursor};
    }
  }
  return {.error = EINVAL};
}

}  // namespace penstock::kernels
