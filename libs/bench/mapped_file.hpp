// Files as baselines on the host read them: mapped, all pages in the page cache.
#pragma once

#include "penstock/core/config.hpp"

#include <string>

namespace penstock::bench {

/// A file's bytes, mapped to be read.
class mapped_file {
 public:
  explicit mapped_file(std::string const& path);
  mapped_file(mapped_file const&) = delete;
  mapped_file& operator=(mapped_file const&) = delete;
  ~mapped_file();

  char const* data() const { return data_; }
  u64 bytes() const { return bytes_; }

 private:
  char* data_ = nullptr;
  u64 bytes_ = 0;
};

}  // namespace penstock::bench
