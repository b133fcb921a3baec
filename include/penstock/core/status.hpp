// The outcome of something that the world may refuse: 4 bytes, trivially copyable, the same in device code, in a completion and
// on the host. Programming errors are no statuses; they abort.
#pragma once

#include "penstock/core/config.hpp"

namespace penstock {

enum class status_domain : u16 {
  ok = 0,
  nvme = 1,      ///< code = status field of the completion without phase, CRD and more: type << 8 | code, and `vain` for DNR
  os = 2,        ///< code = errno
  penstock = 3,  ///< code = one of `failure`
};

/// Codes of status_domain::penstock.
enum class failure : u16 {
  deadline = 1,           ///< the controller did not answer in time
  no_frame = 2,           ///< every frame that could take the line stayed pinned or in flight until the deadline
  controller_failed = 3,  ///< the controller broke the protocol or was given up; nothing more is submitted to it
  resetting = 4,          ///< the queue was closed for a reset: ask again when that is over
  pin_limit = 5,          ///< the line has as many pins as an entry can count
  out_of_range = 6,       ///< the line lies outside of the dataset
};

struct status {
  /// A bit of `code`: the controller that answered reported that the same would fail again. (NVMe's CRD, how long to wait, is
  /// no answer to us: it is reserved unless the host turns advanced retry on.)
  static constexpr u16 vain = 0x8000;

  status_domain domain = status_domain::ok;
  u16 code = 0;

  PENSTOCK_FN constexpr bool ok() const { return domain == status_domain::ok; }
  PENSTOCK_FN constexpr u16 number() const { return code & static_cast<u16>(~vain); }
  PENSTOCK_FN constexpr bool retry_is_vain() const { return (code & vain) != 0; }
  /// What failed is the same, whether it would again or not.
  PENSTOCK_FN friend constexpr bool operator==(status a, status b) { return a.domain == b.domain && a.number() == b.number(); }
};
static_assert(sizeof(status) == 4);

PENSTOCK_FN constexpr status make_status(failure f) { return {status_domain::penstock, static_cast<u16>(f)}; }

/// A status as one word, for words that several threads share. 0 is ok.
PENSTOCK_FN constexpr u32 pack(status s) { return static_cast<u32>(s.domain) << 16 | s.code; }
PENSTOCK_FN constexpr status unpack_status(u32 word) {
  return {static_cast<status_domain>(word >> 16), static_cast<u16>(word)};
}

/// A value or the status that stands in its place.
template <class T>
struct expected {
  T value{};
  status error{};

  PENSTOCK_FN constexpr bool ok() const { return error.ok(); }
};

}  // namespace penstock
