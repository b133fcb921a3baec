// What a folder promises any group: files of its own and files that all share, byte for byte and error for error.
#pragma once

#include "penstock/file/folder_view.hpp"
#include "support/test_context.hpp"

namespace penstock::test {

/// Memory of each group, and what the folder holds before: "sub/deep/file" of 5 bytes, "many" with `many` files, "out", a link
/// to the folder's parent.
struct folder_under_test {
  folder_view folder;
  char* memory;  ///< [groups][2][room]
  static constexpr u32 room = 16384, many = 300, records = 12, record_words = 3;

  PENSTOCK_FN char* buffer(test_context const& c, u32 k) const { return memory + (u64{c.group} * 2 + k) * room; }
};

/// A name with a number in it.
struct short_name {
  char text[32] = {};
  u32 bytes = 0;

  PENSTOCK_FN short_name(char const* begin, u64 number) {
    while (*begin != 0) text[bytes++] = *begin++;
    for (u32 k = 0; k < 16; ++k) text[bytes++] = static_cast<char>('a' + (number >> 4 * k & 15));
  }
};
PENSTOCK_FN inline u32 length(char const* text) {
  u32 n = 0;
  while (text[n] != 0) ++n;
  return n;
}

PENSTOCK_FN inline char byte_of(u64 seed, u64 stream, u64 i) { return static_cast<char>(random_word(seed, stream, i) >> 7); }

/// A file of each group: writes at any offset, holes, ends, truncations, and what comes after its close.
struct own_file_body {
  folder_under_test bed;

  template <thread_group G>
  PENSTOCK_FN void fill(G const& g, test_context const& c, u32 k, u64 stream, u32 count) const {
    converge_after_call(g);
    for (u32 i = index_in(g); i < count; i += size(g)) bed.buffer(c, k)[i] = byte_of(c.seed(), stream, i);
    converge_after_call(g);
  }

  /// Reads [begin, end) of the file; `expected(i)` says what byte i is.
  template <thread_group G, class Expected>
  PENSTOCK_FN void check(G const& g, test_context const& c, file_descriptor const& file, u64 begin, u64 end, u32 skew,
                         Expected const& expected) const {
    char* const to = bed.buffer(c, 1) + skew;
    const file_result got = bed.folder.pread(g, file, to, end - begin, begin);
    PENSTOCK_CHECK_EQ(*c.report, 0u, got.error);
    PENSTOCK_CHECK_EQ(*c.report, end - begin, got.value);
    converge_after_call(g);
    for (u64 i = begin + index_in(g); i < end; i += size(g)) {
      if (!PENSTOCK_CHECK_EQ(*c.report, static_cast<u8>(expected(i)), static_cast<u8>(to[i - begin]))) break;
    }
    converge_after_call(g);
  }

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    folder_view const& folder = bed.folder;
    const short_name name("own-", scatter(c.seed()) ^ c.group), other("was-", scatter(c.seed()) ^ c.group);
    const u32 flags = file_flag::read | file_flag::write | file_flag::create;
    const open_result opened = folder.open(g, name.text, name.bytes, flags | file_flag::exclusive);
    PENSTOCK_CHECK_EQ(*c.report, 0u, opened.error);
    if (!opened.ok()) return;
    file_descriptor const& file = opened.file;
    PENSTOCK_CHECK_EQ(*c.report, u32{EEXIST}, folder.open(g, name.text, name.bytes, flags | file_flag::exclusive).error);
    PENSTOCK_CHECK_EQ(*c.report, 0u, folder.size_of(file).value);
    PENSTOCK_CHECK_EQ(*c.report, 0u, folder.pread(g, file, bed.buffer(c, 1), 100, 0).value);

