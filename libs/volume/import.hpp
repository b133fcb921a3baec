// Files into a volume, and out of it.
#pragma once

#include "libs/volume/volume.hpp"

#include <string>
#include <vector>

namespace penstock::volumes {

struct moved {
  u64 files = 0;
  u64 bytes = 0;
  double seconds = 0;
};

/// Stores a file, or all files of a folder, as the entry `name`, at once or not at all: of a graph (its `incoming`, too), or of
/// a table of columns, which has a table.json. Throws bad_input, before anything is written, for a name that is taken or cannot
/// be, a file that is no .npy though its name says so, a folder that is neither, and where there is no room; world where a disk
/// or a drive fails.
moved import_entry(volume& to, std::string const& name, std::string const& path, progress_fn const& progress = {});

/// Writes an entry to the file `path` (or "-"), or a graph or a table to the folder `path`, which appears when it is whole.
/// Every chunk is checked. Throws bad_input where there is no such entry, or `path` exists (a file: unless `replace`); world
/// for bytes that are not those that were imported.
moved export_entry(volume& from, std::string const& name, std::string const& path, bool replace,
                   progress_fn const& progress = {});

/// Forgets an entry. Throws bad_input where there is none.
void remove_entry(volume& from, std::string const& name);

}  // namespace penstock::volumes
