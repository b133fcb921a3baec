// What a command asks for, and the bytes that it moves, for a group that serves a batch: each member decodes one command, then
// all members move the bytes of all commands together. The same statuses as command_decoder.cpp.
#pragma once

#include "prp_cursor.hpp"
#include "served_records.hpp"

#include "penstock/core/memory_access.hpp"
#include "penstock/group/thread_group.hpp"
#include "penstock/nvme/command.hpp"

namespace penstock::controllers {

struct served_transfer {
  u16 status = nvme::code::success;
  bool write = false;
  bool scattered = false;  ///< goes page by page: more than one page, or an address that is not aligned to 16
  u64 bytes = 0;           ///< 0: nothing to move
  u64 media = 0;
  u64 prp1 = 0, prp2 = 0;
};

PENSTOCK_FN inline served_transfer refused(u16 status) {
  served_transfer result;
  result.status = status;
  return result;
}

/// Looks at every PRP, so that a command that fails has moved nothing.
PENSTOCK_COLD inline u16 check_prps(u64 prp1, u64 prp2, u64 bytes) {
  for (prp_cursor cursor(prp1, prp2, bytes); !cursor.done();) {
    prp_piece piece;
    if (const u16 status = cursor.next(piece); status != nvme::code::success) return status;
  }
  return nvme::code::success;
}

/// The bytes that a drive's clock counts for a command. Less than `decode` looks at: it is asked for under a lock.
PENSTOCK_FN inline u64 asked_bytes(drive_record const& drive, drive_pace const& pace, nvme::submission_entry const& command) {
  const bool moves =
      command.opcode == static_cast<u8>(nvme::opcode::read) || command.opcode == static_cast<u8>(nvme::opcode::write);
  const u32 space = command.namespace_id - 1;
  if (!moves || space >= most_namespaces) return 0;
  const u64 bytes = u64{nvme::block_count(command)} << drive.spaces[space].block_shift;
  return bytes <= pace.transfer_bytes ? bytes : 0;
}

PENSTOCK_FN inline served_transfer decode(drive_record const& drive, nvme::submission_entry const& command) {
  const bool write = command.opcode == static_cast<u8>(nvme::opcode::write);
  const bool flush = command.opcode == static_cast<u8>(nvme::opcode::flush);
  if (!write && !flush && command.opcode != static_cast<u8>(nvme::opcode::read)) return refused(nvme::code::invalid_opcode);
  if (command.flags != 0) return refused(nvme::code::invalid_field);
  if (command.namespace_id == 0 || command.namespace_id > drive.space_count) return refused(nvme::code::invalid_namespace);
  if (flush) return {};
  served_namespace const& space = drive.spaces[command.namespace_id - 1];
  const u64 start = value(nvme::starting_lba(command));
  const u64 blocks = nvme::block_count(command);
  const u64 all_blocks = space.bytes >> space.block_shift;
  if (start >= all_blocks || blocks > all_blocks - start) return refused(nvme::code::lba_out_of_range);
  served_transfer result;
  result.bytes = blocks << space.block_shift;
  if (result.bytes > drive.pace.transfer_bytes) return refused(nvme::code::invalid_field);
  result.write = write;
  result.media = space.memory + (start << space.block_shift);
  result.prp1 = command.prp1;
  result.prp2 = command.prp2;
  result.scattered = nvme::pages_touched(command.prp1, result.bytes) > 1 || (command.prp1 | result.media) % 16 != 0;
  if (result.scattered || command.prp1 == 0) {
    const u16 status = check_prps(command.prp1, command.prp2, result.bytes);
    if (status != nvme::code::success) return refused(status);
  }
  return result;
}

/// Copies a piece of a page. Collective; any alignment of 8.
template <thread_group G>
PENSTOCK_FN void move_piece(G const& g, u64 to, u64 from, u32 bytes) {
  const u32 width = size(g);
  if ((to | from | bytes) % 16 == 0) {
    for (u32 at = 16 * g.rank(); at < bytes; at += 64 * width) {
      piece16 held[4];
      PENSTOCK_UNROLL
      for (u32 k = 0; k < 4; ++k) {
        if (at + 16 * width * k < bytes) held[k] = load_shared(from + at + 16 * width * k);
      }
      PENSTOCK_UNROLL
      for (u32 k = 0; k < 4; ++k) {
        if (at + 16 * width * k < bytes) store_shared(to + at + 16 * width * k, held[k]);
      }
    }
    return;
  }
  for (u32 at = 8 * g.rank(); at < bytes; at += 8 * width) {
    const u64 word = system_ref<u64>(*reinterpret_cast<u64*>(from + at)).load(relaxed);
    system_ref<u64>(*reinterpret_cast<u64*>(to + at)).store(word, release);
  }
}

/// Page by page; the same arguments in all members. Collective.
template <thread_group G>
PENSTOCK_COLD void move_scattered(G g, bool write, u64 media, u64 prp1, u64 prp2, u64 bytes) {
  for (prp_cursor cursor(prp1, prp2, bytes); !cursor.done();) {
    prp_piece piece;
    if (cursor.next(piece) != nvme::code::success) return;  // the list was changed after it was checked
    write ? move_piece(g, media, piece.address, piece.bytes) : move_piece(g, piece.address, media, piece.bytes);
    media += piece.bytes;
  }
}

/// Loads that a thread has on their way before it stores the first of them: 128 bytes in each, 4 KiB in a warp.
inline constexpr u32 loads_in_flight = 8;

/// `commands` of equal size lie one after another in members 0, 1, ...; a row is what one load per member moves. Not inlined:
/// it is called once for a batch, and its registers are many. Collective.
template <thread_group G>
PENSTOCK_COLD void move_rows(G g, u64 to, u64 from, u32 commands, u32 rows_shift) {
  const u32 row_bytes = 16 * size(g);
  const u32 rows = commands << rows_shift;
  const u32 within = (1u << rows_shift) - 1;
  const u64 mine = 16 * g.rank();
  for (u32 first = 0; first < rows; first += loads_in_flight) {
    piece16 held[loads_in_flight];
    // Past the end the last row is loaded again; a load that depends on nothing is cheaper than asking.
    PENSTOCK_UNROLL
    for (u32 k = 0; k < loads_in_flight; ++k) {
      const u32 row = first + k < rows ? first + k : rows - 1;
      held[k] = load_shared(g.shfl(from, row >> rows_shift) + (row & within) * row_bytes + mine);
    }
    PENSTOCK_UNROLL
    for (u32 k = 0; k < loads_in_flight; ++k) {
      const u32 row = first + k < rows ? first + k : rows - 1;
      const u64 address = g.shfl(to, row >> rows_shift) + (row & within) * row_bytes + mine;
      if (first + k < rows) store_shared(address, held[k]);
    }
  }
}

/// Moves the bytes of all members' commands. Collective.
template <thread_group G>
PENSTOCK_FN void move_batch(G const& g, served_transfer const& mine) {
  const auto moving = g.ballot(mine.bytes != 0);
  if (!any(moving)) return;
  const u64 to = mine.write ? mine.media : mine.prp1;
  const u64 from = mine.write ? mine.prp1 : mine.media;
  const u64 bytes = g.shfl(mine.bytes, lowest(moving));
  const u32 commands = count(moving);
  const bool odd = mine.bytes != 0 ? mine.scattered || mine.bytes != bytes : g.rank() < commands;
  if (!any(g.ballot(odd)) && is_power_of_two(bytes)) {
    return move_rows(g, to, from, commands, lowest_bit(static_cast<u32>(bytes / (16 * size(g)))));
  }
  for (auto left = moving; any(left);) {
    const u32 owner = lowest(left);
    left = without(left, lane_mask{1} << owner);
    if (g.shfl(mine.scattered, owner) != 0) {
      move_scattered(g, g.shfl(mine.write, owner) != 0, g.shfl(mine.media, owner), g.shfl(mine.prp1, owner),
                     g.shfl(mine.prp2, owner), g.shfl(mine.bytes, owner));
    } else {
      move_piece(g, g.shfl(to, owner), g.shfl(from, owner), static_cast<u32>(g.shfl(mine.bytes, owner)));
    }
  }
}

}  // namespace penstock::controllers