    fill(g, c, 0, c.group, 5000);
    const file_result written = folder.pwrite(g, file, bed.buffer(c, 0), 5000, 3);
    PENSTOCK_CHECK_EQ(*c.report, 5000u, written.value);
    PENSTOCK_CHECK_EQ(*c.report, 0u, written.error);
    const auto at_first = [&](u64 i) { return i < 3 ? '\0' : byte_of(c.seed(), c.group, i - 3); };
    PENSTOCK_CHECK_EQ(*c.report, 5003u, folder.size_of(file).value);
    check(g, c, file, 0, 5003, 0, at_first);
    check(g, c, file, 511, 4097, 5, at_first);
    for (u32 turn = 0; turn < 2; ++turn) {  // the second time they hit
      check(g, c, file, 4096, 4112, 0, at_first);
      check(g, c, file, 480, 1040, 0, at_first);
      check(g, c, file, 512, 1024, 0, at_first);
      check(g, c, file, 1040, 1536, 16, at_first);
    }
    PENSTOCK_CHECK_EQ(*c.report, 11u, folder.pread(g, file, bed.buffer(c, 1), 16, 4992).value);
    PENSTOCK_CHECK_EQ(*c.report, 11u, folder.pread(g, file, bed.buffer(c, 1), 16, 4992).value);
    PENSTOCK_CHECK_EQ(*c.report, 3u, folder.pread(g, file, bed.buffer(c, 1), 100, 5000).value);
    PENSTOCK_CHECK_EQ(*c.report, 0u, folder.pread(g, file, bed.buffer(c, 1), 100, 5003).value);

    // A hole where bytes were, and whole lines behind it.
    PENSTOCK_CHECK_EQ(*c.report, 0u, folder.truncate(g, file, 100));
    PENSTOCK_CHECK_EQ(*c.report, 100u, folder.size_of(file).value);
    fill(g, c, 0, ~u64{c.group}, 8192);
    PENSTOCK_CHECK_EQ(*c.report, 8192u, folder.pwrite(g, file, bed.buffer(c, 0), 8192, 6144).value);
    const auto at_last = [&](u64 i) {
      return i < 100 ? at_first(i) : i < 6144 ? '\0' : byte_of(c.seed(), ~u64{c.group}, i - 6144);
    };
    check(g, c, file, 0, 14336, 0, at_last);
    PENSTOCK_CHECK_EQ(*c.report, u32{EFBIG}, folder.pwrite(g, file, bed.buffer(c, 0), 1, file.range_bytes).error);
    PENSTOCK_CHECK_EQ(*c.report, 0u, folder.sync(g, file));
    PENSTOCK_CHECK_EQ(*c.report, 0u, folder.truncate(g, file, 14001));
    PENSTOCK_CHECK_EQ(*c.report, 0u, folder.close(g, file));
    PENSTOCK_CHECK_EQ(*c.report, u32{EBADF}, folder.pread(g, file, bed.buffer(c, 1), 1, 0).error);
    PENSTOCK_CHECK_EQ(*c.report, u32{EBADF}, folder.pread(g, file, bed.buffer(c, 1), 16, 0).error);
    PENSTOCK_CHECK_EQ(*c.report, u32{EBADF}, folder.map(g, file, 0, 16, file_flag::read).error);
    PENSTOCK_CHECK_EQ(*c.report, u32{EBADF}, folder.close(g, file));

    const file_facts facts = folder.stat(g, name.text, name.bytes);
    PENSTOCK_CHECK_EQ(*c.report, 0u, facts.error);
    PENSTOCK_CHECK_EQ(*c.report, 14001u, facts.size);
    PENSTOCK_CHECK_EQ(*c.report, 0u, folder.rename(g, name.text, name.bytes, other.text, other.bytes));
    PENSTOCK_CHECK_EQ(*c.report, u32{ENOENT}, folder.stat(g, name.text, name.bytes).error);
    const open_result again = folder.open(g, other.text, other.bytes, file_flag::read);
    PENSTOCK_CHECK_EQ(*c.report, 0u, again.error);
    if (!again.ok()) return;
    PENSTOCK_CHECK_EQ(*c.report, 14001u, folder.size_of(again.file).value);
    check(g, c, again.file, 0, 14001, 0, at_last);
    PENSTOCK_CHECK_EQ(*c.report, u32{EBADF}, folder.pwrite(g, again.file, bed.buffer(c, 0), 1, 0).error);
    PENSTOCK_CHECK_EQ(*c.report, u32{EBADF}, folder.truncate(g, again.file, 0));
    PENSTOCK_CHECK_EQ(*c.report, 0u, folder.unlink(g, other.text, other.bytes));
    check(g, c, again.file, 13990, 14001, 1, at_last);
    PENSTOCK_CHECK_EQ(*c.report, 0u, folder.close(g, again.file));
    PENSTOCK_CHECK_EQ(*c.report, u32{ENOENT}, folder.open(g, other.text, other.bytes, file_flag::read).error);
  }
};

