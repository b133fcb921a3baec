// A volume's table of contents: which files it has, where their bytes lie, and which arrays they are. Immutable rules of every
// table that is taken: names are fit to be made into paths below a folder, and no two files share a byte.
#pragma once

#include "libs/volume/format.hpp"

#include <string>
#include <vector>

namespace penstock::volumes {

inline constexpr u64 most_dimensions = 8;

/// How an array lies in a file, as its .npy header says. kind 0: no array.
struct array_layout {
  char kind = 0;  ///< NumPy's dtype.kind
  bool fortran = false;
  u32 item_bytes = 0;
  std::vector<u64> shape;
  u64 data_offset = 0;  ///< in the file

  friend bool operator==(array_layout const&, array_layout const&) = default;
};

/// A file that was imported, byte for byte. Addresses are the volume's; all extents are whole pages.
///
///   begin          file                        sums
///   | zeros        | its bytes    | zeros      | a checksum for each chunk | zeros |
///                     ^ its array begins a page
struct stored_file {
  std::string name;        ///< of a folder's file: the folder's, a slash, and the file's
  bool of_folder = false;  ///< of a graph or a table
  array_layout array;
  u64 begin = 0;  ///< of its extent
  u64 bytes = 0;  ///< of its extent
  u64 file_begin = 0;
  u64 file_bytes = 0;
  u64 sums_begin = 0;  ///< where the chunks end
  u32 sums_crc = 0;

  u64 end() const { return begin + bytes; }
  /// Address of element 0.
  u64 array_begin() const { return file_begin + array.data_offset; }
  /// The part of `name` before the slash.
  std::string entry() const { return name.substr(0, name.find('/')); }
  /// Chunks are cut at multiples of their size, so that each lies on one member. An empty file has none, wherever it lies.
  u64 chunks(geometry const& shape) const {
    if (sums_begin == begin) return 0;
    return (sums_begin + shape.chunk_bytes() - 1) / shape.chunk_bytes() - begin / shape.chunk_bytes();
  }

  friend bool operator==(stored_file const&, stored_file const&) = default;
};

struct contents {
  uuid id{};
  u64 generation = 0;
  std::vector<stored_file> files;  ///< by address

  friend bool operator==(contents const&, contents const&) = default;
};

/// Why a name cannot be one of an entry, or nothing.
std::string problem_of_entry_name(std::string const& name);
/// The same for a file of the table.
std::string problem_of_file_name(std::string const& name, bool of_folder);

inline constexpr u64 most_files = 895;  ///< of one table

/// Whole pages. Throws bad_input for more files than there can be.
std::vector<std::byte> encode(contents const& all);

/// Throws bad_input, naming `name`, for what is no table of a volume of this shape.
contents decode_contents(std::span<std::byte const> bytes, geometry const& shape, std::string const& name);

/// The lowest address of `bytes` free bytes, or 0.
u64 find_room(contents const& all, geometry const& shape, u64 bytes);
u64 free_bytes(contents const& all, geometry const& shape);

}  // namespace penstock::volumes
