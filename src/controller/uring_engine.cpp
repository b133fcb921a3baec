#include "uring_engine.hpp"

#include "penstock/controller/software_controller.hpp"
#include "penstock/core/bits.hpp"
#include "penstock/core/clock.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#ifdef PENSTOCK_HAS_LIBURING
#include <liburing.h>
#endif

namespace penstock::controllers {

#ifdef PENSTOCK_HAS_LIBURING
namespace {

constexpr u32 most_registered = 256;
constexpr u32 no_slot = 0xffffffffu;

// Registers memory with one io_uring the first time that a command points into it. Not earlier: memory outlives the queues that
// use it and no other, and a registration that outlived its memory would send data to pages that belong to something else.
class registered_buffers {
 public:
  registered_buffers(io_uring& ring, buffer_list const* list) : ring_(ring), list_(list) {
    usable_ = list_ != nullptr && io_uring_register_buffers_sparse(&ring_, most_registered) == 0;
  }

  /// The slot to use for a transfer to this memory, or no_slot.
  u32 slot_of(void* memory, u64 bytes) {
    if (!usable_) return no_slot;
    if (list_->version() != seen_) refresh();
    const auto address = reinterpret_cast<u64>(memory);
    if (last_ < entries_.size() && entries_[last_].buffer.holds(address, bytes)) return entries_[last_].slot;
    for (u64 k = 0; k < entries_.size(); ++k) {
      if (!entries_[k].buffer.holds(address, bytes)) continue;
      if (!entries_[k].tried) try_to_register(entries_[k]);
      last_ = k;
      return entries_[k].slot;
    }
    return no_slot;
  }

 private:
  struct entry {
    known_buffer buffer;
    u32 slot = no_slot;
    bool tried = false;
  };

  bool set_slot(u32 slot, iovec const& memory) {
    const __u64 tag = 0;
    return io_uring_register_buffers_update_tag(&ring_, slot, &memory, &tag, 1) == 1;
  }

  // Refused (memlock, memory that can't be pinned): transfers there are unregistered ones, which is slower and nothing else.
  void try_to_register(entry& candidate) {
    candidate.tried = true;
    const bool reuse = !free_slots_.empty();
    if (!reuse && next_slot_ == most_registered) return;
    const u32 slot = reuse ? free_slots_.back() : next_slot_;
    const u64 bytes = candidate.buffer.end - candidate.buffer.begin;
    if (!set_slot(slot, {reinterpret_cast<void*>(candidate.buffer.begin), bytes})) return;
    reuse ? free_slots_.pop_back() : void(++next_slot_);
    candidate.slot = slot;
  }

  void refresh() {
    seen_ = list_->version();
    std::vector<entry> current;
    for (known_buffer const& buffer : list_->copy()) {
      const auto old =
          std::find_if(entries_.begin(), entries_.end(), [&](entry const& e) { return e.buffer.number == buffer.number; });
      if (old == entries_.end()) {
        current.push_back({buffer});
      } else {
        current.push_back(*old);
        old->slot = no_slot;  // moved on
      }
    }
    for (entry const& gone : entries_) {
      if (gone.slot != no_slot && set_slot(gone.slot, {nullptr, 0})) free_slots_.push_back(gone.slot);
    }
    entries_ = std::move(current);
    last_ = entries_.size();
  }

  io_uring& ring_;
  buffer_list const* list_;
  bool usable_ = false;
  u64 seen_ = 0;
  u64 last_ = 0;
  std::vector<entry> entries_;
  std::vector<u32> free_slots_;
  u32 next_slot_ = 0;
};

class uring_engine final : public transfer_engine {
 public:
  explicit uring_engine(uring_request const& request) : depth_(request.depth), files_(request.files), list_(request.buffers) {}

  ~uring_engine() override { close(); }

  int open(bool one_submitter) {
    const int error = open_ring(one_submitter);
    if (error != 0) return error;
    open_ = true;
    fixed_files_ = io_uring_register_files(&ring_, files_.data(), static_cast<unsigned>(files_.size())) == 0;
    buffers_ = std::make_unique<registered_buffers>(ring_, list_);
    return 0;
  }

  void start(transfer& work) override {
    ++in_flight_;
    if (waiting_.empty() && try_start(work)) return;
    waiting_.push_back(&work);
  }

  void submit() override {
    u64 moved = 0;
    while (moved < waiting_.size() && try_start(*waiting_[moved])) ++moved;
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(moved));
    // What the kernel does not take now (EAGAIN, EBUSY) stays in the ring for the next call.
    if (io_uring_sq_ready(&ring_) != 0) io_uring_submit(&ring_);
  }

  transfer* reap() override {
    if (in_flight_ == 0) return nullptr;
    constexpr unsigned batch = 64;
    io_uring_cqe* ended[batch];
    const unsigned count = io_uring_peek_batch_cqe(&ring_, ended, batch);
    transfer* first = nullptr;
    transfer** link = &first;
    for (unsigned k = 0; k < count; ++k) {
      auto* work = static_cast<transfer*>(io_uring_cqe_get_data(ended[k]));
      if (work == nullptr) continue;  // the answer to a cancellation
      work->result = ended[k]->res;
      work->next = nullptr;
      *link = work;
      link = &work->next;
      --in_flight_;
    }
    io_uring_cq_advance(&ring_, count);
    return first;
  }