/// All groups append records to one file and read those that are there; the host looks at the file (verify).
struct shared_log_body {
  folder_under_test bed;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    const short_name name("log-", c.seed());
    const open_result opened =
        bed.folder.open(g, name.text, name.bytes, file_flag::read | file_flag::write | file_flag::create | file_flag::append);
    PENSTOCK_CHECK_EQ(*c.report, 0u, opened.error);
    if (!opened.ok()) return;
    constexpr u32 bytes = 8 * folder_under_test::record_words;
    for (u32 k = 0; k < folder_under_test::records; ++k) {
      auto* const record = reinterpret_cast<u64*>(bed.buffer(c, 0));
      converge_after_call(g);
      if (is_leader(g)) {
        record[0] = c.group;
        record[1] = k;
        record[2] = random_word(c.seed(), c.group, k);
      }
      converge_after_call(g);
      PENSTOCK_CHECK_EQ(*c.report, u64{bytes}, bed.folder.pwrite(g, opened.file, record, bytes, 0).value);
      converge_after_call(g);
    }
    PENSTOCK_CHECK_EQ(*c.report, true, bed.folder.size_of(opened.file).value >= u64{bytes} * folder_under_test::records);
    PENSTOCK_CHECK_EQ(*c.report, 0u, bed.folder.close(g, opened.file));
  }
};

/// All groups store pieces of one file once, beside those of others and of the host, which are there before: pieces of one
/// round lie side by side, a piece of each group that may run and then the host's. The host looks at the file (verify).
struct written_once_body {
  folder_under_test bed;
  static constexpr u32 rounds = 6, piece_bytes = 7;

  PENSTOCK_FN static u64 place_of(run_shape shape, u64 round, u64 group) {
    return (round * (shape.groups + u64{1}) + group) * piece_bytes;
  }
  /// A quarter of them is zero. REQUIRES: k less than piece_bytes.
  PENSTOCK_FN static char stored(u64 seed, u64 group, u64 round, u64 k) {
    const u64 drawn = random_word(seed, group, round * piece_bytes + k);
    return (drawn & 3) == 0 && k != 0 ? '\0' : static_cast<char>(drawn >> 7 | 1);
  }

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    const short_name name("once-", c.seed());
    const u32 flags = file_flag::write | file_flag::create | file_flag::write_once;
    const open_result opened = bed.folder.open(g, name.text, name.bytes, flags);
    if (!PENSTOCK_CHECK_EQ(*c.report, 0u, opened.error)) return;
    char* const piece = bed.buffer(c, 0);
    for (u64 round = 0; round < rounds; ++round) {
      converge_after_call(g);
      for (u32 k = index_in(g); k < piece_bytes; k += size(g)) piece[k] = stored(c.seed(), c.group, round, k);
      converge_after_call(g);
      const file_result got = bed.folder.pwrite(g, opened.file, piece, piece_bytes, place_of(c.run, round, c.group));
      PENSTOCK_CHECK_EQ(*c.report, u64{piece_bytes}, got.value);
      if (round == rounds / 2) PENSTOCK_CHECK_EQ(*c.report, 0u, bed.folder.sync(g, opened.file));
    }
    PENSTOCK_CHECK_EQ(*c.report, u32{EBADF}, bed.folder.pread(g, opened.file, piece, 1, 0).error);
    PENSTOCK_CHECK_EQ(*c.report, 0u, bed.folder.close(g, opened.file));
  }
};

