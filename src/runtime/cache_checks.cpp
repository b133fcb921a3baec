#include "cache_checks.hpp"

#include "penstock/host/error.hpp"

#include <cstdint>

namespace penstock {
namespace {

constexpr u64 least_line = 512;
constexpr u64 most_line = 65536;

void check_own_fills(dataset_spec const& spec) {
  if (spec.volume.members.empty() && spec.memory == nullptr && !spec.writable) return;
  throw_bad_input("open", spec.name, "its lines are made where they are missed: give it neither volume nor memory, read-only");
}

void check_memory(dataset_spec const& spec) {
  const auto refuse_it = [&](std::string const& problem) { throw_bad_input("open", spec.name, problem); };
  if (!spec.volume.members.empty()) refuse_it("it lies in memory and on a volume: name one of them");
  if (spec.writable) refuse_it("it lies in memory, which a cache only reads: open it read-only, or through a controller");
  if (reinterpret_cast<std::uintptr_t>(spec.memory) % 16 != 0)
    refuse_it("its memory is not aligned to 16 bytes: copy it there");
}

/// Bytes of the dataset that lie on member m: whole stripes go round, the rest follows them.
u64 share_of(dataset_spec const& spec, u32 m) {
  volume_spec const& volume = spec.volume;
  if (volume.layout != volume_layout::striped) return spec.bytes;
  const u64 members = volume.members.size();
  const u64 stripes = spec.bytes / volume.stripe_bytes;
  const u64 last = stripes % members;  // whose turn it is after the whole stripes
  const u64 more = m < last ? volume.stripe_bytes : m == last ? spec.bytes % volume.stripe_bytes : 0;
  return stripes / members * volume.stripe_bytes + more;
}

}  // namespace

u64 checked_frames(cache_options const& options) {
  const u64 line = options.line_bytes;
  if (!is_power_of_two(line) || line < least_line || line > most_line) {
    throw_bad_input("create", "a cache",
                    "line size " + std::to_string(line) + " bytes: choose a power of two from 512 B to 64 KiB");
  }
  const u64 frames = options.bytes / line;
  if (frames == 0) {
    throw_bad_input("create", "a cache",
                    "its " + std::to_string(options.bytes) + " bytes hold no line of " + std::to_string(line) +
                        " bytes: make the cache larger or the lines smaller");
  }
  if (frames >> 30 != 0) {
    throw_bad_input(
        "create", "a cache",
        std::to_string(frames) + " frames: at most 2^30 can be numbered; make the cache smaller or the lines larger");
  }
  return frames;
}

void check_cache(cache_options const& options) { checked_frames(options); }

void check_volume(dataset_spec const& spec, u64 line) {
  if (spec.own_fills) return check_own_fills(spec);
  if (spec.memory != nullptr) return check_memory(spec);
  volume_spec const& volume = spec.volume;
  const u64 members = volume.members.size();
  if (members == 0 || members > volume_members_limit) {
    throw_bad_input("open", spec.name,
                    std::to_string(members) + " members: a volume has 1 to " + std::to_string(volume_members_limit));
  }
  if (volume.layout == volume_layout::single && members != 1) {
    throw_bad_input("open", spec.name, "a single volume has one member: ask for striped or replicated");
  }
  if (volume.layout == volume_layout::striped && (!is_power_of_two(volume.stripe_bytes) || volume.stripe_bytes < line)) {
    throw_bad_input("open", spec.name,
                    "stripes of " + std::to_string(volume.stripe_bytes) + " bytes: choose a power of two that holds a line");
  }
}

void check_member(dataset_spec const& spec, u32 m, namespace_facts const& facts, u64 line) {
  if (facts.block_bytes > line) {
    throw_bad_input("open", spec.name,
                    "blocks of " + std::to_string(facts.block_bytes) + " bytes are larger than lines of " +
                        std::to_string(line) + ": ask for larger lines");
  }
  const u64 most = spec.volume.members[m].owner->limits().transfer_bytes;
  if (line > most) {
    throw_bad_input("open", spec.name,
                    "lines of " + std::to_string(line) + " bytes: its controller moves at most " + std::to_string(most) +
                        " bytes at once; ask for smaller lines");
  }
  const u64 share = share_of(spec, m);
  if (spec.writable && facts.write_protected) {
    throw_bad_input("open", spec.name, "it is to be written, but a namespace of it is read-only: open that as writable");
  }
  if (facts.blocks * facts.block_bytes < share) {
    throw_bad_input("open", spec.name,
                    "a member holds " + std::to_string(facts.blocks * facts.block_bytes) + " bytes, but the dataset needs " +
                        std::to_string(share) + " there");
  }
}

}  // namespace penstock
