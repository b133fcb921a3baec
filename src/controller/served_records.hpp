// What the serving body of the modelled drives works on: records of fixed size in memory of one executor, the same whether
// warps of a resident kernel or threads of the host walk over them. No containers, no pointers to host objects.
//
// A queue has two sides. Taking commands happens under its `lock`, which is tried and held for a few memory round trips.
// Completing needs none: whoever has served a batch takes that many places of the completion ring with one addition to
// `posted`. The place is there, because room for the completions of a command is reserved before the command is taken; so
// nobody who has served a command ever waits for the host, and a ring is never overrun.
#pragma once

#include "fault_draw.hpp"

#include "penstock/controller/controller.hpp"
#include "penstock/controller/drive_model.hpp"
#include "penstock/core/atomic.hpp"

namespace penstock::controllers {

/// Time inside of the body: eighths of a nanosecond of the executor's clock, so that the cost of a small transfer on a fast
/// link (20 ns) is right to 1 %, and a clock that counts from 1970 fits until 2043.
inline constexpr u64 ticks_per_ns = 8;

inline constexpr u32 most_namespaces = 16;
inline constexpr u32 most_error_codes = 64;

struct served_namespace {
  u64 memory = 0;
  u64 bytes = 0;
  u32 block_shift = 9;
  u32 unused = 0;
};

/// Ticks for a command on the shared link, to the nearest: half a percent off at most for 512 bytes at 58 GB/s.
PENSTOCK_FN constexpr u64 link_cost(u64 bytes, u64 ticks_per_mib) {
  return (link_bytes(bytes) * ticks_per_mib + (1u << 19)) >> 20;
}

/// Cost of a command on a drive's clock: what it costs at 512 bytes and at 4 KiB, linear between, proportional beyond.
struct command_cost {
  u64 small = 0;  ///< ticks
  u64 page = 0;

  PENSTOCK_FN u64 of(u64 bytes) const {
    if (bytes >= 4096) return page * bytes / 4096;
    if (bytes <= 512) return small;
    const auto slope = static_cast<long long>(page) - static_cast<long long>(small);
    return static_cast<u64>(static_cast<long long>(small) + slope * static_cast<long long>(bytes - 512) / 3584);
  }
};

/// When the unit that served a ticket is free again; `ticket` says which lap of the units it is.
struct unit_slot {
  u64 free_at = 0;
  u64 ticket = 0;  ///< ticket + 1 once free_at is written
};

struct served_counts {
  u64 fetched = 0, completed = 0, errors = 0, delays = 0, drops = 0, duplicates = 0, lates = 0, unknown_identifiers = 0,
      refused_doorbells = 0;
  u64 reads = 0, writes = 0, bytes_read = 0, bytes_written = 0;
  // Of drives with a timing only; ns.
  u64 residence = 0;  ///< sum over commands of the time from fetch to completion
  u64 busy = 0;       ///< end of each busy period minus its begin, summed
};

/// What the time of a command depends on. Whoever serves copies it whole, before anything that waits for memory.
struct drive_pace {
  u64 service = 0;  ///< ticks
  u64 units = 0;    ///< in each direction of a duplex drive; 0: no limit
  command_cost read_cost, write_cost;
  bool duplex = false;     ///< writes have a clock of their own
  u64 transfer_bytes = 0;  ///< most that a command may move
};

struct drive_record {
  // Fixed once the drive is served.
  served_namespace spaces[most_namespaces];
  u32 space_count = 0;
  bool plain = true;    ///< neither time nor faults: commands are served as they are taken
  bool faulty = false;  ///< has a fault plan
  drive_pace pace;
  fault_shares faults;
  u16 error_codes[most_error_codes] = {};
  u64 delay = 0, late = 0;  ///< ticks
  u32 completions_per_command = 1;
  bool reorder = false, poison_fetched = false, torn_completion = false;
  unit_slot* unit_slots = nullptr;  ///< of a duplex drive twice as many: of reads, then of writes

