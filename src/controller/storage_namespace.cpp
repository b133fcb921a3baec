#include "storage_namespace.hpp"

#include "file_space.hpp"

#include "penstock/core/bits.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace penstock::controllers {
namespace {

constexpr char const* operation = "open namespace";
constexpr u32 file_block_bytes = 512;  // of the files of a folder

[[noreturn]] void refuse_to_open(std::string const& path, int code) {
  switch (code) {
    case ENOENT: throw_os_error(operation, path, code, "check the path");
    case EACCES:
    case EPERM: throw_os_error(operation, path, code, "give this user the permission, or open it read-only");
    case EROFS: throw_os_error(operation, path, code, "open it read-only");
    case EISDIR: throw_os_error(operation, path, code, "name a file or a block device inside it");
    case EMFILE:
    case ENFILE: throw_os_error(operation, path, code, "raise the limit of open files (ulimit -n)");
    case ETXTBSY:
    case EBUSY: throw_os_error(operation, path, code, "end the program that uses it");
    default: throw_os_error(operation, path, code, "check the file and its file system");
  }
}

// Looked at before it is opened: opening a pipe would wait for its other end, and some devices act on being opened.
void check_type(std::string const& path) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0) refuse_to_open(path, errno);
  if (S_ISDIR(about.st_mode)) refuse_to_open(path, EISDIR);
  if (!S_ISREG(about.st_mode) && !S_ISBLK(about.st_mode)) {
    throw_bad_input(operation, path, "it is neither a file nor a block device: name one of these");
  }
}

u64 size_of(std::string const& path, int file) {
  struct stat about;
  if (fstat(file, &about) != 0) refuse_to_open(path, errno);
  if (!S_ISBLK(about.st_mode)) return static_cast<u64>(about.st_size);
  u64 bytes = 0;
  if (ioctl(file, BLKGETSIZE64, &bytes) != 0) refuse_to_open(path, errno);
  return bytes;
}

u64 page_size() { return static_cast<u64>(sysconf(_SC_PAGESIZE)); }

struct direct_alignment {
  u64 memory = 512;
  u64 offset = 512;
};

direct_alignment alignment_of(int file) {
  direct_alignment result;
#ifdef STATX_DIOALIGN
  struct statx about;
  if (statx(file, "", AT_EMPTY_PATH, STATX_DIOALIGN, &about) == 0 && (about.stx_mask & STATX_DIOALIGN) != 0) {
    result.memory = about.stx_dio_mem_align;
    result.offset = about.stx_dio_offset_align;
  }
#else
  int sector = 0;
  if (ioctl(file, BLKSSZGET, &sector) == 0 && sector > 0) result.memory = result.offset = static_cast<u64>(sector);
#endif
  return result;
}

}  // namespace

void storage_namespace::open_direct(file_namespace const& options) {
  const int flags = (options.writable ? O_RDWR : O_RDONLY) | O_CLOEXEC;
  file_ = open(options.path.c_str(), flags | O_DIRECT);
  constexpr char const* remedy = "its file system has no direct I/O; open it with direct = false";
  if (file_ < 0 && errno == EINVAL) throw_os_error(operation, options.path, EINVAL, remedy);
  if (file_ < 0) refuse_to_open(options.path, errno);
  const direct_alignment alignment = alignment_of(file_);
  if (alignment.offset == 0) throw_os_error(operation, options.path, EINVAL, remedy);
  if (options.block_bytes % alignment.offset != 0) {
    throw_bad_input(operation, options.path,
                    "block size " + std::to_string(options.block_bytes) + ": direct I/O needs multiples of " +
                        std::to_string(alignment.offset) + " here: ask for that, or for direct = false");
  }
  if (options.first_byte % alignment.offset != 0) {
    throw_bad_input(operation, options.path,
                    "its blocks begin at byte " + std::to_string(options.first_byte) + ": direct I/O needs a multiple of " +
                        std::to_string(alignment.offset) + " here: ask for direct = false");
  }
  direct_ = true;
  memory_alignment_ = std::max(alignment.memory, alignment.offset);
  if (options.writable) {
    tail_file_ = open(options.path.c_str(), flags);
    if (tail_file_ < 0) refuse_to_open(options.path, errno);
  }
}