/// Into what may be written back meanwhile, with bytes of others.
PENSTOCK_FN inline void store_byte(mapped_bytes const& to, u64 k, char byte) {
  store_piece(reinterpret_cast<u8*>(to.bytes + k), static_cast<u8>(byte));
}

/// A file that all groups map, each the records that are its own in turn and once others': what is stored is there, in the map
/// of another and, after its unmap, for `pread`.
struct mapped_records_body {
  folder_under_test bed;
  static constexpr u32 rounds = 5, record_bytes = 160;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    const short_name name("maps-", c.seed());
    constexpr u32 flags = file_flag::read | file_flag::write;
    const open_result opened = bed.folder.open(g, name.text, name.bytes, flags | file_flag::create);
    if (!PENSTOCK_CHECK_EQ(*c.report, 0u, opened.error)) return;
    file_descriptor const& file = opened.file;
    const u64 own = u64{c.group} * rounds * record_bytes;
    // The file gets its length by the last byte; others may have given it more.
    PENSTOCK_CHECK_EQ(*c.report, 1u, bed.folder.pwrite(g, file, name.text, 1, own + rounds * record_bytes - 1).value);
    for (u32 round = 0; round < rounds; ++round) {
      const u64 begin = own + round * record_bytes;
      for (u64 at = begin; at < begin + record_bytes;) {
        const mapped_bytes here = bed.folder.map(g, file, at, begin + record_bytes - at, flags);
        if (!PENSTOCK_CHECK_EQ(*c.report, 0u, here.error)) return;
        if (!PENSTOCK_CHECK_EQ(*c.report, true, here.count != 0 && here.count <= begin + record_bytes - at)) return;
        for (u64 k = index_in(g); k < here.count; k += size(g)) store_byte(here, k, byte_of(c.seed(), 7, at + k));
        PENSTOCK_CHECK_EQ(*c.report, 0u, bed.folder.unmap(g, file, here));
        at += here.count;
      }
      const mapped_bytes seen = bed.folder.map(g, file, begin, record_bytes, file_flag::read);
      PENSTOCK_CHECK_EQ(*c.report, 0u, seen.error);
      for (u64 k = index_in(g); k < seen.count; k += size(g)) {
        PENSTOCK_CHECK_EQ(*c.report, static_cast<u8>(byte_of(c.seed(), 7, begin + k)), static_cast<u8>(seen.bytes[k]));
      }
      PENSTOCK_CHECK_EQ(*c.report, 0u, bed.folder.unmap(g, file, seen));
    }
    PENSTOCK_CHECK_EQ(*c.report, 0u, bed.folder.sync(g, file));
    char* const to = bed.buffer(c, 1);
    constexpr u32 all = rounds * record_bytes;
    PENSTOCK_CHECK_EQ(*c.report, u64{all}, bed.folder.pread(g, file, to, all, own).value);
    converge_after_call(g);
    for (u64 k = index_in(g); k < all; k += size(g)) {
      if (!PENSTOCK_CHECK_EQ(*c.report, static_cast<u8>(byte_of(c.seed(), 7, own + k)), static_cast<u8>(to[k]))) break;
    }
    PENSTOCK_CHECK_EQ(*c.report, u32{EINVAL}, bed.folder.map(g, file, 0, 1, file_flag::append).error);
    PENSTOCK_CHECK_EQ(*c.report, 0u, bed.folder.map(g, file, file.range_bytes - 1, 1, file_flag::read).count);
    // The map keeps the file open.
    const mapped_bytes last = bed.folder.map(g, file, own, 1, flags);
    PENSTOCK_CHECK_EQ(*c.report, 0u, bed.folder.close(g, file));
    PENSTOCK_CHECK_EQ(*c.report, u64{1}, bed.folder.pread(g, file, to, 1, own).value);
    if (is_leader(g)) store_byte(last, 0, '!');
    PENSTOCK_CHECK_EQ(*c.report, 0u, bed.folder.unmap(g, file, last));
  }
};

/// All groups open the same few names, read and close; each gives now and then a file of its own one of the names. A file says
/// what it was called, and by which group and when it was made.
struct shared_names_body {
  folder_under_test bed;
  static constexpr u32 names = 3, rounds = 6;

