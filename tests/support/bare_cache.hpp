// A cache over plain memory without queues: the test takes every step itself, fills included, so that it can stop a thread
// between any two of them. Line l holds the stamps of the words l * 64 and on.
#pragma once

#include "penstock/array/line_reader.hpp"
#include "penstock/core/copy_into_frame.hpp"
#include "support/stamped_media.hpp"

#include <vector>

namespace penstock::test {

template <replacement_policy Policy = clock_policy>
class bare_cache {
 public:
  static constexpr u64 line_words = 64;
  static constexpr u64 line_bytes = line_words * sizeof(u64);
  using view_type = basic_line_cache_view<Policy>;

  bare_cache(u32 frames, u64 lines, Policy policy)
      : media_(lines * line_bytes), entries_(lines), records_(frames, frame_record{frame_record::no_line, 0, 0}),
        frame_words_(frames * line_words) {
    view_.policy = policy;
    view_.directory.entries = entries_.data();
    view_.records = records_.data();
    view_.frames_base = reinterpret_cast<u64>(frame_words_.data());
    view_.datasets = &data_;
    view_.next_fresh = &next_fresh_;
    view_.directory.layout.place_bits = std::max(1u, ceil_log2(frames));
    view_.frames = frames;
    view_.line_shift = ceil_log2(line_bytes);
    view_.validates = true;
    data_.lines = lines;
    data_.bytes = lines * line_bytes;
    data_.counters = {&shard_, 1};
  }
  bare_cache(bare_cache const&) = delete;
  bare_cache& operator=(bare_cache const&) = delete;

  view_type const& view() const { return view_; }
  u64 load(u64 line) const { return device_ref<u64>(view_.directory.entries[line]).load(acquire); }
  void add(u64 line, u64 to_word) { device_ref<u64>(entries_[line]).fetch_add(to_word, relaxed); }
  u64 count(counter which) { return device_ref<u64>(shard_.values[static_cast<u32>(which)]).load(relaxed); }

  access_step look(u64 line, bool wide = false) const {
    u64* entry = nullptr;
    return view_.look(data_, line_id{line}, wide, entry);
  }
  access_step look_ahead(u64 line) const {
    u64* entry = nullptr;
    return view_.look_ahead(data_, line_id{line}, entry);
  }
  void reference(u64 line) const { view_.reference(view_.directory.find(line_id{line})); }
  void unpin(u64 line) const { view_.unpin(view_.directory.entries + line); }
  /// Stores the bytes of a claimed line and publishes it, as a completion would.
  void fill(u64 line) {
    u64& word = entries_[line];
    const u64 e = device_ref<u64>(word).load(relaxed);
    copy_into_frame(reinterpret_cast<void*>(view_.frame_address(nullptr, e)), media_.bytes().data() + line * line_bytes,
                    line_bytes);
    fill_sink::finish({&word, &view_.record_of(nullptr, e), nullptr}, {});
  }
  /// Brings a line in and pins it. False: no frame within a bounded number of searches.
  bool hold(u64 line) {
    for (u32 attempt = 0; attempt < 64; ++attempt) {
      const access_step step = look(line);
      if (step == access_step::claimed) fill(line);
      if (step == access_step::claimed || step == access_step::pinned) return true;
    }
    return false;
  }
  bool bring(u64 line) {
    const bool held = hold(line);
    if (held) unpin(line);
    return held;
  }
  /// Whether a read of the frame that the entry `e` names gives word `k` of `line`. REQUIRES: a pin.
  bool holds_word(u64 line, u64 e, u64 k) const {
    return load_piece(reinterpret_cast<u64 const*>(view_.frame_address(nullptr, e)) + k) == stamp(line * line_words + k);
  }

  /// Reads as array_view does. REQUIRES: Policy is clock_policy.
  line_reader reader() const {
    line_reader r;
    r.directory = view_.directory;
    r.frames_base = view_.frames_base;
    r.cache = &view_;
    r.line_shift = view_.line_shift;
    r.hit_word = line_reader::readable_word;
    return r;
  }

 private:
  stamped_media media_;
  std::vector<u64> entries_;
  std::vector<frame_record> records_;
  std::vector<u64> frame_words_;
  u64 next_fresh_ = 0;
  counter_shard shard_;
  dataset_view data_;
  view_type view_;
};

}  // namespace penstock::test
