// GPUfs's buffer cache for threads of a kernel: pages of files are found, brought in and pinned by groups.
//
// Calls are collective, with the same arguments in all members. One lane, the leader, looks pages up, takes locks and asks the
// host; all members go through its waits, which end at a deadline, and copy the bytes together.
#pragma once

#include "libs/bench/gpufs_allocator.hpp"
#include "libs/bench/gpufs_request.hpp"
#include "libs/bench/pattern.hpp"
#include "penstock/core/backoff.hpp"
#include "penstock/core/host_call.hpp"
#include "penstock/core/memory_access.hpp"
#include "penstock/group/thread_group.hpp"

namespace penstock::bench {

struct gpufs_counts {
  u64 insertions = 0;
  u64 evictions = 0;
};

struct gpufs_page {
  u32 frame = 0;
  gpufs_error error = gpufs_error::none;

  PENSTOCK_FN bool ok() const { return error == gpufs_error::none; }
};

/// What `attempt` gives to the leader once that is not 0; 0 after the deadline. Collective.
template <thread_group G, class Attempt>
PENSTOCK_FN u64 gpufs_await(G const& g, u64 timeout_ns, Attempt const& attempt) {
  u64 got = from_leader(g, is_leader(g) ? attempt() : 0);
  if (got != 0) return got;
  backoff wait(timeout_ns);
  for (bool in_time = true; in_time && got == 0;) {
    in_time = from_leader(g, wait.pause() ? 1 : 0) != 0;
    got = from_leader(g, is_leader(g) ? attempt() : 0);
  }
  return got;
}

/// Trivially copyable; the host-side `gpufs_cache` owns what it points at. Inline, so that a kernel's own limit of registers
/// holds.
struct gpufs_view {
  gpufs_directory directory;
  gpufs_frames frames;
  std::byte* bytes = nullptr;  ///< of the frames
  u32 page_shift = 0;
  gpufs_transfers transfers = gpufs_transfers::single;
  gpufs_slot* slots = nullptr;
  gpufs_request* requests = nullptr;
  u32 slots_count = 0;
  void (*serve)(void*, u16) = nullptr;  ///< CPU: serves a slot in place; null: workers do
  void* server = nullptr;
  gpufs_counts* counts = nullptr;
  u64 timeout_ns = 0;

  PENSTOCK_FN u64 page_bytes() const { return u64{1} << page_shift; }
  PENSTOCK_FN std::byte* bytes_of(u32 frame) const { return bytes + (u64{frame} << page_shift); }

  /// Pins a page, which stays in its frame until it is unpinned. `group`: the caller's number, which chooses the allocator.
  template <thread_group G>
  PENSTOCK_FORCE_INLINE gpufs_page pin(G const& g, u32 group, u32 file, u64 page) const {
    const u64 key = gpufs_directory::key_of(file, page);
    u64* word = nullptr;
    const u64 found = gpufs_await(g, timeout_ns, [&] { return find_or_claim(key, word); });
    if (found == 0) return {0, gpufs_error::no_frame};
    if (found == absent) return bring(g, group, key, word);
    const u32 frame = static_cast<u32>(found);
    u64 state = found >> 32;
    if (state == gpufs_frame::filling) state = gpufs_await(g, timeout_ns, [&] { return finished_state(frame); });
    converge_after_call(g);
    if (state == gpufs_frame::ready) return {frame, gpufs_error::none};
    if (is_leader(g)) frames.frames[frame].unpin();
    return {0, state == 0 ? gpufs_error::deadline : gpufs_error::io};
  }

  template <thread_group G>
  PENSTOCK_FN void unpin(G const& g, gpufs_page page) const {
    converge_after_call(g);
    if (is_leader(g)) frames.frames[page.frame].unpin();
  }

  /// Copies `count` bytes at `offset` of a file to memory of the group's threads.
  template <thread_group G>
  PENSTOCK_FORCE_INLINE gpufs_error read(G const& g, u32 group, u32 file, u64 offset, u64 count, std::byte* to) const {
    const u64 size = directory.files[file].bytes;
    if (offset > size || count > size - offset) return gpufs_error::beyond_end;
    while (count != 0) {
      const u64 within = offset & (page_bytes() - 1), left = page_bytes() - within, part = count < left ? count : left;
      const gpufs_page page = pin(g, group, file, offset >> page_shift);
      if (!page.ok()) return page.error;
      copy_out(g, to, bytes_of(page.frame) + within, part);
      unpin(g, page);
      offset += part, count -= part, to += part;
    }
    return gpufs_error::none;
  }

 private:
  static constexpr u64 absent = ~u64{0};

  /// Of the leader: a pinned frame and its state above it, or `absent` once the caller is to bring the page; 0: try again.
  PENSTOCK_FN u64 find_or_claim(u64 key, u64*& claimed_word) const {
    const u64 word = directory.load(key);
    if (word == 0) {
      claimed_word = directory.try_claim(key);
      return claimed_word != nullptr ? absent : 0;
    }
    if (gpufs_directory::is_pending(word)) return 0;
    gpufs_frame& frame = frames.frames[gpufs_directory::frame_of(word)];
    if (!frame.try_pin()) return 0;
    if (device_ref<u64>(frame.key).load(relaxed) != key) {  // it was evicted since
      frame.unpin();
      return 0;
    }
    return u64{device_ref<u32>(frame.state).load(acquire)} << 32 | gpufs_directory::frame_of(word);
  }

  PENSTOCK_FN u64 finished_state(u32 frame) const {
    const u32 state = device_ref<u32>(frames.frames[frame].state).load(acquire);
    return state == gpufs_frame::filling ? 0 : state;
  }

