// Queue 0 as the library's users see it: answers Identify through the driver's own admin queue, and refuses all else, for what
// makes and deletes queues is the driver's business. Its rings and data may lie in any memory.
#pragma once

#include "../controller/queue_table.hpp"
#include "../controller/ring_server.hpp"
#include "admin_queue.hpp"
#include "lives.hpp"

namespace penstock::pcie {

class admin_stand_in final : public controllers::served_queue {
 public:
  admin_stand_in(queue_rings const& rings, pci_function& function, admin_queue& admin, lives& life)
      : ring_(rings), function_(function), admin_(admin), lives_(life),
        page_(function.memory(), memory_kind::shared, nvme::page_bytes) {}

  bool serve() override;
  bool quiesce(u64) override;

 private:
  bool begin();
  bool take();
  void answer(admin_answer const& with);

  controllers::ring_server ring_;
  pci_function& function_;
  admin_queue& admin_;
  lives& lives_;
  buffer<std::byte> page_;          ///< where the device writes
  nvme::submission_entry command_;  ///< that is being answered, while `asked_` or `busy_`
  std::optional<u16> asked_;
  bool busy_ = false;
};

}  // namespace penstock::pcie
