// Who walks the serving body of a model_server: threads of the host, or a resident kernel.
#pragma once

#include "served_records.hpp"

#include "penstock/controller/model_server.hpp"
#include "penstock/executor/executor.hpp"

#include <memory>

namespace penstock {
class resident_place;
}

namespace penstock::controllers {

class model_runner {
 public:
  virtual ~model_runner() = default;

  /// SMs or threads. 0: nobody; whoever polls serves.
  virtual u32 units() const = 0;
  /// Returns when all of it runs. Throws world (EBUSY) when that takes longer than the options allow.
  virtual void start(server_view const& view) = 0;
  /// Returns when nothing of it runs any more. False if that takes longer than the options allow.
  virtual bool stop(server_view const& view) = 0;
  /// Whether this memory is looked at by threads of one GPU alone: those that serve and those that ask.
  virtual bool is_local(void const* address) const = 0;
};

std::unique_ptr<model_runner> make_thread_runner(model_server_options const& options);

/// The place outlives the runner.
std::unique_ptr<model_runner> make_kernel_runner(resident_place& place, model_server_options const& options);

}  // namespace penstock::controllers
