// The cache, as one thread sees it: looks a line up, pins it, claims a frame for it. The steps are PROTOCOLS.md §2; how a frame
// is had for a claim depends on the directory (direct_claim.hpp, set_claim.hpp). What the lanes of a group do together stands
// in coalesce/.
//
// Invariants. 1: a line is in at most one frame (`direct`: its one entry names it; `set_associative`: set_claim.hpp says why).
// 2: a frame's bytes change only while its line is `filling` or under a pin of a thread that then makes it dirty. 3: a pinned
// frame is never evicted: eviction and claim compare-and-swap an entry without pins. 5: the version changes with each claim, so
// a validated read that straddles a refill sees another identity.
#pragma once

#include "penstock/cache/clock_policy.hpp"
#include "penstock/cache/direct_claim.hpp"
#include "penstock/cache/fill_admission.hpp"
#include "penstock/cache/line_sink.hpp"
#include "penstock/cache/set_claim.hpp"
#include "penstock/core/retry_policy.hpp"
#include "penstock/queue/queue_pair.hpp"

namespace penstock {

/// What the program was about when an access failed.
enum class fault_access : u32 { read, write };

/// First failure that an access without room for a status met; the host looks at the next synchronize. In memory that both
/// reach, so that a look is a load of the host's: after each call it would else be a copy, and the wait for it. Kernels only
/// store here (PROTOCOLS.md, W8): a word of their own memory settles which one may.
struct fault_slot {
  u32 failure = 0;  ///< packed status, stored last and with release, partner: check_faults; 0: none so far
  u32 dataset = 0;  ///< index in the cache
  u64 offset = 0;   ///< in the dataset, bytes
  fault_access access = fault_access::read;
};

/// What a cache view has before its policy: all that a usual miss needs, in the first 128 bytes, for after an acquire each 32
/// bytes of it are a trip to L2.
struct line_cache_front {
  using queue_pair = queue_pair_view<line_sink>;

  directory_view directory;
  frame_record* records = nullptr;  ///< [frames]
  u64 frames_base = 0;              ///< address of frame 0
  u64 prp_lists = 0;                ///< address of the frames' PRP lists, `prp_list_stride` each; 0 where none is needed
  dataset_view* datasets = nullptr;
  queue_pair* queues = nullptr;
  u64* next_fresh = nullptr;  ///< of `direct`: the first frame that no line has had so far; `frames` or more: there is none
  u32* serving = nullptr;     ///< 1 while a queue_service moves the queues
  u32 frames = 0;
  u32 line_shift = 0;
  u32 queues_count = 0;
  u32 reads_ahead = 0;     ///< lines, a multiple of 32, that reads along lines are ahead of (coalesce/read_ahead.hpp); 0: none
  bool looks_up = true;    ///< false: without a cache, each access claims a frame of its own
  bool coalesces = true;   ///< lanes that want the same line go through one of them
  bool validates = false;  ///< versions are long enough for reads without a pin on this executor

  u64 patience_ns = 0;                  ///< how long one access may wait in all
  u32* prefetches_in_flight = nullptr;  ///< [prefetch_shards]
  u32 prefetch_shards = 0;              ///< a power of two
  u32 prefetch_limit = 0;               ///< in flight per shard
  u32 spare_normal = 0;                 ///< lines that a search for one that is streamed passes by; 0 while nothing is streamed
  u32 spare_kept = 0;                   ///< those, and kept lines that it then passes by; 0 while nothing is advised
};

template <replacement_policy Policy>
struct line_cache_policy {
  Policy policy;
};

struct line_cache_back {
  retry_policy retry;
  fill_admission admission;
  write_back_view writes;
  fault_slot* fault = nullptr;
  u32* fault_taken = nullptr;  ///< 1 from a fault on until the host has reported it
  u64 process = 0;             ///< a random number of this process (group/lane_meeting.hpp)
};

/// Trivially copyable handle; the host-side `line_cache` owns what it points at.
template <replacement_policy Policy = clock_policy>
struct alignas(128) basic_line_cache_view : line_cache_front, line_cache_policy<Policy>, line_cache_back {
  /// The same cache for threads that choose their victims by another policy: of a `direct` directory, whose frames it names by
  /// number. The sets of a set-associative one have their own order. REQUIRES: what `advise` and `limit_share` of the cache
  /// change is changed before.
  template <replacement_policy Other>
  basic_line_cache_view<Other> with(Other const& other) const {
    return {*this, {other}, *this};
  }

