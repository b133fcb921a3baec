// What a volume's members begin with, byte by byte (docs/VOLUMES.md): two superblocks, two places for the table of contents,
// then data. Numbers are little-endian; whatever is read is checked before it is used.
#pragma once

#include "penstock/queue/volume.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace penstock::volumes {

using uuid = std::array<u8, 16>;

/// "0f8fad5b-d9cb-469f-a165-70867728950e".
std::string to_text(uuid const& id);
uuid new_uuid();
std::string to_text(volume_layout layout);
/// Throws bad_input for another word than single, striped or replicated.
volume_layout parse_layout(std::string const& name);

inline constexpr u32 format_version = 1;

/// Everything is moved in units of this, and begins at a multiple of it; the largest logical block that a member may have.
inline constexpr u64 page_bytes = 4096;
inline constexpr u64 superblock_bytes = page_bytes;
inline constexpr u64 superblock_places[] = {0, u64{64} << 10};
/// The table of generation g is in place g modulo 2.
inline constexpr u64 table_places[] = {u64{128} << 10, u64{576} << 10};
inline constexpr u64 most_table_bytes = u64{448} << 10;
inline constexpr u64 least_header_bytes = u64{1} << 20;
/// Most bytes with one checksum; what lies on one member, and one command moves.
inline constexpr u64 most_chunk_bytes = u64{64} << 10;
inline constexpr u64 most_stripe_bytes = u64{1} << 30;

/// How a volume's addresses lie on its members: as penstock::volume_view has it, headers included, so that a cache over the
/// members reads data in place. The headers are the addresses before `first()`.
struct geometry {
  volume_layout layout = volume_layout::single;
  u32 members = 1;
  u64 stripe_bytes = most_chunk_bytes;  ///< a power of two
  u64 header_bytes = 0;                 ///< of each member; whole stripes
  u64 member_bytes = 0;                 ///< of each member that the volume uses; whole stripes

  u64 shares() const { return layout == volume_layout::striped ? members : 1; }
  u64 first() const { return header_bytes * shares(); }
  u64 end() const { return member_bytes * shares(); }
  u64 chunk_bytes() const { return stripe_bytes < most_chunk_bytes ? stripe_bytes : most_chunk_bytes; }
  volume_view view() const;

  friend bool operator==(geometry const&, geometry const&) = default;
};

/// For `members` members of which the smallest has `least_bytes`. Throws bad_input, naming `smallest`, for what cannot be.
geometry plan_geometry(volume_layout layout, u32 members, u64 stripe_bytes, u64 least_bytes, std::string const& smallest);

struct superblock {
  uuid id{};
  u32 member = 0;
  geometry shape;
  u64 generation = 0;   ///< counts changes; the first is 1
  u64 table_bytes = 0;  ///< of the table of this generation
  u32 table_crc = 0;

  friend bool operator==(superblock const&, superblock const&) = default;
};

std::array<std::byte, superblock_bytes> encode(superblock const& block);

/// What lies where a superblock should.
enum class superblock_state {
  absent,   ///< something else
  damaged,  ///< it was one
  newer,    ///< one of a later version of the format
  valid,
};

struct found_superblock {
  superblock_state state = superblock_state::absent;
  u32 version = 0;   ///< newer
  superblock block;  ///< valid: all of it makes sense by itself
};

/// REQUIRES: bytes.size() == superblock_bytes.
found_superblock decode(std::span<std::byte const> bytes);

}  // namespace penstock::volumes
