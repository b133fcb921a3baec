#include "page_cache_map.hpp"

#include "fault_guard.hpp"

#include "penstock/core/atomic.hpp"
#include "penstock/core/bits.hpp"

#include <algorithm>
#include <ctime>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace penstock::controllers {
namespace {

constexpr u64 chunk_pages = 64;
constexpr u64 answer_valid_ms = 1000;
constexpr u32 first_reads = 1;  // of a chunk, without the map; with four of them dense reads lose what sparse ones win

// For a file that a user neither owns nor may write, mincore claims that everything is resident (Linux 5.2 and later).
bool mincore_tells_the_truth(int file) {
  struct stat about;
  if (fstat(file, &about) != 0) return false;
  if (about.st_uid == geteuid() || geteuid() == 0) return true;
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  return faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

u64 chunk_count(u64 bytes, u64 page) { return ceil_div(bytes, page * chunk_pages); }

u64 page_mask(u64 first, u64 count) { return (count == 64 ? ~u64{0} : (u64{1} << count) - 1) << first; }

}  // namespace

u32 coarse_now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<u32>(now.tv_sec * 1000 + now.tv_nsec / 1000000) | 1u;
}

std::unique_ptr<page_cache_map> page_cache_map::create(int file, u64 bytes, bool writable) {
  if (!mincore_tells_the_truth(file)) return nullptr;
  void* address = writable ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  writable = address != MAP_FAILED;
  if (!writable) address = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (address == MAP_FAILED) return nullptr;
  const u64 table_bytes = chunk_count(bytes, static_cast<u64>(sysconf(_SC_PAGESIZE))) * sizeof(chunk);
  void* table = mmap(nullptr, table_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) {
    munmap(address, bytes);
    return nullptr;
  }
  madvise(address, bytes, MADV_RANDOM);  // a page that has left the cache must not bring its neighbours along
  install_fault_guard();
  auto* chunks = static_cast<chunk*>(table);
  return std::unique_ptr<page_cache_map>(new page_cache_map(static_cast<std::byte*>(address), bytes, chunks, writable));
}

page_cache_map::page_cache_map(std::byte* address, u64 bytes, chunk* chunks, bool writable)
    : address_(address), bytes_(bytes), page_bytes_(static_cast<u64>(sysconf(_SC_PAGESIZE))), chunks_(chunks),
      writable_(writable) {}

page_cache_map::~page_cache_map() {
  munmap(address_, bytes_);
  munmap(chunks_, chunk_count(bytes_, page_bytes_) * sizeof(chunk));
}

u64 page_cache_map::ask(u64 index) const {
  const u64 begin = index * chunk_pages * page_bytes_;
  const u64 bytes = std::min(chunk_pages * page_bytes_, bytes_ - begin);
  unsigned char answer[chunk_pages];
  if (mincore(address_ + begin, bytes, answer) != 0) return 0;
  u64 pages = 0;
  for (u64 k = 0; k < ceil_div(bytes, page_bytes_); ++k) pages |= u64{answer[k] & 1u} << k;
  return pages;
}

u64 page_cache_map::known_pages(u64 index, u32 now_ms) {
  chunk& about = chunks_[index];
  const u32 known_ms = device_ref<u32>(about.known_ms).load(relaxed);
  if (known_ms != 0 && now_ms - known_ms < answer_valid_ms) {
    return device_ref<u64>(about.pages).load(relaxed);
  }
  const u64 pages = ask(index);
  device_ref<u64>(about.pages).store(pages, relaxed);
  device_ref<u32>(about.known_ms).store(now_ms, relaxed);
  return pages;
}

bool page_cache_map::is_new(u64 offset) {
  chunk& about = chunks_[offset / page_bytes_ / chunk_pages];
  return device_ref<u32>(about.known_ms).load(relaxed) == 0 && device_ref<u32>(about.reads).fetch_add(1, relaxed) < first_reads;
}

bool page_cache_map::resident(u64 offset, u64 bytes, u32 now_ms) {
  u64 page = offset / page_bytes_;
  const u64 end = ceil_div(offset + bytes, page_bytes_);
  while (page < end) {
    const u64 first = page % chunk_pages;
    const u64 mask = page_mask(first, std::min(chunk_pages - first, end - page));
    if ((known_pages(page / chunk_pages, now_ms) & mask) != mask) return false;
    page += chunk_pages - first;
  }
  return true;
}

void page_cache_map::note_moved(u64 offset, u64 bytes) {
  for (u64 page = offset / page_bytes_; page < ceil_div(offset + bytes, page_bytes_); ++page) {
    device_ref<u64>(chunks_[page / chunk_pages].pages).fetch_or(u64{1} << page % chunk_pages, relaxed);
  }
}

bool page_cache_map::copy(u64 offset, u64 valid, u64 total, pieces const& to, void const* next) const {
  struct copy_call {
    pieces const& to;
    std::byte const* from;
    u64 valid;
    u64 total;
    void const* next;
  } call{to, address_ + offset, valid, total, next};
  return run_guarded(
      call.from, valid,
      [](void* argument) {
        auto const& c = *static_cast<copy_call*>(argument);
        copy_to_pieces(c.to, c.from, c.valid, c.total, c.next);
      },
      &call);
}

bool page_cache_map::store(u64 offset, u64 bytes, pieces const& from, void const* next) const {
  struct store_call {
    std::byte* to;
    pieces const& from;
    u64 bytes;
    void const* next;
  } call{address_ + offset, from, bytes, next};
  return run_guarded(
      call.to, bytes,
      [](void* argument) {
        auto const& c = *static_cast<store_call*>(argument);
        copy_from_pieces(c.to, c.from, c.bytes, c.next);
      },
      &call);
}

}  // namespace penstock::controllers