  PENSTOCK_FN u64 line_bytes() const { return 1ull << line_shift; }
  PENSTOCK_FN u64 frame_address(u64 const* entry, u64 word) const {
    return frames_base + (directory.frame_of(entry, word) << line_shift);
  }
  PENSTOCK_FN frame_record& record_of(u64 const* entry, u64 word) const { return records[directory.frame_of(entry, word)]; }

  /// How the dataset that has a frame is advised; a hint, as the record that says so.
  PENSTOCK_FN advice advised(u64 owner) const {
    return spare_kept == 0 || owner == frame_record::nobody ? advice::normal
                                                            : datasets[frame_record::dataset_of(owner)].advised;
  }

  /// Takes a pin on a valid or filling line, or claims an empty or failed one; `entry` is then the one that holds pin or claim.
  /// `wide`: the caller is a whole warp's leader. `claims`: it may take a frame for the line.
  PENSTOCK_FN access_step look(dataset_view const& data, line_id line, bool wide, bool claims, u64*& entry,
                               victim_search& search) const {
    found_line at = looks_up ? directory.find(line) : found_line{};
    access_step step = access_step::again;
    if (!claims && (at.entry == nullptr || at.state() == line_state::empty)) return access_step::queue;
    if (at.entry == nullptr) step = search.time([&] { return claim_in_set(*this, data, line, 1, at); });
    entry = at.entry;
    if (step != access_step::again || at.entry == nullptr) return step;
    switch (at.state()) {
      case line_state::valid: return pin_valid(*at.entry, at.word, wide);
      case line_state::filling: return join(*at.entry, at.word, wide);
      case line_state::empty: return claim(data, line, at, 1, search);
      case line_state::failed: return claim(data, line, at, 1, search);
    }
    return access_step::again;
  }

  /// Takes a pin on a line that is valid, and does nothing with any other: no entry then. `wide`: as `look`.
  PENSTOCK_FN found_line try_pin(line_id line, bool wide) const {
    const found_line at = looks_up ? directory.find(line) : found_line{};
    if (at.entry == nullptr || at.state() != line_state::valid) return {};
    return pin_valid(*at.entry, at.word, wide) == access_step::pinned ? at : found_line{};
  }

  /// Claims an empty line with `pins` pins; none: for a prefetch. `claimed`, `no_frame`, or `again` where there is nothing to
  /// do. `at`: what the directory says of it, then the claim as its word was.
  PENSTOCK_FN access_step claim_empty(dataset_view const& data, line_id line, u64 pins, found_line& at,
                                      victim_search& search) const {
    if (at.entry == nullptr) return search.time([&] { return claim_in_set(*this, data, line, pins, at); });
    return at.state() == line_state::empty ? claim(data, line, at, pins, search) : access_step::again;
  }

  /// Gives back a pin after reads. Release: a load still on its way must not read the next tenant.
  PENSTOCK_FN void unpin(u64* entry) const { add_release(*entry, 0 - entry::one_pin); }

  /// Gives back a pin after stores. Dirty first and with release, so that a thread that claims the line for a write has what
  /// was stored; the pin after it, so that no thread evicts the line between. Returns whether the line was clean.
  PENSTOCK_FN bool unpin_written(u64* entry) const {
    const u64 old = device_ref<u64>(*entry).fetch_or(entry::dirty_bit, release);
    device_ref<u64>(*entry).fetch_sub(entry::one_pin, relaxed);
    return count_dirty(old);
  }

