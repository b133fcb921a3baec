"""Kernels on the CPU whose threads go through a file together: how often its lines come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import penstock
import pytest

pytestmark = pytest.mark.usefixtures("kernel_cache")

STEPS = """
using u64 = unsigned long long;
#define EACH_STEP(n) \\
  u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * u64(blockDim.x)

__global__ void sum(penstock::array<const u64> a, u64* out) {
  u64 mine = 0;
  for (EACH_STEP(a.size())) mine += a[i];
  atomicAdd(out, mine);
}
__global__ void sum_of_blocks(penstock::array<const u64> a, u64* out) {
  __shared__ u64 part[256];
  u64 mine = 0;
  for (EACH_STEP(a.size())) mine += a[i];
  part[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned k = 128; k > 0; k /= 2) {
    if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, part[0]);
}
__global__ void sum_and_look_up(penstock::array<const u64> a, u64* out) {
  u64 mine = 0;
  for (EACH_STEP(a.size())) mine += a[i] + 0 * a[i * 2654435761 % a.size() / 512 * 512];
  atomicAdd(out, mine);
}
__global__ void add_one(penstock::array<u64> a, u64* out) {
  for (EACH_STEP(a.size())) a[i] += 1;
}
"""
LOCKS = {
    "a word": ("while (atomicCAS(&word[0], 0ull, 1ull) != 0) {}", "atomicExch(&word[0], 0ull);"),
    "an exchange": ("while (atomicExch(&word[0], 1ull) != 0) {}", "atomicExch(&word[0], 0ull);"),
    "an element": ("while (lock.compare_exchange(0, 0, 1) != 0) {}", "lock.exchange(0, 0);"),
    "an exchanged element": ("while (lock.exchange(0, 1) != 0) {}", "lock.exchange(0, 0);"),
    "a ticket": (
        "const u64 mine = atomicAdd(&word[0], 1ull); while (atomicAdd(&word[1], 0ull) != mine) {}",
        "atomicAdd(&word[1], 1ull);",
    ),
    "a ticket that is read": (
        "const u64 mine = atomicAdd(&word[0], 1ull); while (*(volatile u64*)&word[1] != mine) {}",
        "atomicAdd(&word[1], 1ull);",
    ),
}
UNDER_A_LOCK = """
using u64 = unsigned long long;
__global__ void sum(penstock::array<const u64> a, penstock::array<u64> lock, u64* word, u64* out) {
  TAKE
  for (u64 i = threadIdx.x; i < 16384; i += blockDim.x) out[0] += a[i];
  GIVE
}
"""
COUNT = 1 << 18
LINES = COUNT * 8 // 4096


def opened(folder: Path, cache: int, writable: bool = False) -> penstock.Array:
    np.save(folder / "elements.npy", np.arange(COUNT, dtype=np.uint64))
    return penstock.open(
        folder / "elements.npy", placement="storage", device="cpu", cache=cache, writable=writable
    )


@pytest.mark.parametrize("cache", [128 << 10, 512 << 10])
@pytest.mark.parametrize("name", ["sum", "sum_of_blocks"])
def test_threads_that_share_lines_bring_each_in_once(tmp_path: Path, name: str, cache: int) -> None:
    array, out = opened(tmp_path, cache), np.zeros(2, np.uint64)
    # One block: how far two are apart is for the machine to say.
    penstock.kernel(STEPS, name, device="cpu")(array, out, grid=1).wait()
    assert out[0] == COUNT * (COUNT - 1) // 2
    stats = array.stats()
    assert LINES <= stats["misses"] + stats["prefetches"] < 1.2 * LINES, stats


def test_threads_that_also_read_here_and_there_share_lines(tmp_path: Path) -> None:
    array, out = opened(tmp_path, 512 << 10), np.zeros(2, np.uint64)
    penstock.kernel(STEPS, "sum_and_look_up", device="cpu")(array, out, grid=1).wait()
    assert out[0] == COUNT * (COUNT - 1) // 2
    stats = array.stats()  # each look-up has a line of its own, most of them a miss
    assert stats["misses"] + stats["prefetches"] < COUNT + 4 * LINES, stats


def test_threads_that_store_write_each_line_back_once(tmp_path: Path) -> None:
    array, out = opened(tmp_path, 512 << 10, writable=True), np.zeros(2, np.uint64)
    penstock.kernel(STEPS, "add_one", device="cpu")(array, out, grid=1).wait()
    array.flush()
    assert array.stats()["write_backs"] < 1.5 * LINES
    np.testing.assert_array_equal(
        np.load(tmp_path / "elements.npy"), np.arange(1, COUNT + 1, dtype=np.uint64)
    )


@pytest.mark.parametrize("placement", ["host", "storage"])
@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_is_held_while_lines_come(tmp_path: Path, lock: str, placement: str) -> None:
    if placement == "host" and "exchanged element" in lock:
        pytest.skip("a plain read of memory in a loop, which the compiler may take out of it")
    np.save(tmp_path / "lock.npy", np.zeros(1000, np.uint64))
    array, out, word = opened(tmp_path, 128 << 10), np.zeros(1, np.uint64), np.zeros(2, np.uint64)
    take, give = LOCKS[lock]
    kernel = penstock.kernel(UNDER_A_LOCK.replace("TAKE", take).replace("GIVE", give), device="cpu")
    with penstock.open(tmp_path / "lock.npy", placement=placement, device="cpu", writable=True) as element:
        kernel(array, element, word, out, grid=1).wait()
    assert out[0] == 16384 * (16384 - 1) // 2


def test_a_thread_has_megabytes_of_locals(tmp_path: Path) -> None:
    source = """__global__ void deep(penstock::array<const unsigned long long> a, unsigned long long* out) {
      volatile unsigned long long local[800000];
      for (int k = 0; k < 800000; k += 512) local[k] = a[k % a.size()];
      atomicAdd(out, local[512 * threadIdx.x]);
    }"""
    array, out = opened(tmp_path, 512 << 10), np.zeros(1, np.uint64)
    penstock.kernel(source, device="cpu")(array, out, grid=1, block=4).wait()
    assert out[0] == 512 * (0 + 1 + 2 + 3)
