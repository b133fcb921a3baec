#include "penstock/host/error.hpp"
#include "penstock/host/npy.hpp"

#include <gtest/gtest.h>

namespace penstock {
namespace {

std::string message_of(std::string const& bytes, u64 file_bytes) {
  try {
    parse_npy_header(std::as_bytes(std::span(bytes)), file_bytes, "x.npy");
  } catch (error const& e) {
    EXPECT_EQ(e.kind(), error_kind::bad_input);
    return e.what();
  }
  return {};
}

std::string version_1(std::string dict) {
  dict += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(dict.size()) + '\0' + dict;
}

std::string complaint_about(std::string const& dict, u64 data_bytes = 12) {
  std::string const bytes = version_1(dict);
  return message_of(bytes, bytes.size() + data_bytes);
}

bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

TEST(npy, reads_what_it_writes) {
  for (std::vector<u64> const& shape : {std::vector<u64>{}, {3}, {2, 3}, {0, 7}}) {
    std::string const bytes = make_npy_header('f', 8, shape);
    EXPECT_EQ(bytes.size(), npy_data_offset);
    u64 count = 1;
    for (u64 n : shape) count *= n;
    npy_header const header = parse_npy_header(std::as_bytes(std::span(bytes)), bytes.size() + count * 8, "x.npy");
    EXPECT_EQ(header.kind, 'f');
    EXPECT_EQ(header.item_bytes, 8u);
    EXPECT_EQ(header.shape, shape);
    EXPECT_EQ(header.count(), count);
    EXPECT_FALSE(header.fortran);
  }
}

TEST(npy, reads_versions_2_and_3) {
  std::string const dict = "{'descr': '<u2', 'fortran_order': True, 'shape': (2, 3)}\n";
  for (char major : {'\x02', '\x03'}) {
    std::string bytes("\x93NUMPY", 6);
    bytes += {major, '\0', static_cast<char>(dict.size()), '\0', '\0', '\0'};
    bytes += dict;
    npy_header const header = parse_npy_header(std::as_bytes(std::span(bytes)), bytes.size() + 12, "x.npy");
    EXPECT_TRUE(header.fortran);
    EXPECT_EQ(header.data_offset, bytes.size());
    EXPECT_EQ(header.describe(), "uint16, shape (2, 3)");
  }
}

TEST(npy, refuses_a_wrong_magic) {
  EXPECT_TRUE(has(message_of("PK\x03\x04 an archive", 100), "x.npy: does not start with the magic bytes"));
  EXPECT_TRUE(has(message_of("", 0), "magic"));
}

TEST(npy, refuses_other_versions) {
  EXPECT_TRUE(has(message_of(std::string("\x93NUMPY\x04\x00\x10\x00", 10), 100), "version 4.0"));
}

TEST(npy, names_expected_and_found_bytes_of_a_truncated_file) {
  std::string const bytes = make_npy_header('i', 4, {10});
  EXPECT_EQ(
      message_of(bytes, 4100),
      "open x.npy: int32, shape (10,) takes 4136 bytes with its header, the file has 4100: it is truncated, write it again");
  EXPECT_TRUE(has(message_of(bytes, 4140), "longer than its header says"));
  EXPECT_TRUE(has(message_of(bytes.substr(0, 50), 50), "truncated: its .npy header ends at byte 4096, the file has 50"));
}

TEST(npy, refuses_dtypes_that_are_no_plain_numbers) {
  EXPECT_TRUE(has(complaint_about("{'descr': '>i4', 'fortran_order': False, 'shape': (3,)}"), "big-endian dtype '>i4'"));
  EXPECT_TRUE(has(complaint_about("{'descr': '|O', 'fortran_order': False, 'shape': (3,)}"), "'|O' is no bool"));
  EXPECT_TRUE(has(complaint_about("{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (3,)}"), "'<M8[ns]' is no bool"));
  EXPECT_TRUE(has(complaint_about("{'descr': '<U4', 'fortran_order': False, 'shape': (3,)}"), "'<U4' is no bool"));
  EXPECT_TRUE(has(complaint_about("{'descr': '<i3', 'fortran_order': False, 'shape': (4,)}"), "'<i3'"));
  EXPECT_TRUE(has(complaint_about("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (3,)}"), "structured dtype"));
}

TEST(npy, refuses_malformed_headers) {
  for (char const* dict : {
           "",
           "{",
           "{}",
           "{'descr': '<i4'}",
           "{'descr': '<i4', 'fortran_order': 0, 'shape': (3,)}",
           "{'descr': '<i4', 'fortran_order': False, 'shape': (3)}",
           "{'descr': '<i4', 'fortran_order': False, 'shape': (-3,)}",
           "{'descr': '<i4', 'fortran_order': False, 'shape': (3,)} x",
           "{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (3,)}",
           "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), 'more': '1'}",
       })
    EXPECT_TRUE(has(complaint_about(dict), "malformed .npy header")) << dict;
}

TEST(npy, refuses_shapes_whose_bytes_overflow) {
  std::string const huge = "{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}";
  EXPECT_TRUE(has(complaint_about(huge), "more bytes than can be addressed"));
}

TEST(npy, a_missing_file_is_the_worlds_fault) {
  try {
    read_npy_header("/nowhere/x.npy");
    FAIL();
  } catch (error const& e) {
    EXPECT_EQ(e.kind(), error_kind::world);
    EXPECT_EQ(e.code(), ENOENT);
  }
}

}  // namespace
}  // namespace penstock
