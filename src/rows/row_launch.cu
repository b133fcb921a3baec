// The launches over rows for both executors, and the sort before a gather (CUB's radix sort).
#include "penstock/executor/kept_for_graphs.hpp"
#include "penstock/executor/outside_of_capture.hpp"
#include "row_launch_bodies.hpp"
#include "shared_lists.cuh"

#include <cub/device/device_radix_sort.cuh>

#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace penstock::rows {
namespace {

// A sort works in a room of 16 bytes for each row and more: so many at a time. Sorted by so many, requests to one page are
// neighbours as well as if all had been sorted at once.
constexpr u64 most_sorted_at_once = 1ull << 24;

void check(cudaError_t result, char const* what) {
  if (result != cudaSuccess) {
    throw error(error_kind::world, std::string("gather rows: ") + what + ": " + cudaGetErrorString(result),
                result == cudaErrorMemoryAllocation ? 12 /* ENOMEM */ : 5 /* EIO */);
  }
}

/// Of one GPU, for all arrays of a process: each pool reserves as many addresses as a GPU has memory, and a process with some
/// hundreds of them has none left.
class memory_pool {
 public:
  static std::shared_ptr<memory_pool> of(int gpu) {
    static std::mutex lock;
    static std::map<int, std::weak_ptr<memory_pool>> pools;
    const std::lock_guard held(lock);
    std::shared_ptr<memory_pool> found = pools[gpu].lock();
    if (!found) pools[gpu] = found = std::make_shared<memory_pool>(gpu);
    return found;
  }

  explicit memory_pool(int gpu) {
    const gpu_scope here(gpu);  // else the runtime makes a context on GPU 0
    const outside_of_capture allowed;
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = gpu;
    check(cudaMemPoolCreate(&pool_, &properties), "no pool of memory");
    u64 keep = std::numeric_limits<u64>::max();
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep), "no pool of memory");
  }
  memory_pool(memory_pool const&) = delete;
  memory_pool& operator=(memory_pool const&) = delete;
  ~memory_pool() {
    const outside_of_capture allowed;
    cudaMemPoolDestroy(pool_);
  }

  cudaMemPool_t get() const { return pool_; }
  /// What no one has now goes back to the GPU.
  void trim() const {
    const outside_of_capture allowed;
    cudaMemPoolTrimTo(pool_, 0);
  }

 private:
  cudaMemPool_t pool_ = nullptr;
};

/// Memory in the order of a stream, kept by the pool when it is given back. While the stream is captured these are nodes of the
/// graph that allocate and free: the graph owns the room, each replay has it to itself, and graphs that do not run at once
/// share its pages. (Room of the array's own would be held for good, by every captured call apart, since graphs may run side by
/// side.)
class stream_room {
 public:
  stream_room(cudaMemPool_t pool, u64 bytes, cudaStream_t stream) : stream_(stream) {
    check(cudaMallocFromPoolAsync(&data_, bytes, pool, stream), "there is no room to sort them in");
  }
  stream_room(stream_room const&) = delete;
  stream_room& operator=(stream_room const&) = delete;
  ~stream_room() { cudaFreeAsync(data_, stream_); }

  u8* at(u64 offset) const { return static_cast<u8*>(data_) + offset; }

 private:
  void* data_ = nullptr;
  cudaStream_t stream_;
};

/// What a sort works in: keys and positions, each twice, and CUB's own.
class sort_room {
 public:
  sort_room(cudaMemPool_t pool, u64 count, u64 scratch_bytes, cudaStream_t stream)
      : list_bytes_(round_up(count * sizeof(u32), aligned_to)), scratch_bytes_(round_up(scratch_bytes, aligned_to)),
        chunks_(ceil_div(count, chunk_rows)), room_(pool, 4 * list_bytes_ + scratch_bytes_ + shared_bytes(), stream) {}

  cub::DoubleBuffer<u32> keys() const { return {list(0), list(1)}; }
  cub::DoubleBuffer<u32> positions() const { return {list(2), list(3)}; }
  void* scratch() const { return room_.at(4 * list_bytes_); }
  /// What groups that share a gather know; the ways of its chunks follow. Not zeroed.
  shared_progress* progress() const { return reinterpret_cast<shared_progress*>(room_.at(4 * list_bytes_ + scratch_bytes_)); }
  chunk_way* ways() const { return reinterpret_cast<chunk_way*>(progress() + 1); }
  u64 shared_bytes() const { return sizeof(shared_progress) + chunks_ * sizeof(chunk_way); }

