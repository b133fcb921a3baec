"""What goes wrong with kernels of the user's own, and the sentences that say so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from kernels_here import opened, results

pytestmark = pytest.mark.usefixtures("kernel_cache")


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
        ((good, "x", 1), TypeError, r"argument 2 \(int n\): x: give a whole number"),
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


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/no/compiler")
    with pytest.raises(penstock.Error, match="there is no /no/compiler: install a C"):
        penstock.kernel("__global__ void f(int n) { /* new */ }", device="cpu")


@pytest.mark.parametrize(
    ("source", "shape"),
    [
        (
            "__global__ void f(double* x, int n) { for (int k = 0; k < n; ++k) *x = *x * 0.999 + k; }",
            "grid=100_000, block=1",
        ),
        (
            "__global__ void f(double* x, int n) { while (n > 1 && !penstock::stopped()) *x += 1; }",
            "grid=1, block=1",
        ),
    ],
)
def test_a_signal_ends_a_launch_on_the_cpu(source: str, shape: str) -> None:
    program = f"""
import signal, numpy as np, penstock
signal.signal(signal.SIGINT, signal.default_int_handler)
kernel = penstock.kernel({source!r}, device="cpu")
number = np.zeros(1)
kernel(number, 1, threads=1)
print("runs", flush=True)
try:
    kernel(number, 1_000_000, {shape})
except KeyboardInterrupt:
    kernel(number, 1, threads=1)
    print("interrupted", flush=True)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as run:
        assert run.stdout is not None
        try:
            assert run.stdout.readline() == b"runs\n"
            time.sleep(0.3)
            os.killpg(run.pid, signal.SIGINT)
            assert run.communicate(timeout=30)[0] == b"interrupted\n"
        finally:
            run.kill()


def test_a_deadline_ends_a_launch_of_blocks_that_do_not_ask() -> None:
    kernel = penstock.kernel(
        "__global__ void f(double* x, int n) { for (int k = 0; k < n; ++k) *x = *x * 0.999 + k; }",
        device="cpu",
    )
    number = np.zeros(1)
    before = time.monotonic()
    with pytest.raises(TimeoutError, match=r"kernel f: it ran past its deadline of 0.1 s"):
        kernel(number, 1_000_000, grid=100_000, block=1, timeout=0.1)
    assert time.monotonic() - before < 20


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


def test_bounds_are_those_of_each_dimension(device: str) -> None:
    memory, out = results(np.zeros((4, 4), np.int32), device)
    for index, element in (("1, 6", "element 26"), ("-1", "a negative element"), ("4, 0", "element 16")):
        access = f"out[{index}]" if "," not in index else f"out({index})"
        kernel = penstock.kernel(
            f"__global__ void f(penstock::array<int> out) {{ {access} = 1; }}",
            device=device,
            check_bounds=True,
        )
        with pytest.raises(IndexError, match=f"{element} is out of range: it has 16"):
            kernel(out, threads=1).wait()
    assert not memory.any()


