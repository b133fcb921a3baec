#include "mapped_rows.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace penstock::rows {
namespace {

struct room {
  u64 needed = 0;  ///< bytes that the file has no blocks for yet
  u64 free = 0;    ///< bytes of its file system, for this user
};

/// Zeros for what the system does not say.
room room_for(std::string const& path, u64 end) {
  constexpr u64 block = 512;  // of st_blocks
  struct stat about{};
  struct statvfs system{};
  if (::stat(path.c_str(), &about) != 0 || ::statvfs(path.c_str(), &system) != 0) return {};
  const u64 there = static_cast<u64>(about.st_blocks) * block;
  return {end - std::min(there, end), u64{system.f_bavail} * system.f_frsize};
}

}  // namespace

file_mapping::file_mapping(std::string const& path, int file, u64 begin, u64 bytes, stores how) : bytes_(bytes) {
  const int access = PROT_READ | (how == stores::refused ? 0 : PROT_WRITE);
  // Pages of its own are few: no swap is set aside for a file that is larger than the memory.
  const int kind = how == stores::kept ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED;
  base_ = ::mmap(nullptr, bytes, access, kind, file, static_cast<off_t>(begin));
  if (base_ == MAP_FAILED) throw_os_error("map", path, errno, "choose placement storage");
  watch_.emplace(base_, bytes, how != stores::refused, mapping_of::penstock);
  ::madvise(base_, bytes, MADV_RANDOM);  // a row must not bring its neighbours along
}

file_mapping::~file_mapping() {
  watch_.reset();
  ::munmap(base_, bytes_);
}

mapped_rows::mapped_rows(std::string const& path, u64 offset, u64 bytes, bool writable)
    : path_(path), file_(::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_CLOEXEC)), end_(offset + bytes),
      writable_(writable) {
  if (!file_.valid()) throw_os_error("open", path, errno, "check the path and its permissions");
  check();
  if (writable) lock_ = write_lock("open", path, file_.get(), {offset, bytes});
  const u64 page = static_cast<u64>(::sysconf(_SC_PAGESIZE));
  begin_ = offset / page * page;
  lead_ = offset - begin_;
  shared_.emplace(path, file_.get(), begin_, round_up(end_ - begin_, page),
                  writable ? file_mapping::stores::shared : file_mapping::stores::refused);
}

unsigned char* mapped_rows::own_data() {
  const std::lock_guard lock(making_);
  if (!own_) own_.emplace(path_, file_.get(), begin_, mapped_bytes(), file_mapping::stores::kept);
  return own_->data() + lead_;
}

void mapped_rows::expect_all() const { ::madvise(base(), mapped_bytes(), MADV_SEQUENTIAL); }

void mapped_rows::expect(void const* begin, u64 bytes) const {
  constexpr u64 part = 2ull << 20;
  const u64 page = static_cast<u64>(::sysconf(_SC_PAGESIZE)), from = reinterpret_cast<u64>(begin), end = from + bytes;
  for (u64 at = from / page * page; at < end; at += part) {
    unsigned char there = 0;  // of the part's first page: a look at each would cost as much as what it saves
    void* const first = reinterpret_cast<void*>(at);
    if (::mincore(first, page, &there) == 0 && (there & 1) == 0) ::madvise(first, std::min(part, end - at), MADV_WILLNEED);
  }
}

void expect_stores(void* begin, u64 bytes) {
  const u64 page = static_cast<u64>(::sysconf(_SC_PAGESIZE)), from = round_up(reinterpret_cast<u64>(begin), page);
  const u64 end = (reinterpret_cast<u64>(begin) + bytes) / page * page;
  if (from < end) ::madvise(reinterpret_cast<void*>(from), end - from, MADV_HUGEPAGE);
}

bool mapped_rows::was_cut() const {
  const std::lock_guard lock(making_);
  return (shared_ && shared_->was_cut()) || (own_ && own_->was_cut());
}

error too_short(std::string const& path, u64 bytes, u64 end) {
  return error(error_kind::world,
               "read " + path + ": it has " + std::to_string(bytes) + " bytes, and the array goes up to byte " +
                   std::to_string(end) + ": write the file anew and open it again",
               EIO);
}

error member_too_short(std::string const& path, u64 bytes, u64 needed) {
  return error(error_kind::world,
               "read " + path + ": it has " + std::to_string(bytes) + " bytes, and its volume needs " + std::to_string(needed) +
                   " of it: it was cut short; restore it, and open the array again",
               EIO);
}

error no_room(std::string const& path, u64 end, char const* remedy) {
  const room found = room_for(path, end);
  const char* const first = found.needed > found.free ? "make room" : "raise the limit of file sizes or the quota";
  return error(error_kind::world,
               "store into " + path + ": there is no room: it takes up to " + std::to_string(found.needed) +
                   " bytes more, and its file system has " + std::to_string(found.free) + " free: " + first + ", and " + remedy,
               ENOSPC);
}

void mapped_rows::check() const {
  const off_t size = ::lseek(file_.get(), 0, SEEK_END);
  if (size < 0) throw_os_error("open", path_, errno, "give a regular file or a block device");
  const bool cut = was_cut();
  if (static_cast<u64>(size) >= end_ && !cut) return;
  if (static_cast<u64>(size) < end_) throw too_short(path_, static_cast<u64>(size), end_);
  // A store into a hole for which there is no block faults as one beyond the end does.
  const room found = writable_ ? room_for(path_, end_) : room{};
  if (found.needed > found.free) throw no_room(path_, end_, "open it again, without what was stored last");
  throw error(error_kind::world,
              "read " + path_ + ": it was cut short while it was read: write the file anew and open it again", EIO);
}

void mapped_rows::sync() const {
  check();
  if (::msync(base(), mapped_bytes(), MS_SYNC) != 0)
    throw_os_error("flush", path_, errno, "look at the file system it lies on");
}

}  // namespace penstock::rows