 private:
  static constexpr u64 aligned_to = 256;  // as cudaMalloc

  u32* list(u32 k) const { return reinterpret_cast<u32*>(room_.at(k * list_bytes_)); }

  u64 list_bytes_, scratch_bytes_, chunks_;
  stream_room room_;
};

/// Whether a group has one load of each row in a lane, as rows that a kernel shares must be.
bool is_short(row_place const& from, void* out) {
  const u64 alignment = common_alignment(from, out);
  return from.row_bytes != alignment && pieces_of(from, alignment) <= 32;
}

/// REQUIRES: is_short(from, out).
void gather_shared_rows(executor& on, row_launch const& how, row_place const& from, rows_by_number const& rows, void* out,
                        shared_list const& list, shared_progress* progress, chunk_way* ways) {
  constexpr u32 taking_lanes = 4096;
  constexpr u64 patience_ns = 200 * one_microsecond_ns;
  const u64 alignment = common_alignment(from, out), pieces = pieces_of(from, alignment);
  with_edge(alignment, [&](auto unit) {
    using edge = typename decltype(unit)::type;
    const gather_short<edge, rows_by_number> each{rows,       from.address, from.row_bytes, reinterpret_cast<u64>(out),
                                                  from.pitch, from.kept};
    constexpr u32 lanes = 32;
    const auto width = static_cast<u32>(std::bit_ceil(pieces));
    start<lanes>(on, how, ceil_div(rows.count, few_rows::most * (lanes / width)),
                 gather_shared<edge, rows_by_number>{each, list, progress, ways, width, taking_lanes / lanes, patience_ns});
  });
}

constexpr std::size_t max_free_events = 64;

class cuda_row_device final : public row_device {
 public:
  explicit cuda_row_device(int gpu) : gpu_(gpu), pool_(memory_pool::of(gpu)) { free_events_.reserve(max_free_events); }
  ~cuda_row_device() override {
    for (auto const& each : helps_) row_helpers::of_process().end(each->what);
    if (followed_ != nullptr) cudaEventDestroy(followed_);
    if (listed_ != nullptr) cudaEventDestroy(listed_);
    if (beside_ != nullptr) cudaStreamDestroy(beside_);
    for (cudaEvent_t const each : free_events_) cudaEventDestroy(each);
    pool_->trim();
  }

  void sorted_gather(executor& on, row_launch const& how, row_place const& from, void* out) override {
    const gpu_scope here(gpu_);
    const bool shares = how.helpers != 0 && is_short(from, out) && from.rows < 1ull << 31 && can_share(on);
    const u64 most = shares ? most_shared_rows(from.row_bytes) : most_sorted_at_once;
    const u64 each = ceil_div(how.list.count, ceil_div(how.list.count, most));
    for (u64 first = 0; first < how.list.count; first += each) {
      const u64 count = std::min(each, how.list.count - first);
      u8* const to = static_cast<u8*>(out) + first * from.row_bytes;
      shares ? share_part(on, how, from, first, count, to) : gather_part(on, how, from, first, count, to);
    }
  }

  void copied_gather(row_launch const& how, row_place const& from, void* out) override {
    const gpu_scope here(gpu_);
    auto* const stream = static_cast<cudaStream_t>(how.stream);
    std::vector<u8> list(how.list.grid.levels != 0 ? 0 : how.list.count * how.list.item_bytes);
    if (!list.empty()) {
      check(cudaMemcpyAsync(list.data(), how.list.data, list.size(), cudaMemcpyDefault, stream),
            "their numbers are out of reach");
      check(cudaStreamSynchronize(stream), "their numbers are lost");
    }
    row_numbers numbers = numbers_of(how, from);
    numbers.list.data = list.data();
    std::vector<void*> to;
    std::vector<void const*> source;
    for (u64 k = 0; k < how.list.count; ++k) {
      const u64 row = numbers.at(k);
      if (row == row_numbers::none) continue;
      source.push_back(reinterpret_cast<void const*>(from.address + row * from.pitch));
      to.push_back(static_cast<u8*>(out) + k * from.row_bytes);
    }
    copy_all(to, source, from.row_bytes, stream);
  }