def test_an_overflow_of_a_thread_changes_no_other_thread() -> None:
    program = """
import penstock
kernel = penstock.kernel('''
__device__ int deep(volatile int* x) { volatile int y[64]; y[0] = *x + 1; return deep(y) + y[0]; }
__global__ void f(int n) { __syncthreads(); volatile int x = n; if (threadIdx.x == 1) deep(&x); }
''', device="cpu")
kernel(1, threads=64)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1])}
    run = subprocess.run([sys.executable, "-c", program], env=environment, check=False, timeout=60)
    assert run.returncode == -signal.SIGSEGV


@pytest.mark.parametrize("text", ["penstock::files& x", "penstock::array<int> &x", "const int& x"])
def test_a_reference_is_refused_in_its_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"f, line 3: parameter 2 .* takes no references: take it by value"):
        penstock.kernel(f"\n\n__global__ void f(int n, {text}) {{}}")


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ({"grid": (2**31 - 1, 2, 65536)}, "a grid of 2147483647 x 2 x 65536 blocks: it has up to"),
        ({"threads": 2**39}, "a grid of 2147483648 x 1 x 1 blocks"),
        ({"block": (2**31 - 1, 2**31 - 1, 4)}, "a block has 1 to 1024 threads"),
        ({"block": (1, 1, 65)}, "a block has 1 to 1024 threads, up to 64 of them along z"),
        ({"threads": 2**40}, "threads 1099511627776: give a whole number from 1 to 1099511627775"),
        ({"grid": 1, "shared": 2**31 - 1}, "2147483647 bytes of shared memory: a block has up to"),
    ],
)
def test_a_launch_that_no_gpu_has_is_refused_on_the_cpu(shape: dict[str, Any], sentence: str) -> None:
    kernel = penstock.kernel("__global__ void f(int* n) { ++*n; }", device="cpu")
    count = np.zeros(1, np.int32)
    with pytest.raises(ValueError, match=f"kernel f: .*{sentence}"):
        kernel(count, **shape)
    assert count[0] == 0


def test_blocks_without_number_end_at_the_deadline() -> None:
    kernel = penstock.kernel("__global__ void f(int* n) {}", device="cpu")
    before = time.monotonic()
    with pytest.raises(TimeoutError, match="kernel f: it ran past its deadline"):
        kernel(np.zeros(1, np.int32), grid=(2**31 - 1, 65535, 65535), block=1, timeout=0.1)
    assert time.monotonic() - before < 20


def test_the_deadline_of_a_launch_is_no_matter_to_another() -> None:
    kernel = penstock.kernel(
        "__global__ void f(int* n, int rounds) { for (volatile int k = 0; k < rounds; ++k); ++*n; }",
        device="cpu",
    )
    late = 0

    def pass_deadlines() -> None:
        nonlocal late
        for _ in range(10):
            try:
                kernel(np.zeros(1, np.int32), 2_000_000, grid=10, block=1, timeout=1e-3)
            except TimeoutError:
                late += 1

    others = threading.Thread(target=pass_deadlines)
    others.start()
    count, launches = np.zeros(1, np.int32), 0
    while others.is_alive() or launches == 0:
        kernel(count, 1000, grid=1, block=1, timeout=60)
        launches += 1
    others.join()
    assert (int(count[0]), late > 0) == (launches, True)


def test_what_a_number_must_be_is_named() -> None:
    kernel = penstock.kernel("__global__ void f(int n, bool b, float x, float4 v) {}", device="cpu")
    good = (1, True, 1.0, (1, 2, 3, 4))
    for position, value, error, sentence in [
        (0, 1.0, TypeError, "give a whole number"),
        (1, 2, TypeError, "give 0 or 1"),
        (2, "1", TypeError, "give a number"),
        (3, (1, 2, 3, 1e300), OverflowError, "is out of the range of float4"),
        (3, np.zeros((2, 1)), TypeError, "give 4 numbers"),
        (3, 1.0, TypeError, "1.0: give 4 numbers"),
        (3, (1, 2, 3), TypeError, "give 4 numbers"),
        (3, ((1, 2), 3), TypeError, "give 4 numbers"),
        (3, "abcd", TypeError, "give 4 numbers"),
    ]:
        with pytest.raises(error, match=rf"argument {position + 1} .*: .*{sentence}"):
            kernel(*good[:position], value, *good[position + 1 :])
    kernel(1, True, 1.0, (1, 2, np.nan, np.inf))


def test_a_tensor_of_other_numbers_than_lie_there_is_refused() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    kernel = penstock.kernel("__global__ void f(const float* p) {}", device="cpu")
    negated = torch.tensor([1 + 2j]).conj().imag
    with pytest.raises(ValueError, match=r"argument 1 .* is a neg view: give its .resolve_neg\(\)"):
        kernel(negated)
    with pytest.raises(ValueError, match=r"from_tensor: it is a neg view"):
        penstock.from_tensor(negated, "host")
    kernel(negated.resolve_neg())


def test_memory_that_no_vector_begins_at_is_refused(device: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    floats = torch.zeros(17, device=device)
    vectors = penstock.kernel("__global__ void f(float4* p) { p[0].w = 1; }", device=device)
    threes = penstock.kernel("__global__ void f(float3* p) { p[0].z = 1; }", device=device)
    for _ in range(2):  # the second time as one that is known
        vectors(floats[4:], threads=1).wait()
        threes(floats[9:], threads=1).wait()
        with pytest.raises(
            ValueError, match=r"it begins at no multiple of 16 bytes: give a copy, or declare float\*"
        ):
            vectors(floats[1:], threads=1)
    assert floats.nonzero().flatten().tolist() == [7, 11]
    if device == "cpu":
        bytes_ = np.zeros(40, np.uint8)
        whole = penstock.kernel("__global__ void f(int* p) { p[0] = 1; }", device=device)
        with pytest.raises(ValueError, match="it begins at no multiple of 4 bytes"):
            whole(bytes_[1:5].view(np.int32), threads=1)


def test_options_of_another_type_are_refused(tmp_path: Path) -> None:
    source = "__global__ void f() {}"
    wrong: Any
    for wrong in (tmp_path / "none", 3):
        with pytest.raises(ValueError, match=r"include_dirs .*: there is no such folder"):
            penstock.kernel(source, device="cpu", include_dirs=[wrong])
    wrong = "yes"
    with pytest.raises(TypeError, match="check_bounds yes: give True or False"):
        penstock.kernel(source, device="cpu", check_bounds=wrong)
