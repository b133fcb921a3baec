// Kernels of `penstock bench hit`: ways to read what is in the cache, and the plain array for each.
#pragma once

#include "libs/bench/pattern.hpp"
#include "penstock/array/array_ref.hpp"
#include "penstock/array/pinned_line.hpp"
#include "penstock/executor/launch.hpp"

namespace penstock::bench {

// Of 256 threads: with eight on a multiprocessor a kernel has 32 registers, and reads of single elements need threads more than
// they need registers. Whole lines keep eight loads of 16 bytes in flight in each thread.
inline constexpr u32 element_blocks = 8;
inline constexpr u32 line_blocks = 4;

/// How an element is read.
enum class access_kind : u32 {
  plain,         ///< a pointer to memory
  view,          ///< array_view::operator[], the sound order
  view_address,  ///< the cheaper orders of core/read_order.hpp
  view_data,
  reference,       ///< array_ref
  reference_runs,  ///< the same, several elements of a lane behind one validation: read_runs
  pinned,          ///< a pin for every access, as systems without validated reads have it: one per distinct line of a warp
};

/// How a group reads whole lines.
enum class line_kind : u32 {
  plain,            ///< a pointer to memory
  validated,        ///< array_view::read_span
  validated_data,   ///< the same in the order `data`
  pinned,           ///< pin, then 16-byte loads
  pinned_data,      ///< the same in the order `data`
  plain_in_frames,  ///< a pointer, in the order in which frames hold the lines
};

struct hit_data {
  array_view<u64> stored;
  u64 const* plain = nullptr;          ///< the same elements in the executor's memory
  u32 const* frame_of_line = nullptr;  ///< [lines]
  u64 const* frames = nullptr;         ///< the cache's
  u64* wrong = nullptr;                ///< groups that read what is not there
  pattern order;
};

/// A pin around every access: the lanes of a warp that read one line share it.
PENSTOCK_FN inline u64 read_pinned(array_view<u64> const& a, u64 i) {
  line_reader const& reader = a.reader();
  const auto g = this_group();
  const u64 address = a.address_of(i);
  const auto peers = g.match_any(value(reader.line_of(address)));
  const bool leads = lowest(peers) == g.rank();
  hit_line at;
  u64 frame = 0;
  const bool pins = leads && reader.find<read_order::data>(address, at);
  if (pins) {
    const u64 old = device_ref<u64>(*at.entry).fetch_add(entry::one_pin, acquire);
    if (entry::same(old, at.word)) frame = at.frame;
  }
  frame = g.shfl(frame, lowest(peers));
  g.sync();
  const u64 read = frame != 0 ? load_piece(reinterpret_cast<u64 const*>(frame + reader.within(address))) : 0;
  g.sync();
  if (pins) device_ref<u64>(*at.entry).fetch_sub(entry::one_pin, release);
  return read;
}

/// An element per thread.
template <access_kind Access, pattern_kind Pattern>
struct read_elements {
  hit_data data;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const&, grid_range range) const {
    using enum access_kind;
    u64 bad = 0;
    if constexpr (Access == reference) {
      array_ref<u64> follow(data.stored);
      for (u64 k = range.first; k < range.last; k += range.step) {
        const u64 i = data.order.at<Pattern>(k);
        bad |= follow[i] ^ value_at(i);
      }
    } else {
      for (u64 k = range.first; k < range.last; k += range.step) {
        const u64 i = data.order.at<Pattern>(k);
        bad |= read(i) ^ value_at(i);
      }
    }
    if (bad != 0) device_ref<u64>(*data.wrong).fetch_add(1, relaxed);
  }

  PENSTOCK_FN u64 read(u64 i) const {
    using enum access_kind;
    if constexpr (Access == plain) return data.plain[i];
    if constexpr (Access == view) return data.stored[i];
    if constexpr (Access == view_address) return data.stored.read<read_order::address>(i);
    if constexpr (Access == view_data) return data.stored.read<read_order::data>(i);
    if constexpr (Access == pinned) return read_pinned(data.stored, i);
    return 0;
  }
};

