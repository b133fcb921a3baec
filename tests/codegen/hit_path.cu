// What the checks of this folder look at: each function is one way to read an element, compiled on its own.
#include "penstock/array/array_ref.hpp"
#include "penstock/array/pinned_line.hpp"

#include <new>

using namespace penstock;

// a[i]: the validated read, inlined; everything else is a call.
extern "C" __global__ void read_view(array_view<u64> a, u64 const* index, u64* out) {
  const u64 i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = a[index[i]];
}

extern "C" __global__ void read_view_u32(array_view<u32> a, u64 const* index, u32* out) {
  const u64 i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = a[index[i]];
}

// A token that is taken at once: on a hit no more than a[i].
extern "C" __global__ void read_async(array_view<u64> a, u64 const* index, u64* out) {
  const u64 i = blockIdx.x * blockDim.x + threadIdx.x;
  pending_read<u64> token = a.read_async(index[i]);
  out[i] = token.wait();
}

// A line reference: while the index stays on the line, R2 to R4 and nothing else. It is never destroyed, for that adds to
// counters.
extern "C" __global__ void read_ref(array_view<u64> a, u64 n, u64* out) {
  alignas(array_ref<u64>) unsigned char place[sizeof(array_ref<u64>)];
  array_ref<u64>& ref = *new (place) array_ref<u64>(a);
  u64 sum = 0;
  for (u64 i = 0; i < n; ++i) sum += ref[i];
  out[threadIdx.x] = sum;
}

// A warp copies a line that it has claimed, and publishes it.
extern "C" __global__ void copy_line(line_cache_view::fill fill) {
  fill.target.write = nullptr;  // no write-back
  copy_fills(warp::whole(), threadIdx.x == 0, fill);
}

// A warp reads a whole line.
extern "C" __global__ void read_line(array_view<u64> a, u64 elements, u64* out) {
  u64 sum = 0;
  a.read_span(warp::whole(), 0, elements, [&](u64, u64 v) { sum += v; });
  out[threadIdx.x] = sum;
}

extern "C" __device__ __noinline__ u64 read_pinned(pinned_line<warp> const& line, u64 at) { return line.load<u64>(at); }

extern "C" __global__ void read_resident(u64 const* p, u64 n, u64* out) {
  if (p == nullptr) return;
  const array_view<u64> a(p, n);
  out[threadIdx.x] = a[threadIdx.x];
}

// R1 to R4 alone, for their order in PTX.
extern "C" __global__ void read_validated(line_reader r, u64 line, u64 at, u64* out) {
  u64 v = 0;
  hit_line seen;
  if (r.find(line << r.line_shift, seen) && r.try_read(seen, static_cast<u32>(at), v)) *out = v;
}

// Planted: what the checks must notice.
extern "C" __global__ void planted_atomic(array_view<u64> a, u64 const* index, u64* out, unsigned long long* hits) {
  const u64 i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(hits, 1ull);
  out[i] = a[index[i]];
}

// Lanes with a hit go on alone.
extern "C" __global__ void planted_parting(line_reader r, u64 const* address, u64* out) {
  const u64 at = address[threadIdx.x];
  hit_line hit;
  u64 v = 0;
  if (!r.find(at, hit) || !r.try_read(hit, r.within(at), v)) v = r.read_slowly<u64>(this_group(), true, at);
  out[threadIdx.x] = v;
}

__device__ u64 const* frame_of_first_line(line_reader const& r, hit_line& at) {
  if (!r.find(0, at)) __trap();
  return reinterpret_cast<u64 const*>(at.frame);
}

extern "C" __global__ void planted_nc(line_reader r, u64* out) {
  hit_line at;
  const u64 v = __ldg(reinterpret_cast<unsigned long long const*>(frame_of_first_line(r, at)));
  order_read_before_recheck();
  if (r.unchanged(at)) *out = v;
}

extern "C" __global__ void planted_plain(line_reader r, u64* out) {
  hit_line at;
  const u64 v = *frame_of_first_line(r, at);
  order_read_before_recheck();
  if (r.unchanged(at)) *out = v;
}

// A whole fence, where one that acquires would do.
extern "C" __global__ void planted_whole_fence(line_reader r, u64* out) {
  hit_line at;
  const u64 v = load_piece(frame_of_first_line(r, at));
  __threadfence();
  if (r.unchanged(at)) *out = v;
}

extern "C" __global__ void planted_no_order(line_reader r, u64* out) {
  hit_line at;
  const u64 v = load_piece(frame_of_first_line(r, at));
  if (r.unchanged(at)) *out = v;
}

// The ends of commands: each is a maximum, which nothing else here asks for.
struct ending_sink {
  struct target {
    u32* word;
  };
  PENSTOCK_FN static void placed(target const&, u16, u16) {}
  PENSTOCK_FN static void finish(target const& to, status outcome) {
    device_ref<u32>(*to.word).fetch_max(pack(outcome) + 1, relaxed);
  }
  PENSTOCK_FN static void abandon(target const& to, status outcome, bool) { finish(to, outcome); }
  PENSTOCK_FN static void resolve(target const&, bool) {}
};
using ending_queue = queue_pair_view<ending_sink>;

extern "C" __global__ void take_completion(ending_queue queue, ending_queue::sent_command mine, u64* head) {
  u64 at = *head;
  queue.take_next(mine, at);
  *head = at;
}

extern "C" __global__ void harvest(ending_queue queue) { queue.progress(warp::whole()); }

extern "C" __global__ void drain(ending_queue queue, u32 slot) { queue.drain(warp::whole(), slot); }
