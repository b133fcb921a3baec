// Memory that maps a file, which others may cut short while it is read.
#pragma once

#include "penstock/core/config.hpp"

namespace penstock {

/// Whose memory a mapping is.
enum class mapping_of : u32 {
  penstock,  ///< it goes when nothing watches it any more
  caller,    ///< its owner has it back as it was
};

/// A mapping that any thread may read at any time. Where its file was cut short they read zeros for as long as this lives, and
/// `was_cut` says so: a reader asks it. Costs nothing until then.
class watched_mapping {
 public:
  /// REQUIRES: mapped for as long as this lives.
  watched_mapping(void const* begin, u64 bytes, bool writable, mapping_of owner);
  watched_mapping(watched_mapping const&) = delete;
  watched_mapping& operator=(watched_mapping const&) = delete;
  ~watched_mapping();

  bool was_cut() const;
  /// The same, after a look at the last byte: a file that is cut short anywhere else has no such byte either, but for the rest
  /// of its last page.
  bool is_cut() const;

 private:
  struct watched_range* range_;
};

}  // namespace penstock