  /// A line that this thread has claimed with one pin, and stored whole: it is valid and dirty, and the pin is given back.
  PENSTOCK_FN void publish_written(u64* entry) const {
    // A thread that saw another line here may set the referenced bit at any moment: it is never added.
    device_ref<u64>(*entry).fetch_or(entry::referenced_bit, relaxed);
    count_dirty(device_ref<u64>(*entry).fetch_add(entry::publish + entry::dirty_bit - entry::one_pin, release));
  }

  /// The line was used: it gets a second turn of the clock.
  PENSTOCK_FN void reference(found_line at) const {
    if ((at.word & entry::referenced_bit) == 0) device_ref<u64>(*at.entry).fetch_or(entry::referenced_bit, relaxed);
  }

  /// What fills a claimed line, by its dataset's source: a Read command and the queue pair it goes to, or the memory that so
  /// many bytes are copied from. And the line's frame, from `place` on.
  struct fill {
    transfer command;
    line_sink::target target;
    u32 queue;
    u64 memory;
  };

  /// All of it but the frame, which `place` adds: where the bytes lie does not depend on the claim.
  PENSTOCK_FN fill make_fill(dataset_view const& data, line_id line) const {
    volume_member member = data.volume.members[0];
    load_above();
    const u32 ordinal = executor_ordinal();
    const u64 offset = (value(line) - data.first_line) << line_shift;
    fill f{};
    const u64 bytes = data.bytes - offset < line_bytes() ? data.bytes - offset : line_bytes();
    if (data.source() == fill_source::memory) {
      f.memory = data.memory + offset;
      f.command.bytes = static_cast<u32>(bytes);
      return f;
    }
    // The line's number, too, spreads over replicas: else one thread would ask one member for everything.
    const auto where = data.volume.locate(byte_offset{offset}, ordinal + static_cast<u32>(offset >> line_shift));
    if (where.member != 0) member = data.volume.members[where.member];
    const u32 blocks = static_cast<u32>((bytes + (1ull << member.block_shift) - 1) >> member.block_shift);
    f.command.command =
        nvme::transfer_command(nvme::opcode::read, member.namespace_id, lba{value(where.offset) >> member.block_shift}, blocks);
    f.command.bytes = blocks << member.block_shift;
    f.queue = member.first_queue + ordinal % member.queues;
    return f;
  }

  /// To the frame of a claim. `in_flight`: of a prefetch; else null.
  PENSTOCK_FN void place(fill& f, found_line claimed, u32* in_flight) const {
    const u64 frame = directory.frame_of(claimed.entry, claimed.word);
    f.command.address = frames_base + (frame << line_shift);
    f.command.prp_list = prp_lists + frame * prp_list_stride;
    f.target = {claimed.entry, &records[frame], in_flight};
  }

  /// A claim whose command could not be submitted: all waiters see its failure, as that of a failed fill.
  PENSTOCK_FN void fail_claim(u64* entry, status why, u32* in_flight) const {
    line_sink::finish({entry, &record_of(entry, device_ref<u64>(*entry).load(relaxed)), in_flight}, why);
  }

  /// Keeps the first fault. Cost: one load when there was one already.
  PENSTOCK_FN void latch(status why, fault_access access, u32 dataset, u64 offset) const {
    device_ref<u32> taken(*fault_taken);
    if (taken.load(relaxed) != 0 || taken.exchange(1, acquire) != 0) return;
    system_ref<u32>(fault->dataset).store(dataset, relaxed);
    system_ref<u64>(fault->offset).store(offset, relaxed);
    system_ref<fault_access>(fault->access).store(access, relaxed);
    system_ref<u32>(fault->failure).store(pack(why), release);
  }

