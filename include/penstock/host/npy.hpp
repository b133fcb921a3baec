// The header of NumPy's .npy files (format versions 1, 2 and 3), so that such files are read and written in place. Strict: what
// NumPy itself does not write is refused, and the bytes that the shape needs are checked against the file's size. Thread-safe.
#pragma once

#include "penstock/core/config.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace penstock {

/// Where our own files start their data: a multiple of every line size up to 4 KiB, so that lines are aligned in the file.
inline constexpr u64 npy_data_offset = 4096;

/// Longest header that is looked at, with what stands before it; NumPy's own limit for headers that it trusts is 10000.
inline constexpr u64 npy_longest_start = 65536 + 12;

struct npy_header {
  char kind = 0;           ///< NumPy's dtype.kind: b bool, i signed, u unsigned, f float, c complex
  u32 item_bytes = 0;      ///< size of one element
  std::vector<u64> shape;  ///< empty for a scalar
  bool fortran = false;    ///< first index fastest; the same as C order for up to one dimension
  u64 data_offset = 0;     ///< position of the first element in the file, in bytes

  u64 count() const;  ///< number of elements; fits by construction
  u64 data_bytes() const { return count() * item_bytes; }
  std::string describe() const;  ///< "int32, shape (5, 3)"
};

/// Parses the first bytes of a file of `file_bytes` bytes; `bytes` holds as much of it as there is, up to the end of the
/// header: npy_longest_start bytes suffice. Errors: bad_input, naming `name`: wrong magic, unknown version, malformed or
/// big-endian or structured dtype, a shape whose
///         bytes differ from what the file has.
npy_header parse_npy_header(std::span<std::byte const> bytes, u64 file_bytes, std::string const& name);

/// Opens `path`, parses its header and checks the file's size against it.
/// Errors: world when the file cannot be opened or read; else those of parse_npy_header.
npy_header read_npy_header(std::string const& path);

/// The bytes that start a C-order, little-endian file of this shape, version 1, padded with spaces to `data_offset` bytes.
/// REQUIRES: data_offset is a multiple of 64, at most 8192 (numpy.load refuses headers beyond 10000), and holds the shape.
std::string make_npy_header(char kind, u32 item_bytes, std::vector<u64> const& shape, u64 data_offset = npy_data_offset);

}  // namespace penstock
