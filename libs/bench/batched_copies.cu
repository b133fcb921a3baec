#include "libs/bench/batched_copies.hpp"

#include "libs/bench/mapped_file.hpp"
#include "libs/graph/parallel.hpp"

#include <algorithm>
#include <cstring>

namespace penstock::bench {
namespace {

constexpr u32 batch_pieces = 1024;
constexpr u32 streams_per_thread = 3;  // a batch is prepared while those before it are copied and checked

void check_copy_call(cudaError_t outcome, char const* what) {
  if (outcome == cudaSuccess) return;
  throw error(error_kind::world, std::string("measure files: ") + what + ": " + cudaGetErrorString(outcome));
}

/// Host memory that the copy engines read without a staging buffer.
class host_registration {
 public:
  host_registration(memory_resource& memory, mapped_file const& file)
      : memory_(memory), data_(const_cast<char*>(file.data())), bytes_(file.bytes()) {
    try {
      ours_ = memory.register_host(data_, bytes_, false);
      done_ = true;
    } catch (error const&) {  // not every file system lets its pages be pinned
    }
  }
  host_registration(host_registration const&) = delete;
  host_registration& operator=(host_registration const&) = delete;
  ~host_registration() {
    if (ours_) memory_.unregister_host(data_, bytes_);
  }

  bool done() const { return done_; }

 private:
  memory_resource& memory_;
  char* data_;
  u64 bytes_;
  bool ours_ = false, done_ = false;
};

/// A stream and the room of a batch in GPU memory. One thread at a time.
class batch_stream {
 public:
  batch_stream(executor& on, bool staged)
      : on_(on), room_(on.memory(), memory_kind::local, u64{batch_pieces} * read_words), to_(batch_pieces), from_(batch_pieces),
        sizes_(batch_pieces, read_bytes) {
    if (staged) staging_ = {on.memory(), memory_kind::shared, u64{batch_pieces} * read_words};
    for (u32 k = 0; k < batch_pieces; ++k) to_[k] = room_.data() + u64{k} * read_words;
    const gpu_scope here(on_.gpu());
    check_copy_call(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create a stream");
  }
  batch_stream(batch_stream const&) = delete;
  batch_stream& operator=(batch_stream const&) = delete;
  ~batch_stream() {
    const gpu_scope here(on_.gpu());
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }

  /// Waits for the batch before, then starts the copies of `count` pieces and their check.
  void start(char const* data, piece_order const& order, u64 first, u64 count, u64* wrong) {
    wait();
    for (u64 k = 0; k < count; ++k) from_[k] = data + order(first + k) * read_bytes;
    const gpu_scope here(on_.gpu());
    staging_.size() != 0 ? copy_staged(count) : copy_in_place(count);
    launch_on<32>(stream_, on_, count, check_copied_pieces{order, first, room_.data(), wrong});
  }
  void wait() {
    const gpu_scope here(on_.gpu());
    check_copy_call(cudaStreamSynchronize(stream_), "copy a batch to the GPU");
  }

 private:
  void copy_staged(u64 count) {
    for (u64 k = 0; k < count; ++k) std::memcpy(staging_.data() + k * read_words, from_[k], read_bytes);
    check_copy_call(cudaMemcpyAsync(room_.data(), staging_.data(), count * read_bytes, cudaMemcpyHostToDevice, stream_),
                    "copy a batch to the GPU");
  }
  void copy_in_place(u64 count) {
    cudaMemcpyAttributes how{};
    how.srcAccessOrder = cudaMemcpySrcAccessOrderAny;  // no kernel stores to the file
    how.srcLocHint = {cudaMemLocationTypeHost, 0};
    how.dstLocHint = {cudaMemLocationTypeDevice, on_.gpu()};
    std::size_t from_copy = 0;
    check_copy_call(
        cudaMemcpyBatchAsync(to_.data(), from_.data(), sizes_.data(), count, &how, &from_copy, std::size_t{1}, stream_),
        "copy a batch to the GPU");
  }

  executor& on_;
  buffer<u64> room_, staging_;  // without staging_: in place
  std::vector<void*> to_;
  std::vector<void const*> from_;
  std::vector<std::size_t> sizes_;
  cudaStream_t stream_ = nullptr;
};

/// What one host thread copies by, in turn.
class copy_thread {
 public:
  copy_thread(executor& on, bool staged) {
    for (u32 s = 0; s < streams_per_thread; ++s) streams_.push_back(std::make_unique<batch_stream>(on, staged));
  }

  batch_stream& next() { return *streams_[next_++ % streams_per_thread]; }
  void wait() {
    for (auto const& stream : streams_) stream->wait();
  }

 private:
  std::vector<std::unique_ptr<batch_stream>> streams_;
  u32 next_ = 0;
};

class mapping_copies final : public batched_copies {
 public:
  mapping_copies(executor& on, std::string const& path, u32 threads, copy_source source) : file_(path), source_(source) {
    if (source == copy_source::registered) registration_ = std::make_unique<host_registration>(on.memory(), file_);
    for (u32 t = 0; t < threads; ++t) threads_.emplace_back(on, source == copy_source::staged);
  }

  bool can_run() const { return !registration_ || registration_->done(); }
  copy_source source() const override { return source_; }

  void run(piece_order const& order, u64 reads, u64* wrong) override {
    graph::progress_meter quiet;
    const auto threads = static_cast<unsigned>(threads_.size());
    graph::parallel_for_workers(ceil_div(reads, u64{batch_pieces}), threads, quiet, [&](u64 batch, unsigned thread) {
      const u64 first = batch * batch_pieces;
      threads_[thread].next().start(file_.data(), order, first, std::min<u64>(batch_pieces, reads - first), wrong);
    });
    for (copy_thread& thread : threads_) thread.wait();
  }

 private:
  mapped_file file_;
  copy_source source_;
  std::unique_ptr<host_registration> registration_;  // null: not asked for
  std::vector<copy_thread> threads_;                 // their copies end before the mapping does
};

}  // namespace

std::vector<std::unique_ptr<batched_copies>> open_batched_copies(executor& on, std::string const& path, u32 threads) {
  std::vector<std::unique_ptr<batched_copies>> all;
  for (copy_source source : {copy_source::mapping, copy_source::registered, copy_source::staged}) {
    auto copies = std::make_unique<mapping_copies>(on, path, threads, source);
    if (copies->can_run()) all.push_back(std::move(copies));
  }
  return all;
}

}  // namespace penstock::bench
