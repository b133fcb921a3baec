// Volumes over files: what goes in comes out, in place or as a file, and what cannot be is refused before anything is written.
#include "libs/graph/graph_folder.hpp"
#include "libs/volume/import.hpp"
#include "libs/volume/verify.hpp"
#include "libs/volume/volume_entry.hpp"
#include "penstock/controller/software_controller.hpp"
#include "penstock/runtime/line_cache.hpp"
#include "support/volume_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace penstock::volumes {
namespace {

using test_support::file_content;
using test_support::noise;
using test_support::put_file;
using test_support::refusal_of;

class volume_layouts : public volume_files, public testing::WithParamInterface<layout_case> {};

INSTANTIATE_TEST_SUITE_P(
    each, volume_layouts,
    testing::Values(layout_case{volume_layout::single, 1, 65536}, layout_case{volume_layout::striped, 2, 65536},
                    layout_case{volume_layout::striped, 3, 4096}, layout_case{volume_layout::striped, 5, 262144},
                    layout_case{volume_layout::striped, 1, 16384}, layout_case{volume_layout::replicated, 2, 65536},
                    layout_case{volume_layout::replicated, 3, 8192}),
    [](auto const& test) {
      return to_text(test.param.layout) + "_" + std::to_string(test.param.members) + "_" +
             std::to_string(test.param.stripe_bytes);
    });

TEST_P(volume_layouts, what_goes_in_comes_out_byte_for_byte_whatever_the_order_of_members) {
  make(GetParam());
  std::vector<std::string> all = names(GetParam().members);
  const u64 sizes[] = {0, 1, 4095, 4096, 65536, 65537, 300'001};
  u64 seed = 1;
  for (const u64 size : sizes) {
    put_file(folder_ / "in", noise(size, ++seed));
    std::ranges::rotate(all, all.begin() + 1);
    volume to = open(all, access::write);
    EXPECT_EQ(import_entry(to, "file" + std::to_string(size), folder_ / "in").bytes, size);
  }
  put_array("a.npy", {100, 33}, 128, 77);
  {
    volume to = open(all, access::write);
    import_entry(to, "array", folder_ / "a.npy");
  }
  std::ranges::reverse(all);
  volume from = open(all);
  EXPECT_EQ(from.generation(), 9u);
  seed = 1;
  for (const u64 size : sizes) {
    const std::string out = folder_ / ("out" + std::to_string(size));
    EXPECT_EQ(export_entry(from, "file" + std::to_string(size), out, false).bytes, size);
    EXPECT_TRUE(file_content(out) == noise(size, ++seed)) << size;
  }
  export_entry(from, "array", folder_ / "b.npy", false);
  EXPECT_TRUE(file_content(folder_ / "b.npy") == file_content(folder_ / "a.npy"));
  const verdict found = verify(from);
  EXPECT_EQ(found.problems, 0u);
  EXPECT_GT(found.bytes, 400'000u);
}

// An empty file has no chunk and no checksum, also where the file before it ends inside of a chunk.
TEST_P(volume_layouts, empty_files_come_out_wherever_they_lie) {
  volume to = make(GetParam());
  put_file(folder_ / "some", noise(5000, 1));
  put_file(folder_ / "nothing", "");
  import_entry(to, "some", folder_ / "some");
  for (u32 k = 0; k < 5; ++k) import_entry(to, "nothing" + std::to_string(k), folder_ / "nothing");
  const std::string graph = put_graph("g");
  put_file(graph + "/a_note", "");
  import_entry(to, "social", graph);
  EXPECT_EQ(verify(to).problems, 0u);
  for (u32 k = 0; k < 5; ++k) {
    EXPECT_EQ(export_entry(to, "nothing" + std::to_string(k), folder_ / "out", true).bytes, 0u);
    EXPECT_EQ(std::filesystem::file_size(folder_ / "out"), 0u);
  }
  export_entry(to, "social", folder_ / "again", false);
  EXPECT_EQ(std::filesystem::file_size((folder_ / "again") + "/a_note"), 0u);
}

// NumPy writes no such headers by itself, but the library takes them.
TEST_F(volume_files, arrays_with_the_longest_headers_are_imported) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (10,), }";
  header.resize(65535, ' ');
  header += '\n';
  put_file(folder_ / "a.npy", std::string("\x93NUMPY\x02\x00\x00\x00\x01\x00", 12) + header + noise(40, 1));
  ASSERT_EQ(read_npy_header(folder_ / "a.npy").data_offset, npy_longest_start);
  volume to = make({volume_layout::single, 1, 65536});
  import_entry(to, "a", folder_ / "a.npy");
  EXPECT_EQ(to.files_of("a").front().array.data_offset, npy_longest_start);
}

TEST_P(volume_layouts, the_library_reads_arrays_in_place) {
  std::vector<std::string> all = names(GetParam().members);
  {
    volume to = make(GetParam());
    put_file(folder_ / "first", noise(12'345, 1));
    import_entry(to, "first", folder_ / "first");
    put_array("a.npy", {200, 500}, 128, 2);
    import_entry(to, "array", folder_ / "a.npy");
  }
  std::ranges::reverse(all);
  volume found = open(all);
  const stored_file file = found.files_of("array").front();
  EXPECT_EQ(file.array_begin() % page_bytes, 0u);
  software_controller controller;
  volume_spec where{found.shape().layout, {}, found.shape().stripe_bytes};
  for (u32 m = 0; m < found.members(); ++m) {
    where.members.push_back({&controller, controller.add_namespace({.path = found.name_of(m), .block_bytes = 4096})});
  }
  const auto on = open_executor("cpu", 1);
  cache_options options;
  options.bytes = 64 << 10;
  options.queues = 1;
  line_cache cache(*on, {{"volume", found.shape().end(), where}}, options);
  const array_view<u32> view = cache.array<u32>(0, file.array_begin(), 100'000);
  const std::string expected = noise(400'000, 2);
  for (u64 k = 0; k < 100'000; k += 7) {
    u32 value = 0;
    std::memcpy(&value, expected.data() + 4 * k, 4);
    ASSERT_EQ(view[k], value) << k;
  }
  cache.check_faults();
}

TEST_P(volume_layouts, verify_names_the_member_and_the_chunk_that_changed) {
  {
    volume to = make(GetParam());
    put_file(folder_ / "in", noise(200'000, 1));
    import_entry(to, "data", folder_ / "in");
  }
  volume all = open(names(GetParam().members));
  const stored_file file = all.files_of("data").front();
  for (const u64 at : {file.file_begin, file.file_begin + 131'072, file.file_begin + 199'999}) {
    for (u32 replica = 0; replica < (GetParam().layout == volume_layout::replicated ? GetParam().members : 1); ++replica) {
      const auto place = all.shape().view().locate(byte_offset{at}, replica);
      flip(names(GetParam().members)[place.member], value(place.offset));
      const verdict found = verify(all);
      ASSERT_EQ(found.problems, 1u);
      finding const& told = found.findings.front();
      EXPECT_EQ(told.file, "data");
      EXPECT_EQ(told.member, place.member);
      EXPECT_LE(told.offset, value(place.offset));
      EXPECT_GT(told.offset + told.bytes, value(place.offset));
      EXPECT_LE(told.bytes, all.shape().chunk_bytes());
      const auto call = [&] { export_entry(all, "data", folder_ / "out", true); };
      if (GetParam().layout == volume_layout::replicated) {
        call();
        EXPECT_TRUE(file_content(folder_ / "out") == noise(200'000, 1)) << "another replica has it";
      } else {
        std::filesystem::remove(folder_ / "out");
        const std::string sentence = refusal_of(error_kind::world, call);
        EXPECT_NE(sentence.find("its bytes are not those that were written"), std::string::npos) << sentence;
        EXPECT_NE(sentence.find("member " + std::to_string(place.member) + " ("), std::string::npos) << sentence;
        EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
      }
      flip(names(GetParam().members)[place.member], value(place.offset));
    }
  }
}

TEST_P(volume_layouts, a_lost_superblock_is_told_and_comes_back_with_the_next_change) {
  make(GetParam());
  const auto all = names(GetParam().members);
  for (const u64 place : superblock_places) {
    flip(all.back(), place + 100);
    {
      volume damaged = open(all);
      const verdict found = verify(damaged);
      ASSERT_EQ(found.problems, 1u);
      EXPECT_EQ(found.findings.front().member, GetParam().members - 1);
      EXPECT_EQ(found.findings.front().offset, place);
    }
    volume to = open(all, access::write);
    put_file(folder_ / "in", "x");
    import_entry(to, "x" + std::to_string(place), folder_ / "in");
    EXPECT_EQ(verify(to).problems, 0u);
  }
}

TEST_F(volume_files, tables_come_out_as_folders) {
  std::filesystem::create_directory(folder_ / "t");
  const std::string values = noise(50'000, 3);
  put_file(folder_ / "t/0000.values", values);
  volume to = make({volume_layout::striped, 2, 4096});
  EXPECT_NE(refusal_of(error_kind::world, [&] { import_entry(to, "trips", folder_ / "t"); }).find("graph.json"),
            std::string::npos)
      << "neither a table nor a graph";
  put_file(folder_ / "t/table.json", "{}");
  EXPECT_EQ(import_entry(to, "trips", folder_ / "t").files, 2u);
  export_entry(to, "trips", folder_ / "again", false);
  EXPECT_TRUE(file_content(folder_ / "again/0000.values") == values);
  EXPECT_EQ(file_content(folder_ / "again/table.json"), "{}");
}

TEST_F(volume_files, entries_are_opened_by_name_and_read_in_pieces) {
  put_file(folder_ / "data", noise(50'000, 4));
  {
    volume to = make({volume_layout::striped, 3, 4096});
    import_entry(to, "data", folder_ / "data");
    import_entry(to, "social", put_graph("g"));
  }
  const std::string members = "@" + names(3)[2] + "," + names(3)[0] + "," + names(3)[1];
  const volume_name name = parse_volume_name("volume:data" + members);
  EXPECT_EQ(to_text(name), "volume:data" + members);
  const auto from = open_shared(name);
  const auto file = files_of(from, name.entry).at("");
  std::string piece(4097, ' ');
  file->read(12'345, std::as_writable_bytes(std::span(piece)));
  EXPECT_EQ(piece, noise(50'000, 4).substr(12'345, 4097));
  EXPECT_EQ(parse_volume_name("volume:social/edges.npy" + members).file, "edges.npy");
  EXPECT_TRUE(files_of(from, "social").contains("edges.npy"));
  EXPECT_EQ(absolute({"x", "", {"a", "0000:01:00.0/2"}}).members[1], "0000:01:00.0/2") << "no path";
  EXPECT_EQ(absolute({"x", "", {"a", "b"}}).members[0], std::filesystem::absolute("a"));
}

TEST_F(volume_files, graphs_come_out_as_folders_that_open) {
  const std::string from = put_graph("g");
  volume to = make({volume_layout::striped, 2, 4096});
  EXPECT_GE(import_entry(to, "social", from).files, 3u);
  EXPECT_EQ(to.files_of("social").front().entry(), "social");
  export_entry(to, "social", folder_ / "again", false);
  const auto a = graph::graph_folder::open(from), b = graph::graph_folder::open(folder_ / "again");
  EXPECT_EQ(a.edges(), b.edges());
  for (auto const& each : std::filesystem::directory_iterator(from)) {
    const std::string name = each.path().filename();
    EXPECT_TRUE(file_content(from + "/" + name) == file_content((folder_ / "again") + "/" + name)) << name;
  }
  EXPECT_NE(refusal_of(error_kind::bad_input, [&] { export_entry(to, "social", folder_ / "again", false); }).find("again"),
            std::string::npos);
}

TEST_F(volume_files, imports_that_cannot_be_are_refused_and_change_nothing) {
  volume to = make({volume_layout::striped, 2, 65536}, 2 * mebibyte);
  put_file(folder_ / "in", noise(1000, 1));
  import_entry(to, "taken", folder_ / "in");
  const auto before = contents_of(names(2));
  const auto told = [&](std::string const& name, std::string const& path) {
    return refusal_of(error_kind::bad_input, [&] { import_entry(to, name, path); });
  };
  EXPECT_EQ(told("taken", folder_ / "in"),
            "import taken: the volume has it already: choose another name, or remove that one first");
  EXPECT_EQ(told("a/b", folder_ / "in"), "import 'a/b': a name has no slash: choose another name");
  EXPECT_EQ(told("a@b", folder_ / "in"),
            "import 'a@b': a name has no @, after which volume:NAME@MEMBER has the members: choose another name");
  EXPECT_EQ(told("", folder_ / "in"), "import '': a name must not be empty, . or ..: choose another name");
  put_file(folder_ / "bad.npy", "no array");
  EXPECT_NE(told("bad", folder_ / "bad.npy").find("bad.npy"), std::string::npos);
  put_file(folder_ / "large", noise(3 * mebibyte, 2));
  EXPECT_EQ(told("large", folder_ / "large"),
            "import large: it needs 3149824 bytes in one piece, and the volume has 2088960 free: remove something, or make a "
            "larger volume");
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_NE(refusal_of(error_kind::world, [&] { import_entry(to, "g", folder_ / "empty"); }).find("graph.json"),
            std::string::npos);
  EXPECT_NE(refusal_of(error_kind::world, [&] { import_entry(to, "g", folder_ / "none"); }).find("No such file"),
            std::string::npos);
  EXPECT_EQ(refusal_of(error_kind::bad_input, [&] { export_entry(to, "none", folder_ / "out", false); }),
            "open none: the volume has none: it has taken");
  EXPECT_EQ(refusal_of(error_kind::bad_input, [&] { remove_entry(to, "none"); }),
            "open none: the volume has none: it has taken");
  EXPECT_TRUE(contents_of(names(2)) == before);
}

TEST_F(volume_files, who_watches_may_stop_an_import_and_it_is_as_if_it_had_not_been) {
  volume to = make({volume_layout::striped, 2, 65536}, 16 * mebibyte);
  put_file(folder_ / "in", noise(20 * mebibyte, 1));
  struct stop {};
  u64 last = 0;
  EXPECT_THROW(import_entry(to, "x", folder_ / "in",
                            [&](std::string const&, u64 done, u64 total) {
                              EXPECT_EQ(total, 20 * mebibyte);
                              last = done;
                              throw stop{};
                            }),
               stop);
  EXPECT_GT(last, 0u);
  EXPECT_TRUE(to.table().files.empty());
  EXPECT_THROW(
      {
        const volume second = open(names(2));
        (void)second;
      },
      error)
      << "the writer has it";
  import_entry(to, "x", folder_ / "in", [&](std::string const&, u64 done, u64) { last = done; });
  EXPECT_EQ(last, 20 * mebibyte) << "the last report is of the end";
}

TEST_F(volume_files, what_is_removed_leaves_its_room_to_others) {
  volume to = make({volume_layout::single, 1, 65536}, 2 * mebibyte);
  put_file(folder_ / "in", noise(900'000, 1));
  import_entry(to, "one", folder_ / "in");
  EXPECT_NE(refusal_of(error_kind::bad_input, [&] { import_entry(to, "two", folder_ / "in"); }).find("in one piece"),
            std::string::npos);
  remove_entry(to, "one");
  import_entry(to, "two", folder_ / "in");
  EXPECT_EQ(to.files_of("two").front().begin, to.shape().first());
  EXPECT_EQ(verify(to).problems, 0u);
}

}  // namespace
}  // namespace penstock::volumes
