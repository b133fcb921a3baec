// The table of open files in local memory: one entry for each, shared by all of its descriptors. A group opens a file whose
// name is known, and closes one that others still have, without a call to the host.
//
// The word `users` counts the descriptors, and the opens that the host has answered and not had back (host opens):
//   U1  A word with host opens is of an open file. The last user takes all of them at once and gives them back; the host closes
//       the file if no other open is on its way, and that ends the generation.
//   U2  A group that added itself to a word with host opens, of the generation that it had looked up, has a descriptor. Any
//       other takes itself off again, and may be the last user then.
//   U3  A new generation keeps the count of users: those who added themselves to the old one are still to take themselves off.
#pragma once

#include "penstock/core/atomic.hpp"
#include "penstock/core/units.hpp"
#include "penstock/file/file_call.hpp"
#include "penstock/file/file_name.hpp"

namespace penstock {

/// An open file. Trivially copyable. All opens of a file that is open get the same one, which is over with as many closes.
struct file_descriptor {
  u64 first_byte = 0;   ///< of its range in the folder's line space
  u64 range_bytes = 0;  ///< as many may it have
  u32 slot = 0;
  u32 generation = 0;  ///< 0: none
  u32 flags = 0;
};

/// The word that counts users. Users are biased: one that is taken off too often, for a moment, borrows from nothing.
struct user_word {
  static constexpr u32 user_bits = 24, host_bits = 23;
  static constexpr u64 one_user = 1, one_host_open = u64{1} << user_bits, writable = u64{1} << (user_bits + host_bits);
  static constexpr u64 bias = u64{1} << (user_bits - 2);
  static constexpr u64 max_users = u64{1} << (user_bits - 1);

  u64 word = bias;

  PENSTOCK_FN u32 generation() const { return static_cast<u32>(word >> size_bits); }
  PENSTOCK_FN u32 host_opens() const { return static_cast<u32>(word >> user_bits & ((1u << host_bits) - 1)); }
  /// Plus `bias`.
  PENSTOCK_FN u64 users() const { return word & ((u64{1} << user_bits) - 1); }
  PENSTOCK_FN bool can_write() const { return (word & writable) != 0; }
  PENSTOCK_FN bool is_of(u32 wanted) const { return generation() == wanted && host_opens() != 0; }
  /// No descriptor is left, and the host has not had its opens back.
  PENSTOCK_FN bool is_left() const { return users() == bias && host_opens() != 0; }
  PENSTOCK_FN user_word without_host_opens() const { return {u64{generation()} << size_bits | users()}; }
  PENSTOCK_FN user_word of_generation(u32 next) const { return {u64{next} << size_bits | users()}; }
};

/// What all groups share of an open file.
struct alignas(64) open_file {
  u64 size = 0;  ///< generation << size_bits | bytes
  u64 users = user_word{}.word;
  u64 name[2] = {};  ///< that it was opened by last: see open_file_table::sealed
  u64 first_byte = 0;
  u64 range_bytes = 0;
  u64 flushing = 0;  ///< see dirty_parts
  u32 dirty = 0;     ///< see dirty_parts
  u32 truncations = 0;
};
static_assert(sizeof(open_file) == 64);

/// What the last user of a file owes the host.
struct host_debt {
  u32 generation = 0;
  u32 opens = 0;  ///< 0: nothing, others have it
};

/// The table, for kernels. Trivially copyable. Its functions are of one thread, a group's leader.
struct open_file_table {
  open_file* files = nullptr;
  u32* hints = nullptr;    ///< [buckets][hints_per_bucket] a slot and one; any may be out of date
  u64* renames = nullptr;  ///< how many names the folder has taken away: what was known before is not known any more
  u32 buckets = 0;         ///< a power of two
  name_hasher hasher;

  static constexpr u32 hints_per_bucket = 4;
  /// Of a file that the host has opened, and nobody here yet.
  static constexpr u64 unknown_size = size_mask;

  /// Adds a user to the file that is open under a name. False: the host must be asked. `debt`: see remove_user.
  PENSTOCK_FN bool add_user_by_name(name_hash const& name, u32 flags, file_descriptor& file, host_debt& debt) const {
    const u64 epoch = device_ref<u64>(*renames).load(acquire);
    for (u32 k = 0; k < hints_per_bucket; ++k) {
      const u32 hint = device_ref<u32>(*hint_of(name, k)).load(relaxed);
      if (hint == 0) continue;
      open_file& entry = files[hint - 1];
      const user_word seen{device_ref<u64>(entry.users).load(acquire)};
      if (!seen.is_of(seen.generation()) || !has_name(entry, name, seen.generation(), epoch)) continue;
      if ((flags & file_flag::write) != 0 && !seen.can_write()) return false;
      if (seen.users() >= user_word::bias + user_word::max_users) return false;
      const user_word before{device_ref<u64>(entry.users).fetch_add(user_word::one_user, acq_rel)};
      if (before.is_of(seen.generation())) {
        file = descriptor_of(hint - 1, seen.generation(), flags);
        return true;
      }
      take_user_off(entry, 0);
      debt = take_debt(entry);
      file.slot = hint - 1;
      return false;
    }
    return false;
  }

  /// Takes over what the host has opened. `given.number`: how many names were gone before it looked the name up.
  PENSTOCK_FN file_descriptor add_user(file_call::answer const& given, u32 flags, name_hash const& name) const {
    open_file& entry = files[given.slot];
    const auto store = [](u64& word, u64 value) { device_ref<u64>(word).store(value, relaxed); };
    store(entry.first_byte, given.first_byte);
    store(entry.range_bytes, given.range_bytes);
    set_size(entry, given.generation, given.size);
    for (u32 k = 0; k < 2; ++k) store(entry.name[k], sealed(name.part[k], given.generation, given.number));
    advance(entry, given.generation);
    // The host keeps the file open for this open at least, so the generation stays what it is now.
    device_ref<u64> users(entry.users);
    if ((flags & file_flag::write) != 0) users.fetch_or(user_word::writable, relaxed);
    users.fetch_add(user_word::one_user + user_word::one_host_open, acq_rel);
    remember(name, given.slot);
    return {given.first_byte, given.range_bytes, given.slot, given.generation, flags};
  }

