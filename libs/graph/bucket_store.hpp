// Edges on their way to their buckets: each thread collects a few for each bucket, and brings them there together, so that
// memory is written in whole cache lines and hardly any thread waits for another.
#pragma once

#include "libs/graph/packed_edge.hpp"
#include "libs/graph/vertex_bins.hpp"

#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace penstock::graph {

template <class Entry>
class bucket_store {
 public:
  /// Does not own `buffer`. REQUIRES: the buckets lie within it.
  bucket_store(bucket_pass const& pass, std::span<Entry> buffer) : pass_(pass), buffer_(buffer), next_(pass.buckets.size()) {
    for (u64 b = 0; b < next_.size(); ++b) next_[b].store(pass.buckets[b].begin, std::memory_order_relaxed);
  }

  /// What one thread has collected.
  class collector {
   public:
    explicit collector(bucket_store& store)
        : store_(&store), entries_(std::make_unique_for_overwrite<Entry[]>(store.next_.size() * few)),
          held_(store.next_.size()) {}

    /// False when the bucket was full: there are more edges than were counted.
    [[nodiscard]] bool put(u16 bucket, Entry const& entry) {
      u8& held = held_[bucket];
      entries_[u64{bucket} * few + held] = entry;
      return ++held < few || bring(bucket);
    }
    /// Brings what is left. False as in put().
    [[nodiscard]] bool finish() {
      bool room = true;
      for (u64 b = 0; b < held_.size(); ++b) room = bring(b) && room;
      return room;
    }

   private:
    static constexpr u64 few = 16;

    bool bring(u64 bucket) {
      u64 const count = std::exchange(held_[bucket], u8{0});
      u64 const at = store_->next_[bucket].fetch_add(count, std::memory_order_relaxed);
      if (at + count > store_->pass_.buckets[bucket].end) return false;
      std::copy_n(entries_.get() + bucket * few, count, store_->buffer_.data() + at);
      return true;
    }

    bucket_store* store_;
    std::unique_ptr<Entry[]> entries_;
    std::vector<u8> held_;
  };

  /// Whether each bucket has as many edges as were counted.
  bool full() const {
    for (u64 b = 0; b < next_.size(); ++b)
      if (next_[b].load(std::memory_order_relaxed) != pass_.buckets[b].end) return false;
    return true;
  }

 private:
  bucket_pass const& pass_;
  std::span<Entry> buffer_;
  std::vector<std::atomic<u64>> next_;
};

}  // namespace penstock::graph
