// A folder of few frames and few calls, so that groups wait for each other.
#pragma once

#include "penstock/runtime/folder.hpp"

namespace penstock::test {

inline folder_options small_folder(u64 line_bytes, io_engine engine) {
  folder_options options;
  options.cache.bytes = 1 << 20;
  options.cache.line_bytes = line_bytes;
  options.engine = engine;
  options.max_calls = 5;  // fewer than ask
  return options;
}

}  // namespace penstock::test
