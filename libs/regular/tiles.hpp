// Arrays read and written by explicit tiles, without a cache: what a program does that knows its accesses. Each worker keeps
// `depth` tiles in flight, so that the next ones come in while it computes on one.
#pragma once

#include "libs/media/tile_array.hpp"
#include "libs/regular/pieces.hpp"
#include "penstock/queue/block_io.hpp"

namespace penstock::regular {

using media::most_tile_bytes;
using media::tile_array;

/// Most tiles that a worker keeps in flight.
inline constexpr u32 most_depth = 32;  // a bit each in a word

/// Requests and rooms of all workers, and the first failure.
struct tile_rooms {
  block_request* requests = nullptr;  ///< [request_count]; the last has no command, ever
  block_request* idle = nullptr;      ///< that one
  u8* data = nullptr;                 ///< [workers * per_worker * most_tile_bytes]
  u32* problem = nullptr;             ///< packed status of a command that failed
  u32 per_worker = 1;

  /// The leader sends and waits for all; the other lanes may not look at what it writes meanwhile.
  template <thread_group G>
  PENSTOCK_FN block_request& request(G const& g, u64 worker, u32 k) const {
    return is_leader(g) ? requests[worker * stride(per_worker) + k] : *idle;
  }
  /// Workers lie so far apart that neighbours use different queues (block_io::queue_of).
  PENSTOCK_FN static u64 stride(u32 per_worker) { return round_up(per_worker, 32); }
  PENSTOCK_FN static u64 request_count(u64 workers, u32 per_worker) { return workers * stride(per_worker) + 1; }
  PENSTOCK_FN u8* room(u64 worker, u32 k) const { return data + (worker * per_worker + k) * most_tile_bytes; }
};

/// A room of a worker, for one array: a command at a time moves between them.
template <thread_group G>
class tile_room {
 public:
  PENSTOCK_FN tile_room(G const& g, tile_rooms const& rooms, u64 worker, u32 k)
      : g_(g), rooms_(rooms), request_(rooms.request(g, worker, k)), data_(rooms.room(worker, k)) {}

  /// Asks for elements, or sends them on their way; does not wait. Collective.
  PENSTOCK_FN void submit(nvme::opcode op, tile_array const& array, u64 first, u64 last) const {
    const tile_array::window at = array.of(first, last);
    submit_blocks(g_, array.drives[at.drive], op, is_leader(g_), request_, lba{at.start}, at.blocks,
                  reinterpret_cast<u64>(data_));
  }

  /// Waits for what was submitted; then the room is the group's. Collective. False: the command failed.
  PENSTOCK_FN bool wait(tile_array const& array, u64 first, u64 last) const {
    const status outcome = wait_blocks(g_, array.drives[array.of(first, last).drive], is_leader(g_), request_);
    if (!outcome.ok()) device_ref<u32>(*rooms_.problem).store(pack(outcome), relaxed);
    g_.sync();  // what the leader has been told of is there for all
    return !any(g_.ballot(!outcome.ok()));
  }

  /// Element `first` of what was submitted.
  template <class T>
  PENSTOCK_FN T* elements(tile_array const& array, u64 first, u64 last) const {
    return reinterpret_cast<T*>(data_ + array.of(first, last).lead);
  }

 private:
  G const& g_;
  tile_rooms const& rooms_;
  block_request& request_;
  u8* data_;
};

}  // namespace penstock::regular
