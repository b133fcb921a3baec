// A file descriptor that closes itself.
#pragma once

#include <utility>

#include <unistd.h>

namespace penstock {

class owned_file {
 public:
  explicit owned_file(int fd = -1) : fd_(fd) {}
  owned_file(owned_file&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  owned_file& operator=(owned_file&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  owned_file(owned_file const&) = delete;
  owned_file& operator=(owned_file const&) = delete;
  ~owned_file() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace penstock
