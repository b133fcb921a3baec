// Names below a folder: what is opened lies there, whatever "..", absolute names and symbolic links say.
#pragma once

#include "../host/owned_file.hpp"

#include "penstock/core/config.hpp"

#include <string>

namespace penstock::controllers {

/// Thread-safe.
class folder_names {
 public:
  /// `openat2`: by the system call, which kernels before 5.6 and some containers refuse; else component by component.
  /// Throws penstock::error with path, reason, remedy where the folder can't be opened.
  explicit folder_names(std::string const& root, bool openat2 = true);

  /// A descriptor, or none with errno: as open(2) says, EXDEV where the name leads out of the folder.
  owned_file open(std::string const& path, int flags, u32 mode = 0) const;
  /// The folder that holds the last component of a path, which is put in `name`.
  owned_file open_parent(std::string const& path, std::string& name) const;

 private:
  owned_file walk(std::string const& path, int flags, u32 mode) const;

  owned_file root_;
  bool openat2_;
};

}  // namespace penstock::controllers
