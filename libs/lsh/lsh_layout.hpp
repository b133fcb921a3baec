// A set of records with an index for approximate nearest neighbours (p-stable locality-sensitive hashing: Datar et al.,
// SCG 2004; Shahar and Silberstein, SYSTOR 2016, section 2.3), as files of one folder:
//
//   records    record k begins at byte k * record_bytes: `dimensions` 32-bit floats, then anything
//   lsh.index  index_header, projections, shifts, offsets and entries, each from a multiple of 4096 bytes on
//
// Table t maps a vector v to a key of 64 bits by `projections_per_table` functions floor((a . v + b) / width), a of the normal
// distribution, b between 0 and width. The key's high bits select a bucket: bucket b of table t is entries
// [offsets[t][b], offsets[t][b + 1]) of the table's N, ascending by id. Its low 32 bits are the entry's tag, which separates
// the keys that share a bucket.
#pragma once

#include "penstock/core/bits.hpp"
#include "penstock/core/config.hpp"
#include "penstock/file/file_name.hpp"

#include <bit>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

namespace penstock::lsh {

inline constexpr u64 index_magic = 0x31306873'6c74736eull;  // "nstlsh01"
inline constexpr u32 section_alignment = 4096;
inline constexpr u32 max_tables = 256, max_projections_per_table = 64, max_bucket_bits = 28;
inline constexpr u32 max_dimensions = 1u << 20;
inline constexpr float min_width = std::numeric_limits<float>::min(),
                       max_width = 0x1p126f;       // their inverses are normal numbers
inline constexpr u64 max_records = 0xffffffffull;  // an id is 32 bits, and all ones stands for none
inline constexpr char const* records_name = "records";
inline constexpr char const* index_name = "lsh.index";

struct index_entry {
  u32 id = 0;
  u32 tag = 0;
};
static_assert(std::is_trivially_copyable_v<index_entry> && sizeof(index_entry) == 8);

/// Of a table's key.
PENSTOCK_FN inline u32 bucket_of(u64 key, u32 bucket_bits) {
  return bucket_bits == 0 ? 0 : static_cast<u32>(key >> (64 - bucket_bits));
}
PENSTOCK_FN inline u32 tag_of(u64 key) { return static_cast<u32>(key); }

struct index_header {
  u64 magic = index_magic;
  u64 records = 0;
  u64 record_bytes = 0;
  u64 seed = 0;
  u32 dimensions = 0;
  u32 tables = 0;
  u32 projections_per_table = 0;
  u32 bucket_bits = 0;
  float width = 0;
  u32 checksum = 0;  ///< checksum_of

  PENSTOCK_FN u32 projections() const { return tables * projections_per_table; }
  PENSTOCK_FN u64 buckets() const { return u64{1} << bucket_bits; }

  u64 projections_at() const { return section_alignment; }
  u64 projections_bytes() const { return u64{dimensions} * projections() * sizeof(float); }
  u64 shifts_at() const { return round_up(projections_at() + projections_bytes(), u64{section_alignment}); }
  u64 offsets_at() const { return round_up(shifts_at() + projections() * sizeof(float), u64{section_alignment}); }
  u64 offsets_count() const { return tables * (buckets() + 1); }
  u64 entries_at() const { return round_up(offsets_at() + offsets_count() * sizeof(u32), u64{section_alignment}); }
  u64 file_bytes() const { return entries_at() + tables * records * sizeof(index_entry); }
};
static_assert(std::is_trivially_copyable_v<index_header> && sizeof(index_header) == 56);

/// Of the header's other fields, the projections and the shifts: what makes a query miss its buckets when it is damaged.
inline u32 checksum_of(index_header const& h, std::span<float const> projections, std::span<float const> shifts) {
  u64 sum = mix_word(h.magic);
  const auto add = [&sum](u64 word) { sum = mix_word(sum ^ word); };
  for (const u64 field : {h.records, h.record_bytes, h.seed}) add(field);
  for (const u32 field : {h.dimensions, h.tables, h.projections_per_table, h.bucket_bits}) add(field);
  add(std::bit_cast<u32>(h.width));
  for (const float number : projections) add(std::bit_cast<u32>(number));
  for (const float number : shifts) add(std::bit_cast<u32>(number));
  return static_cast<u32>(sum);
}

}  // namespace penstock::lsh
