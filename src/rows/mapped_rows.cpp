#include "mapped_rows.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace penstock::rows {

mapped_rows::mapped_rows(std::string const& path, u64 offset, u64 bytes, bool writable)
    : path_(path), file_(::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_CLOEXEC)), end_(offset + bytes) {
  if (!file_.valid()) throw_os_error("open", path, errno, "check the path and its permissions");
  check();
  const u64 page = static_cast<u64>(::sysconf(_SC_PAGESIZE));
  const u64 begin = offset / page * page;
  mapped_ = round_up(end_ - begin, page);
  lead_ = offset - begin;
  base_ = ::mmap(nullptr, mapped_, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, file_.get(), static_cast<off_t>(begin));
  if (base_ == MAP_FAILED) throw_os_error("map", path, errno, "choose placement storage");
  watch_.emplace(base_, mapped_, writable);
  ::madvise(base_, mapped_, MADV_RANDOM);  // a row must not bring its neighbours along
}

mapped_rows::~mapped_rows() {
  watch_.reset();
  ::munmap(base_, mapped_);
}

void mapped_rows::expect_all() const { ::madvise(base_, mapped_, MADV_SEQUENTIAL); }

void mapped_rows::check() const {
  const off_t size = ::lseek(file_.get(), 0, SEEK_END);
  if (size < 0) throw_os_error("open", path_, errno, "give a regular file or a block device");
  const bool cut = watch_ && watch_->was_cut();
  if (static_cast<u64>(size) >= end_ && !cut) return;
  const std::string found = static_cast<u64>(size) < end_ ? "it has " + std::to_string(size) +
                                                                " bytes, and the array goes up to byte " + std::to_string(end_)
                                                          : std::string("it was cut short while it was read");
  throw error(error_kind::world, "read " + path_ + ": " + found + ": write the file anew and open it again", EIO);
}

void mapped_rows::sync() const {
  check();
  if (::msync(base_, mapped_, MS_SYNC) != 0) throw_os_error("flush", path_, errno, "look at the file system it lies on");
}

}  // namespace penstock::rows
