// Replays the steps of a history (support/file_history.hpp): each group its own, and each result is the one that was foreseen.
#pragma once

#include "device/folder_test_body.hpp"

namespace penstock::test {

enum class history_op : u32 { open, close, pread, pwrite, truncate, sync, size_of, stat, unlink, rename, map };

struct history_name {
  char text[16] = {};
  u32 bytes = 0;
};

struct history_step {
  static constexpr u32 handles = 4;

  history_op op{};
  u32 handle = 0;
  u32 flags = 0;
  u32 error = 0;  ///< that is expected
  u64 value = 0;  ///< likewise
  u64 offset = 0, count = 0;
  u64 seed = 0;      ///< of the bytes that are stored
  u64 expected = 0;  ///< where the bytes that are read lie among those of the history
  history_name name, other;
};

/// What a group needs to go on with its history.
struct history_part {
  u64 first = 0, last = 0;  ///< steps
  u64 expected = 0;         ///< where its bytes begin
};

PENSTOCK_FN inline char history_byte(u64 seed, u64 i) { return static_cast<char>(scatter(seed + i) >> 9); }

struct file_history_body {
  folder_under_test bed;
  history_part const* parts;  ///< [groups]
  history_step const* steps;
  char const* expected;
  file_descriptor* handles;  ///< [groups][history_step::handles]
  u32* done;                 ///< [groups] steps, of groups that ran

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    history_part const& part = parts[c.group];
    for (u64 k = part.first; k < part.last; ++k) {
      if (!replay(g, c, steps[k], expected + part.expected)) return;
      if (is_leader(g)) ++done[c.group];
    }
  }

 private:
  /// False: what follows would mean nothing. Which step it was is said by the value that was expected.
  template <thread_group G>
  PENSTOCK_FN bool replay(G const& g, test_context const& c, history_step const& s, char const* bytes) const {
    folder_view const& folder = bed.folder;
    file_descriptor& file = handles[c.group * history_step::handles + s.handle];
    converge_after_call(g);
    const file_descriptor with = file;
    converge_after_call(g);  // all have it before an open changes it
    file_result got;
    switch (s.op) {
      case history_op::open: {
        const open_result opened = folder.open(g, s.name.text, s.name.bytes, s.flags);
        got.error = opened.error;
        if (opened.ok() && is_leader(g)) file = opened.file;
        break;
      }
      case history_op::close: got.error = folder.close(g, with); break;
      case history_op::pread: return read(g, c, s, with, bytes);
      case history_op::pwrite:
        fill(g, c, s);
        got = folder.pwrite(g, with, bed.buffer(c, 0), s.count, s.offset);
        break;
      case history_op::truncate: got.error = folder.truncate(g, with, s.offset); break;
      case history_op::sync: got.error = folder.sync(g, with); break;
      case history_op::size_of: got = read_size(g, with); break;
      case history_op::stat: {
        const file_facts facts = folder.stat(g, s.name.text, s.name.bytes);
        got = {facts.size, facts.error};
        break;
      }
      case history_op::unlink: got.error = folder.unlink(g, s.name.text, s.name.bytes); break;
      case history_op::rename: got.error = folder.rename(g, s.name.text, s.name.bytes, s.other.text, s.other.bytes); break;
      case history_op::map: return map(g, c, s, with, bytes);
    }
    return agrees(c, s, got);
  }

  PENSTOCK_FN bool agrees(test_context const& c, history_step const& s, file_result const& got) const {
    const u64 op = u64{static_cast<u32>(s.op)} << 56;
    return PENSTOCK_CHECK_EQ(*c.report, op | u64{s.error} << 40 | s.value, op | u64{got.error} << 40 | got.value);
  }

  /// Each thread may see another size while the group's step is not over; all agree on the leader's.
  template <thread_group G>
  PENSTOCK_FN file_result read_size(G const& g, file_descriptor const& file) const {
    const file_result mine = bed.folder.size_of(file);
    return {from_leader(g, mine.value), static_cast<u32>(from_leader(g, mine.error))};
  }

  template <thread_group G>
  PENSTOCK_FN void fill(G const& g, test_context const& c, history_step const& s) const {
    for (u64 i = index_in(g); i < s.count; i += size(g)) bed.buffer(c, 0)[i] = history_byte(s.seed, i);
    converge_after_call(g);
  }

  template <thread_group G>
  PENSTOCK_FN bool are_expected(G const& g, test_context const& c, history_step const& s, char const* got,
                                char const* bytes) const {
    bool all = true;
    for (u64 i = index_in(g); i < s.value && all; i += size(g)) {
      all = PENSTOCK_CHECK_EQ(*c.report, static_cast<u8>(bytes[s.expected + i]), static_cast<u8>(got[i]));
    }
    return !any(g.ballot(!all));
  }

  template <thread_group G>
  PENSTOCK_FN bool read(G const& g, test_context const& c, history_step const& s, file_descriptor const& with,
                        char const* bytes) const {
    char* const to = bed.buffer(c, 1) + s.seed % 16;
    const file_result got = bed.folder.pread(g, with, to, s.count, s.offset);
    converge_after_call(g);
    return agrees(c, s, got) && are_expected(g, c, s, to, bytes);
  }

  /// To read, or to store into what it has read.
  template <thread_group G>
  PENSTOCK_FN bool map(G const& g, test_context const& c, history_step const& s, file_descriptor const& with,
                       char const* bytes) const {
    const mapped_bytes mapped = bed.folder.map(g, with, s.offset, s.count, s.flags);
    if (!agrees(c, s, {mapped.count, mapped.error})) return false;
    const bool good = are_expected(g, c, s, mapped.bytes, bytes);
    converge_after_call(g);
    if ((s.flags & file_flag::write) != 0) {
      for (u64 i = index_in(g); i < mapped.count; i += size(g)) store_byte(mapped, i, history_byte(s.seed, i));
    }
    return PENSTOCK_CHECK_EQ(*c.report, 0u, bed.folder.unmap(g, with, mapped)) && good;
  }
};

}  // namespace penstock::test
