#include "libs/bench/gpufs_server.hpp"

#include "libs/bench/stamped_store.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace penstock::bench {
namespace {

constexpr u64 max_batch_bytes = u64{1} << 20, batches_per_worker = 8;

class gpufs_host_mover : public gpufs_mover {
 public:
  void move(void* to, void const* from, u64 bytes) override { std::memcpy(to, from, bytes); }
};

std::unique_ptr<gpufs_mover> open_mover(executor& on) {
  if constexpr (built_with_kernels) {
    if (on.kind() == executor_kind::cuda) return open_gpufs_cuda_mover(on);
  }
  return std::make_unique<gpufs_host_mover>();
}

}  // namespace

gpufs_open_file::gpufs_open_file(std::string const& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) throw_os_error("open", path, errno, "name a file that can be read");
  struct stat facts{};
  if (fstat(descriptor_, &facts) == 0) bytes_ = static_cast<u64>(facts.st_size);
}
gpufs_open_file::gpufs_open_file(gpufs_open_file&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), bytes_(other.bytes_) {}
gpufs_open_file::~gpufs_open_file() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool gpufs_open_file::read(void* to, u64 count, u64 offset) const {
  u64 left = offset < bytes_ ? std::min(count, bytes_ - offset) : 0;
  for (auto* at = static_cast<char*>(to); left != 0;) {
    const ssize_t got = pread(descriptor_, at, left, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got, offset += static_cast<u64>(got), left -= static_cast<u64>(got);
  }
  return true;
}

/// What one thread reads into, and what it has seen.
struct gpufs_server::worker {
  worker(executor& on, u64 page_bytes, u32 slots, bool batched)
      : max_batch(batched ? std::max<u64>(1, max_batch_bytes / page_bytes) : 1), mover(open_mover(on)), seen(slots),
        staging(on.memory(), memory_kind::shared, batches_per_worker * max_batch * page_bytes),
        moved(on.memory(), memory_kind::local, batched ? staging.size() : 0) {}

  u64 max_batch;
  std::unique_ptr<gpufs_mover> mover;
  std::vector<u64> seen;                                ///< of each slot: the last number that was served
  buffer<std::byte> staging;                            ///< pinned, where files are read into
  buffer<std::byte> moved;                              ///< batched: next to the requesters, who copy from it
  std::vector<found_request> last[batches_per_worker];  ///< in each part of `moved`
  u64 turn = 0;                                         ///< of the search for requests
  u64 batches = 0;
};

gpufs_server::gpufs_server(executor& on, gpufs_options const& options, std::vector<gpufs_open_file> files, gpufs_view& view)
    : polls_(on.kind() == executor_kind::cuda), options_(options), files_(std::move(files)), view_(view) {
  if (options.transfers == gpufs_transfers::none) return;
  if (options.workers == 0) {
    view.serve = [](void* server, u16 slot) { static_cast<gpufs_server*>(server)->serve_in_place(slot); };
    view.server = this;
    return;
  }
  const bool batched = options.transfers == gpufs_transfers::batched;
  for (u32 w = 0; w < options.workers; ++w) {
    workers_.push_back(std::make_unique<worker>(on, options.page_bytes, options.slots, batched));
  }
  for (u32 w = 0; w < options.workers; ++w) {
    threads_.emplace_back([this, w](std::stop_token const& stop) { work(stop, *workers_[w], w); });
  }
}

gpufs_server::~gpufs_server() = default;

gpufs_traffic gpufs_server::traffic() const { return {pages_.load(), pages_.load() * options_.page_bytes, transfers_.load()}; }

void gpufs_server::work(std::stop_token const& stop, worker& own, u32 first) noexcept {
  std::vector<found_request> found;
  for (u32 idle_rounds = 0; !stop.stop_requested();) {
    found.clear();
    if (collect(own, first, own.max_batch, found) == 0) {
      // Beside a GPU's threads it polls all the time, as GPUfs's does; beside a CPU's it leaves them the cores.
      let_others_run(128, polls_ ? 0 : idle_rounds++);
      continue;
    }
    idle_rounds = 0;
    if (options_.transfers == gpufs_transfers::batched) {
      serve_batch(stop, own, found);
    } else {
      serve_single(own, found.front());
    }
  }
}

/// Requests that wait in the slots of this worker, each `workers`-th, from where the last search ended.
u64 gpufs_server::collect(worker& own, u32 first, u64 limit, std::vector<found_request>& found) const {
  const u64 slots = ceil_div(view_.slots_count - first, options_.workers);
  for (u64 k = 0; k < slots && found.size() < limit; ++k) {
    const u32 slot = first + static_cast<u32>(own.turn % slots) * options_.workers;
    ++own.turn;
    const u64 asked = system_ref<u64>(view_.requests[slot].asked).load(acquire);
    if (asked == own.seen[slot]) continue;
    own.seen[slot] = asked;
    found.push_back(load(slot));
  }
  return found.size();
}

gpufs_server::found_request gpufs_server::load(u32 slot) const {
  gpufs_request& request = view_.requests[slot];
  return {slot, system_ref<u64>(request.asked).load(acquire), system_ref<u64>(request.key).load(relaxed),
          system_ref<u64>(request.frame).load(relaxed)};
}

bool gpufs_server::read_page(u64 key, void* to) const {
  const u32 file = gpufs_directory::file_of(key);
  return file < files_.size() &&
         files_[file].read(to, options_.page_bytes, gpufs_directory::page_of(key) * options_.page_bytes);
}

void gpufs_server::count_move(u64 pages) {
  pages_.fetch_add(pages, std::memory_order_relaxed);
  transfers_.fetch_add(1, std::memory_order_relaxed);
}

void gpufs_server::answer(gpufs_request& request, u64 number, void const* staged, bool good) {
  system_ref<u64>(request.staged).store(reinterpret_cast<u64>(staged), relaxed);
  system_ref<u64>(request.error).store(static_cast<u64>(good ? gpufs_error::none : gpufs_error::io), relaxed);
  system_ref<u64>(request.answered).store(number, release);
}

void gpufs_server::serve_single(worker& own, found_request const& request) {
  bool good = read_page(request.key, own.staging.data());
  try {
    if (good) own.mover->move(view_.bytes_of(static_cast<u32>(request.frame)), own.staging.data(), options_.page_bytes);
  } catch (std::exception const&) {
    good = false;
  }
  count_move(1);
  answer(view_.requests[request.slot], request.number, nullptr, good);
}

/// Pages of a batch follow each other in the staging buffer and are moved at once; their requesters copy them to the frames.
void gpufs_server::serve_batch(std::stop_token const& stop, worker& own, std::vector<found_request> const& batch) {
  const u64 part = own.batches++ % batches_per_worker, page = options_.page_bytes;
  wait_for_copies(stop, own.last[part]);
  std::byte* const from = own.staging.data() + part * own.max_batch * page;
  std::byte* const to = own.moved.data() + part * own.max_batch * page;
  std::vector<char> good(batch.size());
  for (u64 k = 0; k < batch.size(); ++k) good[k] = read_page(batch[k].key, from + k * page) ? 1 : 0;
  try {
    own.mover->move(to, from, batch.size() * page);
  } catch (std::exception const&) {
    std::fill(good.begin(), good.end(), 0);
  }
  count_move(batch.size());
  own.last[part] = batch;
  for (u64 k = 0; k < batch.size(); ++k) {
    answer(view_.requests[batch[k].slot], batch[k].number, to + k * page, good[k] != 0);
  }
}

/// Staged bytes stay until their requesters have copied them, or have given up.
void gpufs_server::wait_for_copies(std::stop_token const& stop, std::vector<found_request> const& batch) const {
  backoff wait(2 * options_.timeout_ns);
  for (found_request const& each : batch) {
    while (system_ref<u64>(view_.requests[each.slot].copied).load(acquire) < each.number) {
      if (!wait.pause() || stop.stop_requested()) return;
    }
  }
}

void gpufs_server::serve_in_place(u32 slot) {
  const found_request request = load(slot);
  const bool good = read_page(request.key, view_.bytes_of(static_cast<u32>(request.frame)));
  count_move(1);
  answer(view_.requests[slot], request.number, nullptr, good);
}

}  // namespace penstock::bench