  void copy(void* to, void const* from, u64 bytes, void* stream) override {
    const gpu_scope here(gpu_);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(stream)),
          "the copy engines refuse them");
  }

  bool is_captured(void* stream) override { return penstock::is_captured(gpu_, stream); }
  void keep_for_graph(void* stream, std::shared_ptr<void> kept) override {
    penstock::keep_for_graph(gpu_, stream, std::move(kept));
  }
  void finish(void* stream) override {
    const gpu_scope here(gpu_);
    check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "its results are lost");
  }
  void* mark(void* stream) override {
    const gpu_scope here(gpu_);
    const cudaEvent_t made = take_event();
    check(cudaEventRecord(made, static_cast<cudaStream_t>(stream)), "no event");
    return made;
  }
  void await(void* mark) override {
    const outside_of_capture allowed;
    check(cudaEventSynchronize(static_cast<cudaEvent_t>(mark)), "its results are lost");
  }
  bool is_done(void* mark) override {
    const outside_of_capture allowed;
    const cudaError_t state = cudaEventQuery(static_cast<cudaEvent_t>(mark));
    if (state == cudaErrorNotReady) return false;
    check(state, "its results are lost");
    return true;
  }
  void order_before(void* mark, void* stream) override {
    const gpu_scope here(gpu_);
    check(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), static_cast<cudaEvent_t>(mark)), "the stream cannot wait");
  }
  void forget(void* mark) noexcept override {
    const std::lock_guard lock(mutex_);
    if (free_events_.size() < free_events_.capacity()) {
      free_events_.push_back(static_cast<cudaEvent_t>(mark));
    } else {
      cudaEventDestroy(static_cast<cudaEvent_t>(mark));
    }
  }
  void* beside(void* stream) override {
    const gpu_scope here(gpu_);
    if (beside_ == nullptr) {
      check(cudaStreamCreateWithFlags(&beside_, cudaStreamNonBlocking), "no stream");
      check(cudaEventCreateWithFlags(&followed_, cudaEventDisableTiming), "no event");
      check(cudaEventCreateWithFlags(&listed_, cudaEventDisableTiming), "no event");
    }
    check(cudaEventRecord(followed_, static_cast<cudaStream_t>(stream)), "no event");
    check(cudaStreamWaitEvent(beside_, followed_), "the stream cannot wait");
    return beside_;
  }
  void finish_beside() override {
    const gpu_scope here(gpu_);
    if (beside_ != nullptr) check(cudaStreamSynchronize(beside_), "what was written back beside it is lost");
  }

 private:
  // To make one and to destroy it takes longer than a launch.
  cudaEvent_t take_event() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_events_.empty()) {
        const cudaEvent_t taken = free_events_.back();
        free_events_.pop_back();
        return taken;
      }
    }
    cudaEvent_t made = nullptr;
    check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "no event");
    return made;
  }

  void gather_part(executor& on, row_launch const& how, row_place const& from, u64 first, u64 count, void* out) {
    with_sorted(on, how, from, first, count, 0,
                [&](sort_room const&, rows_by_number const& sorted) { gather_rows(on, how, from, count, sorted, out); });
  }

  /// Calls with(room, rows) for a part of the list in the order of its rows, those that are kept first if `others` is not 0.
  template <class With>
  void with_sorted(executor& on, row_launch const& how, row_place const& from, u64 first, u64 count, u32 others,
                   With const& with) {
    auto* const stream = static_cast<cudaStream_t>(how.stream);
    const u64 largest = from.rows + others;
    std::size_t bytes = 0;
    cub::DoubleBuffer<u32> nothing;
    check(sort(nullptr, bytes, nothing, nothing, count, largest, stream), "they cannot be sorted");
    const sort_room room(pool_->get(), count, bytes, stream);
    auto keys = room.keys(), positions = room.positions();
    start<32>(on, how, ceil_div(count, list_rows::items_per_group),
              list_rows{numbers_of(how, from), first, count, keys.Current(), positions.Current(), from.kept, others});
    check(sort(room.scratch(), bytes, keys, positions, count, largest, stream), "they cannot be sorted");
    with(room, rows_by_number{keys.Current(), positions.Current(), count, from.rows, {}, others});
  }

  /// Makes the memory for it. False: there is none.
  bool can_share(executor& on) {
    const std::lock_guard lock(sharing_);
    try {
      if (!shared_ && !no_room_) shared_.emplace(on.memory());
    } catch (error const&) {
      no_room_ = true;
    }
    return shared_.has_value();
  }

  /// The kernel begins at once, beside the words to the CPU's threads. What these do with the list is over before it is the
  /// next one's turn, on the stream beside.
  void share_part(executor& on, row_launch const& how, row_place const& from, u64 first, u64 count, void* out) {
    const u32 others = from.kept.slots != nullptr ? std::bit_ceil(static_cast<u32>(from.rows) + 1) : 0;
    auto* const stream = static_cast<cudaStream_t>(how.stream);
    const std::lock_guard lock(sharing_);
    with_sorted(on, how, from, first, count, others, [&](sort_room const& room, rows_by_number const& sorted) {
      help& with = new_help(how.helpers, from, sorted);
      check(cudaMemsetAsync(room.progress(), 0, room.shared_bytes(), stream), "they cannot be shared");
      auto* const side = static_cast<cudaStream_t>(beside(stream));
      check(cudaMemcpyAsync(shared_->keys(), sorted.keys, count * sizeof(u32), cudaMemcpyDeviceToHost, side),
            "they cannot be shared");
      check(cudaEventRecord(listed_, side), "no event");
      check(cudaLaunchHostFunc(side, help::begin, &with), "they cannot be shared");
      gather_shared_rows(on, how, from, sorted, out, with.what.list, room.progress(), room.ways());
      beside(stream);
      check(cudaLaunchHostFunc(side, help::end, &with), "they cannot be shared");
      check(cudaStreamWaitEvent(stream, listed_), "the stream cannot wait");  // before the room is given back
    });
  }

  help& new_help(u32 threads, row_place const& from, rows_by_number const& sorted) {
    std::erase_if(helps_, [](auto const& each) { return each->ended.load(std::memory_order_acquire); });
    help& made = *helps_.emplace_back(std::make_unique<help>());
    made.threads = threads;
    helped_list& what = made.what;
    what.list = shared_->next(sorted.count);
    what.keys = shared_->keys();
    what.count = sorted.count;
    what.others = sorted.others;
    what.rows = from.rows;
    what.source = from.address;
    what.pitch = from.pitch;
    what.row_bytes = from.row_bytes;
    what.most_chunks = most_staged_chunks(from.row_bytes);
    return made;
  }

  static void copy_all(std::vector<void*>& to, std::vector<void const*>& from, u64 bytes, cudaStream_t stream) {
    if (to.empty()) return;
#if CUDART_VERSION >= 13000
    if (stream != nullptr && stream != cudaStreamLegacy) {  // which takes no batches
      const std::vector<std::size_t> sizes(to.size(), bytes);
      cudaMemcpyAttributes attributes{};
      attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
      std::size_t first = 0;
      check(cudaMemcpyBatchAsync(to.data(), from.data(), sizes.data(), to.size(), &attributes, &first, 1, stream),
            "the copy engines refuse them");
      return;
    }
#endif
    for (u64 k = 0; k < to.size(); ++k) {
      check(cudaMemcpyAsync(to[k], from[k], bytes, cudaMemcpyDefault, stream), "the copy engines refuse them");
    }
  }

  static cudaError_t sort(void* scratch, std::size_t& bytes, cub::DoubleBuffer<u32>& keys, cub::DoubleBuffer<u32>& positions,
                          u64 count, u64 rows, cudaStream_t stream) {
    // `rows` itself marks what lies outside. More bits than `count` rows differ in bring few of them closer together, and each
    // eight are a pass.
    const int all = std::bit_width(rows), used = std::min(all, static_cast<int>(round_up(std::bit_width(count), 8)));
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, positions, static_cast<std::int64_t>(count), all - used, all,
                                           stream);
  }

  int gpu_;
  std::shared_ptr<memory_pool> pool_;
  cudaStream_t beside_ = nullptr;
  cudaEvent_t followed_ = nullptr, listed_ = nullptr;
  std::mutex sharing_;
  std::optional<shared_memory> shared_;       ///< under sharing_
  bool no_room_ = false;                      ///< likewise
  std::vector<std::unique_ptr<help>> helps_;  ///< likewise; those that have not ended, and perhaps others
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_events_;  ///< under mutex_
};

}  // namespace

std::unique_ptr<row_device> make_row_device(executor& on) {
  if (on.kind() == executor_kind::cpu) return nullptr;
  return std::make_unique<cuda_row_device>(on.gpu());
}

}  // namespace penstock::rows
