#include "libs/drive/host_file.hpp"

#include "penstock/host/error.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace penstock::drive {
namespace {

namespace fs = std::filesystem;

constexpr char const* standard_output = "-";

std::string draft_of(fs::path const& path) {
  return (path.parent_path() / ("." + path.filename().string() + "." + std::to_string(getpid()))).string();
}

/// Which a loss of power must not take back: names are in the folder. Some file systems cannot do that for folders.
void flush_folder(fs::path const& folder) {
  const std::string name = folder.empty() ? "." : folder.string();
  const int handle = open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) throw_os_error("write", name, errno, "give this user the permission to read it");
  const int code = fsync(handle) == 0 ? 0 : errno;
  close(handle);
  if (code != 0 && code != EINVAL) throw_os_error("flush", name, code, "check its disk, and write the file again");
}

}  // namespace

output_file::output_file(std::string const& path, bool replace) : path_(path) {
  if (path == standard_output) {
    path_ = "the standard output";
    handle_ = STDOUT_FILENO;
    owned_ = false;
    return;
  }
  struct stat about = {};
  const bool exists = stat(path.c_str(), &about) == 0;
  if (exists && !S_ISREG(about.st_mode)) {
    handle_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } else if (exists && !replace) {
    throw_bad_input("write", path, "it exists: name another file, or replace it");
  } else {
    draft_ = draft_of(path);
    handle_ = open(draft_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  if (handle_ < 0) throw_os_error("write", path, errno, "name a file that this user may make");
}

output_file::~output_file() {
  if (owned_ && handle_ >= 0) close(handle_);
  if (!draft_.empty()) unlink(draft_.c_str());
}

u64 output_file::write_some(char const* from, u64 bytes) {
  const ssize_t some = ::write(handle_, from, bytes);
  if (some >= 0) return static_cast<u64>(some);
  if (errno != EINTR) fail(errno);
  return 0;
}

void output_file::finish() {
  if (!owned_) return;
  if (!draft_.empty() && fsync(handle_) != 0) fail(errno);
  const int handle = std::exchange(handle_, -1);
  if (close(handle) != 0) fail(errno);
  if (draft_.empty()) return;
  if (std::rename(draft_.c_str(), path_.c_str()) != 0) throw_os_error("write", path_, errno, "name another file");
  draft_.clear();
  flush_folder(fs::path(path_).parent_path());
}

void output_file::fail(int code) const {
  throw_os_error("write", path_, code, code == EPIPE ? "whoever read it has gone" : "free some space, or name another file");
}

input_file::input_file(std::string const& path) : path_(path), handle_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (handle_ < 0) throw_os_error("read", path, errno, "name a file that this user may read");
  struct stat about = {};
  if (fstat(handle_, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(handle_);
    throw_bad_input("read", path, "it is no regular file: only those have a size before they are read");
  }
  bytes_ = static_cast<u64>(about.st_size);
}

input_file::~input_file() { close(handle_); }

void input_file::read(void* to, u64 bytes) {
  for (u64 done = 0; done < bytes;) {
    const ssize_t some = ::read(handle_, static_cast<char*>(to) + done, bytes - done);
    if (some == 0) throw_os_error("read", path_, EIO, "it has become shorter meanwhile: leave it alone and try again");
    if (some < 0 && errno != EINTR) throw_os_error("read", path_, errno, "its disk does not give it");
    if (some > 0) done += static_cast<u64>(some);
  }
}

}  // namespace penstock::drive
