"""Kernels of the user's own, on every device and over every placement."""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from arrays_here import host
from penstock.kernels import host_compiler, locations, nvrtc
from penstock.kernels.signature import find_kernel
from penstock.kernels.source import Source
from places import DEVICES, small_cache

GPU = "cuda" in DEVICES


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of compiled kernels: one for all of these tests, and not the user's."""
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path_factory.getbasetemp() / "kernel_cache"))


def opened(folder: Path, content: Any, placement: str, device: str, **options: Any) -> penstock.Array:
    path = folder / f"{len(list(folder.iterdir()))}.npy"
    np.save(path, content)
    return penstock.open(path, placement=placement, device=device, **small_cache(placement), **options)


def results(content: Any, device: str) -> tuple[np.ndarray[Any, Any], penstock.Array]:
    """Memory that a kernel writes to in place."""
    memory = np.array(content)
    return memory, penstock.from_tensor(memory, "host", device=device)


READ = """
template <class T>
__device__ void copy(const penstock::array<const T>& from, penstock::array<T>& to, unsigned long long step) {
  penstock::for_each_index(to.size(), [&](auto i) { to[i] = from[i * step % from.size()]; });
}
extern "C" __global__ void copy_it(penstock::array<const TYPE> from, penstock::array<TYPE> to, size_t step) {
  copy(from, to, step);
}
"""
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
    ]:
        with pytest.raises(error, match=sentence):
            kernel(array, wrong)


WRONG = """extern "C" __global__ void f(penstock::array<float> a, int n, unsigned char c) {
  a[0] = n;
}"""


