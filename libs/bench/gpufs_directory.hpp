// Where GPUfs finds a page: a radix tree per file, or one hash table [file, page] -> frame (SYSTOR 2016, section 4.1).
//
// Both hold one word per page: the key, and the frame's number plus one, or `pending` while the claimer has no frame yet.
// Lookups load words and take no lock, in the tree as in the table: GPUfs's tree "allows lock-free reads but requires global
// locking for updates". Whatever changes an entry's key holds the lock (of the file, of the bucket); the claimer of a pending
// word alone replaces or clears it. No operation waits: one that does not get its lock is repeated by the caller, which has the
// deadline. All of it is called by one thread of a group.
#pragma once

#include "libs/bench/gpufs_options.hpp"
#include "penstock/core/atomic.hpp"
#include "penstock/file/file_name.hpp"

namespace penstock::bench {

PENSTOCK_FN inline bool gpufs_try_lock(u32& lock) {
  u32 free = 0;
  return device_ref<u32>(lock).load(relaxed) == 0 && device_ref<u32>(lock).compare_exchange_strong(free, 1, acquire, relaxed);
}
PENSTOCK_FN inline void gpufs_unlock(u32& lock) { device_ref<u32>(lock).store(0, release); }

struct gpufs_file {
  u64 bytes = 0;
  u32 lock = 0;        ///< of its tree
  u32 levels = 1;      ///< of nodes
  u64 first_node = 0;  ///< its root; its other nodes follow as they are taken
  u64 nodes = 1;       ///< taken so far; under the lock
};

/// Trivially copyable; the host-side `gpufs_cache` owns what it points at.
struct gpufs_directory {
  static constexpr u32 node_bits = 6, node_words = 1u << node_bits;
  static constexpr u32 bucket_words = 8;  ///< of which half a word is in use on average: capacity is 16 times the frames
  static constexpr u32 key_bits = 40, pending = (1u << (64 - key_bits)) - 1;
  static constexpr u64 key_mask = (u64{1} << key_bits) - 1;
  static constexpr u64 max_frames = pending - 1, max_pages = u64{1} << 32;
  static constexpr u32 max_files = 1u << (key_bits - 32);

  gpufs_lookup kind = gpufs_lookup::radix_tree;
  gpufs_file* files = nullptr;
  u64* nodes = nullptr;
  u64* buckets = nullptr;
  u32* locks = nullptr;  ///< one per bucket
  u64 bucket_mask = 0;

  PENSTOCK_FN static u64 key_of(u32 file, u64 page) { return u64{file} << 32 | page; }
  PENSTOCK_FN static u32 file_of(u64 key) { return static_cast<u32>(key >> 32); }
  PENSTOCK_FN static u64 page_of(u64 key) { return key & (max_pages - 1); }
  PENSTOCK_FN static u64 word_of(u64 key, u32 frame) { return u64{frame + 1} << key_bits | key; }
  PENSTOCK_FN static bool is_pending(u64 word) { return word >> key_bits == pending; }
  PENSTOCK_FN static u32 frame_of(u64 word) { return static_cast<u32>(word >> key_bits) - 1; }

  /// The word of a page; 0: it has none. Relaxed: who pins the frame and finds its key there has synchronized with its owner,
  /// and loads of one bucket may be under way at once.
  PENSTOCK_FN u64 load(u64 key) const {
    if (kind == gpufs_lookup::radix_tree) {
      u64* const leaf = walk(key, false);
      return leaf == nullptr ? 0 : device_ref<u64>(*leaf).load(relaxed);
    }
    u64* const bucket = bucket_of(key);
    u64 found = 0;
    PENSTOCK_UNROLL
    for (u32 k = 0; k < bucket_words; ++k) {
      const u64 word = device_ref<u64>(bucket[k]).load(relaxed);
      if (word != 0 && (word & key_mask) == key) found = word;
    }
    return found;
  }

  /// Makes the caller the one that brings a page: its word, pending. Null where the lock is taken, the page has a word by now,
  /// or the bucket is full.
  PENSTOCK_FN u64* try_claim(u64 key) const {
    u32& lock = lock_of(key);
    if (!gpufs_try_lock(lock)) return nullptr;
    u64* const word = kind == gpufs_lookup::radix_tree ? empty_leaf(key) : empty_word(key);
    if (word != nullptr) device_ref<u64>(*word).store(u64{pending} << key_bits | key, relaxed);
    gpufs_unlock(lock);
    return word;
  }

  /// Of the claimer.
  PENSTOCK_FN static void publish(u64* word, u64 key, u32 frame) { device_ref<u64>(*word).store(word_of(key, frame), release); }
  PENSTOCK_FN static void abandon(u64* word) { device_ref<u64>(*word).store(0, release); }

  /// Removes a page that is in `frame`. False where its lock stayed taken for a bounded number of tries.
  PENSTOCK_FN bool try_erase(u64 key, u32 frame) const {
    u32& lock = lock_of(key);
    constexpr u32 max_tries = 256;
    for (u32 tries = 1; !gpufs_try_lock(lock); ++tries) {
      if (tries == max_tries) return false;
    }
    const u64 word = word_of(key, frame);
    if (kind == gpufs_lookup::radix_tree) {
      clear_if(*walk(key, false), word);
    } else {
      u64* const bucket = bucket_of(key);
      for (u32 k = 0; k < bucket_words; ++k) clear_if(bucket[k], word);
    }
    gpufs_unlock(lock);
    return true;
  }

 private:
  PENSTOCK_FN static void clear_if(u64& word, u64 expected) {
    if (device_ref<u64>(word).load(relaxed) == expected) device_ref<u64>(word).store(0, relaxed);
  }

  PENSTOCK_FN u64 bucket_number(u64 key) const { return mix_word(key) & bucket_mask; }
  PENSTOCK_FN u64* bucket_of(u64 key) const { return buckets + bucket_number(key) * bucket_words; }
  PENSTOCK_FN u32& lock_of(u64 key) const {
    return kind == gpufs_lookup::radix_tree ? files[file_of(key)].lock : locks[bucket_number(key)];
  }

  /// The leaf word of a page. `grow`, under the lock: with the nodes above it; else null where there is one missing.
  PENSTOCK_FN u64* walk(u64 key, bool grow) const {
    gpufs_file& file = files[file_of(key)];
    u64 node = file.first_node;
    for (u32 level = file.levels - 1; level != 0; --level) {
      u64& child = nodes[node * node_words + (page_of(key) >> (level * node_bits)) % node_words];
      u64 next = device_ref<u64>(child).load(relaxed);
      if (next == 0) {
        if (!grow) return nullptr;
        next = file.first_node + file.nodes++;
        device_ref<u64>(child).store(next, relaxed);
      }
      node = next;
    }
    return &nodes[node * node_words + page_of(key) % node_words];
  }

  PENSTOCK_FN u64* empty_leaf(u64 key) const {
    u64* const leaf = walk(key, true);
    return device_ref<u64>(*leaf).load(relaxed) == 0 ? leaf : nullptr;
  }

  PENSTOCK_FN u64* empty_word(u64 key) const {
    u64* const bucket = bucket_of(key);
    u64* empty = nullptr;
    for (u32 k = 0; k < bucket_words; ++k) {
      const u64 word = device_ref<u64>(bucket[k]).load(relaxed);
      if (word == 0) {
        empty = &bucket[k];
      } else if ((word & key_mask) == key) {
        return nullptr;
      }
    }
    return empty;
  }
};

}  // namespace penstock::bench