  bool quiesce(u64 deadline_ns) override {
    in_flight_ -= waiting_.size();
    waiting_.clear();
    if (in_flight_ != 0) cancel_all();
    while (in_flight_ != 0 && now_ns() < deadline_ns) {
      io_uring_submit(&ring_);
      io_uring_cqe* ended = nullptr;
      __kernel_timespec slice{0, 10'000'000};
      io_uring_wait_cqe_timeout(&ring_, &ended, &slice);
      reap();
    }
    if (in_flight_ != 0) return false;
    close();
    return true;
  }

 private:
  // With several threads that poll, completions must not depend on one of them entering the kernel, so no COOP_TASKRUN then. No
  // SINGLE_ISSUER or DEFER_TASKRUN either way: detach may come from any thread.
  int open_ring(bool one_submitter) {
    io_uring_params parameters = {};
    parameters.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL;
    if (one_submitter) parameters.flags |= IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
    const u32 entries = std::min(256u, std::max(8u, depth_));
    const u32 cq_entries = std::max(entries, depth_ + 1) * 2;
    parameters.cq_entries = cq_entries;
    const int error = io_uring_queue_init_params(entries, &ring_, &parameters);
    if (error != -EINVAL) return -error;
    parameters = {};  // a kernel before 5.19
    parameters.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    parameters.cq_entries = cq_entries;
    return -io_uring_queue_init_params(entries, &ring_, &parameters);
  }

  bool try_start(transfer& work) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) {
      io_uring_submit(&ring_);
      entry = io_uring_get_sqe(&ring_);
      if (entry == nullptr) return false;
    }
    prepare(*entry, work);
    io_uring_sqe_set_data(entry, &work);
    return true;
  }

  void prepare(io_uring_sqe& entry, transfer const& work) {
    const bool fixed = fixed_files_ && work.descriptor < 0;
    const int file = work.descriptor >= 0 ? work.descriptor : fixed ? static_cast<int>(work.file) : files_[work.file];
    const u64 position = work.space->first_byte() + work.offset + work.done;
    if (work.what == action::flush) {
      io_uring_prep_fsync(&entry, file, IORING_FSYNC_DATASYNC);
    } else if (work.rest.size() == 1) {
      prepare_one_piece(entry, work, file, position);
    } else {
      const unsigned count = static_cast<unsigned>(std::min<u64>(work.rest.size(), 1024));
      work.what == action::read ? io_uring_prep_readv(&entry, file, work.rest.data(), count, position)
                                : io_uring_prep_writev(&entry, file, work.rest.data(), count, position);
    }
    if (fixed) io_uring_sqe_set_flags(&entry, IOSQE_FIXED_FILE);
  }

  void prepare_one_piece(io_uring_sqe& entry, transfer const& work, int file, u64 position) {
    iovec const& piece = work.rest.front();
    const auto bytes = static_cast<unsigned>(piece.iov_len);
    const u32 slot = work.through_bounce ? no_slot : buffers_->slot_of(piece.iov_base, piece.iov_len);
    const int index = static_cast<int>(slot);
    if (work.what == action::read) {
      slot == no_slot ? io_uring_prep_read(&entry, file, piece.iov_base, bytes, position)
                      : io_uring_prep_read_fixed(&entry, file, piece.iov_base, bytes, position, index);
    } else {
      slot == no_slot ? io_uring_prep_write(&entry, file, piece.iov_base, bytes, position)
                      : io_uring_prep_write_fixed(&entry, file, piece.iov_base, bytes, position, index);
    }
  }

  void cancel_all() {
    io_uring_submit(&ring_);
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) return;
    io_uring_prep_cancel64(entry, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
    io_uring_sqe_set_data(entry, nullptr);
    io_uring_submit(&ring_);
  }

  void close() {
    if (open_) io_uring_queue_exit(&ring_);
    open_ = false;
  }

  io_uring ring_ = {};
  bool open_ = false;
  bool fixed_files_ = false;
  u32 depth_;
  std::vector<int> files_;
  buffer_list const* list_;
  std::unique_ptr<registered_buffers> buffers_;
  std::vector<transfer*> waiting_;  ///< for room in the submission ring
  u64 in_flight_ = 0;
};

}  // namespace

std::unique_ptr<transfer_engine> create_uring_engine(uring_request const& request, int& error) {
  auto engine = std::make_unique<uring_engine>(request);
  error = engine->open(request.one_submitter);
  if (error != 0) return nullptr;
  return engine;
}

#else

std::unique_ptr<transfer_engine> create_uring_engine(uring_request const&, int& error) {
  error = ENOSYS;
  return nullptr;
}

#endif

}  // namespace penstock::controllers

namespace penstock {

bool io_uring_usable(std::string* reason) {
#ifdef PENSTOCK_HAS_LIBURING
  io_uring ring;
  const int error = io_uring_queue_init(8, &ring, 0);
  if (error == 0) {
    io_uring_queue_exit(&ring);
    return true;
  }
  if (reason != nullptr) *reason = std::strerror(-error);
#else
  if (reason != nullptr) *reason = "Penstock was built without liburing";
#endif
  return false;
}

}  // namespace penstock
