// The registers of a controller on PCI Express (base specification 2.0, section 3.1.3, "Controller Properties"): where they are
// in BAR 0 and what their bits say.
#pragma once

#include "penstock/core/clock.hpp"
#include "penstock/core/config.hpp"

namespace penstock::nvme {

/// Offsets in bytes. Those of 64 bits may be reached as two of 32, the lower one first.
namespace at {
inline constexpr u64 capabilities = 0x00;               ///< CAP, 64 bits
inline constexpr u64 version = 0x08;                    ///< VS
inline constexpr u64 configuration = 0x14;              ///< CC
inline constexpr u64 status = 0x1c;                     ///< CSTS
inline constexpr u64 admin_entries = 0x24;              ///< AQA
inline constexpr u64 admin_submission = 0x28;           ///< ASQ, 64 bits
inline constexpr u64 admin_completion = 0x30;           ///< ACQ, 64 bits
inline constexpr u64 controller_memory_place = 0x38;    ///< CMBLOC
inline constexpr u64 controller_memory_size = 0x3c;     ///< CMBSZ
inline constexpr u64 controller_memory_control = 0x50;  ///< CMBMSC, 64 bits
inline constexpr u64 controller_memory_status = 0x58;   ///< CMBSTS
inline constexpr u64 doorbells = 0x1000;
}  // namespace at

/// What a function that is gone answers to every read.
inline constexpr u32 all_ones = 0xffffffffu;

/// CAP. A function that is gone reads as all ones, which no controller is.
struct capabilities {
  u64 word = 0;

  constexpr bool gone() const { return word == ~u64{0}; }
  constexpr u32 queue_entries() const { return static_cast<u32>(word & 0xffff) + 1; }          ///< MQES, of I/O queues
  constexpr u64 timeout_ns() const { return (word >> 24 & 0xff) * 500 * one_millisecond_ns; }  ///< TO: until RDY follows EN
  constexpr u64 doorbell_stride() const { return u64{4} << (word >> 32 & 0xf); }               ///< DSTRD, bytes
  constexpr bool nvm_commands() const { return (word >> 37 & 1) != 0; }                        ///< CSS bit 0
  constexpr u32 least_page_shift() const { return 12 + static_cast<u32>(word >> 48 & 0xf); }   ///< MPSMIN
  constexpr u32 most_page_shift() const { return 12 + static_cast<u32>(word >> 52 & 0xf); }    ///< MPSMAX

  /// CRMS.CRIMS: the controller may be ready before its media are. Only then does NSTAT.NRDY mean anything.
  constexpr bool ready_without_media() const { return (word >> 60 & 1) != 0; }
  constexpr bool controller_memory() const { return (word >> 57 & 1) != 0; }  ///< CMBS: CMBMSC is there

  /// Where a queue's doorbell is; `completion`: that of its completion queue.
  constexpr u64 doorbell(u16 queue, bool completion) const {
    return at::doorbells + (2 * u64{queue} + (completion ? 1 : 0)) * doorbell_stride();
  }
};

/// CC.
namespace configuration {
inline constexpr u32 enable = 1;                ///< EN
inline constexpr u32 shutdown_mask = 3u << 14;  ///< SHN
inline constexpr u32 normal_shutdown = 1u << 14;
/// NVM command set, memory pages of 4096 bytes, round robin, entries of 64 and 16 bytes.
inline constexpr u32 ours = 6u << 16 | 4u << 20;
}  // namespace configuration

/// CMBMSC; 63:12 is where the controller has its memory. And CMBSTS.
namespace controller_memory {
inline constexpr u64 capabilities = 1;  ///< CRE: CMBLOC and CMBSZ are reported
inline constexpr u64 enable = 2;        ///< CMSE
inline constexpr u32 bad_address = 1;   ///< CBAI
}  // namespace controller_memory

/// CMBLOC.
struct controller_memory_place {
  u32 word = 0;

  constexpr u32 bar() const { return word & 7u; }
  constexpr u64 offset_units() const { return word >> 12; }  ///< in units of CMBSZ
};

/// CMBSZ.
struct controller_memory_size {
  u32 word = 0;

  constexpr bool takes_submission_queues() const { return (word & 1u) != 0; }
  constexpr u64 unit() const { return u64{4096} << 4 * (word >> 8 & 0xfu); }
  constexpr u64 bytes() const { return (word >> 12) * unit(); }
};

/// CSTS.
namespace controller_status {
inline constexpr u32 ready = 1;                ///< RDY
inline constexpr u32 fatal = 2;                ///< CFS
inline constexpr u32 shutdown_mask = 3u << 2;  ///< SHST
inline constexpr u32 shutdown_complete = 2u << 2;
}  // namespace controller_status

}  // namespace penstock::nvme