  /// `word`: the page's in the directory, pending, in the leader.
  template <thread_group G>
  PENSTOCK_FN gpufs_page bring(G const& g, u32 group, u64 key, u64* word) const {
    const u64 got = gpufs_await(g, timeout_ns, [&] {
      const u32 frame = frames.try_allocate(directory, group);
      return frame == gpufs_frames::no_frame ? 0 : u64{frame} + 1;
    });
    if (got == 0) {
      if (is_leader(g)) directory.abandon(word);
      return {0, gpufs_error::no_frame};
    }
    const u32 frame = static_cast<u32>(got - 1);
    if (is_leader(g)) {
      gpufs_frame& f = frames.frames[frame];
      device_ref<u64>(f.key).store(key, relaxed);
      device_ref<u32>(f.state).store(gpufs_frame::filling, relaxed);
      f.end_claim(1);
      directory.publish(word, key, frame);
      device_ref<u64>(counts->insertions).fetch_add(1, relaxed);
    }
    const gpufs_error error = transfers == gpufs_transfers::none ? stamp(g, key, frame) : fill(g, group, key, frame);
    converge_after_call(g);
    if (is_leader(g)) finish(key, frame, error);
    converge_after_call(g);
    return {frame, error};
  }

  PENSTOCK_FN void finish(u64 key, u32 frame, gpufs_error error) const {
    gpufs_frame& f = frames.frames[frame];
    const bool good = error == gpufs_error::none;
    device_ref<u32>(f.state).store(good ? gpufs_frame::ready : gpufs_frame::failed, release);
    if (good) return;
    directory.try_erase(key, frame);                // else it stays failed until it is evicted
    if (error != gpufs_error::deadline) f.unpin();  // else the host may still write there: the frame is lost
  }

  /// The stub that replaces transfers.
  template <thread_group G>
  PENSTOCK_FN gpufs_error stamp(G const& g, u64 key, u32 frame) const {
    const u64 first = gpufs_directory::page_of(key) << page_shift;
    if (is_leader(g)) *reinterpret_cast<u64*>(bytes_of(frame)) = value_at(first / sizeof(u64));
    return gpufs_error::none;
  }

  template <thread_group G>
  PENSTOCK_FN gpufs_error fill(G const& g, u32 group, u64 key, u32 frame) const {
    u32 looked = 0;
    const u64 taken = gpufs_await(g, timeout_ns, [&] { return take_slot(group, looked); });
    if (taken == 0) return gpufs_error::deadline;
    const u32 slot = static_cast<u32>(taken - 1);
    gpufs_request& request = requests[slot];
    u64 number = 0;
    if (is_leader(g)) {
      number = ++slots[slot].number;
      request.send(number, key, frame);
      call_on_host(serve, server, static_cast<u16>(slot));
    }
    const u64 answered =
        gpufs_await(g, timeout_ns, [&] { return u64{system_ref<u64>(request.answered).load(acquire) == number ? 1u : 0u}; });
    if (answered == 0) return gpufs_error::deadline;
    const u64 staged = from_leader(g, is_leader(g) ? system_ref<u64>(request.staged).load(relaxed) : 0);
    const u64 error = from_leader(g, is_leader(g) ? system_ref<u64>(request.error).load(relaxed) : 0);
    converge_after_call(g);
    if (staged != 0) {
      copy_in(g, bytes_of(frame), reinterpret_cast<std::byte const*>(staged));
      converge_after_call(g);
      if (is_leader(g)) system_ref<u64>(request.copied).store(number, release);
    }
    if (is_leader(g)) device_ref<u32>(slots[slot].taken).store(0, release);
    return static_cast<gpufs_error>(error);
  }

  /// Of the leader: a slot plus one, 0 if it was taken.
  PENSTOCK_FN u64 take_slot(u32 group, u32& looked) const {
    const u32 slot = (group + looked++) % slots_count;
    u32 free = 0;
    return device_ref<u32>(slots[slot].taken).compare_exchange_strong(free, 1, acquire, relaxed) ? u64{slot} + 1 : 0;
  }

  /// Staged bytes have been moved there by the host: loads bypass L1.
  template <thread_group G>
  PENSTOCK_FN void copy_in(G const& g, std::byte* to, std::byte const* from) const {
    const u64 pieces = page_bytes() / sizeof(piece16), step = size(g);
    PENSTOCK_UNROLL_BY(4)
    for (u64 k = index_in(g); k < pieces; k += step) {
      reinterpret_cast<piece16*>(to)[k] = load_piece(reinterpret_cast<piece16 const*>(from) + k);
    }
  }

  template <class Piece>
  PENSTOCK_FN static void copy_pieces(std::byte* to, std::byte const* from, u64 count, u64 first, u64 step) {
    const u64 pieces = count / sizeof(Piece);
    PENSTOCK_UNROLL_BY(4)
    for (u64 k = first; k < pieces; k += step) {
      reinterpret_cast<Piece*>(to)[k] = load_piece(reinterpret_cast<Piece const*>(from) + k);
    }
  }

  template <thread_group G>
  PENSTOCK_FN static void copy_out(G const& g, std::byte* to, std::byte const* from, u64 count) {
    const u64 bits = reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from) | count;
    if (bits % sizeof(piece16) == 0) {
      copy_pieces<piece16>(to, from, count, index_in(g), size(g));
    } else {
      copy_pieces<u8>(to, from, count, index_in(g), size(g));
    }
  }
};

}  // namespace penstock::bench