std::unique_ptr<storage_namespace> storage_namespace::open_file(file_namespace const& options, bool map, u64 transfer_bytes) {
  check_type(options.path);
  check_shape(options.path, 1, options.block_bytes, transfer_bytes);
  std::unique_ptr<storage_namespace> result(new storage_namespace);
  if (options.direct) {
    result->open_direct(options);
  } else {
    result->file_ = open(options.path.c_str(), (options.writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (result->file_ < 0) refuse_to_open(options.path, errno);
  }
  const u64 whole = size_of(options.path, result->file_);
  if (options.first_byte > whole || options.bytes > whole - options.first_byte) {
    const std::string until =
        options.bytes == 0 ? "" : " and end at byte " + std::to_string(options.first_byte + options.bytes);
    throw_bad_input(operation, options.path,
                    "it has " + std::to_string(whole) + " bytes, and its blocks would begin at byte " +
                        std::to_string(options.first_byte) + until);
  }
  const u64 bytes = options.bytes != 0 ? options.bytes : whole - options.first_byte;
  check_shape(options.path, bytes, options.block_bytes, transfer_bytes);
  result->shape_ = {bytes, options.block_bytes, !options.writable};
  result->first_byte_ = options.first_byte;
  if (options.writable) result->lock(options);
  const u64 end = options.first_byte + bytes;
  if (result->tail_file_ >= 0 && bytes % options.block_bytes != 0) {
    const u64 page = page_size();
    result->tail_begin_ = std::max(end / page * page, options.first_byte) - options.first_byte;
  }
  if (map && !options.direct) result->map_ = page_cache_map::create(result->file_, end, options.writable);
  return result;
}

void storage_namespace::lock(file_namespace const& options) {
  file_range own{first_byte_, shape_.bytes};
  if (direct_) {
    // A page is written directly or through the page cache, and so by one of us: the kernel loses the one that it does not
    // write last.
    own.begin = first_byte_ / page_size() * page_size();
    own.bytes = round_up(first_byte_ + shape_.bytes, page_size()) - own.begin;
  }
  lock_ = write_lock(operation, options.path, file_, own);
}

std::unique_ptr<storage_namespace> storage_namespace::over_memory(std::span<std::byte> memory, u32 block_bytes,
                                                                  u64 transfer_bytes) {
  check_shape("memory", memory.size(), block_bytes, transfer_bytes);
  std::unique_ptr<storage_namespace> result(new storage_namespace);
  result->shape_ = {memory.size(), block_bytes, false};
  result->memory_ = memory.data();
  return result;
}

std::unique_ptr<storage_namespace> storage_namespace::over_folder(std::shared_ptr<file_space> files) {
  std::unique_ptr<storage_namespace> result(new storage_namespace);
  result->shape_ = {files->bytes(), file_block_bytes, !files->writable()};
  result->files_ = std::move(files);
  return result;
}

std::unique_ptr<storage_namespace> storage_namespace::over_descriptor(int file, file_use use, u64 size, u64 bytes) {
  constexpr u64 least_mapped = u64{1} << 20;  // to map a file costs more than to read one that is smaller
  std::unique_ptr<storage_namespace> result(new storage_namespace);
  result->shape_ = {bytes, file_block_bytes, use == file_use::read};
  result->file_ = file;
  result->grows_ = true;
  result->written_once_ = use == file_use::write_once;
  result->needed_bytes_ = use == file_use::read ? size : 0;
  if (size >= least_mapped && use != file_use::write_once) {
    result->map_ = page_cache_map::create(file, size, false);
    result->mapped_bytes_ = size;
  }
  return result;
}

void storage_namespace::note_no_wait_refused() const {
  struct statfs about;
  const bool in_memory = fstatfs(file_, &about) == 0 && (about.f_type == TMPFS_MAGIC || about.f_type == RAMFS_MAGIC);
  read_flags_.store(in_memory ? 0 : no_read, std::memory_order_relaxed);
}

storage_namespace::~storage_namespace() {
  lock_.release();  // nothing is under way any more
  if (file_ >= 0) close(file_);
  if (tail_file_ >= 0) close(tail_file_);
}

}  // namespace penstock::controllers
