// Arrays in files, as these programs take them: .npy in C order, or elements without a header.
#pragma once

#include "penstock/core/config.hpp"

#include <string>
#include <vector>

namespace penstock::media {

/// A kind of number, by NumPy's name for it.
struct number_type {
  char kind = 0;  ///< i, u or f
  u32 bytes = 0;

  std::string name() const;
  bool operator==(number_type const&) const = default;
};

/// int32, int64, uint32, uint64, float32 or float64. Throws penstock::error (bad_input) for another name.
number_type parse_number_type(std::string const& name);

struct array_file {
  std::string path;
  number_type type;
  std::vector<u64> shape;
  u64 elements = 0;
  u64 origin = 0;  ///< byte of element 0
  bool raw = false;

  u64 data_bytes() const { return elements * type.bytes; }
  u64 file_bytes() const { return origin + data_bytes(); }
};

/// Looks at a file. `raw_type`: empty for .npy, else the type of the elements of a file without a header. Throws
/// penstock::error: bad_input for what is no such array; world for what cannot be opened.
array_file describe_array(std::string const& path, std::string const& raw_type);

/// Makes a file of zeros for an array like `like` and removes it again, unless it is told to keep it.
class new_array_file {
 public:
  /// Throws penstock::error: bad_input where there is one of this name and it may not be replaced, or it is not a plain file;
  /// world where it cannot be made.
  new_array_file(std::string const& path, array_file const& like, bool replace);
  new_array_file(new_array_file const&) = delete;
  new_array_file& operator=(new_array_file const&) = delete;
  ~new_array_file();

  array_file const& made() const { return made_; }
  void keep() { kept_ = true; }

 private:
  array_file made_;
  bool kept_ = false;
};

}  // namespace penstock::media