/// A group per item, which is `lines` lines in a row.
template <line_kind Access>
struct read_lines {
  hit_data data;
  u32 lines = 1;
  line_sequence order;  ///< of the items

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    using enum line_kind;
    const u64 per_line = data.order.line_elements;
    u64 bad = 0;
    const auto check = [&](u64 i, u64 v) { bad |= v ^ value_at(i); };
    const auto check_piece = [&](u64 i, piece16 p) {
      check(i, p.low);
      check(i + 1, p.high);
    };
    access_tally tally;
    const u64 count = lines * per_line;
    // Items fit 32 bits (line_sequence), and a register that they don't take is not spilled.
    const u32 last = static_cast<u32>(range.last), step = static_cast<u32>(range.step);
    for (u32 item = static_cast<u32>(range.first); item < last; item += step) {
      const u64 first = order.at(item) * count;
      if constexpr (Access == plain) {
        auto const* from = reinterpret_cast<piece16 const*>(data.plain + first);
        PENSTOCK_UNROLL_BY(8)
        for (u64 k = index_in(g); k < count / 2; k += size(g)) check_piece(first + 2 * k, from[k]);
      }
      if constexpr (Access == plain_in_frames) in_frames(g, first, check_piece);
      if constexpr (Access == validated) data.stored.read_span(g, first, count, check);
      if constexpr (Access == validated_data) data.stored.read_span<read_order::data>(g, first, count, check);
      if constexpr (Access == pinned || Access == pinned_data) {
        constexpr read_order how = Access == pinned ? read_order::sound : read_order::data;
        for (u64 at = first; at < first + count; at += per_line) {
          const pinned_line<G, how> line = pin<how>(g, data.stored, at, tally);
          if (!line.error().ok()) bad = 1;
          line.read_pieces(0, static_cast<u32>(per_line / 2), [&](u32 k, piece16 p) { check_piece(at + 2 * k, p); });
        }
      }
    }
    if (Access == pinned || Access == pinned_data) tally.add_to(data.stored.reader().counters, 0);
    if (bad != 0) device_ref<u64>(*data.wrong).fetch_add(1, relaxed);
  }

 private:
  // As read_span walks them: the frames of a group's width of lines are looked up at once.
  template <thread_group G, class Use>
  PENSTOCK_FN void in_frames(G const& g, u64 first, Use const& use) const {
    const u32 pieces_shift = log2_of(data.order.line_elements / 2);  // of a line
    const u32 within = (1u << pieces_shift) - 1;
    auto const* const frames = reinterpret_cast<piece16 const*>(data.frames);
    for (u32 l = 0; l < lines; l += size(g)) {
      const u64 start = first + static_cast<u64>(l) * data.order.line_elements;
      const u32 frame = l + index_in(g) < lines ? data.frame_of_line[start / data.order.line_elements + index_in(g)] : 0;
      const u32 here = lines - l < size(g) ? lines - l : size(g);
      const u32 pieces = here << pieces_shift, width = size(g);
      PENSTOCK_UNROLL_BY(8)
      for (u32 k = index_in(g); k < pieces; k += width) {
        const u64 from = g.shfl(frame, lowest(g.members()) + (k >> pieces_shift));
        use(start + 2 * k, frames[(from << pieces_shift) + (k & within)]);
      }
    }
  }
};

/// Elements that a lane has on their way where it reads several behind one validation.
inline constexpr u32 runs_at_once = 4;

