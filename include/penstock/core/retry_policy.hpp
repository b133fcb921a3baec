// Which failures are worth another try, how often, and when what fails again and again is taken for broken.
#pragma once

#include "penstock/core/clock.hpp"
#include "penstock/core/status.hpp"

namespace penstock {

/// What kind of failure a status tells of; a bit each.
enum class error_class : u32 {
  transient = 1u << 0,  ///< may be over soon: busy, not ready, aborted, transfer error, a path that is being changed
  media = 1u << 1,      ///< these bytes cannot be read or written
  space = 1u << 2,      ///< no room
  late = 1u << 3,       ///< no answer in time; the command may still be under way
  reset = 1u << 4,      ///< the controller was reset under the command
  permanent = 1u << 5,  ///< wrong, forbidden, or given up
};

PENSTOCK_FN constexpr u32 bit_of(error_class c) { return static_cast<u32>(c); }

/// The class of a failure. NVMe: status code types and codes of the base specification, figures "Status Code".
PENSTOCK_FN constexpr error_class classify(status s) {
  switch (s.domain) {
    case status_domain::nvme:
      switch (s.number() >> 8) {
        case 0:
          // Data transfer error, power loss, internal error, aborted by request / SQ deletion / fused; capacity exceeded;
          // namespace not ready, reservation conflict aside.
          if (s.number() >= 0x004 && s.number() <= 0x008) return error_class::transient;
          if (s.number() == 0x081) return error_class::space;
          return s.number() == 0x082 ? error_class::transient : error_class::permanent;
        case 2: return error_class::media;
        case 3: return error_class::transient;  // path related
        default: return error_class::permanent;
      }
    case status_domain::os:
      switch (s.code) {
        case 4:   // EINTR
        case 11:  // EAGAIN
        case 12:  // ENOMEM
        case 16:  // EBUSY
          return error_class::transient;
        case 28:   // ENOSPC
        case 122:  // EDQUOT
          return error_class::space;
        case 5: return error_class::media;  // EIO
        default: return error_class::permanent;
      }
    case status_domain::penstock:
      if (s == make_status(failure::deadline)) return error_class::late;
      return s == make_status(failure::resetting) ? error_class::reset : error_class::permanent;
    case status_domain::ok: break;
  }
  return error_class::permanent;
}

/// Trivially copyable; a cache has one for all its fills. An access waits no longer than it would without: a retry comes out of
/// its patience.
struct retry_policy {
  u32 attempts = 3;  ///< of one access, the first included; 1: none is made again
  u32 classes = bit_of(error_class::transient) | bit_of(error_class::reset);  ///< that are tried again
  u64 first_wait_ns = 100 * one_microsecond_ns;                               ///< doubled for each further attempt
  /// So many commands of a dataset in a row that failed, retries included, make it `failed`: from then on every access that
  /// would need a command is answered with the last of their statuses at once, until line_cache::recover. 0: never.
  u32 fails_after = 64;

  PENSTOCK_FN bool retries(status s, u32 attempts_made) const {
    return attempts_made < attempts && !s.retry_is_vain() && (classes & bit_of(classify(s))) != 0;
  }
  PENSTOCK_FN u64 wait_ns(u32 attempts_made) const { return first_wait_ns << (attempts_made - 1); }
};

}  // namespace penstock
