#include "libs/bench/mapped_file.hpp"

#include "penstock/host/error.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace penstock::bench {

mapped_file::mapped_file(std::string const& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about{};
  if (file < 0 || fstat(file, &about) != 0) throw_os_error("open", path, errno, "see that it can be read");
  bytes_ = static_cast<u64>(about.st_size);
  void* const mapped = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) throw_os_error("map", path, errno, "free some memory");
  data_ = static_cast<char*>(mapped);
}

mapped_file::~mapped_file() { munmap(data_, bytes_); }

}  // namespace penstock::bench
