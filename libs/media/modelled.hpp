// What the benchmarks over modelled drives share: where things lie, and what is refused before anything is launched.
#pragma once

#include "penstock/controller/model_server.hpp"
#include "penstock/executor/executor.hpp"

#include <string>

namespace penstock::media {

/// A controller as one that reaches host memory only: its rings lie there, and what it moves goes through bounce buffers there.
class host_reaching final : public controller {
 public:
  explicit host_reaching(controller& inner) : inner_(inner) {}

  void attach(queue_rings const& rings) override { inner_.attach(rings); }
  void detach(u16 queue) override { inner_.detach(queue); }
  void poll(u16 queue) override { inner_.poll(queue); }
  void add_buffer(void* memory, u64 bytes) override { inner_.add_buffer(memory, bytes); }
  controller_limits limits() const override {
    controller_limits limits = inner_.limits();
    limits.reaches_local = false;
    return limits;
  }
  std::string engine() const override { return inner_.engine(); }

 private:
  controller& inner_;
};

/// Throws bad_input unless a command may move so many bytes: a power of two, 512 to 65536.
void check_block(u64 bytes);

/// Throws bad_input where `bytes` more do not fit the memory that the kind lies in, as far as that can be known beforehand.
void check_memory(executor const& on, memory_kind kind, u64 bytes);

/// SMs for those who ask: `asked`, or with 0 all that the server leaves. 0 on the CPU. Throws bad_input for more than there
/// are.
u32 client_units(executor const& on, model_server const& server, u32 asked);

}  // namespace penstock::media
