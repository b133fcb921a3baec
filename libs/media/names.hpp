// The words by which options name placements, directories, engines, layouts and memories. Each throws penstock::error
// (bad_input) for a word that names none.
#pragma once

#include "penstock/controller/software_controller.hpp"
#include "penstock/executor/memory.hpp"
#include "penstock/queue/volume.hpp"
#include "penstock/rows/row_array.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <string>

namespace penstock::media {

/// auto, io_uring, pread.
io_engine parse_engine(std::string const& name);
/// auto, direct, set.
directory_kind parse_directory(std::string const& name);
char const* name_of(directory_kind kind);
/// storage, host, host-cached, hbm.
placement parse_placement(std::string const& name);
/// striped, replicated.
volume_layout parse_layout(std::string const& name);
/// hbm (of a CPU its own memory), host.
memory_kind parse_place(std::string const& name);

}  // namespace penstock::media