/// A group walks along a line, an element per lane.
template <access_kind Access>
struct walk_lines {
  hit_data data;
  line_sequence order;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, grid_range range) const {
    const u32 per_line = static_cast<u32>(data.order.line_elements);
    u32 bad = 0;  // half the registers
    array_ref<u64> follow(data.stored);
    for (u64 item = range.first; item < range.last; item += range.step) {
      const u64 first = order.at(item) * per_line;
      if constexpr (Access == access_kind::reference_runs) {
        for (u32 k = index_in(g); k < per_line; k += runs_at_once * size(g)) {
          bool want[runs_at_once];
          u64 read[runs_at_once][1];
          PENSTOCK_UNROLL
          for (bool& w : want) w = true;
          read_runs<false>(g, want, first + k, size(g), runs_of(follow, read));
          PENSTOCK_UNROLL
          for (u32 r = 0; r < runs_at_once; ++r) bad |= differ(read[r][0], value_at(first + k + r * size(g)));
        }
        continue;
      }
      for (u32 k = index_in(g); k < per_line; k += size(g)) {
        const u64 i = first + k;
        if constexpr (Access == access_kind::plain) bad |= differ(data.plain[i], value_at(i));
        if constexpr (Access == access_kind::view) bad |= differ(data.stored[i], value_at(i));
        if constexpr (Access == access_kind::reference) bad |= differ(follow[i], value_at(i));
      }
    }
    if (bad != 0) device_ref<u64>(*data.wrong).fetch_add(1, relaxed);
  }

 private:
  PENSTOCK_FN static u32 differ(u64 a, u64 b) { return static_cast<u32>(a ^ b) | static_cast<u32>((a ^ b) >> 32); }
};

/// One element of each line, a thread per element.
template <access_kind Access>
struct touch_lines {
  hit_data data;
  line_sequence order;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const&, grid_range range) const {
    const u64 per_line = data.order.line_elements;
    u64 bad = 0;
    for (u64 k = range.first; k < range.last; k += range.step) {
      const u64 line = order.at(k);
      const u64 i = line * per_line + (line & (per_line - 1));
      bad |= (Access == access_kind::plain ? data.plain[i] : data.stored[i]) ^ value_at(i);
    }
    if (bad != 0) device_ref<u64>(*data.wrong).fetch_add(1, relaxed);
  }
};

/// Writes down which frame holds each line; lines that none holds are counted as wrong. A thread per line.
struct list_frames {
  array_view<u64> stored;
  u64 line_elements = 0;
  u32* frame_of_line = nullptr;
  u64* wrong = nullptr;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const&, grid_range range) const {
    line_reader const& reader = stored.reader();
    for (u64 line = range.first; line < range.last; line += range.step) {
      directory_view const& directory = reader.cache->directory;
      const found_line at = directory.find(reader.line_of(stored.address_of(line * line_elements)));
      const bool there = at.state() == line_state::valid;
      frame_of_line[line] = there ? static_cast<u32>(directory.frame_of(at.entry, at.word)) : 0;
      if (!there) device_ref<u64>(*wrong).fetch_add(1, relaxed);
    }
  }
};

/// What one item of a kernel is.
enum class hit_shape : u32 {
  elements,  ///< an element, per thread
  lines,     ///< whole lines, per group, 16 bytes a load
  walk,      ///< a line, per group, an element per lane and step
  touch,     ///< one element of a line, per thread
};

/// One kernel of the benchmark.
struct hit_job {
  hit_shape shape = hit_shape::elements;
  access_kind access = access_kind::plain;
  pattern_kind order = pattern_kind::linear;
  line_kind lines = line_kind::plain;
  u32 width = 32;  ///< lanes of a group that reads or walks lines: 32, 16 or 8
  u32 lines_at_once = 1;
  u32 units = 0;               ///< SMs; 0: all
  u64 threads = 0;             ///< most that run at once; 0: as many as fit
  bool only_prepares = false;  ///< the kernel is loaded and not run: before a resident one starts
};

// One per executor, in the translation unit that can compile it. Returns when the job is done, with what its kernel takes.
kernel_facts run_hit_cpu(executor& on, hit_job const& job, hit_data const& data);
kernel_facts run_hit_cuda(executor& on, hit_job const& job, hit_data const& data);
void list_frames_cpu(executor& on, u64 lines, list_frames const& body);
void list_frames_cuda(executor& on, u64 lines, list_frames const& body);

}  // namespace penstock::bench
