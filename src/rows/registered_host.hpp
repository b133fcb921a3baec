// Registration of host memory that a GPU reads in place.
#pragma once

#include "penstock/executor/memory.hpp"

namespace penstock::rows {

/// Host memory that is registered for as long as this lives.
class registered_host {
 public:
  registered_host(memory_resource& memory, void* address, u64 bytes, bool writable)
      : memory_(memory), address_(address), bytes_(bytes), ours_(memory.register_host(address, bytes, writable)) {}
  registered_host(registered_host const&) = delete;
  registered_host& operator=(registered_host const&) = delete;
  ~registered_host() {
    if (ours_) memory_.unregister_host(address_, bytes_);
  }

 private:
  memory_resource& memory_;
  void* address_;
  u64 bytes_;
  bool ours_;
};

}  // namespace penstock::rows
