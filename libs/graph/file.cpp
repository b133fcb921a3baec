#include "libs/graph/file.hpp"

#include "penstock/host/error.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <utility>

namespace penstock::graph {
namespace {

constexpr char full_disk[] = "free space there or choose another folder";

}  // namespace

file file::open(std::string const& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) throw_os_error("open", path, errno, "check the path and its permissions");
  // Before opening, which would wait for the writer of a FIFO.
  if (!S_ISREG(about.st_mode)) throw_bad_input("open", path, "is not a regular file: name a file");
  int const descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw_os_error("open", path, errno, "check the path and its permissions");
  file opened(descriptor, path, 0);
  if (::fstat(descriptor, &about) != 0) throw_os_error("open", path, errno, "check the file system");
  opened.size_ = static_cast<u64>(about.st_size);
  return opened;
}

file file::open_to_write(std::string const& path) {
  int const descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) throw_os_error("open", path, errno, "check the path and its permissions");
  file opened(descriptor, path, 0);
  struct stat about{};
  if (::fstat(descriptor, &about) != 0) throw_os_error("open", path, errno, "check the file system");
  opened.size_ = static_cast<u64>(about.st_size);
  return opened;
}

file file::create(std::string const& path) {
  int const descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) throw_os_error("create", path, errno, "check that the folder can be written");
  return file(descriptor, path, 0);
}

file::file(file&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)), size_(other.size_) {}

file& file::operator=(file&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  std::swap(size_, other.size_);
  return *this;
}

file::~file() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void file::read(u64 offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    ssize_t const got = ::pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_os_error("read", path_, errno, "check the disk");
    if (got == 0) throw_os_error("read", path_, EIO, "the file became shorter while it was read; start again");
    offset += static_cast<u64>(got);
    to = to.subspan(static_cast<std::size_t>(got));
  }
}

void file::write(u64 offset, std::span<std::byte const> from) const {
  while (!from.empty()) {
    ssize_t const put = ::pwrite(descriptor_, from.data(), from.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw_os_error("write", path_, errno, full_disk);
    offset += static_cast<u64>(put);
    from = from.subspan(static_cast<std::size_t>(put));
  }
}

void file::start_sync(u64 offset, u64 bytes) const {
  // Not every file system can; sync_and_close() tells what went wrong.
  ::sync_file_range(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
}

void file::sync_and_close() {
  if (::fsync(descriptor_) != 0) throw_os_error("write", path_, errno, full_disk);
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_os_error("write", path_, errno, full_disk);
}

byte_input::byte_input(std::span<std::byte const> bytes, std::string name)
    : memory_(bytes), name_(std::move(name)), size_(bytes.size()), in_memory_(true) {}

byte_input::byte_input(std::shared_ptr<stored_bytes const> stored, std::string name)
    : stored_(std::move(stored)), name_(std::move(name)), size_(stored_->size()) {}

void byte_input::read(u64 offset, std::span<std::byte> to) const {
  if (stored_) return stored_->read(offset, to);
  if (!in_memory_) return file_.read(offset, to);
  if (!to.empty()) std::memcpy(to.data(), memory_.data() + offset, to.size());
}

}  // namespace penstock::graph
