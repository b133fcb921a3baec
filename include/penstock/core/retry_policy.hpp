// Which failures are worth another try, how often, and when what fails again and again is taken for broken.
#pragma once

#include "penstock/core/clock.hpp"
#include "penstock/core/nvme_status.hpp"
#include "penstock/core/status.hpp"

namespace penstock {

/// The class of a failure: of NVMe's by their table, of the kernel's by errno.
PENSTOCK_FN constexpr error_class classify(status s) {
  switch (s.domain) {
    case status_domain::nvme: return class_of_nvme(s.number());
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

  /// Whether the same command is worth another try at all.
  PENSTOCK_FN bool helps(status s) const { return !s.retry_is_vain() && (classes & bit_of(classify(s))) != 0; }
  PENSTOCK_FN bool retries(status s, u32 attempts_made) const { return attempts_made < attempts && helps(s); }
  PENSTOCK_FN u64 wait_ns(u32 attempts_made) const { return first_wait_ns << (attempts_made - 1); }
};

/// Of admin commands, which have no other wait: 10, 20 and 40 ms.
inline constexpr retry_policy admin_retries{.attempts = 4, .first_wait_ns = 10 * one_millisecond_ns};

}  // namespace penstock
