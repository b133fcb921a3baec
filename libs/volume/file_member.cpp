#include "libs/volume/member.hpp"

#include "penstock/host/error.hpp"
#include "penstock/host/file_lock.hpp"

#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace penstock::volumes {
namespace {

constexpr char const* operation = "open";

class file_member final : public member {
 public:
  file_member(std::string path, int file) : path_(std::move(path)), file_(file) {}
  file_member(file_member const&) = delete;
  file_member& operator=(file_member const&) = delete;
  ~file_member() override { close(file_); }

  void take(access how) {
    const int code = try_lock(file_, how == access::write ? lock_kind::exclusive : lock_kind::shared, {});
    if (code == 0) return;
    throw_os_error(operation, path_, code,
                   code == EAGAIN ? "another program has this volume open: wait until it has ended"
                                  : "its file system has no locks: copy the file elsewhere");
  }

  void measure(bool is_device) {
    struct stat about = {};
    u64 size = 0;
    const int outcome = is_device ? ioctl(file_, BLKGETSIZE64, &size) : fstat(file_, &about);
    if (outcome != 0) throw_os_error(operation, path_, errno, "check the file and its file system");
    bytes_ = is_device ? size : static_cast<u64>(about.st_size);
  }

  std::string name() const override { return path_; }
  u64 bytes() const override { return bytes_; }
  namespace_place place() const override { return {.path = path_}; }

  void read(std::span<piece const> pieces) override {
    for (piece const& each : pieces) {
      for (u64 done = 0; done < each.bytes;) {
        const ssize_t some = pread(file_, each.data + done, each.bytes - done, static_cast<off_t>(each.offset + done));
        if (some == 0) throw_os_error("read", path_, EIO, "it has become shorter meanwhile: restore it");
        if (some < 0 && errno != EINTR) fail("read", each.offset + done, "its disk does not give it");
        if (some > 0) done += static_cast<u64>(some);
      }
    }
  }

  void write(std::span<piece const> pieces) override {
    for (piece const& each : pieces) {
      for (u64 done = 0; done < each.bytes;) {
        const ssize_t some = pwrite(file_, each.data + done, each.bytes - done, static_cast<off_t>(each.offset + done));
        if (some < 0 && errno != EINTR)
          fail("write", each.offset + done, "free some space on its disk, or name another member");
        if (some > 0) done += static_cast<u64>(some);
      }
    }
  }

  void flush() override {
    if (fdatasync(file_) != 0) throw_os_error("flush", path_, errno, "check its disk, and import again");
  }

 private:
  [[noreturn]] void fail(char const* what, u64 offset, char const* remedy) const {
    throw_os_error(what, path_ + " at byte " + std::to_string(offset), errno, remedy);
  }

  std::string path_;
  int file_;
  u64 bytes_ = 0;
};

}  // namespace

std::unique_ptr<member> open_file_member(std::string const& path, access how) {
  struct stat about = {};
  if (stat(path.c_str(), &about) != 0) throw_os_error(operation, path, errno, "name a file, a block device or an NVMe drive");
  const bool is_device = S_ISBLK(about.st_mode);
  if (!is_device && !S_ISREG(about.st_mode)) {
    throw_bad_input(operation, path, "it is neither a file nor a block device: name one of these, or an NVMe drive");
  }
  // O_EXCL: of a block device that is mounted, or part of something else, the kernel says so.
  const int mode = how == access::write ? O_RDWR | (is_device ? O_EXCL : 0) : O_RDONLY;
  const int file = open(path.c_str(), mode | O_CLOEXEC);
  if (file < 0) {
    throw_os_error(operation, path, errno,
                   errno == EBUSY ? "it is mounted, or part of something else: end that use" : "give this user the permission");
  }
  auto opened = std::make_unique<file_member>(path, file);
  opened->take(how);
  opened->measure(is_device);
  return opened;
}

void make_file_member(std::string const& path, u64 bytes) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) throw_os_error("create", path, errno, "name a file that is not there yet, in a folder that can be written");
  const int outcome = ftruncate(file, static_cast<off_t>(bytes));
  const int code = errno;
  close(file);
  if (outcome == 0) return;
  unlink(path.c_str());
  throw_os_error("create", path, code, "choose a smaller size, or another file system");
}

}  // namespace penstock::volumes
