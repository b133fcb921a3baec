// A cache over a controller that refuses, delays or loses Writes as a test says.
#pragma once

#include "support/faulty_cache.hpp"

#include <string>

namespace penstock::test {

class writable_cache : public faulty_cache {
 protected:
  static constexpr u64 soon = 20 * one_millisecond_ns;

  void make_writable(cache_shape shape) {
    shape.writable = true;
    make(shape);
    out_ = fixture_->writable();
  }
  u64 media(u64 word) const { return media_.words()[word]; }
  static u64 value(u64 word) { return ~stamp(word); }
  void store(u64 word) { out_.write(word, value(word)); }
  std::string flush_sentence() {
    try {
      fixture_->flush();
      return "";
    } catch (error const& failed) {
      EXPECT_EQ(error_kind::world, failed.kind());
      return failed.what();
    }
  }
  u64 dirty_lines() { return static_cast<u64>(write_state::dirty(view().writes.lines())); }
  bool dirty(u64 line) { return entry::dirty(entry_at(line)); }
  bool writing(u64 line) { return entry::writing(entry_at(line)); }
  clean_step clean(u64 line, clean_which which = clean_which::unpinned) {
    return clean_lines(lone_thread(), view(), true, 0, line_id{line}, which).step;
  }
  void retire() { help_writes(lone_thread(), view()); }

  writable_view<u64> out_;
};

}  // namespace penstock::test