  template <thread_group G>
  PENSTOCK_FN bool replace(G const& g, test_context const& c, short_name const& name, u64 round) const {
    const short_name made("made-", scatter(c.seed()) ^ c.group);
    const open_result opened = bed.folder.open(g, made.text, made.bytes, file_flag::write | file_flag::create);
    PENSTOCK_CHECK_EQ(*c.report, 0u, opened.error);
    if (!opened.ok()) return false;
    auto* const words = reinterpret_cast<u64*>(bed.buffer(c, 0));
    converge_after_call(g);
    if (is_leader(g)) {
      words[0] = c.group;
      words[1] = round;
      words[2] = random_word(c.seed(), c.group, round);
    }
    converge_after_call(g);
    PENSTOCK_CHECK_EQ(*c.report, u64{24}, bed.folder.pwrite(g, opened.file, words, 24, 0).value);
    PENSTOCK_CHECK_EQ(*c.report, 0u, bed.folder.close(g, opened.file));
    return PENSTOCK_CHECK_EQ(*c.report, 0u, bed.folder.rename(g, made.text, made.bytes, name.text, name.bytes));
  }

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    for (u64 round = 0; round < rounds; ++round) {
      const u64 drawn = random_word(~c.seed(), c.group, round);
      const short_name name("name-", drawn % names);
      if (drawn / 64 % 4 == 0 && !replace(g, c, name, round)) return;
      const u32 flags = file_flag::read | (drawn / 1024 % 2 == 0 ? file_flag::write : 0);
      const open_result opened = bed.folder.open(g, name.text, name.bytes, flags);
      if (opened.error == ENOENT) continue;
      if (!PENSTOCK_CHECK_EQ(*c.report, 0u, opened.error)) return;
      auto* const words = reinterpret_cast<u64*>(bed.buffer(c, 1));
      PENSTOCK_CHECK_EQ(*c.report, u64{24}, bed.folder.pread(g, opened.file, words, 24, 0).value);
      converge_after_call(g);
      PENSTOCK_CHECK_EQ(*c.report, random_word(c.seed(), words[0], words[1]), words[2]);
      converge_after_call(g);
      PENSTOCK_CHECK_EQ(*c.report, 0u, bed.folder.close(g, opened.file));
    }
  }
};

/// Groups of any kind read a file of "crowd" through far fewer frames than it has lines: each read ends, with the file's bytes.
/// Byte i of the file is byte_of(0, 1, i).
struct crowd_body {
  folder_under_test bed;
  u32 rounds = 40;
  static constexpr u32 file_bytes = 40000;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    const open_result opened = bed.folder.open(g, "crowd", 5, file_flag::read);
    if (!PENSTOCK_CHECK_EQ(*c.report, 0u, opened.error)) return;
    for (u32 round = 0; round < rounds; ++round) {
      const u64 drawn = random_word(c.seed(), c.group, round);
      // Half of them as a hit is read in place: whole pieces of 16 bytes.
      const u64 whole = drawn >> 63 != 0 ? 15 : 0;
      const u64 at = drawn % file_bytes & ~whole;
      const u64 count = (drawn / file_bytes % 3 == 0 ? drawn / 1000 % 2000 : drawn / 1000 % 100) & ~whole;
      const u64 expected = count < file_bytes - at ? count : file_bytes - at;
      const file_result got = bed.folder.pread(g, opened.file, bed.buffer(c, 1), count, at);
      PENSTOCK_CHECK_EQ(*c.report, 0u, got.error);
      if (!PENSTOCK_CHECK_EQ(*c.report, expected, got.value)) break;
      converge_after_call(g);
      for (u64 k = index_in(g); k < expected; k += size(g)) {
        if (!PENSTOCK_CHECK_EQ(*c.report, static_cast<u8>(byte_of(0, 1, at + k)), static_cast<u8>(bed.buffer(c, 1)[k]))) break;
      }
      converge_after_call(g);
    }
    PENSTOCK_CHECK_EQ(*c.report, 0u, bed.folder.close(g, opened.file));
  }
};

