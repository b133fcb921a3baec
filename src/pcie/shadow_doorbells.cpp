#include "shadow_doorbells.hpp"

#include "penstock/nvme/prp.hpp"

#include <algorithm>

namespace penstock::pcie {
namespace {

constexpr u64 words_of_page = nvme::page_bytes / sizeof(u32);

}  // namespace

shadow_doorbells::shadow_doorbells(pci_function& function, u64 stride)
    : stride_words_(stride / sizeof(u32)), values_(function.memory(), memory_kind::shared, words_of_page),
      events_(function.memory(), memory_kind::shared, words_of_page) {}

void shadow_doorbells::clear() {
  std::fill_n(values_.data(), words_of_page, 0u);
  std::fill_n(events_.data(), words_of_page, 0u);
}

u32* shadow_doorbells::of_admin(bool completion) const {
  const u64 at = completion ? stride_words_ : 0;
  return at < words_of_page ? values_.data() + at : nullptr;
}

shadow_doorbell shadow_doorbells::of(u16 queue, bool completion) const {
  const u64 at = (2 * u64{queue} + (completion ? 1 : 0)) * stride_words_;
  if (at >= words_of_page) return {};
  values_.data()[at] = events_.data()[at] = 0;
  return {values_.data()[at], events_.data()[at]};
}

}  // namespace penstock::pcie
