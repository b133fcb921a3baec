#include "folder_names.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <vector>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace penstock::controllers {
namespace {

constexpr u32 max_links = 40;  // that one name is led over, as in Linux

owned_file fail(int error) {
  errno = error;
  return owned_file();
}

char const* const slash_at_end = "/";  // as a component: the one before is a folder

/// The components of a path, before those that are left.
void put_before(std::deque<std::string>& left, std::string const& path) {
  std::vector<std::string> parts;
  for (u64 begin = 0; begin < path.size();) {
    const u64 end = std::min(path.find('/', begin), path.size());
    if (end > begin) parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  if (path.back() == '/') parts.push_back(slash_at_end);
  left.insert(left.begin(), parts.begin(), parts.end());
}

bool is_link(int file) {
  struct stat about;
  return fstat(file, &about) == 0 && S_ISLNK(about.st_mode);
}

/// What a symbolic link says; empty: it is none.
std::string target_of(int folder, std::string const& name) {
  std::string target(4096, '\0');
  const auto bytes = readlinkat(folder, name.c_str(), target.data(), target.size());
  target.resize(bytes < 0 ? 0 : static_cast<u64>(bytes));
  return target;
}

}  // namespace

folder_names::folder_names(std::string const& root, bool openat2)
    : root_(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), openat2_(openat2) {
  if (!root_.valid()) {
    throw_os_error("open folder", root, errno, errno == ENOTDIR ? "name the folder that it is in" : "check the path");
  }
}

owned_file folder_names::open(std::string const& path, int flags, u32 mode) const {
  flags |= O_CLOEXEC;
  if (!openat2_) return walk(path, flags, mode);
  open_how how{};
  how.flags = static_cast<u64>(flags);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  for (u32 attempt = 0;; ++attempt) {
    const long file = syscall(SYS_openat2, root_.get(), path.c_str(), &how, sizeof how);
    if (file >= 0) return owned_file(static_cast<int>(file));
    if (errno == ENOSYS || errno == EPERM) return walk(path, flags, mode);
    constexpr u32 attempts = 8;  // EAGAIN: something was renamed meanwhile, and the kernel cannot say where the name led
    if (errno != EAGAIN || attempt == attempts) return owned_file();
  }
}

owned_file folder_names::open_parent(std::string const& path, std::string& name) const {
  const u64 end = path.find_last_not_of('/');
  if (end == std::string::npos) return fail(path.empty() ? ENOENT : EXDEV);
  const u64 slash = path.rfind('/', end);
  name = path.substr(slash == std::string::npos ? 0 : slash + 1, end - (slash == std::string::npos ? 0 : slash + 1) + 1);
  if (name == "..") return fail(EXDEV);
  if (slash == std::string::npos) return owned_file(fcntl(root_.get(), F_DUPFD_CLOEXEC, 0));
  return open(path.substr(0, std::max<u64>(slash, 1)), O_PATH | O_DIRECTORY);
}

// The folders from the root to where the walk is are held open, so ".." leads to the one that was come from, also where it was
// moved meanwhile. No component is opened over a link; links are read and walked.
owned_file folder_names::walk(std::string const& path, int flags, u32 mode) const {
  if (path.empty()) return fail(ENOENT);
  if (path[0] == '/') return fail(EXDEV);
  std::deque<std::string> left;
  put_before(left, path);
  std::vector<owned_file> folders;
  const auto here = [&] { return folders.empty() ? root_.get() : folders.back().get(); };
  for (u32 links = 0; !left.empty();) {
    const std::string name = left.front();
    left.pop_front();
    const bool last = left.empty();
    if ((name == "." || name == slash_at_end) && !last) continue;
    if (name == "..") {
      if (folders.empty()) return fail(EXDEV);
      folders.pop_back();
      if (!last) continue;
    }
    const bool is_folder = name == "." || name == ".." || name == slash_at_end;
    if (left.size() == 1 && left.front() == slash_at_end && (flags & O_CREAT) != 0) return fail(EISDIR);
    if (is_folder && (flags & O_CREAT) != 0) return fail((flags & O_EXCL) != 0 ? EEXIST : EISDIR);
    owned_file file(last ? openat(here(), is_folder ? "." : name.c_str(), flags | O_NOFOLLOW, mode)
                         : openat(here(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const bool may_be_link = file.valid() ? is_link(file.get()) : errno == ELOOP || errno == ENOTDIR;
    if (!may_be_link) {
      if (last || !file.valid()) return file;
      folders.push_back(std::move(file));
      continue;
    }
    const int error = errno;
    const std::string target = target_of(here(), name);
    if (target.empty()) return fail(error);
    if (++links > max_links) return fail(ELOOP);
    if (target[0] == '/') return fail(EXDEV);
    put_before(left, target);
  }
  return fail(ENOENT);
}

}  // namespace penstock::controllers
