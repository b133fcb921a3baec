// A file mapped shared, and a memory of which of its pages are in the page cache.
//
// mincore is asked for 64 pages at a time and its answer is believed for a second, so that a command costs no system call. A
// page that left the page cache in between is still read and stored correctly: the copy then waits for the disk.
//
// Of a large file that is read here and there, a first touch by the map costs more than a read: mincore looks for 64 pages, the
// fault for one, and memory is taken for the page table. So the first read of a chunk does not use it.
#pragma once

#include "pieces.hpp"

#include <memory>
#include <string>

namespace penstock::controllers {

/// Thread-safe.
class page_cache_map {
 public:
  /// nullptr where the file can't be mapped, or where the kernel does not tell this user what is in the page cache.
  /// `writable`: for stores, too, where the file system can.
  static std::unique_ptr<page_cache_map> create(int file, u64 bytes, bool writable);
  ~page_cache_map();
  page_cache_map(page_cache_map const&) = delete;
  page_cache_map& operator=(page_cache_map const&) = delete;

  /// Whether [offset, offset + bytes) is in the page cache, as far as known at `now_ms` (of coarse_now_ms).
  /// REQUIRES: inside the file.
  bool resident(u64 offset, u64 bytes, u32 now_ms);

  /// Whether a read at `offset` is the first of its chunk, which is cheaper without the map. Counts it. REQUIRES: inside the
  /// file.
  bool is_new(u64 offset);

  /// An engine has just read or written this range, so it is in the page cache now.
  void note_moved(u64 offset, u64 bytes);

  /// Copies `valid` bytes of the file and zeros up to `total`. False if the file has been truncated below that. `next`: see
  /// copy_to_pieces.
  bool copy(u64 offset, u64 valid, u64 total, pieces const& to, void const* next) const;

  /// Whether `store` may be called with this range.
  bool takes_stores(u64 offset, u64 bytes) const { return writable_ && offset % 8 == 0 && bytes % 8 == 0; }

  /// Stores bytes into the file, each aligned 8 of them as one. False if a page could not be had (the file has been truncated,
  /// its disk is full): some of it may be stored then. REQUIRES: takes_stores. `next`: see copy_from_pieces.
  bool store(u64 offset, u64 bytes, pieces const& from, void const* next) const;

  /// Where an offset lies in memory, to be handed in as `next`.
  std::byte const* address_of(u64 offset) const { return address_ + offset; }

 private:
  /// What mincore said of 64 pages. Any mix of two answers is an answer of the last second, so relaxed loads and stores do.
  struct chunk {
    u64 pages;     ///< bit k: page k is in the page cache
    u32 known_ms;  ///< when; 0: never
    u32 reads;     ///< before that
  };

  page_cache_map(std::byte* address, u64 bytes, chunk* chunks, bool writable);
  u64 known_pages(u64 index, u32 now_ms);
  u64 ask(u64 index) const;

  std::byte* address_;
  u64 bytes_;
  u64 page_bytes_;
  chunk* chunks_;  ///< mapped, not allocated: of a large file only what is used takes memory
  bool writable_;
};

/// Milliseconds of a clock that is cheap to read and a few of them late. Never 0.
u32 coarse_now_ms();

}  // namespace penstock::controllers