 private:
  PENSTOCK_FN bool count_dirty(u64 old) const {
    if (entry::dirty(old)) return false;
    device_ref<u64>(writes.state->lines).fetch_add(1, relaxed);
    return true;
  }

  PENSTOCK_FN access_step pin_valid(u64& word, u64 e, bool wide) const {
    if (wide) {
      // Looks afterwards: no more than one warp a time can be between the two, and the field holds twice the limit.
      const u64 old = device_ref<u64>(word).fetch_add(entry::one_pin, acquire);
      if (entry::same(old, e) && entry::pins(old) < entry::most_pins) {
        if ((old & entry::referenced_bit) == 0) device_ref<u64>(word).fetch_or(entry::referenced_bit, relaxed);
        return access_step::pinned;
      }
      device_ref<u64>(word).fetch_sub(entry::one_pin, relaxed);
      return entry::pins(old) >= entry::most_pins ? access_step::pin_limit : access_step::again;
    }
    u64 expected = e;
    do {
      if (!entry::same(expected, e)) return access_step::again;
      if (entry::pins(expected) >= entry::most_pins) return access_step::pin_limit;
    } while (!device_ref<u64>(word).compare_exchange_weak(expected, (expected + entry::one_pin) | entry::referenced_bit,
                                                          acquire, relaxed));
    return access_step::pinned;
  }

  // As pin_valid: whole warps look afterwards, and there are too few of them to overflow the field; single threads are not.
  PENSTOCK_FN access_step join(u64& word, u64 e, bool wide) const {
    if (entry::pins(e) >= entry::most_pins) return access_step::pin_limit;
    u64 old = e;
    if (wide) {
      old = device_ref<u64>(word).fetch_add(entry::one_pin, acquire);
      if (can_join(e, old)) return joined(old);
      device_ref<u64>(word).fetch_sub(entry::one_pin, relaxed);
      return access_step::again;
    }
    do {
      if (!can_join(e, old)) return access_step::again;
      if (entry::pins(old) >= entry::most_pins) return access_step::pin_limit;
    } while (!device_ref<u64>(word).compare_exchange_weak(old, old + entry::one_pin, acquire, relaxed));
    return joined(old);
  }

  // Still the line that was seen, filling or filled; its place may have come meanwhile.
  PENSTOCK_FN bool can_join(u64 seen, u64 e) const {
    return (entry::state(e) == line_state::filling || entry::state(e) == line_state::valid) && directory.same_line(seen, e);
  }
  PENSTOCK_FN static access_step joined(u64 e) {
    return entry::state(e) == line_state::valid ? access_step::pinned : access_step::filling;
  }

  /// Claims a line's own entry: an empty one of `direct`, or a failed one, which keeps its frame. The asker's pin goes in with
  /// the claim, so that the fill serves its requester however small the cache is.
  PENSTOCK_FN access_step claim(dataset_view const& data, line_id line, found_line& at, u64 pins, victim_search& search) const {
    const u64 e = at.word;
    const u32 part = data.part < frames ? data.part : frames;
    if (!entry::at_rest(e)) return access_step::again;
    u64 expected = e;
    at.word = directory.layout.claimed(e, pins);
    // What a claim announces is published with the store of the bytes: on a GPU behind a fence, or to a controller behind a
    // doorbell.
    if (entry::state(e) == line_state::empty) {
      // All that its frame's last tenants left is acquired with the frame.
      const bool won = device_ref<u64>(*at.entry).compare_exchange_strong(expected, at.word, relaxed, relaxed);
      return won ? place_claimed(*this, data, line, part, at, pins, search) : access_step::again;
    }
    if (!device_ref<u64>(*at.entry).compare_exchange_strong(expected, at.word, acquire, relaxed)) return access_step::again;
    record_of(at.entry, e).store_failure({});
    return access_step::claimed;
  }
};

using line_cache_view = basic_line_cache_view<>;

}  // namespace penstock