  /// Adds a user to a file that is open. False: the descriptor is over. `debt`: see remove_user.
  PENSTOCK_FN bool add_user_again(file_descriptor const& file, host_debt& debt) const {
    open_file& entry = files[file.slot];
    if (!user_word{device_ref<u64>(entry.users).load(relaxed)}.is_of(file.generation)) return false;
    if (user_word{device_ref<u64>(entry.users).fetch_add(user_word::one_user, acq_rel)}.is_of(file.generation)) return true;
    take_user_off(entry, 0);
    debt = take_debt(entry);
    return false;
  }

  /// Takes a user off. False: the descriptor is over already. `debt`: what the caller has to give back to the host, if it was
  /// the last one.
  PENSTOCK_FN bool remove_user(file_descriptor const& file, host_debt& debt) const {
    open_file& entry = files[file.slot];
    if (!user_word{device_ref<u64>(entry.users).load(relaxed)}.is_of(file.generation)) return false;
    const bool had = take_user_off(entry, file.generation);
    debt = take_debt(entry);
    return had;
  }

  /// What could not be given back is somebody's to give back again.
  PENSTOCK_FN void owe_again(u32 slot, host_debt const& debt) const {
    device_ref<u64>(files[slot].users).fetch_add(user_word::one_host_open * debt.opens, acq_rel);
  }

  /// REQUIRES: the caller is a user of the generation, or owes its host opens.
  PENSTOCK_FN file_descriptor descriptor_of(u32 slot, u32 generation, u32 flags) const {
    open_file& entry = files[slot];
    return {device_ref<u64>(entry.first_byte).load(relaxed), device_ref<u64>(entry.range_bytes).load(relaxed), slot, generation,
            flags};
  }

  /// The host has closed the file of a slot: its next one has this generation.
  PENSTOCK_FN void end_generation(u32 slot, u32 next) const {
    set_size(files[slot], next, unknown_size);
    advance(files[slot], next);
  }

  /// Names that were known are to be asked for again.
  PENSTOCK_FN void forget_names(u64 epoch) const { raise_to(*renames, epoch); }

 private:
  /// The size that a generation begins with. Who comes later leaves it: those who have the file know it better than the host.
  PENSTOCK_FN static void set_size(open_file& entry, u32 generation, u64 size) {
    device_ref<u64> word(entry.size);
    const u64 unknown = u64{generation} << size_bits | unknown_size;
    u64 seen = word.load(relaxed);
    while (seen >> size_bits < generation || (seen == unknown && size != unknown_size)) {
      if (word.compare_exchange_weak(seen, u64{generation} << size_bits | size, relaxed, relaxed)) return;
    }
  }

  PENSTOCK_FN u32* hint_of(name_hash const& name, u32 k) const {
    return hints + (name.part[0] & (buckets - 1)) * hints_per_bucket + k;
  }

  /// Both parts of a name with what it holds for: of two names that are stored at once, no mixture is taken for a third.
  PENSTOCK_FN static u64 sealed(u64 part, u32 generation, u64 epoch) { return part ^ mix_word(u64{generation} << 48 ^ epoch); }
  PENSTOCK_FN static bool has_name(open_file const& entry, name_hash const& name, u32 generation, u64 epoch) {
    auto& file = const_cast<open_file&>(entry);
    return device_ref<u64>(file.name[0]).load(relaxed) == sealed(name.part[0], generation, epoch) &&
           device_ref<u64>(file.name[1]).load(relaxed) == sealed(name.part[1], generation, epoch);
  }

  PENSTOCK_FN void remember(name_hash const& name, u32 slot) const {
    u32 victim = slot % hints_per_bucket;
    for (u32 k = 0; k < hints_per_bucket; ++k) {
      const u32 hint = device_ref<u32>(*hint_of(name, k)).load(relaxed);
      if (hint == slot + 1) return;
      if (hint == 0) victim = k;
    }
    device_ref<u32>(*hint_of(name, victim)).store(slot + 1, relaxed);
  }

  /// False, and undone: no user was left to take off, or only of another generation than the one wanted; 0: any will do.
  PENSTOCK_FN static bool take_user_off(open_file& entry, u32 wanted) {
    const user_word before{device_ref<u64>(entry.users).fetch_sub(user_word::one_user, acq_rel)};
    if (before.users() > user_word::bias && (wanted == 0 || before.is_of(wanted))) return true;
    device_ref<u64>(entry.users).fetch_add(user_word::one_user, acq_rel);
    return false;
  }

  /// All host opens, if nobody is left: of those that see so, one gets them.
  PENSTOCK_FN static host_debt take_debt(open_file& entry) {
    device_ref<u64> users(entry.users);
    user_word seen{users.load(acquire)};
    while (seen.is_left()) {
      const host_debt debt{seen.generation(), seen.host_opens()};
      if (users.compare_exchange_weak(seen.word, seen.without_host_opens().word, acq_rel, acquire)) return debt;
    }
    return {};
  }

  PENSTOCK_FN static void advance(open_file& entry, u32 generation) {
    device_ref<u64> users(entry.users);
    user_word seen{users.load(acquire)};
    while (seen.generation() < generation) {
      if (users.compare_exchange_weak(seen.word, seen.of_generation(generation).word, acq_rel, acquire)) return;
    }
  }
};

}  // namespace penstock
