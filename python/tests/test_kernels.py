"""Kernels of the user's own, on every device and over every placement."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from kernels_here import READ, opened, results
from penstock.kernels.launching import Launch
from places import DEVICES

pytestmark = pytest.mark.usefixtures("kernel_cache")

GPU = "cuda" in DEVICES


TYPES = {"uint8": "unsigned char", "int16": "short", "float32": "float", "int64": "long long", "bool": "bool"}


@pytest.mark.parametrize("dtype", TYPES)
def test_elements_are_read_wherever_they_lie(tmp_path: Path, device: str, placement: str, dtype: str) -> None:
    content = np.random.default_rng(3).integers(0, 2 if dtype == "bool" else 120, 300_000).astype(dtype)
    array = opened(tmp_path, content, placement, device)
    memory, out = results(np.zeros(len(content), dtype), device)
    copy = penstock.kernel(READ, "copy_it", device=device, defines={"TYPE": TYPES[dtype]})
    for step in (1, 7919):
        copy(array, out, step).wait()
        wanted = content[np.arange(len(content), dtype=np.uint64) * np.uint64(step) % np.uint64(len(content))]
        np.testing.assert_array_equal(memory, wanted)


def test_vectors_and_matrices_have_their_shapes(tmp_path: Path, device: str, placement: str) -> None:
    content = np.random.default_rng(3).random((1000, 12), dtype=np.float32)
    array = opened(tmp_path, content, placement, device)
    memory, out = results(np.zeros((1000, 4)), device)
    kernel = penstock.kernel(
        """__global__ void rows(penstock::array<const float4> a, penstock::array<const float> b,
                                 penstock::array<double> out) {
          penstock::for_each_index(a.shape(0), [&](auto row) {
            double sum = 0;
            for (int k = 0; k < a.shape(1); ++k) {
              const float4 v = a(row, k);
              sum += double(v.x) + v.y + v.z + v.w;
            }
            out[row * 4] = sum;
            out[row * 4 + 1] = b(row, b.shape(1) - 1);
            out[row * 4 + 2] = a.size();
            out[row * 4 + 3] = a.dimensions();
          });
        }""",
        device=device,
    )
    kernel(array, array, out).wait()
    np.testing.assert_allclose(memory[:, 0], content.astype(float).sum(1))
    np.testing.assert_array_equal(memory[:, 1], content[:, -1])
    assert memory[0, 2:].tolist() == [3000, 2]


def test_threads_of_a_block_wait_for_each_other(tmp_path: Path, device: str, placement: str) -> None:
    content = np.random.default_rng(3).integers(0, 1000, 100_003).astype(np.int32)
    array = opened(tmp_path, content, placement, device)
    memory, out = results(np.zeros((16, 3), np.int64), device)
    kernel = penstock.kernel(
        """extern "C" __global__ __launch_bounds__(128) void sums(penstock::array<const int> a,
                                                                 penstock::array<long long> out) {
          __shared__ long long parts[4];
          long long mine = 0, odd = 0;
          for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < a.size(); i += gridDim.x * blockDim.x) {
            mine += a[i];
          }
          for (int d = 16; d != 0; d /= 2) mine += __shfl_down_sync(0xffffffffu, mine, d);
          odd = __popc(__ballot_sync(0xffffffffu, threadIdx.x % 2));
          if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
          __syncthreads();
          if (threadIdx.x != 0) return;
          out[blockIdx.x * 3] = parts[0] + parts[1] + parts[2] + parts[3];
          out[blockIdx.x * 3 + 1] = odd;
          out.fetch_add(2, parts[0] + parts[1] + parts[2] + parts[3]);
        }""",
        device=device,
    )
    kernel(array, out, grid=16, block=128).wait()
    assert memory[:, 0].sum() == memory[0, 2] == content.sum()
    assert (memory[:, 1] == 16).all()


def test_a_warp_reads_spans(tmp_path: Path, device: str, placement: str) -> None:
    content = np.random.default_rng(3).integers(0, 256, 50_000).astype(np.uint8)
    array = opened(tmp_path, content, placement, device)
    memory, out = results(np.zeros((64, 700), np.uint8), device)
    kernel = penstock.kernel(
        """__global__ void spans(penstock::array<const unsigned char> a, penstock::array<unsigned char> out,
                                  int begin, int count) {
          auto* const span = penstock::dynamic_shared<unsigned char>() + threadIdx.x / 32 * 704;
          const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
          a.warp_read(begin + warp * 601, count, span);
          __syncwarp();
          for (int k = threadIdx.x % 32; k < count; k += 32) out(warp, k) = span[k];
        }""",
        device=device,
    )
    for begin, count in ((0, 700), (13, 699), (16, 64), (5, 1)):
        memory[:] = 0
        kernel(array, out, begin, count, grid=32, block=64, shared=2 * 704).wait()
        for warp in range(64):
            first = begin + warp * 601
            np.testing.assert_array_equal(memory[warp, :count], content[first : first + count])


@pytest.mark.parametrize("placed", ["host", "storage"])
def test_stores_and_atomics_of_all_threads(tmp_path: Path, device: str, placed: str) -> None:
    if (device, placed) == ("cuda", "host"):
        pytest.skip("a GPU cannot store into a mapped file")
    array = opened(tmp_path, np.zeros(100_000, np.uint32), placed, device, writable=True)
    kernel = penstock.kernel(
        """extern "C" __global__ void change(penstock::array<unsigned> a, unsigned times) {
          const unsigned half = a.size() / 2;
          penstock::for_each_index(a.size() * times, [&](auto i) { a.fetch_add(i * 7919 % half, 1); });
          penstock::for_each_index(half - 3, [&](auto i) { a[half + i] = i; });
          penstock::for_each_index(1000, [&](auto i) {
            for (unsigned old = a[a.size() - 1];;) {
              const unsigned seen = a.compare_exchange(a.size() - 1, old, old + 1);
              if (seen == old) break;
              old = seen;
            }
          });
          penstock::for_each_index(1000, [&](auto i) { a.fetch_min(a.size() - 2, 0u); a.prefetch(i); });
        }""",
        device=device,
    )
    kernel(array, 3, threads=2048).wait()
    array.flush()
    found = np.load(array.path or "")
    assert (found[:50_000] == 6).all()
    np.testing.assert_array_equal(found[50_000:99_997], np.arange(49_997))
    assert found[-1] == 1000


def test_numbers_and_memory_are_arguments(device: str) -> None:
    memory, out = results(np.zeros(6), device)
    kernel = penstock.kernel(
        """struct two { int a; float b; };
        extern "C" __global__ void take(penstock::array<double> out, bool yes, unsigned char c, long long l,
                                        float f, two s, float2 v, const int* none) {
          if (threadIdx.x != 0) return;
          out[0] = yes; out[1] = c; out[2] = l; out[3] = f; out[4] = s.a + s.b;
          out[5] = v.y + (none == nullptr);
        }""",
        device=device,
    )
    pair = np.array([(3, 0.5)], [("a", "i4"), ("b", "f4")])
    kernel(out, True, 200, -(2**40), 1.5, pair, (1, 2.5), None, threads=1).wait()
    assert memory.tolist() == [1, 200, -(2**40), 1.5, 3.5, 3.5]


def test_memory_of_the_host_is_an_argument(tmp_path: Path) -> None:
    array = opened(tmp_path, np.arange(1000, dtype=np.int32), "storage", "cpu")
    counts = np.zeros(10, np.int64)
    kernel = penstock.kernel(
        """extern "C" __global__ void histogram(penstock::array<const int> a, long long* counts) {
          penstock::for_each_index(a.size(), [&](auto i) { atomicAdd(counts + a[i] % 10, 1); });
        }""",
        device="cpu",
    )
    kernel(array, counts)
    assert (counts == 100).all()
    read_only = counts.copy()
    read_only.flags.writeable = False
    for wrong, error, sentence in [
        (
            read_only,
            ValueError,
            r"argument 2 \(long long\* counts\): it is read-only: declare const long long\*",
        ),
        (np.zeros(10, np.int32), TypeError, "its elements are int32: give int64"),
        (np.zeros((10, 2), np.int64)[:, 0], ValueError, "not contiguous"),
        (array, TypeError, "declare penstock::array<const T> to read it"),
        ([1, 2], TypeError, "give a tensor or an array in memory"),
        (np.ma.masked_less(counts, 1), TypeError, r"it is masked, and memory has no mask: give \.filled"),
    ]:
        with pytest.raises(error, match=sentence):
            kernel(array, wrong)


def test_a_launch_takes_times_and_sizes(device: str) -> None:
    kernel = penstock.kernel("__global__ void f(float x, bool b) {}", device=device)
    for arguments, error in [
        (("1.5", True), TypeError),
        ((1.5, "False"), TypeError),
        ((1.5, None), TypeError),
        ((1e300, True), OverflowError),
    ]:
        with pytest.raises(error, match="kernel f: argument"):
            kernel(*arguments)
    wrong_times: list[Any] = [-1, 0, float("nan"), float("inf"), "x"]
    for seconds in wrong_times:
        with pytest.raises(ValueError, match="give seconds"):
            kernel(1.0, True).wait(seconds)
    wrong_sizes: list[Any] = [-1, 1.5, None]
    for shared in wrong_sizes:
        with pytest.raises(ValueError, match="give bytes"):
            kernel(1.0, True, shared=shared)
    with pytest.raises(ValueError, match="give threads and bytes"):
        kernel.report(0)


def test_shuffles_stay_in_their_part_of_a_warp(device: str) -> None:
    memory, out = results(np.zeros((5, 32), np.int32), device)
    kernel = penstock.kernel(
        """__global__ void f(penstock::array<int> out) {
          const int lane = threadIdx.x;
          out(0, lane) = __shfl_sync(~0u, lane, 0, 8);
          out(1, lane) = __shfl_sync(~0u, lane, lane + 1, 16);
          out(2, lane) = __shfl_down_sync(~0u, lane, 3, 8);
          out(3, lane) = __shfl_up_sync(~0u, lane, 3, 8);
          out(4, lane) = __shfl_xor_sync(~0u, lane, 5, 8);
        }""",
        device=device,
    )
    kernel(out, threads=32).wait()
    lane = np.arange(32)
    part = lane // 8 * 8
    assert memory[0].tolist() == part.tolist()
    assert memory[1].tolist() == (lane // 16 * 16 + (lane + 1) % 16).tolist()
    assert memory[2].tolist() == np.where(lane % 8 + 3 < 8, lane + 3, lane).tolist()
    assert memory[3].tolist() == np.where(lane % 8 >= 3, lane - 3, lane).tolist()
    assert memory[4].tolist() == (part + (lane % 8 ^ 5)).tolist()


def test_each_index_has_one_thread_of_any_grid(device: str) -> None:
    memory, out = results(np.zeros((3, 5, 7), np.int32), device)
    kernel = penstock.kernel(
        """__global__ void f(penstock::array<int> out) {
          penstock::for_each_index(out.size(), [&](auto i) { out.fetch_add(i, 1); });
          const uint3 t = threadIdx, b = blockIdx;
          const bool first = t.x + t.y + t.z + b.x + b.y + b.z == 0;
          if (first) out.fetch_add((1 * 5 + 2) * 7 + 3, 5);
        }""",
        device=device,
    )
    kernel(out, grid=(2, 3, 2), block=(4, 3, 2)).wait()
    memory[1, 2, 3] -= 5
    assert (memory == 1).all()


@pytest.mark.parametrize("placed", ["memory", "storage"])
def test_elements_take_assignments_as_memory_does(tmp_path: Path, device: str, placed: str) -> None:
    array = opened(tmp_path, np.array([8, 5, 3, 2, 7, 1, 9, 6], np.int32), "storage", device, writable=True)
    if placed == "memory":
        array = results(np.array([8, 5, 3, 2, 7, 1, 9, 6], np.int32), device)[1]
    memory, out = results(np.zeros(8, np.int32), device)
    kernel = penstock.kernel(
        """__global__ void f(penstock::array<int> a, penstock::array<int> out) {
          a[0] += 3; a[1] *= a[2]; a[2] <<= 2; a[3] |= 5; a[4]--; ++a[5];
          const int old = a[6]++;
          a[7] = a[0] = max(a[1], old);
          a.fetch_max(2, 100); a.exchange(3, a[3] + 1); a.fetch_update(4, [](int x) { return x ^ 3; });
          for (int k = 0; k < 8; ++k) out[k] = a[k];
        }""",
        device=device,
    )
    kernel(array, out, threads=1).wait()
    assert memory.tolist() == [15, 15, 100, 8, 5, 2, 10, 15]


def test_a_report_says_what_the_kernel_takes(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = penstock.kernel("__global__ void f(int* n) { *n = threadIdx.x; }", device=device)
    facts = kernel.report(block=128)
    assert facts["units"] >= 1
    if device == "cpu":
        assert (facts["registers"], facts["occupancy"]) == (0, 0)
    else:
        assert facts["registers"] > 0
        assert 0 < facts["occupancy"] <= 1

    class Native:
        @staticmethod
        def facts(block: int, shared: int) -> dict[str, int]:
            return {"blocks_per_unit": 6, "unit_threads": 1536}

    monkeypatch.setattr(kernel, "_native", Native)
    assert kernel.report(block=128)["occupancy"] == 0.5
    for wrong in ({"block": 0}, {"block": 2048}, {"shared": -1}, {"block": "x"}):
        with pytest.raises(ValueError, match=r"report: block .*: give threads and bytes"):
            kernel.report(**wrong)


def test_threads_of_python_run_while_memory_is_freed_beside_a_kernel(device: str) -> None:
    kernel = penstock.kernel(
        """__global__ void waits(penstock::array<int> steps, int tries) {
          steps[0] = 1;
          for (int k = 0; k < tries; ++k) steps.fetch_add(0, 0);
          steps[1] = 1;
        }""",
        device=device,
    )
    steps, out = results(np.zeros(2, np.int32), device)
    others: list[Any] = [penstock.from_tensor(np.zeros(1 << 20), "host", device=device)]
    if device == "cuda":
        others.append(penstock.from_tensor(np.zeros(1 << 20), "hbm", device=device))
        others.append(penstock.kernel("__global__ void other() {}", device=device))
    tries = 1_000_000 if device == "cuda" else 100_000_000  # some seconds
    runs = threading.Thread(target=lambda: kernel(out, tries, threads=1).wait())
    runs.start()
    while steps[0] == 0 and runs.is_alive():
        time.sleep(0.001)

    ended = []

    def looks() -> None:
        time.sleep(0.05)
        ended.append(int(steps[1]))

    thread = threading.Thread(target=looks)
    thread.start()
    del others
    thread.join()
    runs.join()
    assert (ended, steps[1]) == ([0], 1), "the thread did not run while memory was freed"


def test_a_launch_that_another_thread_waits_for_has_not_ended() -> None:
    class End:
        def __init__(self) -> None:
            self.waits, self.reached = threading.Event(), threading.Event()

        @property
        def done(self) -> bool:
            return self.reached.is_set()

        def wait(self) -> None:
            self.waits.set()
            assert self.reached.wait(10)

    class Call:
        done = True

        @staticmethod
        def wait() -> None:
            return None

    end: Any = End()
    launch = Launch(penstock.kernel("__global__ void f() {}", device="cpu"), [], [], end, None)
    launch._calls = [(penstock.from_tensor(np.zeros(1), "host", device="cpu"), Call())]  # type: ignore[list-item]
    waiter = threading.Thread(target=launch.wait)
    waiter.start()
    assert end.waits.wait(10)
    assert not launch.done
    end.reached.set()
    waiter.join()
    assert launch.done
