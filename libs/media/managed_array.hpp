// A graph's array in managed memory, which the driver moves page by page to whoever touches it (UVM): a baseline.
#pragma once

#include "libs/graph/graph_folder.hpp"
#include "penstock/executor/executor.hpp"

#include <memory>

namespace penstock::media {

class managed_array {
 public:
  /// Throws penstock::error: bad_input for an executor that is no GPU, or an array that the GPU has no room for (managed memory
  /// beyond it can hang a GPU); world where the file cannot be read.
  managed_array(executor& on, graph::array_place const& place);
  ~managed_array();
  managed_array(managed_array const&) = delete;
  managed_array& operator=(managed_array const&) = delete;

  void const* data() const { return data_; }
  /// No page of it is on the GPU any more.
  void move_to_host();

 private:
  executor& on_;
  u64 bytes_;
  void* data_ = nullptr;
};

}  // namespace penstock::media