def test_wrong_arguments_are_refused_by_name(tmp_path: Path, device: str) -> None:
    kernel = penstock.kernel(WRONG, device=device)
    floats = opened(tmp_path, np.zeros(10, np.float32), "host", device)
    doubles = opened(tmp_path, np.zeros(10), "storage", device, writable=True)
    good = opened(tmp_path, np.zeros(10, np.float32), "storage", device, writable=True)
    for arguments, error, sentence in [
        (
            (good, 1),
            TypeError,
            r"kernel f: 2 arguments: it takes 3: \(penstock::array<float> a, int n, unsigned",
        ),
        (
            (floats, 1, 1),
            ValueError,
            r"argument 1 .* is read-only: declare penstock::array<const float>, or open",
        ),
        ((doubles, 1, 1), TypeError, "the array holds float64: declare penstock::array<double>"),
        ((good, "x", 1), TypeError, r"argument 2 \(int n\): x: give a number"),
        ((good, 2**31, 1), OverflowError, r"2147483648 is out of the range of int"),
        ((good, 1, -1), OverflowError, "argument 3"),
        ((good, 1.5, 1), TypeError, "argument 2"),
        ((np.zeros(3, np.float32), 1, 1), TypeError, "give a penstock.Array"),
    ]:
        with pytest.raises(error, match=sentence):
            kernel(*arguments)
    for shape in (
        {"block": 0},
        {"block": 4096},
        {"threads": 0},
        {"grid": (1, 2, 3, 4)},
        {"grid": 1, "threads": 1},
    ):
        with pytest.raises(ValueError, match=r"block|threads|grid"):
            kernel(good, 1, 1, **shape)
    good.close()
    with pytest.raises(ValueError, match="it is closed"):
        kernel(good, 1, 1)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("int f();", "has no __global__ function"),
        ("__global__ void f(int n) {} __global__ void g(int n) {}", "the kernels f, g: give name="),
        ("template <class T> __global__ void f(T n) {}", "f is a template"),
        ("// __global__ void f() {}\n", "has no __global__ function"),
        ("__global__ void f(int n {", "never closed"),
    ],
)
def test_what_is_no_kernel_is_refused(source: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        penstock.kernel(source)


def test_errors_are_in_the_lines_of_the_source(device: str) -> None:
    source = "\n\n__global__ void f(penstock::array<const float> a) {\n  a[0] = 1;\n  unknown = 3;\n}"
    with pytest.raises(ValueError, match="compile the kernel f: ") as met:
        penstock.kernel(source, device=device)
    assert "kernel.cu" in str(met.value)
    assert "5" in str(met.value)
    assert "unknown" in str(met.value)


def test_a_file_of_source(tmp_path: Path) -> None:
    (tmp_path / "mine.cu").write_text('#include "part.h"\n__global__ void f(int* n) { *n = PART; }\n')
    (tmp_path / "part.h").write_text("#define PART 42\n")
    number = np.zeros(1, np.int32)
    penstock.kernel(tmp_path / "mine.cu", device="cpu", include_dirs=[tmp_path])(number, threads=1)
    assert number[0] == 42
    (tmp_path / "part.h").write_text("#define PART 43\n")
    penstock.kernel(tmp_path / "mine.cu", device="cpu", include_dirs=[tmp_path])(number, threads=1)
    assert number[0] == 43
    with pytest.raises(FileNotFoundError, match=r"no\.cu: No such file"):
        penstock.kernel(tmp_path / "no.cu")


def test_an_index_out_of_range_is_told_where_asked(tmp_path: Path, device: str, placement: str) -> None:
    array = opened(tmp_path, np.zeros(1000, np.float32), placement, device)
    memory, out = results(np.ones(1, np.float32), device)
    kernel = penstock.kernel(
        """__global__ void f(penstock::array<const float> a, penstock::array<float> out) {
             penstock::for_each_index(10, [&](auto i) { out[0] = a[a.size() + 5 + i]; });
           }""",
        device=device,
        check_bounds=True,
    )
    with pytest.raises(
        IndexError, match=r"kernel f over .*: element 1005 is out of range: it has 1000 elements"
    ):
        kernel(array, out).wait()
    assert memory[0] == 0


def spin(kernel: penstock.Kernel, out: penstock.Array, device: str) -> None:
    if device == "cpu":
        kernel(out, threads=1, timeout=0.2)
    else:
        kernel(out, threads=1).wait(timeout=0.2)


def test_a_kernel_past_its_deadline_is_stopped_by_name(device: str) -> None:
    _, out = results(np.zeros(1, np.int32), device)
    kernel = penstock.kernel(
        """__global__ void spin(penstock::array<int> out) {
             while (!penstock::stopped()) __nanosleep(100);
             out[0] = 1;
           }""",
        device=device,
    )
    for _ in range(2):  # another launch has its own deadline
        with pytest.raises(TimeoutError, match=r"kernel spin: it ran past its deadline of 0.2 s$"):
            spin(kernel, out, device)


def test_threads_that_wait_in_vain_are_told(tmp_path: Path) -> None:
    kernel = penstock.kernel(
        "__global__ void f(int n) { if (threadIdx.x < 3) __syncthreads(); else __syncwarp(0xff); }",
        device="cpu",
    )
    with pytest.raises(ValueError, match="run the kernel f: thread 0 of block 0 waits for threads"):
        kernel(1, block=32, grid=1)


def test_a_file_that_was_cut_is_told(tmp_path: Path, device: str, placement: str) -> None:
    array = opened(tmp_path, np.zeros(1_000_000, np.float32), placement, device)
    _, out = results(np.zeros(1, np.float32), device)
    kernel = penstock.kernel(
        """__global__ void f(penstock::array<const float> a, penstock::array<float> out) {
             penstock::for_each_index(a.size(), [&](auto i) { if (a[i] == 3) out[0] = 1; });
           }""",
        device=device,
    )
    kernel(array, out).wait()
    os.truncate(array.path or "", 100_000)
    with pytest.raises(penstock.Error, match=r"100000 bytes|shorter|cut short|too short"):
        kernel(array, out).wait()


def test_a_launch_that_is_held_does_not_hold_the_file(tmp_path: Path, device: str) -> None:
    array = opened(tmp_path, np.zeros(1000, np.float32), "storage", device, writable=True)
    kernel = penstock.kernel(
        "__global__ void f(penstock::array<float> a) { a[threadIdx.x] = 1; }", device=device
    )
    launch = kernel(array, threads=100)
    array.close()
    with penstock.open(array.path or "", placement="storage", device=device, writable=True) as again:
        kernel(again, threads=200)
    launch.wait()
    assert launch.done
    assert np.load(array.path or "").sum() == 200


def test_compiled_kernels_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    source = "__global__ void f(int* n) { *n += 1; }"
    number = np.zeros(1, np.int32)
    penstock.kernel(source, device="cpu")(number, threads=1)
    (library,) = (tmp_path / "cache" / "kernels").glob("*.so")
    stamp = library.stat().st_mtime_ns
    penstock.kernel(source, device="cpu")(number, threads=1)
    assert library.stat().st_mtime_ns == stamp
    library.unlink()  # it is loaded still: what is written there would be that
    library.write_bytes(b"damaged")
    penstock.kernel(source, device="cpu")(number, threads=1)
    assert number[0] == 3
    monkeypatch.setenv("PENSTOCK_CACHE", "/proc/none")
    penstock.kernel(source + "//", device="cpu")(number, threads=1)
    assert number[0] == 4


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/no/compiler")
    with pytest.raises(penstock.Error, match="there is no /no/compiler: install a C"):
        penstock.kernel("__global__ void f(int n) { /* new */ }", device="cpu")


def test_missing_libraries_of_nvidia_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(penstock.Error, match=r"cuda.core is missing: pip install 'penstock\[kernels\]'"):
        nvrtc._core()

    def not_found() -> Any:
        raise RuntimeError("libnvJitLink.so.13 not found")

    with pytest.raises(penstock.Error, match="install the wheel nvidia-nvjitlink"):
        nvrtc._checked_call("compile the kernel f", not_found)


def test_a_signal_ends_a_launch_on_the_cpu() -> None:
    program = """
import time, numpy as np, penstock
source = "__global__ void f(double* x, int n) { for (int k = 0; k < n; ++k) *x = *x * 0.999 + k; }"
kernel = penstock.kernel(source, device="cpu")
number = np.zeros(1)
kernel(number, 1, threads=1)
print("runs", flush=True)
try:
    kernel(number, 1_000_000, grid=100_000, block=1)
except KeyboardInterrupt:
    kernel(number, 1, threads=1)
    print("interrupted", flush=True)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1])}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"runs\n"
        time.sleep(0.3)
        run.send_signal(signal.SIGINT)
        assert run.communicate(timeout=30)[0] == b"interrupted\n"


def test_a_forked_process_has_kernels_of_its_own(tmp_path: Path) -> None:
    program = """
import os, sys, numpy as np, penstock
array = penstock.from_tensor(np.arange(5, dtype=np.int32), "host", device="cpu")
source = "__global__ void f(penstock::array<const int> a, int* n) { *n = a[4]; }"
kernel = penstock.kernel(source, device="cpu")
number = np.zeros(1, np.int32)
kernel(array, number, threads=1)
child = os.fork()
if child == 0:
    number[0] = 0
    kernel(array, number, threads=1)
    os._exit(0 if number[0] == 4 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)


@pytest.mark.skipif(GPU, reason="the tests on a GPU compile for it")
def test_a_kernel_compiles_for_a_gpu_that_is_elsewhere() -> None:
    pytest.importorskip("cuda.core", reason="cuda.core is not installed")
    try:
        locations.device_library()
    except penstock.Error:
        pytest.skip("this build has no device library")
    source = Source(READ, "copy_it", "kernel.cu", (), (), ("TYPE=float",))
    image, name = nvrtc.compile_for_gpu(source, find_kernel(READ, "copy_it"), 90)
    assert image[:4] == b"\x7fELF"
    assert name == "copy_it"


def test_headers_are_where_they_are_said_to_be() -> None:
    (folder,) = penstock.include_dirs()
    assert (Path(folder) / "penstock" / "kernels" / "kernel.hpp").is_file()
    assert host_compiler.compiler()


FUNCTIONS: dict[str, Any] = {
    "sum_of_products": lambda x, y: x * y + 1,
    "choice": lambda x, y: np.where(x > y, x, y) * 2.5,  # type: ignore[operator]
    "quotient": lambda x, y: x / y,
    "whole_quotient": lambda x, y: x // y,
    "rest": lambda x, y: x % y,
    "minimum": lambda x, y: np.minimum(x, y) - 3,
    "condition": lambda x, y: (x > 3) & (y < 5),
    "power": lambda x, y: x**2 + (-y),
}
PAIRS = [("int32", "int32"), ("float32", "int64"), ("uint8", "float64"), ("int64", "uint8")]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("types", PAIRS)
def test_functions_compute_what_numpy_does(device: str, name: str, types: tuple[str, str]) -> None:
    rng = np.random.default_rng(7)
    x, y = (rng.integers(0 if t.startswith("u") else -9, 9, (50, 20)).astype(t) for t in types)
    arrays = [penstock.from_tensor(one, "host", device=device) for one in (x, y)]
    made = penstock.function(FUNCTIONS[name])
    with np.errstate(all="ignore"):
        wanted = FUNCTIONS[name](x, y)
    found = host(made(*arrays))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_functions_reduce(device: str, tmp_path: Path, placement: str) -> None:
    content = np.random.default_rng(7).standard_normal(100_000)
    array = opened(tmp_path, content, placement, device)
    square = penstock.function(lambda x, scale: x * x * scale)
    wanted = content * content * 3.0
    assert np.isclose(square.sum(array, 3.0), wanted.sum())
    assert np.isclose(square.mean(array, 3.0), wanted.mean())
    assert (square.min(array, 3.0), square.max(array, 3.0)) == (wanted.min(), wanted.max())
    with_nan = penstock.function(lambda x: np.where(x > 0, x, np.nan))
    assert np.isnan(with_nan.max(array))


def test_functions_refuse_what_they_cannot_be(device: str) -> None:
    array = penstock.from_tensor(np.ones(10, np.float32), "host", device=device)
    short = penstock.from_tensor(np.ones(9, np.float32), "host", device=device)
    cases: list[Any] = [
        (lambda x: 1 if x > 0 else 2, (array,), TypeError, "use numpy.where"),
        (lambda x: np.linalg.norm(x), (array,), TypeError, "numpy.norm"),
        (lambda x: np.frexp(x), (array,), (TypeError, ValueError), "numpy.frexp|frexp"),
        (lambda x: 1, (array,), TypeError, "depends on no argument"),
        (lambda x, y: x + y, (array,), TypeError, "1 arguments: it takes x, y"),
        (lambda x, y: x + y, (array, short), ValueError, r"shapes \(10,\) and \(9,\)"),
        (lambda x: x, (3.0,), TypeError, "give a penstock.Array"),
    ]
    for expression, arguments, error, sentence in cases:
        with pytest.raises(error, match=sentence):
            penstock.function(expression)(*arguments)


def test_numbers_of_functions_have_the_types_of_what_is_beside_them(device: str) -> None:
    floats = np.array([-np.inf, -2, -0.0, 1.5, 3], np.float32)
    bytes_ = np.array([0, 1, 2, 200, 255], np.uint8)
    cases: list[Any] = [
        (lambda x, k: x * k, floats, 1.1),
        (lambda x, k: x * k, floats, np.float64(1.1)),
        (lambda x, k: x + k, bytes_, 3),
        (lambda x, k: x + k, bytes_, True),
        (lambda x, k: np.where(x > k, x, k), floats, 1e300),
        (lambda x, k: np.clip(x, -1, k), floats, 2.0),
        (lambda x, k: x**0.5 + np.sign(x) * k, floats, 1),
        (lambda x, k: x**3 + np.isnan(x) * k, bytes_, 1),
    ]
    for expression, content, number in cases:
        array = penstock.from_tensor(content, "host", device=device)
        with np.errstate(all="ignore"):
            wanted = expression(content, number)
        found = host(penstock.function(expression)(array, number))
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    with pytest.raises(OverflowError, match="out of bounds for uint8"):
        penstock.function(lambda x, k: x + k)(penstock.from_tensor(bytes_, "host", device=device), -1)


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


def test_a_kernel_is_pickled_by_its_source() -> None:
    kernel = penstock.kernel("__global__ void f(TYPE* x) { *x += 1; }", device="cpu", defines={"TYPE": "int"})
    number = np.zeros(1, np.int32)
    pickle.loads(pickle.dumps(kernel))(number, threads=1)
    assert number[0] == 1


def test_templates_stand_beside_a_kernel() -> None:
    source = """template <class T> __global__ void g(T* x) { *x = 2; }
    __global__ void f(int* x) { *x = 1; }"""
    number = np.zeros(1, np.int32)
    penstock.kernel(source, "f", device="cpu")(number, threads=1)
    assert number[0] == 1
    with pytest.raises(ValueError, match="g is a template"):
        penstock.kernel(source, "g", device="cpu")
    with pytest.raises(ValueError, match=r"of a file give pathlib\.Path"):
        penstock.kernel("mine.cu")


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


def test_another_name_for_an_element_is_refused(device: str) -> None:
    with pytest.raises(ValueError, match="compile the kernel f"):
        penstock.kernel(
            "__global__ void f(penstock::array<int> a) { auto x = a[0]; a[1] = x; }", device=device
        )


def test_a_type_that_is_another_than_it_seems_is_refused(device: str) -> None:
    source = """
    #if __cplusplus > 1
    using real = double;
    #else
    using real = float;
    #endif
    __global__ void f(penstock::array<const real> a, real x) {}"""
    with pytest.raises(ValueError, match="parameter 1 of f is not what its type seems to be"):
        penstock.kernel(source, device=device)


def test_a_structure_has_the_bytes_of_its_parameter(device: str) -> None:
    kernel = penstock.kernel("struct s { double x[4]; };\n__global__ void f(s v, int n) {}", device=device)
    kernel(np.zeros(4), 1).wait()
    with pytest.raises(ValueError, match="argument 1 has 8 bytes, and its parameter 32: give as many"):
        kernel(np.zeros(1), 1)


def test_kernels_of_one_process_have_their_own_variables(tmp_path: Path) -> None:
    source = """
    inline int table[2] = {VALUE, VALUE};
    template <class T> __device__ T* part() { __shared__ T s[SIZE]; return s; }
    extern "C" __global__ void read(int* out) {
      part<int>()[SIZE - 1] = table[1];
      *out = part<int>()[SIZE - 1];
    }
    """
    number = np.zeros(1, np.int32)
    for value, size in ((11, 1), (22, 4096), (33, 2)):
        kernel = penstock.kernel(source, device="cpu", defines={"VALUE": value, "SIZE": size})
        kernel(number, threads=1)
        assert number[0] == value


def test_bounds_are_those_of_each_dimension(device: str) -> None:
    memory, out = results(np.zeros((4, 4), np.int32), device)
    for index, element in (("1, 6", 26), ("-1", 2**64 - 2), ("4, 0", 16)):
        access = f"out[{index}]" if "," not in index else f"out({index})"
        kernel = penstock.kernel(
            f"__global__ void f(penstock::array<int> out) {{ {access} = 1; }}",
            device=device,
            check_bounds=True,
        )
        with pytest.raises(IndexError, match=f"element {element} is out of range: it has 16"):
            kernel(out, threads=1).wait()
    assert not memory.any()


def test_headers_of_the_current_folder_are_not_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    number = np.zeros(1, np.int32)
    for value in (3, 4):
        (tmp_path / "inner.h").write_text(f"#define VALUE {value}\n")
        (tmp_path / "outer.h").write_text('#include "inner.h"\n')
        for name in ("outer.h", str(tmp_path / "outer.h")):
            source = f'#include "{name}"\n__global__ void f(int* n) {{ *n = VALUE; }}'
            penstock.kernel(source, device="cpu")(number, threads=1)
            assert number[0] == value


def test_functions_wrap_and_shift_as_numpy_does(device: str) -> None:
    ints = np.array([-(2**31), -1, 0, 7, 2**31 - 1], np.int32)
    longs, unsigned = np.array([-1, 0, 5], np.int64), np.array([1, 0, 5], np.uint64)
    shifts = np.array([33, 1, 31, 2, 0], np.int32)
    cases: list[Any] = [
        (lambda x: x + 1 > x, ints),
        (lambda x: abs(x) - 1, ints),
        (lambda x: (x * 2) // 2 - x, ints),
        (lambda x, y: x << y, ints, shifts),
        (lambda x, y: x >> y, ints, shifts),
        (lambda x, y: (x < y) | (y == x), longs, unsigned),
        (lambda new, i: new * i, ints, shifts),
    ]
    for expression, *contents in cases:
        arrays = [penstock.from_tensor(one, "host", device=device) for one in contents]
        with np.errstate(all="ignore"):
            wanted = expression(*contents)
        np.testing.assert_array_equal(host(penstock.function(expression)(*arrays)), wanted)
    large = np.full(5, 2**62, np.int64)
    mean = penstock.function(lambda x: x).mean(penstock.from_tensor(large, "host", device=device))
    assert mean == 2.0**62
