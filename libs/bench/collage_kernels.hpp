// The collage's comparison by whole blocks of threads, as the original GPUfs has its calls.
#pragma once

#include "libs/lsh/lsh_index.hpp"

namespace penstock::bench {

/// Each block of 256 threads compares a query with its candidates, one after the other: the block maps a record together.
void compare_by_blocks(executor& on, lsh::file_records const& records, lsh::comparison const& asked, u32* failed);

}  // namespace penstock::bench