  // Shared by all who serve its queues; device scope.
  alignas(128) u64 clock = 0;            ///< when the next command may start; of a duplex drive: the next read
  u64 write_clock = 0;                   ///< of a duplex drive: the next write
  alignas(128) u64 unit_ticket[2] = {};  ///< next to give; of a duplex drive to reads, and to writes
  alignas(128) u64 in_flight = 0;
  u64 most_in_flight = 0;
  alignas(128) u64 lead = 0;  ///< ticks: so long before it is due the serving of a command begins; see learn_lead
  alignas(128) served_counts counts;
};

/// A command that was taken and is not due yet. Written and read under the queue's lock, 16 bytes at once.
struct alignas(16) waiting_command {
  nvme::submission_entry command;
  u64 due = 0;      ///< ticks
  u64 fetched = 0;  ///< ticks
  // Of drives with a fault plan only.
  u64 random = 0;
  u16 error_code = 0;
  bool used = false;
  bool drop = false;
  bool duplicate = false;
  bool unknown_identifier = false;
};

/// Fixed while the queue is served. Whoever holds the lock copies it into registers first, with everything that is asked for
/// each command: an acquire empties a GPU's L1, and each look at memory is a fifth of a microsecond that the others wait.
struct queue_facts {
  queue_rings rings;
  drive_record* drive = nullptr;
  waiting_command* waiting = nullptr;
  u32 waiting_capacity = 0;  ///< a power of two
  u32 completions_per_command = 1;
  bool within_gpu = false;            ///< threads of this GPU alone look at the completion ring, which lies in its memory
  bool plain = true, faulty = false;  ///< see drive_record
  bool poison_fetched = false, torn_completion = false;
};

/// Where the taking side stands. Under the lock.
struct queue_positions {
  u32 sq_head = 0;
  u32 refused_tail = ~0u;
  u32 refused_head = ~0u;
  u32 unused = 0;
  u64 fetched = 0;
  u64 cq_seen = 0;  ///< completions that the host has read
};

struct queue_fields {
  queue_facts facts;
  alignas(128) queue_positions positions;
  u64 first_waiting = 0;  ///< counts; taken modulo waiting_capacity; under the lock
  u64 next_waiting = 0;   ///< one more than the newest

  // Shared by all who serve it; device scope.
  alignas(128) u64 posted = 0;        ///< completions posted : 48, submission queue head : 16
  u64 next_due = ~u64{0};             ///< nothing that waits needs to be begun before; a hint
  alignas(128) u64 reserved = 0;      ///< completions posted, or to come for what was taken
  u32 inside = 0;                     ///< batches that were taken and are not posted; kept where queues come and go
  alignas(128) served_counts counts;  ///< of a plain drive; the others count at the drive
};

struct queue_record : queue_fields {
  alignas(128) u32 lock = 0;
  u32 active = 0;  ///< written by the host, under the lock where queues come and go
};

/// Where a resident body and its host meet. Host memory that both reach; each word has one writer.
struct server_control {
  alignas(64) u32 stop = 0;      ///< host: leave
  alignas(64) u32 answered = 0;  ///< kernel: all blocks run
  alignas(64) u32 left = 0;      ///< kernel: why it left; 1 told to, 2 nothing to do for too long
};

/// In the body's own memory.
struct server_shared {
  alignas(128) u64 link_read_clock = 0;   ///< ticks: when the shared link is free for what drives send
  alignas(128) u64 link_write_clock = 0;  ///< and for what they are sent
  alignas(128) u32 slots_and_stop = 0;    ///< queue records in use (the highest and one); the highest bit: leave
  alignas(128) u32 blocks_running = 0;
  u64 last_work_ns = 0;
};
inline constexpr u32 stop_bit = 1u << 31;

/// Goes to the body by value.
struct server_view {
  queue_record* queues = nullptr;
  server_shared* shared = nullptr;
  server_control* control = nullptr;
  u64 link_ticks_per_mib = 0;       ///< what 1 MiB takes of a direction of the shared link, headers included; 0: no cap
  u32 servers_per_queue = 4;        ///< most groups that look after one queue
  bool queues_come_and_go = false;  ///< while it runs: memory of a queue may be touched under its lock only
};

}  // namespace penstock::controllers
