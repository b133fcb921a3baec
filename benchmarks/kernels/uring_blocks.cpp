// Blocks of a file read by io_uring: one ring for each thread, kept full. cpu_reads.py compiles it as a library.
#include <liburing.h>
#include <sys/uio.h>
#include <cerrno>
#include <cstdint>

namespace {

struct reader {
  io_uring ring;
  std::uint32_t depth;
  bool fixed;
};

}  // namespace

extern "C" {

/// A ring of `depth` entries over `file`, which is registered; so are the `bytes` at `memory`, unless the system refuses
/// (RLIMIT_MEMLOCK). 0, or -errno.
int uring_open(int file, std::uint32_t depth, char* memory, std::uint64_t bytes, void** opened) {
  auto* const made = new reader{{}, depth, false};
  int problem = io_uring_queue_init(depth, &made->ring, IORING_SETUP_COOP_TASKRUN);
  if (problem == -EINVAL) problem = io_uring_queue_init(depth, &made->ring, 0);  // before Linux 5.19
  if (problem == 0 && (problem = io_uring_register_files(&made->ring, &file, 1)) != 0) io_uring_queue_exit(&made->ring);
  if (problem != 0) {
    delete made;
    return problem;
  }
  const iovec whole{memory, bytes};
  made->fixed = io_uring_register_buffers(&made->ring, &whole, 1) == 0;
  *opened = made;
  return 0;
}

/// Whether the memory is registered.
int uring_fixed(void* opened) { return static_cast<reader*>(opened)->fixed ? 1 : 0; }

/// Reads block blocks[k] of `block_bytes` to to + k * block_bytes, for all k below `count`. 0, or -errno of the first that
/// fails; -EIO for a short one. Returns once none is on its way.
int uring_read(void* opened, std::uint64_t const* blocks, std::uint64_t count, std::uint32_t block_bytes, char* to) {
  reader& r = *static_cast<reader*>(opened);
  std::uint64_t asked = 0, sent = 0, done = 0;
  int problem = 0;
  while (done < sent || (problem == 0 && sent < count)) {
    while (problem == 0 && asked < count && asked - done < r.depth) {
      io_uring_sqe* const entry = io_uring_get_sqe(&r.ring);
      if (entry == nullptr) break;
      char* const at = to + asked * block_bytes;
      const std::uint64_t offset = blocks[asked] * block_bytes;
      if (r.fixed) {
        io_uring_prep_read_fixed(entry, 0, at, block_bytes, offset, 0);
      } else {
        io_uring_prep_read(entry, 0, at, block_bytes, offset);
      }
      entry->flags |= IOSQE_FIXED_FILE;
      ++asked;
    }
    const int submitted = io_uring_submit_and_wait(&r.ring, 1);
    if (submitted >= 0) {
      sent += static_cast<std::uint64_t>(submitted);
    } else if (submitted != -EINTR && problem == 0) {
      problem = submitted;
    }
    io_uring_cqe* found[64];
    for (unsigned some; (some = io_uring_peek_batch_cqe(&r.ring, found, 64)) != 0; done += some) {
      for (unsigned k = 0; k < some; ++k) {
        const int result = found[k]->res;
        if (problem == 0 && result < 0) problem = result;
        if (problem == 0 && result != static_cast<int>(block_bytes)) problem = -EIO;
      }
      io_uring_cq_advance(&r.ring, some);
    }
  }
  return problem;
}

void uring_close(void* opened) {
  auto* const closed = static_cast<reader*>(opened);
  io_uring_queue_exit(&closed->ring);
  delete closed;
}

}  // extern "C"
