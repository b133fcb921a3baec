#include "row_helpers.hpp"

#include "penstock/core/atomic.hpp"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>

#include <pthread.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace penstock::rows {
namespace {

/// Rows are asked for so many before they are copied: a thread has some ten loads under way by itself.
constexpr u32 rows_ahead = 6;

/// Copies a row whose copy this CPU does not read: past its caches, which a GPU's reads would only find dirty.
void copy_past_caches(std::byte* to, std::byte const* from, u64 bytes) {
#if defined(__SSE2__)
  if (bytes % sizeof(__m128i) == 0) {
    for (u64 at = 0; at < bytes; at += sizeof(__m128i)) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), _mm_loadu_si128(reinterpret_cast<__m128i const*>(from + at)));
    }
    return;
  }
#endif
  std::memcpy(to, from, bytes);
}
void order_copies_past_caches() {
#if defined(__SSE2__)
  _mm_sfence();  // the stores are in no order with that of the flag
#endif
}

class chunk_copier {
 public:
  explicit chunk_copier(helped_list const& what) : what_(what) {}

  /// Whether there is something to copy in chunk k: rows that are kept come first, and those outside last.
  bool helps(u32 k) const { return what_.keys[first(k)] >= what_.others; }

  void copy(u32 k) const {
    const u64 begin = first(k), end = std::min(begin + chunk_rows, what_.count);
    auto* to = reinterpret_cast<std::byte*>(what_.list.staging + u64{k} * chunk_rows * what_.row_bytes);
    for (u64 at = begin; at < std::min(begin + rows_ahead, end); ++at) ask(at);
    for (u64 at = begin; at < end; ++at, to += what_.row_bytes) {
      if (at + rows_ahead < end) ask(at + rows_ahead);
      if (auto const* from = row(at)) copy_past_caches(to, from, what_.row_bytes);
    }
    order_copies_past_caches();
  }

 private:
  u64 first(u32 k) const { return u64{what_.list.chunks - 1 - k} * chunk_rows; }

  std::byte const* row(u64 at) const {
    const u64 number = what_.keys[at] - what_.others;
    return number < what_.rows ? reinterpret_cast<std::byte const*>(what_.source + number * what_.pitch) : nullptr;
  }
  void ask(u64 at) const {
    constexpr u64 line = 64;
    auto const* from = row(at);
    if (from == nullptr) return;
    for (u64 k = 0; k < what_.row_bytes; k += line) __builtin_prefetch(from + k, 0, 0);
  }

  helped_list const& what_;
};

/// How fast the kernel walks.
class kernel_pace {
 public:
  explicit kernel_pace(helped_list const& what)
      : walked_(what.list.words->walked), list_(what.list.number), before_(walked()), since_ns_(now_ns()) {}

  u32 walked() const { return shared_words::chunks(walked_.load(relaxed), list_); }
  void look() {
    const u64 passed_ns = now_ns() - since_ns_;
    if (passed_ns < between_looks_ns) return;
    const u32 now = walked();
    chunks_per_ns_ = static_cast<double>(now - before_) / static_cast<double>(passed_ns);
    before_ = now;
    since_ns_ += passed_ns;
    is_known_ = true;
  }
  bool is_known() const { return is_known_; }
  double chunks_per_ns() const { return chunks_per_ns_; }
  double bytes_per_second(u64 row_bytes) const {
    return chunks_per_ns_ * static_cast<double>(one_second_ns * chunk_rows * row_bytes);
  }

 private:
  static constexpr u64 between_looks_ns = 50 * one_microsecond_ns;

  system_ref<u64> walked_;
  u32 list_, before_;
  u64 since_ns_;
  double chunks_per_ns_ = 0;
  bool is_known_ = false;
};

}  // namespace

bool needs_help(helped_list const& what) {
  auto const* const end = what.keys + what.count;
  auto const* const first = std::lower_bound(what.keys, end, what.others);
  auto const* const last = std::lower_bound(first, end, what.others + what.rows);
  if (first == last) return false;
  const double passed = static_cast<double>(u64{last[-1] - *first + 1} * what.pitch);
  return read_per_second(passed / static_cast<double>(last - first), what.row_bytes) < enough_per_second;
}

void help_gather(helped_list& what) {
  constexpr double left_to_kernel = 2;  // times what it walks while a chunk is copied
  constexpr u64 until_next_look_ns = 20 * one_microsecond_ns;
  shared_list const& list = what.list;
  const chunk_copier copier(what);
  kernel_pace pace(what);
  u64 copy_ns = 0;
  while (!what.over.load(std::memory_order_relaxed)) {
    pace.look();
    const u32 now = pace.walked();
    const auto is_ahead = [&](u32 k) { return k < what.most_chunks && u64{k} + now + 1 < list.chunks && copier.helps(k); };
    const bool is_slow = pace.is_known() && pace.bytes_per_second(what.row_bytes) < enough_per_second;
    const double foreseen = now + 1 + left_to_kernel * static_cast<double>(copy_ns) * pace.chunks_per_ns();
    u32 k = what.begun.load(std::memory_order_relaxed);
    bool begun = false;
    while (!begun && is_slow && is_ahead(k) && k + foreseen < list.chunks) {
      begun = what.begun.compare_exchange_weak(k, k + 1, std::memory_order_relaxed);
    }
    if (begun) {
      const u64 since_ns = now_ns();
      raise_to(list.words->begun, shared_words::of(list.number, k + 1));
      copier.copy(k);
      system_ref<u32>(list.staged[k]).store(list.number, release);
      copy_ns = now_ns() - since_ns;
    } else if (is_ahead(k)) {
      let_others_run(until_next_look_ns);
    } else {
      return;
    }
  }
}

row_helpers& row_helpers::of_process() {
  static auto* const helpers = new row_helpers;  // its threads run until the process ends
  return *helpers;
}

void row_helpers::begin(helped_list& what, u32 threads) {
  {
    const std::lock_guard lock(mutex_);
    if (helped_ != nullptr) return;
    make(threads);
    system_ref<u64>(what.list.words->begun).store(shared_words::of(what.list.number, 0), release);
    helped_ = &what;
    wanted_ = threads;
    ++lists_;
  }
  begins_.notify_all();
}

void row_helpers::make(u32 threads) {
  try {
    for (; threads_ < threads; ++threads_) std::thread([this, number = threads_] { run(number); }).detach();
  } catch (std::system_error const&) {}  // the system has no more: those that there are help
}

void row_helpers::end(helped_list& what) {
  std::unique_lock lock(mutex_);
  if (helped_ != &what) return;
  what.over.store(true, std::memory_order_relaxed);
  ends_.wait(lock, [&] { return helping_ == 0; });
  helped_ = nullptr;
}

void row_helpers::run(u32 number) {
  ::pthread_setname_np(::pthread_self(), "penstock rows");
  u64 seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    begins_.wait(lock, [&] { return helped_ != nullptr && lists_ != seen && number < wanted_; });
    seen = lists_;
    helped_list& what = *helped_;
    ++helping_;
    lock.unlock();
    help_gather(what);
    lock.lock();
    if (--helping_ == 0) ends_.notify_all();
  }
}

}  // namespace penstock::rows
