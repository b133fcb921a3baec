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

  /// `sets` > 0: `set_associative`, of that many sets. `frames` is then 7 times that.
  bare_cache(u32 frames, u64 lines, Policy policy, u32 sets = 0)
      : media_(lines * line_bytes), entries_(sets == 0 ? ceil_div(lines, set_words) : sets),
        records_(frames, frame_record{frame_record::nobody, 0, 0}), frame_words_(frames * line_words) {
    view_.policy = policy;
    view_.directory.entries = entries_.front().word;
    if (sets != 0) view_.directory.map = set_map::of(lines, sets);
    view_.records = records_.data();
    view_.frames_base = reinterpret_cast<u64>(frame_words_.data());
    view_.datasets = &data_;
    view_.next_fresh = &next_fresh_;
    view_.directory.layout.place_bits = sets == 0 ? std::max(1u, ceil_log2(frames)) : view_.directory.map.place_bits();
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
  /// A set's line has no entry while it has no frame.
  u64* entry_of(u64 line) const { return view_.directory.find(line_id{line}).entry; }
  u64 load(u64 line) const { return view_.directory.find(line_id{line}).word; }
  void add(u64 line, u64 to_word) const { device_ref<u64>(*entry_of(line)).fetch_add(to_word, relaxed); }
  /// Frames that hold a line or are being filled with one.
  u32 frames_of(u64 line) const {
    u32 holders = 0;
    directory_view const& directory = view_.directory;
    const u64 x = directory.map.mix(line);
    for (u32 d = 0; d < directory.reach(); ++d) {
      u64* const set = directory.set_after(directory.home_of(x), d);
      for (u32 w = 0; w < set_ways; ++w) {
        set_snapshot one{};
        one.way[w] = device_ref<u64>(set[1 + w]).load(acquire);
        holders += directory.find_in(set, one, x, d).entry != nullptr;
      }
    }
    return holders;
  }
  u64 count(counter which) { return device_ref<u64>(shard_.values[static_cast<u32>(which)]).load(relaxed); }

  access_step look(u64 line, bool wide, u64*& entry) const {
    victim_search search;
    return view_.look(data_, line_id{line}, wide, true, entry, search);
  }
  access_step look(u64 line, bool wide = false) const {
    u64* entry = nullptr;
    return look(line, wide, entry);
  }
  access_step look_ahead(u64 line) const {
    found_line at = view_.directory.glance(line_id{line});
    victim_search search;
    return view_.claim_empty(data_, line_id{line}, 0, at, search);
  }
  void reference(u64 line) const { view_.reference(view_.directory.find(line_id{line})); }
  void unpin(u64 line) const { view_.unpin(entry_of(line)); }
  /// Stores the bytes of a claimed line and publishes it, as a completion would.
  void fill(u64 line) { fill(line, entry_of(line)); }
  void fill(u64 line, u64* entry) {
    const u64 e = device_ref<u64>(*entry).load(relaxed);
    copy_into_frame(reinterpret_cast<void*>(view_.frame_address(entry, e)), media_.bytes().data() + line * line_bytes,
                    line_bytes);
    line_sink::finish(target(entry), {});
  }
  /// What a fill of the entry's line is submitted with.
  line_sink::target target(u64* entry) const {
    return {entry, &view_.record_of(entry, device_ref<u64>(*entry).load(relaxed)), nullptr};
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
  /// Whether a read of the frame that an entry names gives word `k` of `line`. REQUIRES: a pin.
  bool holds_word(u64 line, found_line at, u64 k) const {
    return load_piece(reinterpret_cast<u64 const*>(view_.frame_address(at.entry, at.word)) + k) == stamp(line * line_words + k);
  }
  bool holds_word(u64 line, u64 k) const { return holds_word(line, view_.directory.find(line_id{line}), k); }

  /// Advises its dataset, as if others were advised, too.
  void advise(advice how) {
    data_.advised = how;
    view_.spare_normal = 32;
    view_.spare_kept = 64;
  }
  /// From now on lines take frames below `part` only.
  void limit(u32 part) { data_.part = part; }

  /// Reads as array_view does. REQUIRES: Policy is clock_policy.
  line_reader reader() const { return line_reader::over(view_, &view_, 0, 0, view_.datasets[0].counters); }

 protected:
  stamped_media media_;
  dataset_view data_;
  view_type view_;

 private:
  struct alignas(64) eight_words {
    u64 word[set_words] = {};
  };
  std::vector<eight_words> entries_;
  std::vector<frame_record> records_;
  std::vector<u64> frame_words_;
  u64 next_fresh_ = 0;
  counter_shard shard_;
};

/// Of sets alone.
struct bare_set : bare_cache<> {
  explicit bare_set(u64 lines, u32 sets = 1) : bare_cache(set_ways * sets, lines, {}, sets) {}
  u64& word(u32 set, u32 w) const { return view().directory.entries[set * set_words + w]; }
  u64& way(u32 w) const { return word(0, 1 + w); }
  u32 way_of(u64 line) const { return static_cast<u32>(entry_of(line) - view().directory.entries) - 1; }
  u32 home_of(u64 line) const { return static_cast<u32>(view().directory.map.set_of(view().directory.map.mix(line))); }
  u32 set_with(u64 line) const { return static_cast<u32>((entry_of(line) - view().directory.entries) / set_words); }
};

}  // namespace penstock::test
