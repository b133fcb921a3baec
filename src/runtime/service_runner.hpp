// Who walks the body of a queue_service: threads of the host, or a resident kernel.
#pragma once

#include "penstock/runtime/queue_service.hpp"
#include "penstock/write_back/queue_service.hpp"

#include <memory>

namespace penstock {

class resident_place;

/// What the body is given. All of it outlives the run.
struct service_view {
  line_cache_view const* cache = nullptr;  ///< where the body finds it
  service_control* control = nullptr;
  service_shared* shared = nullptr;  ///< next to the servers
};

class service_runner {
 public:
  virtual ~service_runner() = default;
  virtual u32 units() const = 0;
  virtual void start(service_view const& view) = 0;
  /// Whether something of it still runs. Throws world (EIO) for a kernel that failed.
  virtual bool runs() = 0;
  /// After `runs` was false, or to wait for threads.
  virtual void join() = 0;
};

std::unique_ptr<service_runner> make_service_threads(queue_service_options const& options);

/// The place outlives the runner.
std::unique_ptr<service_runner> make_service_kernel(resident_place& place, queue_service_options const& options);

}  // namespace penstock