/// What is refused, and what is found.
struct names_body {
  folder_under_test bed;

  template <thread_group G>
  PENSTOCK_FN u32 open(G const& g, char const* path, u32 flags = file_flag::read) const {
    const open_result opened = bed.folder.open(g, path, length(path), flags);
    if (opened.ok()) bed.folder.close(g, opened.file);
    return opened.error;
  }

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    folder_view const& folder = bed.folder;
    PENSTOCK_CHECK_EQ(*c.report, 0u, open(g, "sub/deep/file"));
    PENSTOCK_CHECK_EQ(*c.report, 0u, open(g, "sub/../sub/./deep//file"));
    PENSTOCK_CHECK_EQ(*c.report, u32{EXDEV}, open(g, "../x"));
    PENSTOCK_CHECK_EQ(*c.report, u32{EXDEV}, open(g, "sub/../../x"));
    PENSTOCK_CHECK_EQ(*c.report, u32{EXDEV}, open(g, "/etc/passwd"));
    PENSTOCK_CHECK_EQ(*c.report, u32{EXDEV}, open(g, "out/x"));
    PENSTOCK_CHECK_EQ(*c.report, u32{ENOENT}, open(g, "nothing"));
    PENSTOCK_CHECK_EQ(*c.report, u32{ENOENT}, open(g, ""));
    PENSTOCK_CHECK_EQ(*c.report, u32{EISDIR}, open(g, "sub"));
    PENSTOCK_CHECK_EQ(*c.report, u32{ENOTDIR}, open(g, "sub/deep/file/x"));
    PENSTOCK_CHECK_EQ(*c.report, u32{EINVAL}, open(g, "sub/deep/file", 0));
    PENSTOCK_CHECK_EQ(*c.report, u32{EINVAL}, open(g, "sub/deep/file", file_flag::read | file_flag::truncate));
    PENSTOCK_CHECK_EQ(*c.report, u32{EXDEV}, folder.unlink(g, "../x", 4));
    PENSTOCK_CHECK_EQ(*c.report, u32{EXDEV}, folder.rename(g, "sub/deep/file", 13, "../x", 4));
    PENSTOCK_CHECK_EQ(*c.report, u32{ENOENT}, folder.unlink(g, "nothing", 7));
    PENSTOCK_CHECK_EQ(*c.report, 5u, folder.stat(g, "sub/deep/file", 13).size);
    char* const name = bed.buffer(c, 0);
    converge_after_call(g);
    for (u32 k = index_in(g); k < max_path_bytes; k += size(g)) name[k] = 'n';
    converge_after_call(g);
    PENSTOCK_CHECK_EQ(*c.report, u32{ENAMETOOLONG}, folder.open(g, name, max_path_bytes, file_flag::read).error);
    PENSTOCK_CHECK_EQ(*c.report, u32{ENAMETOOLONG}, folder.open(g, name, max_path_bytes - 1, file_flag::read).error);

    u64 cursor = 0, found = 0, sum = 0;
    for (;;) {
      const file_result got = folder.read_folder(g, "many", 4, cursor, bed.buffer(c, 1));
      PENSTOCK_CHECK_EQ(*c.report, 0u, got.error);
      if (got.value == 0 || got.error != 0) break;
      converge_after_call(g);
      for (u64 at = 0; at < got.value;) {
        auto const& entry = *reinterpret_cast<folder_entry const*>(bed.buffer(c, 1) + at);
        char const* const text = bed.buffer(c, 1) + at + sizeof entry;
        u64 number = 0;
        for (u32 k = 0; k < entry.name_bytes; ++k) number = 10 * number + static_cast<u64>(text[k] - '0');
        sum += number;
        ++found;
        at += entry.bytes;
      }
      converge_after_call(g);
    }
    PENSTOCK_CHECK_EQ(*c.report, u64{folder_under_test::many}, found);
    PENSTOCK_CHECK_EQ(*c.report, u64{folder_under_test::many} * (folder_under_test::many - 1) / 2, sum);
  }
};

}  // namespace penstock::test
